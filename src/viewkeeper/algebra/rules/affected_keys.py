"""Affected keys: the general rule, for operators that look at groups of rows.

With K the keys that occur in the child's delta, only the groups of K can change:

    Δγ(R) = +γ(R_new ⋉ K) − γ(R_old ⋉ K)        Δδ(R) likewise, the key being the whole row

NULL is a key like any other (⋉ compares by ``<=>``). Without keys the one row is computed twice. Where ΔR
takes more than joins, K is found without it, by a column whose touched values are plain to see
(:mod:`.affected_values`).
"""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta, consolidate, deleted, inserted, keys_of, plus
from viewkeeper.algebra.relations import Aggregate, Distinct, Relation
from viewkeeper.algebra.rules.affected_values import by_affected_values, has_changed, is_plain
from viewkeeper.algebra.rules.leaves import Leaves, Recur, new, old
from viewkeeper.algebra.rules.restrict import restrict


def aggregate_delta(relation: Aggregate, recur: Recur, leaves: Leaves) -> Delta | None:
    """Δγ(R) = +γ(R_new ⋉ K) − γ(R_old ⋉ K)."""
    if not is_plain(relation.child) and has_changed(relation, leaves):
        told = by_affected_values(relation, relation.keys, leaves)
        if told is not None:
            return told
    child = recur(relation.child)
    if child is None:
        return None
    touched = relation.child
    if relation.keys:
        keys = leaves.share(keys_of(child, relation.keys), "affected groups")
        touched = restrict(touched, keys)
    return _difference(Aggregate(touched, relation.keys, relation.calls), leaves)


def distinct_delta(relation: Distinct, recur: Recur, leaves: Leaves) -> Delta | None:
    """Δδ(R) = +δ(R_new ⋉ K) − δ(R_old ⋉ K), K being the rows of ΔR."""
    if not is_plain(relation.child) and has_changed(relation, leaves):
        told = by_affected_values(relation, relation.columns, leaves)
        if told is not None:
            return told
    child = recur(relation.child)
    if child is None:
        return None
    keys = leaves.share(keys_of(child, relation.columns), "affected rows")
    return _difference(Distinct(restrict(relation.child, keys)), leaves)


def _difference(touched: Relation, leaves: Leaves) -> Delta:
    both = plus((inserted(new(touched, leaves)), deleted(old(touched, leaves))))
    assert both is not None
    return consolidate(both)
