"""The join behind a view of remote tables, as a source: what it holds is swept, not copied.

Its version says where each database stands. The first content is joined by Spark from one snapshot of each
database, taken exactly where its changes begin; from then on ΔJ is swept::

    current()        how far each database has come, as far as the view is to be taken
    change()         the sweep
    acknowledge()    the epoch is published: the databases may forget what it covers
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.define.sources import PostgresOptions, SourceDefinition, checked_options
from viewkeeper.errors import SourceError
from viewkeeper.integrate.joins import RemoteTable, SweptJoin, family, first_content
from viewkeeper.integrate.messages import Query
from viewkeeper.integrate.politeness import Politeness
from viewkeeper.integrate.questions import Question
from viewkeeper.integrate.remote import Remote, Reply, Taken, remote
from viewkeeper.integrate.sweeping import Sweeping, concerns, truncates
from viewkeeper.sources.contract import Capabilities, Description, Shelf, SourceColumn
from viewkeeper.sources.extracted import Extracted, QueriedChange
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.postgres_copy import Copying
from viewkeeper.sources.postgres_delta import STAGED, PinnedTable, signed_rows
from viewkeeper.sources.postgres_server import Server, Snapshot

COMPLETE = "complete"
"""One published state for each transaction; otherwise as many at a time as are waiting."""
_SLOTS = "slots"
"""Under this name it is remembered what captures changes for us."""
_FACTS = ("join", "slot", "consistency")
T = TypeVar("T")


def sweep_facts(join: SweptJoin, consistency: str) -> tuple[tuple[str, str], ...]:
    """What a source has to know to sweep a view."""
    slot = f"vk_{uuid.uuid4().hex[:20]}"
    return tuple(zip(_FACTS, (join.to_json(), slot, consistency), strict=True))


def sources_of_join(definition: SourceDefinition) -> tuple[str, ...]:
    """The declared sources that a swept join reads."""
    return SweptJoin.of_json(dict(definition.facts)["join"]).sources


def remote_tables(definition: SourceDefinition) -> dict[str, PinnedTable]:
    """The tables of a source that are not copied, as they were when it was declared."""
    pinned = [PinnedTable.of_json(each) for each in json.loads(definition.fact("remote") or "[]")]
    return dict(zip(definition.remote_tables, pinned, strict=True))


@dataclass(frozen=True, slots=True)
class PartOfShelf:
    """What is remembered of one database."""

    shelf: Shelf
    part: str

    def load(self, version: str) -> Mapping[str, Any] | None:
        return self.shelf.load(f"{self.part} {version}")

    def save(self, version: str, content: Mapping[str, Any]) -> None:
        self.shelf.save(f"{self.part} {version}", content)

    def forget_others(self, version: str) -> None:
        """Everything is still needed."""


class SweptSource(Extracted):
    """The join of one view."""

    capabilities = Capabilities(rows_at_version=False, lists_versions=False, acknowledges=True)

    def __init__(
        self,
        spark: SparkSession,
        definition: SourceDefinition,
        shelf: Shelf,
        members: Mapping[str, SourceDefinition],
    ) -> None:
        self._spark = spark
        self._definition = definition
        self._shelf = shelf
        self._members = members
        (self._table,) = definition.all_tables
        facts = dict(definition.facts)
        self._join = SweptJoin.of_json(facts["join"])
        self._slot = facts["slot"]
        self._consistency = facts["consistency"]
        self._seen: str | None = None
        self._snapshots: dict[str, Snapshot] = {}
        self._views: set[str] = set()
        self._batch: dict[str, list[Taken]] = {}
        self.has_more = False
        """Whether more waits than is taken in: one transaction at a time, if every state is to be seen."""

    # What it is.

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        return definition

    def describe(self, table: str) -> Description:
        return Description(tuple(SourceColumn(name, spark) for name, _, spark in self._join.types), None, ())

    def problems(self) -> Sequence[str]:
        """Those of the databases are told by the sources themselves."""
        return ()

    @cached_property
    def _tables(self) -> dict[str, PinnedTable]:
        """The tables of the join, as they were when their source was declared."""
        known: dict[str, PinnedTable] = {}
        for member in self._members.values():
            known |= remote_tables(member)
        return {relation.table: known[relation.table] for relation in self._join.relations}

    @cached_property
    def _remotes(self) -> dict[str, Remote]:
        return {name: self._remote(name, self._slot) for name in self._join.sources}

    def _remote(self, source: str, slot: str) -> Remote:
        options = checked_options(self._members[source])
        assert isinstance(options, PostgresOptions)
        ours = [self._tables[each.table] for each in self._join.relations if each.source == source]
        paths = tuple(dict.fromkeys(f"{table.namespace}.{table.name}" for table in ours))
        server = Server(source, options.over(paths).model_copy(update={"publication": None}))
        return remote(server, slot, list(dict.fromkeys(ours)), PartOfShelf(self._shelf, source))

    def _politely(self, source: str, act: Callable[[], T]) -> T:
        server = self._remotes[source].server
        return Politeness(server.options, PartOfShelf(self._shelf, source), source).run(act)

    # Where it stands.

    def show(self, table: str, rows: str | None, version: str | None) -> None:
        self._seen = None if rows is None else version

    def current(self) -> Mapping[str, str | None]:
        self.let_go()
        start = None if self._seen is None else _positions(self._seen)
        if start is None or start.keys() != self._remotes.keys():
            return {self._table: self._copy()}
        waiting = {
            source: self._politely(source, lambda each=each, at=start[source]: each.start(at))  # type: ignore[misc]
            for source, each in self._remotes.items()
        }
        if any(truncates(self._tables, each.transaction) for taken in waiting.values() for each in taken):
            return {self._table: self._copy()}
        self._batch = self._chosen(waiting) if self._concerned(waiting) else {}
        reached = {source: taken[-1].position for source, taken in self._batch.items() if taken}
        return {self._table: _version({**start, **reached})}

    def _chosen(self, waiting: Mapping[str, list[Taken]]) -> dict[str, list[Taken]]:
        """What is taken in: all that waits, or the first transaction that concerns the view."""
        self.has_more = False
        if self._consistency != COMPLETE:
            return dict(waiting)
        chosen: dict[str, list[Taken]] = {}
        firsts: list[tuple[Any, str]] = []
        for source, taken in waiting.items():
            at = next((at for at, each in enumerate(taken) if concerns(self._tables, each.transaction)), None)
            chosen[source] = taken if at is None else taken[:at]
            if at is not None:
                firsts.append((taken[at].transaction.committed_at, source))
        if firsts:
            _, first = min(firsts)
            chosen[first] = waiting[first][: len(chosen[first]) + 1]
        self.has_more = any(len(chosen[source]) < len(taken) for source, taken in waiting.items())
        return chosen

    def _concerned(self, waiting: Mapping[str, list[Taken]]) -> bool:
        return any(concerns(self._tables, each.transaction) for taken in waiting.values() for each in taken)

    def holds(self, table: str, version: str) -> bool:
        """Snapshots are taken first: if nothing waits after that, they are the state of the version."""
        self.let_go()
        positions = _positions(version)
        self._copy()
        if self._concerned({source: each.start(positions[source]) for source, each in self._remotes.items()}):
            self.let_go()
            return False
        return True

    # The first content.

    def _copy(self) -> str:
        """A snapshot of each database, and the version that it is of."""
        kept = self._shelf.load(_SLOTS) or {"is": None, "before": []}
        if kept["is"] != self._slot:
            before = [each for each in (kept["is"], *kept["before"]) if each]
            self._shelf.save(_SLOTS, {"is": self._slot, "before": before})
        self._batch = {}
        for source, each in self._remotes.items():
            self._snapshots[source] = self._politely(source, each.begin)
        return _version({source: each.position for source, each in self._snapshots.items()})

    def rows(self, table: str, version: str | None) -> str:
        if not self._snapshots:
            raise SourceError(
                f"the databases that {self._definition.name} joins keep no history: "
                f"version {version} cannot be read",
                code="VK-NO-HISTORY",
            )
        parts = {each.name: self._named(self._copied(each), each.name) for each in self._join.relations}
        return self._named(self._spark.sql(first_content(self._join, parts)), str(version))

    def _copied(self, relation: RemoteTable) -> DataFrame:
        pinned, server = self._tables[relation.table], self._remotes[relation.source].server
        types = {name: pinned.types[name] for name in relation.stored}
        copying = Copying(self._spark, server, pinned.sql, types, relation.where)
        return copying.rows(self._snapshots[relation.source].name)

    def _named(self, rows: DataFrame, what: str) -> str:
        told = hashlib.sha256(f"{self._definition.name} {what}".encode()).hexdigest()[:20]
        name = f"vk_sweep_{told}"
        rows.createOrReplaceGlobalTempView(name)
        self._views.add(name)
        return f"global_temp.{name}"

    # Changes.

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> QueriedChange | None:
        assert new is not None
        if old == new:
            return None
        if self._snapshots:
            raise SourceError("a remote table was emptied, and which rows it had is not known any more",
                              code="VK-SOURCE-EXPIRED")  # fmt: skip
        sweeping = Sweeping(self._join, self._tables, self._ask)
        batch = {source: [each.transaction for each in taken] for source, taken in self._batch.items()}
        found = sweeping.run(batch)
        net = NetChanges(self._join.columns, ())
        net.rows.update(found.rows)  # type: ignore[arg-type]  # texts, as the log has them
        columns = tuple((name, postgres, spark, 0) for name, postgres, spark in self._join.types)
        staged = signed_rows(net, PinnedTable("", self._definition.name, columns, ()), "")
        name = self._named(self._spark.createDataFrame(staged.table()), new)
        selects = tuple(select.replace(STAGED, name) for select in staged.selects)
        return QueriedChange(
            table, old, new, staged.inserted, staged.deleted, _told(batch, sweeping), selects
        )

    def _ask(self, relation: RemoteTable, on: tuple[str, ...], query: Query) -> Reply:
        pinned, source = self._tables[relation.table], self._remotes[relation.source]
        kinds = tuple(family(pinned.types[name].name) or "text" for name in on)
        question = Question(pinned, relation.stored, on, kinds, sorted(query.keys), relation.where)
        return self._politely(relation.source, lambda: source.ask(question))

    # After the epoch.

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """What the epoch covers is kept beside its version."""
        for reached in version.values():
            if reached is not None:
                covered = {
                    source: [
                        each.transaction.xid for each in taken if concerns(self._tables, each.transaction)
                    ]
                    for source, taken in self._batch.items()
                }
                self._shelf.save(reached, {"consistency": self._consistency, "transactions": covered})

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        self.let_go()
        for reached in version.values():
            for source, position in _positions(reached or "{}").items():
                self._remotes[source].acknowledge(position)
        self._release_older()

    def rest(self) -> None:
        if not any(self._batch.values()) and not self._snapshots:
            for each in self._remotes.values():
                each.rest()

    def lag(self, version: str) -> Lag:
        """What waits in all databases together."""
        positions = _positions(version)
        lags = [each.lag(positions[source]) for source, each in self._remotes.items()]
        return Lag(sum(each.transactions for each in lags), max(each.seconds for each in lags))

    def release(self) -> None:
        """A slot that nobody reads fills the server's disk."""
        self.let_go()
        kept = self._shelf.load(_SLOTS) or {"is": self._slot, "before": []}
        self._give_back([kept["is"], *kept["before"]])

    def give_up(self) -> None:
        """It was not defined after all: only what captured changes before is left."""
        self.let_go()
        kept = self._shelf.load(_SLOTS)
        if kept is not None and kept["is"] == self._slot:
            self._give_back([self._slot])
            before = kept["before"]
            self._shelf.save(_SLOTS, {"is": before[0] if before else None, "before": before[1:]})

    def _release_older(self) -> None:
        kept = self._shelf.load(_SLOTS)
        if kept is not None and kept["before"]:
            self._give_back(kept["before"])
            self._shelf.save(_SLOTS, {"is": kept["is"], "before": []})

    def _give_back(self, slots: Sequence[str]) -> None:
        for slot in slots:
            for source in self._join.sources:
                self._remote(source, slot).release()

    def let_go(self) -> None:
        while self._views:
            self._spark.catalog.dropGlobalTempView(self._views.pop())
        while self._snapshots:
            self._snapshots.popitem()[1].close()


def _positions(version: str) -> dict[str, str]:
    return dict(json.loads(version))


def _version(positions: Mapping[str, str]) -> str:
    return json.dumps(positions, sort_keys=True)


def _told(batch: Mapping[str, Sequence[object]], sweeping: Sweeping) -> str:
    took = sweeping.traffic
    which = ", ".join(f"{len(each):,} of {source}" for source, each in batch.items() if each)
    corrected = f", {took.compensated} corrected" if took.compensated else ""
    return (
        f"swept: transactions {which}; {took.queries} questions, {took.keys:,} keys sent, "
        f"{took.rows:,} rows back{corrected}"
    )
