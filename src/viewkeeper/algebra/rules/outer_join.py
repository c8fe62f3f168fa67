"""Outer joins: LEFT and FULL (a RIGHT join is a LEFT one, the other way round), under any condition.

    L ⟕ R = (L ⋈ R) ⊎ (L ▷ R) × {NULL}          L ⟗ R = (L ⟕ R) ⊎ {NULL} × (R ▷ L)

so its delta is that of the join, and those of the anti joins (:mod:`.existence`) with NULLs beside them. If
only L changed, each of its rows is on its own: Δ(L ⟕ R) = ΔL ⟕ R.
"""

from __future__ import annotations

from collections.abc import Callable

from viewkeeper.algebra.deltas import Delta, deleted, inserted, plus
from viewkeeper.algebra.relations import Exists, Join, OuterJoin, Project, Relation
from viewkeeper.algebra.rules.existence import Partners, looked_at_again, shared
from viewkeeper.algebra.rules.join import join_delta
from viewkeeper.algebra.rules.leaves import Leaves, Recur, new
from viewkeeper.algebra.scalars import WEIGHT, Named, column, keep, words

Grows = Callable[[Relation], bool]


def outer_join_delta(relation: OuterJoin, leaves: Leaves, recur: Recur, grows: Grows) -> Delta | None:
    """Δ(L ⟕ R) or Δ(L ⟗ R). ``grows``: whether a delta only inserts."""
    again = None if relation.full else looked_at_again(relation, relation.left, relation.right, leaves)
    if again is not None:
        return again
    left, right = recur(relation.left), recur(relation.right)
    if left is None and right is None:
        return None
    if right is None and not relation.full:
        assert left is not None
        return _only_left(relation, left, leaves)
    left = None if left is None else shared(left, leaves)
    right = None if right is None else shared(right, leaves)
    inner = _flat(relation)
    terms = [join_delta(inner, [recur(child) for child in inner.inputs], leaves)]
    sides = [(relation.left, relation.right, left, right)]
    if relation.full:
        sides.append((relation.right, relation.left, right, left))
    for mine, theirs, own, other in sides:
        partners = Partners(mine, theirs, relation.conjuncts, leaves)
        terms += _alone(relation, partners, own, other, growing=grows(theirs))
    return plus([None if term is None else _ordered(relation, term) for term in terms])


def _only_left(relation: OuterJoin, left: Delta, leaves: Leaves) -> Delta:
    """Δ(L ⟕ R) = ΔL ⟕ R."""
    partners = Partners(relation.left, relation.right, relation.conjuncts, leaves)
    rows = shared(left, leaves).relation
    known = new(partners.of(rows), leaves)
    joined = OuterJoin(rows, known, relation.conjuncts, broadcast=partners.is_broadcast(left=True))
    return _ordered(relation, Delta(Project(joined, keep((*relation.columns, WEIGHT)))))


def _alone(
    relation: OuterJoin, partners: Partners, own: Delta | None, other: Delta | None, *, growing: bool
) -> list[Delta | None]:
    """Δ(L ▷ R) with NULLs in the place of R's columns; the same for R ▷ L."""
    terms: list[Delta | None] = []
    if own is not None:
        rows = own.relation
        known = new(partners.of(rows), partners.leaves)
        lonely = Exists(
            rows, known, tuple(partners.conjuncts), anti=True, broadcast=partners.is_broadcast(left=True)
        )
        terms.append(Delta(_padded(relation, lonely, weighted=True)))
    if other is not None:
        terms.append(deleted(_padded(relation, partners.gained(other))))
        if not growing:
            terms.append(inserted(_padded(relation, partners.lost(other))))
    return terms


def _padded(relation: OuterJoin, rows: Relation, *, weighted: bool = False) -> Relation:
    """The rows with NULL in every column of the join that they lack."""
    items = tuple(
        Named(name, column(name) if name in rows.columns else words("NULL")) for name in relation.columns
    )
    return Project(rows, (*items, *keep([WEIGHT])) if weighted else items)


def _ordered(relation: OuterJoin, delta: Delta) -> Delta:
    """The columns in the order of the join's."""
    if delta.columns == relation.columns:
        return delta
    return Delta(Project(delta.relation, keep((*relation.columns, WEIGHT))))


def _flat(relation: OuterJoin) -> Join:
    """L ⋈ R with the inputs of joins on either side as its own: their order is then open."""
    inputs: list[Relation] = []
    conjuncts = list(relation.conjuncts)
    for side in (relation.left, relation.right):
        if isinstance(side, Join):
            inputs += side.inputs
            conjuncts += side.conjuncts
        else:
            inputs.append(side)
    return Join(tuple(inputs), tuple(conjuncts))
