"""The delta expression that costs least, or nearly so where there are too many to be certain."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from viewkeeper.algebra.best_partitions import BestPartitions
from viewkeeper.algebra.expressions import Apart, Node, Sizes, cost, n_term
from viewkeeper.algebra.good_trees import good_tree

EXACT = 12
"""Up to so many relations the best expression is found for certain: within a second on one core."""


@dataclass(frozen=True, slots=True)
class Found:
    """The expression, what it costs, and whether nothing costs less."""

    tree: Node
    cost: float
    exact: bool


def find_optimal(
    sizes: Sizes, *, exact: int = EXACT, given: Collection[int] = (), apart: Apart | None = None
) -> Found:
    """The best delta expression; beyond ``exact`` relations a good one.

    ``given``: sets whose delta is there already. To compute it costs nothing, to read it what it holds.
    ``apart`` tells which terms must be empty: they cost nothing. Beyond ``exact`` relations that is not
    looked at: the cost is then what the expression costs at most.
    """
    relations = len(sizes.changed)
    if relations < 2:
        return Found(n_term(relations), sizes.delta((1 << relations) - 1), exact=True)
    if relations <= exact:
        best = BestPartitions(sizes, given, apart)
        return Found(best.tree(), best.cost, exact=True)
    tree = good_tree(sizes, given)
    return Found(tree, cost(tree, sizes, given), exact=False)
