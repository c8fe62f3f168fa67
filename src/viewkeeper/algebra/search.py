"""FindOptimalDeltaExpression (Lee et al. 2001, Section 4): the delta expression that costs least.

For a set S of relations, a partition of it into parts with changes P₁ … Pₖ, and unchanged relations beside
them, expression (9) is

    k·|S| + Σᵢ (best(Pᵢ) + |Δ(⋈Pᵢ)| − |Pᵢ|) + Σ_{i<j} (|Pᵢ′| − |Pᵢ|)

for each term reads all of S but its own part, and those before it in their new state. It is least when the
parts are ordered by growing |P′|−|P|, so the last sum may be built up from behind: a part that is put after
the others adds |P′|−|P| of all of these. That makes the parts independent of each other, given how many there
are:

    F₀(S)   = 0 if nothing in S changed
    Fₖ(S)   = min over P ⊆ S:  best(P) + |Δ(⋈P)| − |P| + (|S∖P|′ − |S∖P|) + Fₖ₋₁(S∖P)
    best(S) = min over k:      k·|S| + Fₖ(S), with P ≠ S

which looks at 3ⁿ pairs of sets instead of all the partitions of all the sets. All subsets are looked at,
connected or not: a cross product of two small deltas may be the best first step towards a big table between
them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from viewkeeper.algebra.expressions import Node, Sizes, Tree, cost, members, n_term, places

EXACT = 12
"""Up to so many relations the best expression is found for certain: within a second on one core."""

_Costs = NDArray[np.float64]
_Sets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """The expression, what it costs, and whether nothing costs less."""

    tree: Node
    cost: float
    exact: bool


def find_optimal(sizes: Sizes, *, exact: int = EXACT, given: Collection[int] = ()) -> Found:
    """The best delta expression; beyond ``exact`` relations a good one.

    ``given``: sets whose delta is there already. To compute it costs nothing, to read it what it holds.
    """
    relations = len(sizes.changed)
    if relations < 2:
        return Found(n_term(relations), sizes.delta((1 << relations) - 1), exact=True)
    if relations <= exact:
        tree = _Search(sizes, given).tree()
        return Found(tree, cost(tree, sizes, given), exact=True)
    tree = _greedy(sizes, exact)
    return Found(tree, cost(tree, sizes, given), exact=False)


class _Search:
    """The dynamic program. Sets are bit masks; every table has an entry for each set."""

    def __init__(self, sizes: Sizes, given: Collection[int]) -> None:
        self._given = np.array(sorted(given), dtype=np.int64)
        self._changed = sum(1 << at for at, changed in enumerate(sizes.changed) if changed)
        self._relations = len(sizes.changed)
        self._sets = 1 << self._relations
        self._parts = max(1, self._changed.bit_count())
        self._size = _totals(sizes.old)
        self._growth = _totals(sizes.new) - self._size
        self._delta = np.array([sizes.delta(mask) for mask in range(self._sets)])
        # What a part adds: best(P) + |Δ(⋈P)| − |P|.
        self._part = np.full(self._sets, np.inf)
        # F and, to find the way back, the last part of it.
        self._least = np.full((self._parts + 1, self._sets), np.inf)
        self._last = np.zeros((self._parts + 1, self._sets), dtype=np.int64)
        # How many parts the best partition of each set has, and its last part.
        self._best: dict[int, tuple[int, int]] = {}

        unchanged = (np.arange(self._sets) & self._changed) == 0
        self._least[0, unchanged] = 0.0
        for place in range(self._relations):
            self._settle(np.array([1 << place]), np.zeros(1))
        for count in range(2, self._relations + 1):
            self._partition(count)

    def tree(self) -> Node:
        """The best tree for all the relations."""
        tree = self._tree(self._sets - 1)
        assert isinstance(tree, Node)
        return tree

    def _partition(self, count: int) -> None:
        """Find the best partitions of the sets with so many members, all of these at once."""
        chosen = list(combinations(range(self._relations), count))
        bits = np.array([[1 << place for place in each] for each in chosen], dtype=np.int64)
        sets = bits.sum(axis=1)
        parts = np.zeros((len(chosen), 1), dtype=np.int64)
        for bit in bits.T:
            parts = np.hstack((parts, parts | bit[:, None]))
        # Neither nothing nor all of it; of equals the last, so that what makes no difference keeps its order.
        parts = parts[:, -2:0:-1]
        rest = sets[:, None] ^ parts
        adds = self._part[parts] + self._growth[rest]
        best = np.full(len(chosen), np.inf)
        how = np.zeros((2, len(chosen)), dtype=np.int64)
        rows = np.arange(len(chosen))
        for number in range(1, min(count, self._parts) + 1):
            costs = adds + self._least[number - 1][rest]
            at = costs.argmin(axis=1)
            least = costs[rows, at]
            self._least[number, sets], self._last[number, sets] = least, parts[rows, at]
            total = number * self._size[sets] + least
            better = total < best
            best[better] = total[better]
            how[0, better], how[1, better] = number, parts[rows, at][better]
        for place, mask in enumerate(sets):
            self._best[int(mask)] = (int(how[0, place]), int(how[1, place]))
        self._settle(sets, np.where(np.isin(sets, self._given), 0.0, best))

    def _settle(self, sets: _Sets, best: _Costs) -> None:
        """Now that it is known what these cost, they may be parts of larger sets, or all there is of one."""
        changed = (sets & self._changed) != 0
        sets, best = sets[changed], best[changed]
        self._part[sets] = best + self._delta[sets] - self._size[sets]
        whole = self._part[sets] < self._least[1, sets]
        self._least[1, sets[whole]] = self._part[sets[whole]]
        self._last[1, sets[whole]] = sets[whole]

    def _tree(self, mask: int) -> Tree:
        if mask.bit_count() == 1:
            return mask.bit_length() - 1
        if not mask & self._changed:
            return Node(tuple(places(mask)))
        number, part = self._best[mask]
        parts = []
        while number:
            parts.append(self._tree(part))
            mask ^= part
            number -= 1
            part = int(self._last[number, mask]) if number else 0
        return Node((*parts[::-1], *places(mask)))  # what did not change stands behind


def _totals(values: Sequence[float]) -> _Costs:
    """The sum over each set."""
    totals = np.zeros(1)
    for value in values:
        totals = np.concatenate((totals, totals + value))
    return totals


def _greedy(sizes: Sizes, exact: int) -> Node:
    """A good tree of many relations: the best one of few clusters of them, each split up in the same way.

    Neighbours are put together in pairs, those first whose delta together is smallest beside what they hold,
    until the clusters are few enough to search them all.
    """
    clusters: list[Tree] = list(range(len(sizes.changed)))
    while len(clusters) > exact:
        masks = [members(each) for each in clusters]
        one, two = min(
            combinations(range(len(clusters)), 2),
            key=lambda pair: sizes.delta(masks[pair[0]] | masks[pair[1]]),
        )
        joined = Node(_in_order((clusters[one], clusters[two]), sizes))
        clusters = [each for at, each in enumerate(clusters) if at not in (one, two)] + [joined]
    top = find_optimal(_Clustered(sizes, clusters), exact=exact).tree
    grown = _grown(top, clusters)
    assert isinstance(grown, Node)
    flat = n_term(len(sizes.changed))
    return min((grown, Node(_in_order(flat.parts, sizes))), key=lambda tree: cost(tree, sizes))


def _in_order(parts: tuple[Tree, ...], sizes: Sizes) -> tuple[Tree, ...]:
    def growth(part: Tree) -> float:
        return sum(sizes.new[place] - sizes.old[place] for place in places(members(part)))

    return tuple(sorted(parts, key=growth))


def _grown(tree: Tree, clusters: Sequence[Tree]) -> Tree:
    if isinstance(tree, int):
        return clusters[tree]
    return Node(tuple(_grown(part, clusters) for part in tree.parts))


class _Clustered:
    """Clusters of relations as if each were one."""

    def __init__(self, sizes: Sizes, clusters: Sequence[Tree]) -> None:
        self._sizes = sizes
        self._masks = [members(each) for each in clusters]
        self.changed = [any(sizes.changed[at] for at in places(mask)) for mask in self._masks]
        self.old = [sum(sizes.old[at] for at in places(mask)) for mask in self._masks]
        self.new = [sum(sizes.new[at] for at in places(mask)) for mask in self._masks]

    def delta(self, relations: int) -> float:
        mask = 0
        for place in places(relations):
            mask |= self._masks[place]
        return self._sizes.delta(mask)
