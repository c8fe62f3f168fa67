"""SWEEP (Section 5): one update at a time, its errors taken out as they come. Complete.

The change of the view that ΔRᵢ makes is found by asking one relation after the other:

    ΔV = R₁ ⋈ … ⋈ ΔRᵢ ⋈ … ⋈ Rₙ

where every Rⱼ is as it was when ΔRᵢ came. Its source has gone on: what it answers to a partial result P also
has the updates that came since. They are here already, for channels keep the order, and so the error is found
here:

    P ⋈ Rⱼ = P ⋈ Rⱼ(answer) − P ⋈ Σ {ΔRⱼ : in the answer, later than ΔRᵢ}                             (5.1)

An answer that says itself what it contains may also lack an update that is earlier than ΔRᵢ; that is added.

Options (5.3). *parallel*: branches of the join graph, left and right, are swept at the same time and merged,
ΔV = ΔV_left ⋈ ΔV_right on the columns of ΔRᵢ. Both begin with ΔRᵢ; the merge would multiply its counts, and
turn its deletes positive, so all branches but one begin with its rows stripped of sign and multiplicity.
*pipeline*: so many sweeps run at a time; each has its place in the order, which says what is later, and
changes are published in that order. *merge*: the interfering updates of a relation are added up before they
are joined.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.compensating import compensate
from viewkeeper.integrate.messages import Answer, Compensation, Output, Query, Update, UpdateId, ViewChange
from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.views import JoinView
from viewkeeper.integrate.waiting import Group, Waiting


@dataclass(slots=True, eq=False)
class Delta:
    """What an update did to one relation. ``place``: in the order of sweeps; ``None`` is after all places."""

    update: UpdateId
    relation: str
    rows: Bag
    place: int | None = None

    def is_later_than(self, other: Delta) -> bool:
        assert other.place is not None
        return self.place is None or self.place > other.place


@dataclass(slots=True, eq=False)
class _Step:
    """Updates that are published together, and what was found of their change so far."""

    group: Group
    unfinished: int
    rows: Bag


@dataclass(slots=True, eq=False)
class _Sweep:
    """A delta on its way: one leg for each branch."""

    delta: Delta
    step: _Step
    legs: list[_Leg] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Leg:
    """A partial result, and the relations that it is still to be joined with."""

    sweep: _Sweep
    partial: Bag
    ahead: deque[str]


class Sweep:
    """The state machine; see above for the options."""

    def __init__(
        self, view: JoinView, *, parallel: bool = False, pipeline: int = 1, merge: bool = True
    ) -> None:
        self._view = view
        self._relations = {relation.name: relation for relation in view.relations}
        self._routes = Routes(view)
        self._parallel = parallel
        self._pipeline = pipeline
        self._merge = merge
        self._waiting = Waiting()
        self._known: dict[str, dict[UpdateId, Delta]] = {name: {} for name in self._relations}
        self._steps: deque[_Step] = deque()
        self._published: deque[tuple[int, Update]] = deque()
        self._to_start: deque[_Sweep] = deque()
        self._running = 0
        self._places = 0
        self._asked: dict[int, tuple[Query, _Leg]] = {}
        self._queries = 0

    @property
    def asked(self) -> Collection[int]:
        return self._asked.keys()

    @property
    def incomplete(self) -> Sequence[str]:
        return self._waiting.incomplete

    def receive(self, message: Update | Answer) -> list[Output]:
        """Take an update or an answer, and go on as far as that leads."""
        outputs: list[Output] = []
        if isinstance(message, Update):
            self._arrive(message)
        else:
            outputs.extend(self._take_answer(message))
        outputs.extend(self._publish())
        outputs.extend(self._start())
        self._forget()
        return outputs

    def _arrive(self, update: Update) -> None:
        for relation, rows in update.changes.items():
            self._known[relation][update.id] = Delta(update.id, relation, rows)
        self._waiting.add(update)
        while group := self._waiting.take_next():
            self._put_in_order(group)

    def _put_in_order(self, group: Group) -> None:
        step = _Step(group, 0, Bag(self._view.output, {}))
        self._steps.append(step)
        for update in group:
            for relation in update.changes:
                delta = self._known[relation][update.id]
                self._places += 1
                delta.place = self._places
                step.unfinished += 1
                self._to_start.append(_Sweep(delta, step))

    def _start(self) -> Iterator[Query | ViewChange]:
        while self._to_start and self._running < self._pipeline:
            sweep = self._to_start.popleft()
            self._running += 1
            start = sweep.delta.rows
            for ahead in self._branches(sweep.delta.relation):
                sweep.legs.append(_Leg(sweep, start, deque(ahead)))
                start = start.stripped()
            for leg in sweep.legs:
                yield self._ask(leg)
            if not sweep.legs:  # a view of one relation
                self._finish(sweep, start)
                yield from self._publish()

    def _branches(self, start: str) -> Sequence[Sequence[str]]:
        branches = self._routes.branches(start)
        return branches if self._parallel or not branches else [self._routes.from_(start)]

    def _ask(self, leg: _Leg) -> Query:
        self._queries += 1
        query = Query(self._queries, self._relations[leg.ahead[0]], leg.partial)
        self._asked[query.number] = query, leg
        return query

    def _take_answer(self, answer: Answer) -> Iterator[Output]:
        query, leg = self._asked.pop(answer.query)
        sweep = leg.sweep
        leg.ahead.popleft()
        leg.partial, compensations = self._correct(query, answer, sweep.delta)
        yield from compensations
        if leg.ahead:
            yield self._ask(leg)
        elif not any(other.ahead for other in sweep.legs):
            self._finish(sweep, reduce(_merged, (each.partial for each in sweep.legs)))

    def _correct(self, query: Query, answer: Answer, delta: Delta) -> tuple[Bag, list[Compensation]]:
        others = self._known[query.relation.name].values()
        return compensate(
            query,
            answer,
            later=((each.update, each.rows) for each in others if each.is_later_than(delta)),
            earlier=((each.update, each.rows) for each in others if not each.is_later_than(delta)),
            merge=self._merge,
        )

    def _finish(self, sweep: _Sweep, joined: Bag) -> None:
        self._running -= 1
        sweep.step.unfinished -= 1
        sweep.step.rows = sweep.step.rows.plus(self._view.finish(joined))

    def _publish(self) -> Iterator[ViewChange]:
        while self._steps and not self._steps[0].unfinished:
            step = self._steps.popleft()
            self._published.extend((self._queries, update) for update in step.group)
            yield ViewChange(tuple(update.id for update in step.group), step.rows)

    def _forget(self) -> None:
        """What was published is known until every query that was sent before is answered: the answer to one
        that was sent since has it."""
        oldest = next(iter(self._asked), self._queries + 1)
        while self._published and self._published[0][0] < oldest:
            _, update = self._published.popleft()
            for relation in update.changes:
                del self._known[relation][update.id]


def _merged(left: Bag, right: Bag) -> Bag:
    """Two branches have nothing in common but the columns of the delta, whose NULLs are the same NULLs."""
    return left.join(right, nulls_match=True)
