"""A good delta expression of more relations than can be searched whole.

It begins with the n-term expression, whose k terms read all of S, each but its own part. To make one part of
some of its parts P saves

    Σ_{i∈P, i changed} (|S| + best(i) + |Δi| − |i|) − (|S| + best(P) + |Δ(⋈P)| − |P|)

All sets P within a window are looked at, that is a changed part and its neighbours, and the one that saves
most is put together, again and again, until nothing is saved. What did not change is never put together for
its own sake: in a window it is a neighbour like any other, and belongs to the P or not. Then each fragment of
the tree, a node with as much below it as can be searched whole, is replaced by the best one.

How near that comes to the best, tests/unit/algebra/test_good_trees.py shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.algebra.best_partitions import BestPartitions
from viewkeeper.algebra.expressions import Node, Sizes, Tree, changes, cost, members, n_term, places

_WINDOW = 8
_FRAGMENT = 10
"""So many parts are looked at together: in a window, of which there are many, and in a fragment."""

_ENOUGH = 1 - 1e-9
"""What costs more than this share of what it cost before is no gain."""


def good_tree(sizes: Sizes, given: Collection[int] = ()) -> Node:
    """The better of two trees: by what a part saves, and by what it saves for each that it takes in."""
    trees = [_Growing(sizes, given, measure).tree() for measure in (_all_of_it, _for_each)]
    return min(trees, key=lambda tree: cost(tree, sizes, given))


def _all_of_it(saved: float, _: int) -> float:
    return saved


def _for_each(saved: float, together: int) -> float:
    return saved / (together - 1)


_Measure: TypeAlias = Callable[[float, int], float]


@dataclass(frozen=True, slots=True)
class _Part:
    """Some parts put together, and what that is worth."""

    worth: float
    tree: Node


class _Growing:
    """One tree, from the n-term expression on."""

    def __init__(self, sizes: Sizes, given: Collection[int], measure: _Measure) -> None:
        self._sizes, self._given, self._measure = sizes, given, measure
        self._everything = sum(sizes.old)
        self._known: dict[frozenset[int], _Part | None] = {}

    def tree(self) -> Node:
        """The parts put together as far as that saves anything, and each fragment made the best."""
        flat = self._in_order(n_term(len(self._sizes.changed)).parts)
        parts = flat.parts
        while len(parts) > 2 and (found := self._most_saving(parts)) is not None:
            inside = members(found.tree)
            parts = (*(part for part in parts if not members(part) & inside), found.tree)
        tree = min((self._in_order(parts), flat), key=self._cost)
        while True:
            better = self._in_fragments(tree)
            if self._cost(better) >= self._cost(tree) * _ENOUGH:
                return tree
            tree = better

    def _cost(self, tree: Node) -> float:
        return cost(tree, self._sizes, self._given)

    def _changes(self, part: Tree) -> bool:
        return changes(part, self._sizes.changed)

    def _in_order(self, parts: Sequence[Tree]) -> Node:
        """By growing |P′|−|P|; what did not change stands behind."""

        def growth(part: Tree) -> float:
            return sum(self._sizes.new[place] - self._sizes.old[place] for place in places(members(part)))

        return Node(tuple(sorted(parts, key=lambda part: (not self._changes(part), growth(part)))))

    # Putting parts together.

    def _most_saving(self, parts: Sequence[Tree]) -> _Part | None:
        found = [self._within(window, len(parts)) for window in self._windows(parts)]
        found += [self._given_part(parts, mask) for mask in self._given]
        return max((each for each in found if each is not None), key=lambda each: each.worth, default=None)

    def _windows(self, parts: Sequence[Tree]) -> Iterator[list[Tree]]:
        """Each changed part with those beside it whose delta together is smallest; and once more with other
        changed parts to begin with, for there may be much between them."""
        for part in filter(self._changes, parts):
            for changed_first in (0, _WINDOW // 2):
                window, rest = [part], [each for each in parts if each is not part]
                while rest and len(window) < _WINDOW:
                    inside = sum(map(members, window))
                    passed_over = len(window) < changed_first
                    nearest = min(
                        rest,
                        key=lambda each: (
                            passed_over and not self._changes(each),
                            self._sizes.delta(inside | members(each)),
                        ),
                    )
                    window.append(nearest)
                    rest.remove(nearest)
                yield window

    def _within(self, window: Sequence[Tree], parts: int) -> _Part | None:
        """The best of all the parts that can be made in a window, if it saves anything."""
        key = frozenset(map(members, window))
        if key not in self._known:
            clusters = _Clusters(self._sizes, window)
            search = BestPartitions(clusters, clusters.whole(self._given))
            terms = self._everything + search.part
            alone = [terms[1 << at] if changed else 0.0 for at, changed in enumerate(clusters.changed)]
            worth = {
                mask: self._measure(sum(alone[at] for at in places(mask)) - terms[mask], mask.bit_count())
                for mask in range(3, 1 << len(window))
                if 1 < mask.bit_count() < parts
            }
            best = max(worth, key=worth.__getitem__, default=0)
            tree = _grown(search.tree(best), window) if best and worth[best] > 0 else None
            self._known[key] = _Part(worth[best], tree) if isinstance(tree, Node) else None
        return self._known[key]

    def _given_part(self, parts: Sequence[Tree], mask: int) -> _Part | None:
        """The parts whose delta together is there already, however many they are."""
        inside = [part for part in parts if members(part) & mask]
        if len(inside) < 2 or len(inside) == len(parts) or sum(map(members, inside)) != mask:
            return None
        clusters = _Clusters(self._sizes, inside)
        alone = sum(
            self._everything
            + (self._cost(part) if isinstance(part, Node) else 0.0)
            + self._sizes.delta(members(part))
            - size
            for part, size, changed in zip(inside, clusters.old, clusters.changed, strict=True)
            if changed
        )
        together = self._everything + self._sizes.delta(mask) - sum(clusters.old)
        worth = self._measure(alone - together, len(inside))
        return _Part(worth, self._in_order(inside)) if worth > 0 else None

    # Making fragments the best.

    def _in_fragments(self, tree: Node) -> Node:
        """With the best fragment at each node, from the root down."""
        if not self._changes(tree) or members(tree) in self._given:
            return tree
        if len(tree.parts) <= _FRAGMENT:
            below = self._fragment(tree)
            clusters = _Clusters(self._sizes, below)
            best = _grown(BestPartitions(clusters, clusters.whole(self._given)).tree(), below)
            assert isinstance(best, Node)
            tree = min((tree, best), key=self._cost)
        return Node(
            tuple(self._in_fragments(part) if isinstance(part, Node) else part for part in tree.parts)
        )

    def _fragment(self, tree: Node) -> list[Tree]:
        """What is below a node, the largest parts opened as long as it does not become too much."""
        below = list(tree.parts)
        while True:
            nodes = [each for each in below if isinstance(each, Node)]
            small = [each for each in nodes if len(below) - 1 + len(each.parts) <= _FRAGMENT]
            if not small:
                return below
            opened = max(small, key=lambda each: members(each).bit_count())
            at = below.index(opened)
            below[at : at + 1] = opened.parts


def _grown(tree: Tree, clusters: Sequence[Tree]) -> Tree:
    if isinstance(tree, int):
        return clusters[tree]
    return Node(tuple(_grown(part, clusters) for part in tree.parts))


class _Clusters:
    """Clusters of relations as if each were one."""

    def __init__(self, sizes: Sizes, clusters: Sequence[Tree]) -> None:
        self._sizes = sizes
        self._masks = [members(each) for each in clusters]
        self.changed = [changes(each, sizes.changed) for each in clusters]
        self.old = [sum(sizes.old[at] for at in places(mask)) for mask in self._masks]
        self.new = [sum(sizes.new[at] for at in places(mask)) for mask in self._masks]

    def delta(self, relations: int) -> float:
        return self._sizes.delta(sum(self._masks[place] for place in places(relations)))

    def whole(self, sets: Collection[int]) -> set[int]:
        """Those of the sets that are made of whole clusters."""
        here = {mask: self._of(mask) for mask in sets}
        return {
            found
            for mask, found in here.items()
            if found.bit_count() > 1 and sum(self._masks[at] for at in places(found)) == mask
        }

    def _of(self, relations: int) -> int:
        return sum(1 << at for at, mask in enumerate(self._masks) if mask & relations == mask)
