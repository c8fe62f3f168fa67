"""Runs a sweep over real databases: hands updates and answers to the state machine that the simulator runs.

A batch of transactions of each source is one update; those that come while it is swept are handed in as they
are seen, so that their errors are taken out, and are left for the next batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.errors import SourceError
from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.integrator import Integrator
from viewkeeper.integrate.joins import RemoteTable, SweptJoin
from viewkeeper.integrate.messages import Answer, Compensation, Output, Query, Update, UpdateId, ViewChange
from viewkeeper.integrate.remote import Reply
from viewkeeper.integrate.sweep import Sweep
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.pgoutput import Operation, RowChange, Transaction
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_drift import speaks_of

Batch = Mapping[str, Sequence[Transaction]]
"""Transactions of each source, in order."""
Ask = Callable[[RemoteTable, tuple[str, ...], Query], Reply]
"""Asks for the rows of a relation that have the keys of a query in these columns of the table."""


@dataclass(slots=True)
class Traffic:
    """What a sweep took."""

    changed: int = 0
    queries: int = 0
    keys: int = 0
    rows: int = 0
    compensated: int = 0
    """Answers that something had to be taken out of."""


@dataclass(slots=True)
class Sweeping:
    """The sweep of one batch."""

    join: SweptJoin
    tables: Mapping[str, PinnedTable]
    ask: Ask
    traffic: Traffic = field(default_factory=Traffic)
    _numbers: Counter[str] = field(default_factory=Counter)
    _ends: dict[UpdateId, frozenset[int]] = field(default_factory=dict)

    def run(self, batch: Batch, later: Batch) -> Bag:
        """ΔJ of the batch. ``later``: what is known already, and left for another."""
        view = self.join.view
        integrator = Integrator(view, Sweep(view))
        total = Bag(self.join.columns, {})
        open_ = {
            update.id: update for update in (self._update(*each) for each in batch.items()) if update.changes
        }
        outputs: list[Output] = []
        for update in open_.values():
            self.traffic.changed += sum(len(rows.rows) for rows in update.changes.values())
            outputs += integrator.receive(update)
        for source, transactions in later.items():
            outputs += self._told(integrator, source, transactions)
        left = set(open_)
        while left:
            output = outputs.pop(0)
            if isinstance(output, ViewChange):
                left -= set(output.updates)
                total = total.plus(output.rows)
            elif isinstance(output, Query):
                outputs += self._answered(integrator, output)
            else:
                assert isinstance(output, Compensation)
                self.traffic.compensated += 1
        return total

    def _answered(self, integrator: Integrator, query: Query) -> Sequence[Output]:
        relation = next(each for each in self.join.relations if each.name == query.relation.name)
        stored = {joined: name for name, joined in relation.columns}
        source, outputs = query.source, list[Output]()
        rows, contains = Bag(relation.joined, {}), None
        if query.keys:
            reply = self.ask(relation, tuple(stored[name] for name in query.shared), query)
            self.traffic.queries += 1
            self.traffic.keys += len(query.keys)
            self.traffic.rows += len(reply.rows)
            outputs += self._told(integrator, source, reply.news)
            rows = Bag(relation.joined, Counter(reply.rows))
            contains = self._contained(source, reply.contains)
        self._numbers[source] += 1
        answer = Answer(source, self._numbers[source], query.number, query.partial.join(rows), contains)
        return [*outputs, *integrator.receive(answer)]

    def _told(
        self, integrator: Integrator, source: str, transactions: Sequence[Transaction]
    ) -> Iterator[Output]:
        """Hand in what happened at a source."""
        for transaction in transactions:
            update = self._update(source, [transaction])
            if update.changes:
                yield from integrator.receive(update)

    def _contained(self, source: str, ends: frozenset[int] | None) -> frozenset[int] | None:
        if ends is None:
            return None
        return frozenset(number for (of, number), its in self._ends.items() if of == source and its <= ends)

    def _update(self, source: str, transactions: Sequence[Transaction]) -> Update:
        """What transactions did to the relations of a source, as one."""
        changes: dict[str, Bag] = {}
        for relation in self.join.relations:
            if relation.source == source:
                net = NetChanges(relation.stored, ())
                for transaction in transactions:
                    net.take(_concerning(self.tables[relation.table], transaction))
                rows: dict[Row, int] = {row: weight for row, weight in net.rows.items() if weight}
                if rows:
                    changes[relation.name] = Bag(relation.joined, rows)
        if not changes:
            return Update(source, 0, {})
        self._numbers[source] += 1
        update = Update(source, self._numbers[source], changes)
        self._ends[update.id] = frozenset(each.end for each in transactions)
        return update


def _concerning(table: PinnedTable, transaction: Transaction) -> list[RowChange]:
    types = {name: type_id for name, _, _, type_id in table.columns}
    found = []
    for change in transaction.changes:
        if not speaks_of(table, change.relation):
            continue
        where = f"{table.namespace}.{table.name}"
        if change.operation is Operation.TRUNCATE:
            raise SourceError(
                f"{where} was emptied while the view was swept",
                code="VK-SOURCE-LIMIT",
                hint="Nothing was changed. Refresh again: the tables are read anew then.",
            )
        for name, type_id, _ in change.relation.columns:
            if types.get(name, type_id) != type_id:
                raise SourceError(
                    f"column {name} of {where} has another type now",
                    code="VK-SOURCE-CHANGED",
                    hint="Create the source and the view anew.",
                )
        found.append(change)
    return found
