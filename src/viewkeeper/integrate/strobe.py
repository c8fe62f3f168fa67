"""Strobe (Zhuge et al., PDIS 1996; Section 3): keyed views, changed when all is quiet. Strongly consistent.

A delete asks nobody: it removes rows by their key, from the view and from every query that is open. An insert
asks for R₁ ⋈ … ⋈ ΔRᵢ ⋈ … ⋈ Rₙ, one relation after the other. Answers are not compensated:

    A₁ = ΔR₁ ⋈ R₂ ⋈ R₃ + ΔR₁ ⋈ ΔR₂ ⋈ R₃        A₂ = R₁ ⋈ ΔR₂ ⋈ R₃ + ΔR₁ ⋈ ΔR₂ ⋈ R₃

What concurrent inserts find twice has the same keys, and is kept once. All this goes into a list of actions,
which is carried out in one step when no query is open; if updates never pause, that is never.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.keyed import deleted, inserted, keys_of, require_keys, without_keys
from viewkeeper.integrate.messages import Answer, Output, Query, Update, UpdateId, ViewChange
from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.transactions import OpenTransactions
from viewkeeper.integrate.views import JoinView, Relation


@dataclass(frozen=True, slots=True)
class _Delete:
    """Remove the rows that were made of rows of the relation with these keys."""

    relation: Relation
    keys: frozenset[Row]


_Action: TypeAlias = _Delete | Bag
"""A bag is to be inserted, but for what is there already."""


@dataclass(slots=True, eq=False)
class _Insert:
    """An insert on its way, and the deletes that have come since."""

    partial: Bag
    ahead: deque[str]
    deletes: list[_Delete] = field(default_factory=list)


class Strobe:
    """The state machine. It must know the view: ``contents`` is what it holds in the beginning."""

    def __init__(self, view: JoinView, contents: Bag) -> None:
        require_keys(view, "Strobe")
        self._view = view
        self._contents = contents
        self._relations = {relation.name: relation for relation in view.relations}
        self._routes = Routes(view)
        self._open: dict[int, _Insert] = {}
        self._actions: list[_Action] = []
        self._transactions = OpenTransactions()
        self._covered: list[UpdateId] = []
        self._queries = 0

    @property
    def asked(self) -> Collection[int]:
        return self._open.keys()

    @property
    def incomplete(self) -> Sequence[str]:
        return self._transactions.ids

    def receive(self, message: Update | Answer) -> list[Output]:
        """Take an update or an answer, and go on as far as that leads."""
        outputs: list[Output] = []
        if isinstance(message, Update):
            outputs.extend(self._take_update(message))
        else:
            insert = self._open.pop(message.query)
            insert.partial = message.rows
            outputs.extend(self._go_on(insert))
        if self._covered and not self._open and not self._transactions.ids:
            outputs.append(self._carry_out())
        return outputs

    def _take_update(self, update: Update) -> Iterator[Query]:
        self._transactions.note(update)
        self._covered.append(update.id)
        for name, rows in update.changes.items():
            gone = deleted(rows)
            if gone.rows:
                delete = _Delete(self._relations[name], keys_of(self._relations[name], gone.rows.keys()))
                self._actions.append(delete)
                for insert in self._open.values():
                    insert.deletes.append(delete)
        for name, rows in update.changes.items():
            came = inserted(rows)
            if came.rows:
                yield from self._go_on(_Insert(came, deque(self._routes.from_(name))))

    def _go_on(self, insert: _Insert) -> Iterator[Query]:
        if insert.ahead:
            self._queries += 1
            self._open[self._queries] = insert
            yield Query(self._queries, self._relations[insert.ahead.popleft()], insert.partial)
            return
        found = insert.partial
        for delete in insert.deletes:
            found = without_keys(found, delete.relation, delete.keys)
        self._actions.append(self._view.finish(found))

    def _carry_out(self) -> ViewChange:
        new = self._contents
        for action in self._actions:
            match action:
                case _Delete(relation, keys):
                    new = without_keys(new, relation, keys)
                case Bag():
                    new = Bag(new.columns, {**new.rows, **action.rows})
        change = ViewChange(tuple(self._covered), new.minus(self._contents))
        self._contents, self._actions, self._covered = new, [], []
        return change
