"""Affected keys: the general rule, for operators that look at groups of rows.

With K the keys that occur in the child's delta, only the groups of K can change:

    Δγ(R) = +γ(R_new ⋉ K) − γ(R_old ⋉ K)        Δδ(R) likewise, the key being the whole row

NULL is a key like any other (⋉ compares by ``<=>``). Without keys the one row is computed twice.
"""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta, consolidate, deleted, inserted, keys_of, plus
from viewkeeper.algebra.relations import Aggregate, Distinct, Relation, SemiJoin
from viewkeeper.algebra.rules.leaves import Leaves, new, old


def restrict(relation: Relation, keys: Relation) -> Relation:
    """R ⋉ K, on all the columns of K."""
    return SemiJoin(relation, keys, tuple((name, name) for name in keys.columns))


def aggregate_delta(relation: Aggregate, child: Delta | None, leaves: Leaves) -> Delta | None:
    """Δγ(R) = +γ(R_new ⋉ K) − γ(R_old ⋉ K)."""
    if child is None:
        return None
    before, after = old(relation.child, leaves), new(relation.child, leaves)
    if relation.keys:
        keys = leaves.share(keys_of(child, relation.keys), "affected groups")
        before, after = restrict(before, keys), restrict(after, keys)
    return _difference(
        Aggregate(after, relation.keys, relation.calls), Aggregate(before, relation.keys, relation.calls)
    )


def distinct_delta(relation: Distinct, child: Delta | None, leaves: Leaves) -> Delta | None:
    """Δδ(R) = +δ(R_new ⋉ K) − δ(R_old ⋉ K), K being the rows of ΔR."""
    if child is None:
        return None
    keys = leaves.share(keys_of(child, relation.columns), "affected rows")
    before, after = restrict(old(relation.child, leaves), keys), restrict(new(relation.child, leaves), keys)
    return _difference(Distinct(after), Distinct(before))


def _difference(after: Relation, before: Relation) -> Delta:
    both = plus((inserted(after), deleted(before)))
    assert both is not None
    return consolidate(both)
