"""Window functions: to each row, what they say of the rows around it in its partition.

A change touches the partitions whose keys K occur in it, and no others:

    Δω(R) = +ω(R′ ⋉ K) − ω(R ⋉ K)

Rows that tie in the order of a window are told apart by all their columns (see
:mod:`viewkeeper.analyse.windows`), so computing a partition again gives the rows that were there. Without
PARTITION BY there is one partition, which is computed twice.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.deltas import Delta, consolidate, deleted, inserted, keys_of, plus
from viewkeeper.algebra.relations import Window
from viewkeeper.algebra.rules.affected_values import by_affected_values, has_changed, is_plain
from viewkeeper.algebra.rules.leaves import Leaves, Recur, new, old
from viewkeeper.algebra.rules.restrict import restrict


def window_delta(relation: Window, recur: Recur, leaves: Leaves) -> Delta | None:
    """Δω(R) = +ω(R′ ⋉ K) − ω(R ⋉ K)."""
    if not is_plain(relation.child) and has_changed(relation, leaves):
        told = by_affected_values(relation, relation.keys, leaves)
        if told is not None:
            return told
    child = recur(relation.child)
    if child is None:
        return None
    touched = relation
    if relation.keys:
        keys = leaves.share(keys_of(child, relation.keys), "affected partitions")
        touched = replace(relation, child=restrict(relation.child, keys))
    both = plus((inserted(new(touched, leaves)), deleted(old(touched, leaves))))
    assert both is not None
    return consolidate(both)
