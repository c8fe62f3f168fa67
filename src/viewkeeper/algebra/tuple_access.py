"""How many tuples are read and written: the analytical model behind Table 1 (Mumick et al. 1997, Appendix A).

Rows of dimension tables and the writing of summary-deltas are free. With |Δ| changed rows of the fact table
F, |v| rows of a view, |sd_v| of its summary-delta:

| to keep v | tuples |
|---|---|
| recompute it | min(|F|, |its ancestors|) + |v| |
| summary-delta, by itself | |Δ| + |sd_v| |
| summary-delta, through the lattice | min(|Δ|, |sd of its ancestors|) + |sd_v| |
| counting [GMS93] | |Δ| + 2·|sd_v| + |sd_v|·|F|/|v| |

Counting deletes and inserts each touched tuple of the view, and finds its new value by reading its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra.lattice import Lattice, cheapest


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sizes of the fact table and its change, and for each view of the view and its summary-delta."""

    fact: int
    change: int
    views: Mapping[str, int]
    summary_deltas: Mapping[str, int]


def recomputing(lattice: Lattice, sizes: Statistics) -> dict[str, int]:
    """Each view from the smallest of the fact table and the views above it."""
    parents = cheapest(lattice, sizes.fact, sizes.views)
    return {
        view: (sizes.views[parents[view].upper] if view in parents else sizes.fact) + sizes.views[view]
        for view in lattice.order
    }


def each_alone(lattice: Lattice, sizes: Statistics) -> dict[str, int]:
    """Each summary-delta from the changes of the fact table."""
    return {view: sizes.change + sizes.summary_deltas[view] for view in lattice.order}


def through_the_lattice(lattice: Lattice, sizes: Statistics) -> dict[str, int]:
    """Each summary-delta from the smallest of the changes and the summary-deltas above it."""
    parents = cheapest(lattice, sizes.change, sizes.summary_deltas)
    read = {
        view: sizes.summary_deltas[parents[view].upper] if view in parents else sizes.change
        for view in lattice.order
    }
    return {view: read[view] + sizes.summary_deltas[view] for view in lattice.order}


def counting(lattice: Lattice, sizes: Statistics) -> dict[str, int]:
    """The counting algorithm, applied to the changes of the fact table."""
    return {
        view: sizes.change
        + 2 * sizes.summary_deltas[view]
        + sizes.summary_deltas[view] * sizes.fact // sizes.views[view]
        for view in lattice.order
    }
