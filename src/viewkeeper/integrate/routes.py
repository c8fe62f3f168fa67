"""The order in which a sweep asks the relations: along the join graph, not by their numbers.

Two relations are neighbours if they share a column. Whatever is asked next is a neighbour of something that
the partial result has, so there is always a key to send. Along a chain R₁ … Rₙ this is the paper's order:
from Rᵢ to the left, then to the right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush

from viewkeeper.integrate.views import JoinView, Relation


class Routes:
    """The routes of one view, found when they are first needed."""

    def __init__(self, view: JoinView) -> None:
        self._view = view
        self._relations = {relation.name: relation for relation in view.relations}
        self._branches: dict[str, tuple[tuple[str, ...], ...]] = {}

    def from_(self, start: str) -> tuple[str, ...]:
        """All the other relations, one branch after the other."""
        return tuple(name for branch in self.branches(start) for name in branch)

    def branches(self, start: str) -> tuple[tuple[str, ...], ...]:
        """What can be swept at the same time, for it hangs together through the start alone: left and right
        in a chain, each dimension of a star that begins with its facts."""
        if start not in self._branches:
            self._branches[start] = tuple(self._find_branches(start))
        return self._branches[start]

    def within(self, start: str, among: Collection[str]) -> tuple[str, ...]:
        """The others of these relations, which hang together."""
        others = [each for each in self._view.relations if each.name in among and each.name != start]
        return _names(_walk(self._relations[start].columns, others))

    def _find_branches(self, start: str) -> Iterator[tuple[str, ...]]:
        bound = frozenset(self._relations[start].columns)
        left = [relation for relation in self._view.relations if relation.name != start]
        while left:
            first = next(each for each in left if not bound.isdisjoint(each.columns))
            together = {first.name, *_names(_walk(first.columns, left, not_along=bound))}
            yield _names(_walk(bound, [relation for relation in left if relation.name in together]))
            left = [relation for relation in left if relation.name not in together]


def _names(relations: Iterable[Relation]) -> tuple[str, ...]:
    return tuple(relation.name for relation in relations)


def _walk(
    columns: Iterable[str], among: Sequence[Relation], not_along: Collection[str] = ()
) -> Iterator[Relation]:
    """The relations that can be reached: always the first one, in the order of the view, that shares a column
    with what was reached before."""
    sharing: dict[str, list[int]] = {}
    for at, relation in enumerate(among):
        for column in relation.columns:
            if column not in not_along:
                sharing.setdefault(column, []).append(at)
    seen: set[int] = set()
    near: list[int] = []
    while True:
        for column in columns:
            for at in sharing.pop(column, ()):
                if at not in seen:
                    seen.add(at)
                    heappush(near, at)
        if not near:
            return
        relation = among[heappop(near)]
        yield relation
        columns = relation.columns
