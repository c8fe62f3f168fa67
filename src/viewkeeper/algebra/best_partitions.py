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
from itertools import combinations

import numpy as np

from viewkeeper.algebra.expressions import Apart, Node, Sizes, Tree, places
from viewkeeper.algebra.ordered_parts import Costs, OrderedParts, Sets


class BestPartitions:
    """The dynamic program. Sets are bit masks; every table has an entry for each set."""

    def __init__(self, sizes: Sizes, given: Collection[int], apart: Apart | None = None) -> None:
        self._given = np.array(sorted(given), dtype=np.int64)
        self._changed = sum(1 << at for at, changed in enumerate(sizes.changed) if changed)
        self._relations = len(sizes.changed)
        self._sets = 1 << self._relations
        self._parts = max(1, self._changed.bit_count())
        self._size = _totals(sizes.old)
        self._growth = _totals(sizes.new) - self._size
        self._delta = np.array([sizes.delta(mask) for mask in range(self._sets)])
        self.part = np.full(self._sets, np.inf)
        """What a part adds: best(P) + |Δ(⋈P)| − |P|."""
        # F and, to find the way back, the last part of it.
        self._least = np.full((self._parts + 1, self._sets), np.inf)
        self._last = np.zeros((self._parts + 1, self._sets), dtype=np.int64)
        # How many parts the best partition of each set has, and its last part.
        self._best: dict[int, tuple[int, int]] = {}
        self._ordered = (
            OrderedParts.of(self._size, self._growth, self.part, self._changed, apart) if apart else None
        )

        self.cost = 0.0
        """Of the best expression: in the end that of all the relations."""
        unchanged = (np.arange(self._sets) & self._changed) == 0
        self._least[0, unchanged] = 0.0
        for place in range(self._relations):
            self._settle(np.array([1 << place]), np.zeros(1))
        for count in range(2, self._relations + 1):
            self._partition(count)

    def _partition(self, count: int) -> None:
        """Find the best partitions of the sets with so many members, all of these at once."""
        chosen = list(combinations(range(self._relations), count))
        bits = np.array([[1 << place for place in each] for each in chosen], dtype=np.int64)
        sets = bits.sum(axis=1)
        if self._ordered is not None:
            apart = self._ordered.concerns(sets)
            if apart.any():
                self._settle(sets[apart], self._ordered.best(sets[apart]))
            bits, sets = bits[~apart], sets[~apart]
            if not len(sets):
                return
        parts = np.zeros((len(sets), 1), dtype=np.int64)
        for bit in bits.T:
            parts = np.hstack((parts, parts | bit[:, None]))
        # Neither nothing nor all of it; of equals the last, so that what makes no difference keeps its order.
        parts = parts[:, -2:0:-1]
        rest = sets[:, None] ^ parts
        adds = self.part[parts] + self._growth[rest]
        best = np.full(len(sets), np.inf)
        how = np.zeros((2, len(sets)), dtype=np.int64)
        rows = np.arange(len(sets))
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
        self._settle(sets, best)

    def _settle(self, sets: Sets, best: Costs) -> None:
        """Now that it is known what these cost, they may be parts of larger sets, or all there is of one."""
        changed = (sets & self._changed) != 0
        sets, best = sets[changed], np.where(np.isin(sets, self._given), 0.0, best)[changed]
        if len(best):
            self.cost = float(best[-1])
        self.part[sets] = best + self._delta[sets] - self._size[sets]
        whole = self.part[sets] < self._least[1, sets]
        self._least[1, sets[whole]] = self.part[sets[whole]]
        self._last[1, sets[whole]] = sets[whole]

    def tree(self, relations: int | None = None) -> Node:
        """The best tree for all the relations, or for two or more of them."""
        tree = self._tree(self._sets - 1 if relations is None else relations)
        assert isinstance(tree, Node)
        return tree

    def _tree(self, mask: int) -> Tree:
        if mask.bit_count() == 1:
            return mask.bit_length() - 1
        if not mask & self._changed:
            return Node(tuple(places(mask)))
        if self._ordered is not None and self._ordered.concerns(np.array([mask]))[0]:
            ordered = self._ordered.parts(mask)
            return Node((*map(self._tree, ordered), *places(mask & ~sum(ordered))))
        number, part = self._best[mask]
        parts = []
        while number:
            parts.append(self._tree(part))
            mask ^= part
            number -= 1
            part = int(self._last[number, mask]) if number else 0
        return Node((*parts[::-1], *places(mask)))  # what did not change stands behind


def _totals(values: Sequence[float]) -> Costs:
    """The sum over each set."""
    totals = np.zeros(1)
    for value in values:
        totals = np.concatenate((totals, totals + value))
    return totals
