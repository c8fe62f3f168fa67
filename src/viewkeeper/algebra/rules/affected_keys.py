"""Affected keys: the general rule, for operators that look at groups of rows.

With K the keys that occur in the child's delta, only the groups of K can change:

    Δγ(R) = +γ(R_new ⋉ K) − γ(R_old ⋉ K)        Δδ(R) likewise, the key being the whole row

NULL is a key like any other (⋉ compares by ``<=>``). Without keys the one row is computed twice. Where ΔR
takes more than joins, K is found without it, by a column whose touched values are plain to see
(:mod:`.affected_values`).
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import Aggregate, Distinct, Window
from viewkeeper.algebra.rules.affected_values import by_affected_values, has_changed, is_plain
from viewkeeper.algebra.rules.leaves import Leaves, Recur
from viewkeeper.algebra.rules.read_once import change_of, keyed_change


def aggregate_delta(relation: Aggregate, recur: Recur, leaves: Leaves) -> Delta | None:
    """Δγ(R) = +γ(R_new ⋉ K) − γ(R_old ⋉ K)."""
    return keyed_delta(relation, relation.keys, "affected groups", recur, leaves)


def distinct_delta(relation: Distinct, recur: Recur, leaves: Leaves) -> Delta | None:
    """Δδ(R) = +δ(R_new ⋉ K) − δ(R_old ⋉ K), K being the rows of ΔR."""
    return keyed_delta(relation, relation.columns, "affected rows", recur, leaves)


def keyed_delta(
    relation: Aggregate | Distinct | Window, keys: Sequence[str], what: str, recur: Recur, leaves: Leaves
) -> Delta | None:
    """Of an operator that looks at the rows with equal keys together, and at no others."""
    if not is_plain(relation.child) and has_changed(relation, leaves):
        told = by_affected_values(relation, keys, leaves)
        if told is not None:
            return told
    child = recur(relation.child)
    if child is None:
        return None
    if not keys:
        return change_of(relation, leaves)
    return keyed_change(relation, child, keys, what, leaves)
