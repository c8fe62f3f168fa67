"""Semi joins, anti joins, and the mark that tells whether there is a partner: EXISTS and IN, and their NOT.

A row of L begins to have a partner if it matches a row that came and matched none before; it ceases to have
one if it matches a row that went and matches none now:

    gained = (L ⋉ Δ⁺R) ▷ R            lost = (L ⋉ Δ⁻R) ▷ R′

    Δ(L ⋉ R) = ΔL ⋉ R′ + gained − lost          Δ(L ▷ R) = ΔL ▷ R′ − gained + lost

and under a mark such a row goes with the one value, and comes with the other. Of R only those rows are looked
at that have the keys of the rows in question. If ΔR holds insertions only, no row can be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.algebra.deltas import Delta, deleted, inserted, plus
from viewkeeper.algebra.estimates import delta_size, is_small, size
from viewkeeper.algebra.relations import Exists, Filter, OuterJoin, Project, Relation, Staged
from viewkeeper.algebra.rules.affected_values import (
    by_affected_values,
    has_changed,
    has_few_partners,
    is_plain,
)
from viewkeeper.algebra.rules.leaves import Leaves, Recur, new, old
from viewkeeper.algebra.rules.restrict import equated, keys_among, restrict
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, keep, words


def exists_delta(relation: Exists, recur: Recur, leaves: Leaves, *, growing: bool) -> Delta | None:
    """ΔL against R′, and the rows of L that gain or lose their partner. ``growing``: ΔR only inserts."""
    again = None if growing else looked_at_again(relation, relation.child, relation.among, leaves)
    if again is not None:
        return again
    left, right = recur(relation.child), recur(relation.among)
    partners = Partners(relation.child, relation.among, relation.conjuncts, leaves)
    right = None if right is None else shared(right, leaves)
    terms: list[Delta | None] = []
    if left is not None:
        rows = shared(left, leaves).relation
        known = new(partners.of(rows), leaves)
        with_mark = (WEIGHT,) if relation.mark is None else (relation.mark, WEIGHT)
        judged = Exists(
            rows, known, relation.conjuncts, relation.anti, relation.mark, partners.is_broadcast(left=True)
        )
        terms.append(Delta(Project(judged, keep((*relation.child.columns, *with_mark)))))
    if right is not None:
        terms += _moved(relation, partners.gained(right), gained=True)
        if not growing:
            terms += _moved(relation, partners.lost(right), gained=False)
    return plus(terms)


def looked_at_again(
    relation: Exists | OuterJoin, left: Relation, right: Relation, leaves: Leaves
) -> Delta | None:
    """All rows with a touched key computed again, where that is better than telling those apart that gained
    or lost a partner: each of these terms reads both sides, and what is no mere join is computed for each."""
    if not has_changed(right, leaves):
        return None
    if is_plain(left) and is_plain(right) and not has_few_partners(left, right, leaves):
        return None
    keys = equated(left.columns, right.columns, relation.conjuncts)
    return by_affected_values(relation, keys, leaves)


def shared(delta: Delta, leaves: Leaves) -> Delta:
    """The delta, computed once although it is read in several places."""
    if isinstance(delta.relation, Staged):
        return delta
    return Delta(leaves.share(delta.relation, "changed rows"))


def _moved(relation: Exists, rows: Relation, *, gained: bool) -> list[Delta]:
    """What it means for the result that these rows gained a partner, or lost theirs."""
    if relation.mark is None:
        return [inserted(rows) if gained != relation.anti else deleted(rows)]
    now, before = ("true", "false") if gained else ("false", "true")
    return [inserted(_marked(rows, relation.mark, now)), deleted(_marked(rows, relation.mark, before))]


def _marked(rows: Relation, mark: str, value: str) -> Relation:
    return Project(rows, (*keep(rows.columns), Named(mark, words(value))))


@dataclass(frozen=True, slots=True)
class Partners:
    """Which rows of one side have partners on the other; neither side is bound to a state yet."""

    left: Relation
    right: Relation
    conjuncts: Sequence[Scalar]
    leaves: Leaves

    def of(self, rows: Relation) -> Relation:
        """The right side as far as it can hold partners of these rows of the left."""
        keys = equated(self.left.columns, self.right.columns, self.conjuncts)
        if not keys or is_small(size(self.right, self.leaves), self.right):
            return self.right
        return restrict(self.right, keys_among(rows, keys), across=True)

    def gained(self, change: Delta) -> Relation:
        """(L ⋉ Δ⁺R) ▷ R: matched for the first time."""
        rows = self._matching(change, "> 0")
        return self._without(rows, old(self.of(rows), self.leaves))

    def lost(self, change: Delta) -> Relation:
        """(L ⋉ Δ⁻R) ▷ R′: matched no more."""
        rows = self._matching(change, "< 0")
        return self._without(rows, new(self.of(rows), self.leaves))

    def _matching(self, change: Delta, sign: str) -> Relation:
        """The rows of L, as they were, that match a row of the change with a weight of this sign."""
        signed = Filter(change.relation, compose(column(WEIGHT), f" {sign}"))
        rows = Project(signed, keep(change.columns))
        back = equated(self.right.columns, self.left.columns, self.conjuncts)
        left = restrict(self.left, keys_among(rows, back), across=True) if back else self.left
        found = Exists(
            old(left, self.leaves), rows, tuple(self.conjuncts), broadcast=self._is_few(self.right)
        )
        return self.leaves.share(found, "rows that matched a change")

    def _without(self, rows: Relation, known: Relation) -> Relation:
        return Exists(rows, known, tuple(self.conjuncts), anti=True, broadcast=self.is_broadcast(left=False))

    def is_broadcast(self, *, left: bool) -> bool:
        """Whether what is left of R for the changed rows of one side is worth broadcasting."""
        if is_small(size(self.right, self.leaves), self.right):
            return True
        return self._is_few(self.left if left else self.right)

    def _is_few(self, side: Relation) -> bool:
        return is_small(delta_size(side, self.leaves), side)
