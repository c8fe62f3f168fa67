"""Deltas of joined tables that several views of an epoch need: found, chosen, and computed once.

An epoch is planned as if every view were alone. Then the parts that views have in common are tried, the most
promising first: the part is paid for once, and for each view the search is done again with its delta given.
What makes the views together cheaper is kept, what another part makes superfluous is left out again, and the
epoch is planned again with what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.algebra.common_parts import LocalPart, Part, common_join, part_of
from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.expressions import cost, places
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.reading_costs import ReadingCosts
from viewkeeper.algebra.relations import Join, Project, Staged
from viewkeeper.algebra.scalars import WEIGHT, Named, column, keep
from viewkeeper.algebra.search import find_optimal
from viewkeeper.define.definitions import SessionPins
from viewkeeper.plan.propagation import Propagation
from viewkeeper.plan.situation import Span, ViewInput

_TRIED = 16
"""So many of the most promising parts are tried."""

_MOST_RELATIONS = 10
"""Of joins with more relations the parts are not looked through: there are too many."""


@dataclass(frozen=True, slots=True)
class CommonPart:
    """A part, the versions between which its tables changed, and what gives the words of its conditions their
    meaning: a delta is the same only if all of these are."""

    part: Part
    spans: frozenset[Span]
    meaning: SessionPins


@dataclass(frozen=True, slots=True)
class Problem:
    """A join of one view whose delta is needed."""

    view: ViewInput
    relation: Join
    sizes: JoinSizes
    span: Callable[[str], Span] = field(compare=False)
    """Between which versions a table of the view changed."""

    def common(self, relations: int) -> tuple[CommonPart, LocalPart] | None:
        """What these inputs are to all views, and to this one."""
        found = part_of(self.relation, relations)
        if found is None:
            return None
        spans = frozenset(self.span(table) for table in found.part.tables)
        return CommonPart(found.part, spans, self.view.definition.session), found

    def sets(self) -> Iterable[int]:
        """The sets of two inputs or more that anything changed in."""
        if len(self.relation.inputs) > _MOST_RELATIONS:
            return ()
        everything = range(3, 1 << len(self.relation.inputs))
        return (
            mask
            for mask in everything
            if mask.bit_count() > 1 and any(self.sizes.changed[place] for place in places(mask))
        )


@dataclass(slots=True)
class CommonDeltas:
    """The common parts of an epoch: those chosen, the columns needed of them, and those computed so far."""

    chosen: dict[CommonPart, frozenset[tuple[str, str]]] = field(default_factory=dict)
    problems: dict[tuple[str, Join], Problem] = field(default_factory=dict)
    _solved: dict[tuple[str, Join, tuple[bool, ...]], Propagation] = field(default_factory=dict)
    _staged: dict[CommonPart, tuple[Staged, dict[str, str]]] = field(default_factory=dict)

    def smaller(self, tables: int) -> CommonDeltas:
        """Those of fewer tables: what a part of so many may itself be computed from."""
        chosen = {part: needed for part, needed in self.chosen.items() if len(part.part.tables) < tables}
        return CommonDeltas(chosen, _staged=self._staged)

    def solved(self, problem: Problem, search: Callable[[frozenset[int]], Propagation]) -> Propagation:
        """The expression for a join, searched when first asked for: it is priced, and then computed."""
        self.problems[problem.view.name, problem.relation] = problem
        key = (problem.view.name, problem.relation, problem.sizes.changed)
        if key not in self._solved:
            self._solved[key] = search(self.given(problem))
        return self._solved[key]

    def given(self, problem: Problem) -> frozenset[int]:
        """The sets of a join's inputs whose delta is common."""
        if not self.chosen:
            return frozenset()
        found = ((mask, problem.common(mask)) for mask in problem.sets())
        return frozenset(mask for mask, common in found if common is not None and common[0] in self.chosen)

    def delta(
        self, problem: Problem, relations: int, compute: Callable[[Join, str, int], Staged]
    ) -> tuple[Staged, Delta] | None:
        """Δ(⋈P) as it is staged, and under the view's names, if it is common; computed when it is first asked
        for."""
        found = problem.common(relations) if self.chosen else None
        if found is None or found[0] not in self.chosen:
            return None
        common, local = found
        if common not in self._staged:
            join = common_join(common.part, self.chosen[common])
            tables = " ⋈ ".join(table.rsplit(".", 1)[-1] for table in sorted(common.part.tables))
            rows = round(problem.sizes.delta(relations))
            made = compute(join.relation, f"Δ({tables}), for several views,", rows)
            self._staged[common] = made, dict(join.names)
        staged, names = self._staged[common]
        mine = [Named(name, column(names[shared])) for name, shared in local.names.items()]
        return staged, Delta(Project(staged, (*mine, *keep([WEIGHT]))))


def choose_common(problems: Sequence[Problem]) -> dict[CommonPart, frozenset[tuple[str, str]]]:
    """The parts to compute once, each with the columns that the views need of it."""
    places_of: dict[CommonPart, list[tuple[int, int]]] = {}
    columns: dict[CommonPart, frozenset[tuple[str, str]]] = {}
    for at, problem in enumerate(problems):
        for mask in problem.sets():
            found = problem.common(mask)
            if found is not None:
                places_of.setdefault(found[0], []).append((at, mask))
                columns[found[0]] = columns.get(found[0], frozenset()) | found[1].columns
    shared = {part: where for part, where in places_of.items() if len(where) > 1}
    prices = Prices([ReadingCosts(problem.sizes) for problem in problems], problems, shared)
    return {part: columns[part] for part in cheapest_parts(prices)}


def cheapest_parts(prices: Prices) -> list[CommonPart]:
    """Parts that make the views together cheapest, as far as to add or to leave out one at a time tells."""
    worth = {part: prices.worth(part) for part in prices.shared}
    promising = sorted((part for part in worth if worth[part] > 0), key=lambda part: -worth[part])[:_TRIED]
    chosen: list[CommonPart] = []
    least = prices.total(chosen)
    improved = True
    while improved:
        improved = False
        for part in promising:
            # What a larger part superseded is left out again.
            others = [each for each in chosen if each is not part]
            other = others if part in chosen else [*chosen, part]
            total = prices.total(other)
            if total < least:
                chosen, least, improved = other, total, True
    return chosen


class Prices:
    """What all the views cost together, when some parts are computed once."""

    def __init__(
        self,
        readings: Sequence[ReadingCosts],
        problems: Sequence[Problem],
        shared: Mapping[CommonPart, Sequence[tuple[int, int]]],
    ) -> None:
        self.shared = shared
        """Of each part the problems that it is a part of, and which of their inputs."""
        self._readings, self._problems = readings, problems
        self._costs: dict[tuple[int, frozenset[int]], float] = {}
        self._alone: dict[tuple[CommonPart, frozenset[int]], float] = {}

    def total(self, chosen: Collection[CommonPart]) -> float:
        """Of the parts, each of which may be made of smaller ones, and of the views."""
        given: list[set[int]] = [set() for _ in self._problems]
        for part in chosen:
            for at, mask in self.shared[part]:
                given[at].add(mask)
        views = sum(self._cost(at, frozenset(masks)) for at, masks in enumerate(given))
        return views + sum(self.alone(part, chosen) for part in chosen)

    def worth(self, part: CommonPart) -> float:
        """What is saved by it, at most: in no view more than that costs, as a cross product alone may."""
        alone = self.alone(part, ())
        return sum(min(alone, self._cost(at, frozenset())) for at, _ in self.shared[part]) - alone

    def alone(self, part: CommonPart, chosen: Collection[CommonPart]) -> float:
        """What it costs to compute a part once, from the smaller ones, and to keep it."""
        at, relations = self.shared[part][0]
        inside = frozenset(
            _renumbered(mask, relations)
            for other in chosen
            for problem, mask in self.shared[other]
            if problem == at and mask != relations and mask & relations == mask
        )
        if (part, inside) not in self._alone:
            sizes = ReadingCosts(self._problems[at].sizes.part(relations))
            computed = cost(find_optimal(sizes, given=inside).tree, sizes, inside)
            self._alone[part, inside] = computed + self._readings[at].delta(relations)
        return self._alone[part, inside]

    def _cost(self, at: int, given: frozenset[int]) -> float:
        reading = self._readings[at]
        everything = (1 << len(reading.changed)) - 1
        if everything in given:
            return reading.delta(everything)
        if (at, given) not in self._costs:
            self._costs[at, given] = cost(find_optimal(reading, given=given).tree, reading, given)
        return self._costs[at, given]


def _renumbered(mask: int, relations: int) -> int:
    """Some of these relations, counted among them alone.

    >>> bin(_renumbered(0b1010, 0b1110))
    '0b101'
    """
    return sum(1 << at for at, place in enumerate(places(relations)) if mask >> place & 1)
