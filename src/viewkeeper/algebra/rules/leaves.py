"""Where the rules end: what stands for a table before, after and between its two versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.algebra.expressions import Expression
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.relations import Filter, Join, Leaf, Relation, Scan, State, map_leaves

Recur: TypeAlias = Callable[[Relation], "Delta | None"]
"""ΔR of an operator's input."""


class Leaves(Protocol):
    """Given by the planner, for one view in one epoch."""

    def old(self, scan: Scan) -> Relation:
        """The table's rows at the version that the view was last computed from."""

    def new(self, scan: Scan) -> Relation:
        """The table's rows at the version that the epoch moves to."""

    def delta(self, scan: Scan) -> Delta | None:
        """The rows between the two; ``None`` when nothing changed."""

    def insert_only(self, scan: Scan) -> bool:
        """Whether that delta is known to hold insertions only."""

    def size(self, scan: Scan) -> int | None:
        """Rows of the table, as far as its statistics tell."""

    def old_size(self, scan: Scan) -> int | None:
        """The same at the version that the view was last computed from."""

    def pruned_size(self, relation: Filter) -> int | None:
        """Rows of the files that cannot be skipped when a table is read under this condition, if known."""

    def delta_size(self, scan: Scan) -> int | None:
        """Rows of that delta, at most."""

    def excludes(self, relation: Filter) -> bool:
        """Whether it is certain that no changed row of a table meets these conditions."""

    def untouched(self, scan: Scan) -> bool:
        """Whether it is certain that no row of the table changed."""

    def distinct(self, scan: Scan) -> Mapping[str, float]:
        """How many values the stored columns of the table have, about, of those for which it is known."""

    def types(self, scan: Scan) -> Mapping[str, str]:
        """The types of the table's stored columns, as far as they are known."""

    def widths(self, scan: Scan) -> Mapping[str, float]:
        """About how many bytes a row takes in the files of the table, of some columns of any length."""

    def extents(self, scan: Scan, column: str) -> Extents | None:
        """Between which values a stored column of the table lies, if it changed and that is known."""

    @property
    def corrections(self) -> Mapping[str, float]:
        """By which factor the estimates of joined deltas were wrong before."""

    def part_delta(self, relation: Join, relations: int, delta: Delta) -> Delta:
        """Δ(⋈P) of some inputs of a join (a bit mask), or the same staged, to be counted."""

    def expression(self, relation: Join, sizes: JoinSizes) -> Expression:
        """The delta expression to compute a join's delta by."""

    def common_delta(self, relation: Join, relations: int) -> Delta | None:
        """Δ(⋈P) of some inputs of a join (a bit mask), if it is computed for other views, too."""

    def share(self, relation: Relation, what: str) -> Relation:
        """The same relation, computed once although the rule uses it more than once."""


def at(relation: Relation, state: State, leaves: Leaves) -> Relation:
    """The relation with every table in that state."""

    def bound(leaf: Leaf) -> Relation:
        if not isinstance(leaf, Scan):
            return leaf
        return leaves.old(leaf) if state is State.OLD else leaves.new(leaf)

    return map_leaves(relation, bound)


def old(relation: Relation, leaves: Leaves) -> Relation:
    """R_old."""
    return at(relation, State.OLD, leaves)


def new(relation: Relation, leaves: Leaves) -> Relation:
    """R_new."""
    return at(relation, State.NEW, leaves)
