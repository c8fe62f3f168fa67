"""Nested SWEEP (Section 6): updates that interfere are swept along and published together. Strong.

While ΔRᵢ is swept, the partial result over the relations S that were asked so far is the change of their
join, from the states before the step to the states c that it leads to. When Rⱼ answers and updates ΔRⱼ have
come:

    Δ(⋈S ⋈ Rⱼ) = Δ(⋈S) ⋈ Rⱼ  +  ⋈S(c) ⋈ ΔRⱼ                                                              (6.1)

The first part is the answer, compensated as in SWEEP. The second is what ΔRⱼ does to the same relations,
found by a sweep of its own that asks S only: the recursive call of Figure 6. From there on both go the same
way, and what is left of the route is asked once for both.

Two relations that keep on changing could keep it going up and down between them for ever. So a step takes in
at most ``limit`` updates; what comes then is compensated and left for the next step, which is SWEEP again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.compensating import Change, added_up, compensate
from viewkeeper.integrate.messages import Answer, Output, Query, Update, UpdateId, ViewChange
from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.views import JoinView
from viewkeeper.integrate.waiting import Waiting


@dataclass(slots=True, eq=False)
class _Frame:
    """One call of the paper's ViewChange: the change of the relations that are covered."""

    partial: Bag
    covered: set[str]
    ahead: deque[str]


class NestedSweep:
    """The state machine: one query at a time, and a stack of frames."""

    def __init__(self, view: JoinView, *, limit: int = 100) -> None:
        self._view = view
        self._relations = {relation.name: relation for relation in view.relations}
        self._routes = Routes(view)
        self._limit = limit
        self._waiting = Waiting()
        self._taken: list[UpdateId] = []
        self._to_sweep: deque[tuple[str, Change]] = deque()
        self._swept: dict[str, list[Change]] = {}
        self._rows = Bag(view.output, {})
        self._frames: list[_Frame] = []
        self._query: Query | None = None
        self._queries = 0

    @property
    def asked(self) -> Collection[int]:
        return () if self._query is None else (self._query.number,)

    @property
    def incomplete(self) -> Sequence[str]:
        return self._waiting.incomplete

    def receive(self, message: Update | Answer) -> list[Output]:
        """Take an update or an answer, and go on as far as that leads."""
        outputs: list[Output] = []
        if isinstance(message, Update):
            self._waiting.add(message)
        else:
            outputs.extend(self._take_answer(message))
        if self._query is None:
            outputs.extend(self._go_on())
        return outputs

    def _go_on(self) -> Iterator[Output]:
        """To the next query, or until nothing is left to do."""
        while True:
            while self._frames:
                if self._frames[-1].ahead:
                    yield self._ask(self._frames[-1])
                    return
                self._return()
            if self._to_sweep:
                relation, change = self._to_sweep.popleft()
                self._call(relation, [change], among=self._relations)
                continue
            if self._taken:
                yield ViewChange(tuple(self._taken), self._rows)
                self._taken, self._swept, self._rows = [], {}, Bag(self._view.output, {})
            group = self._waiting.take_next()
            if group is None:
                return
            for update in group:
                self._taken.append(update.id)
                self._to_sweep.extend((name, (update.id, rows)) for name, rows in update.changes.items())

    def _call(self, relation: str, changes: Sequence[Change], among: Collection[str]) -> None:
        """Sweep the changes of a relation, added up, over the others of these."""
        self._swept.setdefault(relation, []).extend(changes)
        rows = added_up(rows for _, rows in changes)
        self._frames.append(_Frame(rows, {relation}, deque(self._routes.within(relation, among))))

    def _return(self) -> None:
        done = self._frames.pop()
        if self._frames:
            self._frames[-1].partial = self._frames[-1].partial.plus(done.partial)
        else:
            self._rows = self._rows.plus(self._view.finish(done.partial))

    def _ask(self, frame: _Frame) -> Query:
        self._queries += 1
        self._query = Query(self._queries, self._relations[frame.ahead[0]], frame.partial)
        return self._query

    def _take_answer(self, answer: Answer) -> Iterator[Output]:
        query, self._query = self._query, None
        assert query is not None
        frame = self._frames[-1]
        relation = frame.ahead.popleft()
        frame.covered.add(relation)
        frame.partial, compensations = compensate(
            query,
            answer,
            later=[*self._left_in_step(relation), *self._left_waiting(relation)],
            earlier=self._swept.get(relation, ()),
        )
        yield from compensations
        taken = list(self._take_in(relation))
        if taken:
            self._call(relation, taken, among=frame.covered)

    def _left_in_step(self, relation: str) -> Iterator[Change]:
        return (change for name, change in self._to_sweep if name == relation)

    def _left_waiting(self, relation: str) -> Iterator[Change]:
        for update in self._waiting.of(self._relations[relation].source):
            if relation in update.changes:
                yield update.id, update.changes[relation]

    def _take_in(self, relation: str) -> Iterator[Change]:
        """The updates that are swept along: the first of the source, as long as they change this relation
        alone. One that changes more, here or elsewhere, must come whole, and one behind it must not
        overtake."""
        source = self._relations[relation].source
        while len(self._taken) < self._limit:
            update = next(self._waiting.of(source), None)
            if update is None or update.transaction or update.changes.keys() != {relation}:
                return
            self._waiting.take_first(source)
            self._taken.append(update.id)
            yield update.id, update.changes[relation]
