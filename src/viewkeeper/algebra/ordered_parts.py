"""The best partition of a set of relations where some of its terms are known to be empty.

No changed row of r finds a row of x, before x changed or after it: then the term of a part whose only changed
relation is r is empty, if x stands behind it as it was, or before it as it is now. Nothing of such a term is
computed. Which terms are empty depends on the order of all the parts of S, not on how many they are; so each
set S has a table of its own. With R ⊆ S for the parts that are placed so far, and P behind them,

    H(R) = min over P ⊆ R:  H(R∖P) + (0 if P's term is empty,
                                      else best(P) + |Δ(⋈P)| + |S∖P| + |R∖P|′ − |R∖P|)
    best(S) = H(S), with P ≠ S

which is 4ⁿ steps in all. Where every term would be empty, the last is computed all the same
(:func:`.empty_terms.empty_terms`); so there are two tables, for parts that are all empty and for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from viewkeeper.algebra.expressions import Apart, places

Costs = NDArray[np.float64]
Sets = NDArray[np.int64]

_AT_ONCE = 1 << 20
"""So many pairs of sets are looked at together."""


@dataclass(frozen=True, slots=True)
class OrderedParts:
    """What is known of each set of relations, as a bit mask."""

    size: Costs
    growth: Costs
    part: Costs
    """best(P) + |Δ(⋈P)| − |P|; infinite where nothing changed. Filled in from small sets to large ones."""
    changed: int
    old: Sets
    """Of each part, what its delta finds nothing in as it was: nothing, unless one relation of it changed."""
    new: Sets
    """The same as it is now."""

    @classmethod
    def of(cls, size: Costs, growth: Costs, part: Costs, changed: int, apart: Apart) -> OrderedParts:
        old, new = (np.zeros(len(size), dtype=np.int64) for _ in range(2))
        every = np.arange(len(size))
        for place in places(changed):
            alone = (every & changed) == 1 << place
            old[alone], new[alone] = apart.old[place], apart.new[place]
        return cls(size, growth, part, changed, old, new)

    def concerns(self, sets: Sets) -> NDArray[np.bool_]:
        """In which sets there may be a term that is empty."""
        found = np.zeros(len(sets), dtype=np.bool_)
        for place in places(self.changed):
            finds_nothing = self.old[1 << place] | self.new[1 << place]
            found |= ((sets >> place) & 1 == 1) & ((sets & finds_nothing) != 0)
        return found

    def best(self, sets: Sets) -> Costs:
        """What the best partitions of these sets cost, which have equally many members."""
        members = int(sets[0]).bit_count()
        chunk = max(1, _AT_ONCE // 3**members)
        starts = range(0, len(sets), chunk)
        return np.concatenate([_Tables(self, sets[at : at + chunk]).least for at in starts])

    def parts(self, mask: int) -> list[int]:
        """The changed parts of the best partition of a set, in order."""
        return list(_Tables(self, np.array([mask])).way())[::-1]


class _Tables:
    """H for some sets of equally many members: a row for each set, and a column for each subset of it, which
    is numbered by the places of its members in the set."""

    def __init__(self, known: OrderedParts, sets: Sets) -> None:
        self._known, self._members = known, int(sets[0]).bit_count()
        members = np.array([[1 << place for place in places(int(each))] for each in sets], dtype=np.int64)
        self._sets = _subsets(members)
        self._term = known.part[self._sets] + known.size[sets][:, None]
        # Where the terms of all the parts are empty, and where one is not; and the last part of each.
        self._empty = np.where(self._sets & known.changed, np.inf, 0.0)
        self._some = np.full(self._sets.shape, np.inf)
        self._last_empty, self._last = (np.zeros(self._sets.shape, dtype=np.int64) for _ in range(2))
        for count in range(1, self._members + 1):
            self._place(count)
        self.least = self._some[:, -1]

    def way(self) -> Iterator[int]:
        """The changed parts of the first set, from behind."""
        at, lasts = self._all, self._last
        while self._sets[0, at] & self._known.changed:
            last = lasts[0, at]
            yield int(self._sets[0, last])
            rest = at ^ last
            nothing = bool(self._is_empty(last, rest, self._all ^ at)[0])
            if lasts is self._last and (at == self._all or not nothing):
                term = self._term[0, last] + self._known.growth[self._sets[0, rest]]
                if term + self._empty[0, rest] < self._some[0, rest] + (0.0 if nothing else term):
                    lasts = self._last_empty
            at = rest

    @property
    def _all(self) -> int:
        return (1 << self._members) - 1

    def _place(self, count: int) -> None:
        """Find the best last part of all the subsets with so many members."""
        members = np.array([[1 << at for at in each] for each in combinations(range(self._members), count)])
        here, parts = members.sum(axis=1), _subsets(members)
        # Neither nothing nor all of the set; of equals the last, to keep the order where it is all the same.
        parts = parts[:, (-2 if count == self._members else -1) : 0 : -1]
        rest = here[:, None] ^ parts
        term = self._term[:, parts] + self._known.growth[self._sets[:, rest]]
        nothing = self._is_empty(parts, rest, self._all ^ here[:, None])
        empty, some = self._empty[:, rest], self._some[:, rest]
        computed = term + np.minimum(empty, some)
        if count == self._members:
            passed_over = np.minimum(some, term + empty)  # one is computed, the last
        else:
            passed_over = some
            self._settle(self._empty, self._last_empty, here, np.where(nothing, empty, np.inf), parts)
        self._settle(self._some, self._last, here, np.where(nothing, passed_over, computed), parts)

    def _is_empty(self, part: Sets, before: Sets, behind: Sets | int) -> NDArray[np.bool_]:
        delta, known = self._sets[:, part], self._known
        found = known.old[delta] & self._sets[:, behind] | known.new[delta] & self._sets[:, before]
        return np.asarray(found != 0)

    def _settle(self, least: Costs, last: Sets, here: Sets, costs: Costs, parts: Sets) -> None:
        at = costs.argmin(axis=2)
        found = np.take_along_axis(costs, at[:, :, None], axis=2)[:, :, 0]
        changed = (self._sets[:, here] & self._known.changed) != 0
        least[:, here] = np.where(changed, found, least[:, here])
        last[:, here] = parts[np.arange(len(parts)), at]


def _subsets(members: Sets) -> Sets:
    """Of each row of members, as bits, all the subsets."""
    subsets = np.zeros((len(members), 1), dtype=np.int64)
    for bit in members.T:
        subsets = np.hstack((subsets, subsets | bit[:, None]))
    return subsets
