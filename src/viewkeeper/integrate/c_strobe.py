"""C-Strobe (Zhuge et al., PDIS 1996; Section 3): keyed views, one update at a time. Complete, at a price.

A delete removes rows of the view by their key. An insert asks for R₁ ⋈ … ⋈ ΔRᵢ ⋈ … ⋈ Rₙ, one relation after
the other, and compensates when all have answered, for every update that has come since ΔRᵢ:

    a row that was inserted since is taken out of what was found;
    a row that was deleted since may be missing, so what it takes part in is asked for: for each relation Rⱼ,

        Qⱼ = … ⋈ ΔRᵢ ⋈ … ⋈ {deleted from Rⱼ} ⋈ …        whose answer is compensated in the same way.

Queries ask queries: up to (n − 1)! for one update. What a row was when ΔRᵢ came shows in the first thing that
happened to it since: if it was deleted first it was there, if it was inserted first it was not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.integrate.bags import Bag, Row, picker
from viewkeeper.integrate.keyed import deleted, inserted, keys_of, require_keys, without_keys
from viewkeeper.integrate.messages import Answer, Output, Query, Update, UpdateId, ViewChange
from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.views import JoinView
from viewkeeper.integrate.waiting import Waiting


@dataclass(slots=True, eq=False)
class _Question:
    """A query on its way. ``bound``: the relations that known rows stand for; they need not be asked."""

    bound: Mapping[str, Bag]
    partial: Bag
    ahead: deque[str]
    asked: list[str] = field(default_factory=list)


class CStrobe:
    """The state machine. It must know the view: ``contents`` is what it holds in the beginning."""

    def __init__(self, view: JoinView, contents: Bag) -> None:
        require_keys(view, "C-Strobe")
        self._view = view
        self._contents = contents
        self._published = contents
        self._relations = {relation.name: relation for relation in view.relations}
        self._columns = tuple(dict.fromkeys(column for each in view.relations for column in each.columns))
        self._routes = Routes(view)
        self._waiting = Waiting()
        self._step: list[UpdateId] = []
        self._to_do: deque[tuple[str, Bag]] = deque()
        self._inserting: str | None = None
        self._found = Bag(self._columns, {})
        self._open: dict[int, _Question] = {}
        self._queries = 0

    @property
    def asked(self) -> Collection[int]:
        return self._open.keys()

    @property
    def incomplete(self) -> Sequence[str]:
        return self._waiting.incomplete

    def receive(self, message: Update | Answer) -> list[Output]:
        """Take an update or an answer, and go on as far as that leads."""
        outputs: list[Output] = []
        if isinstance(message, Update):
            self._waiting.add(message)
        else:
            question = self._open.pop(message.query)
            question.asked.append(question.ahead.popleft())
            question.partial = message.rows
            outputs.extend(self._pursue(question))
        if not self._open:
            outputs.extend(self._go_on())
        return outputs

    def _go_on(self) -> Iterator[Output]:
        """To the next insert that must ask, or until nothing is left to do."""
        while not self._open:
            if self._inserting is not None:
                self._insert_found()
            elif self._to_do:
                yield from self._do(*self._to_do.popleft())
            else:
                if self._step:
                    yield ViewChange(tuple(self._step), self._contents.minus(self._published))
                    self._published, self._step = self._contents, []
                group = self._waiting.take_next()
                if group is None:
                    return
                self._step.extend(update.id for update in group)
                self._to_do.extend(change for update in group for change in update.changes.items())

    def _do(self, name: str, rows: Bag) -> Iterator[Query]:
        gone, came = deleted(rows), inserted(rows)
        keys = keys_of(self._relations[name], gone.rows.keys())
        self._contents = without_keys(self._contents, self._relations[name], keys)
        if came.rows:
            self._inserting = name
            yield from self._pursue(_Question({name: came}, came, deque(self._routes.from_(name))))

    def _pursue(self, question: _Question) -> Iterator[Query]:
        while question.ahead:
            name = question.ahead[0]
            if name not in question.bound:
                # What compensates may turn out to be nothing; what an update asks goes all the way.
                if not question.partial.rows and len(question.bound) > 1:
                    break
                self._queries += 1
                self._open[self._queries] = question
                yield Query(self._queries, self._relations[name], question.partial)
                return
            question.partial = question.partial.join(question.bound[question.ahead.popleft()])
        if not question.ahead:
            found = question.partial.arranged(self._columns)
            self._found = Bag(self._columns, {**self._found.rows, **found.rows})
        yield from self._compensate(question)

    def _compensate(self, question: _Question) -> Iterator[Query]:
        """Ask for what was missed: at a relation that was asked, for only there a row could be missing."""
        assert self._inserting is not None
        start = question.bound[self._inserting]
        for name in question.asked:
            gone = {row: 1 for row, sign in self._first_changes(name).items() if sign < 0}
            if gone:
                bound = {**question.bound, name: Bag(self._relations[name].columns, gone)}
                yield from self._pursue(_Question(bound, start, deque(self._routes.from_(self._inserting))))

    def _insert_found(self) -> None:
        assert self._inserting is not None
        found = self._found
        for relation in self._view.relations:
            if relation.name != self._inserting:
                new = {row for row, sign in self._first_changes(relation.name).items() if sign > 0}
                pick = picker(found.columns, relation.columns)
                found = Bag(found.columns, {row: 1 for row in found.rows if pick(row) not in new})
        self._contents = self._contents.plus(self._view.finish(found))
        self._found, self._inserting = Bag(self._columns, {}), None

    def _first_changes(self, name: str) -> dict[Row, int]:
        """What happened first to each row of a relation since the update that is at work came."""
        first: dict[Row, int] = {}
        for each, rows in self._to_do:
            if each == name:
                first = {**rows.rows, **first}
        for update in self._waiting.of(self._relations[name].source):
            if name in update.changes:
                first = {**update.changes[name].rows, **first}
        return first
