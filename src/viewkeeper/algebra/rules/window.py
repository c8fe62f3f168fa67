"""Window functions: to each row, what they say of the rows around it in its partition.

A change touches the partitions whose keys K occur in it, and no others:

    Δω(R) = +ω(R′ ⋉ K) − ω(R ⋉ K)

Rows that tie in the order of a window are told apart by all their columns (see
:mod:`viewkeeper.analyse.windows`), so computing a partition again gives the rows that were there. Without
PARTITION BY there is one partition, which is computed twice.
"""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import Window
from viewkeeper.algebra.rules.affected_keys import keyed_delta
from viewkeeper.algebra.rules.leaves import Leaves, Recur


def window_delta(relation: Window, recur: Recur, leaves: Leaves) -> Delta | None:
    """Δω(R) = +ω(R′ ⋉ K) − ω(R ⋉ K)."""
    return keyed_delta(relation, relation.keys, "affected partitions", recur, leaves)
