"""Where the rules end: what stands for a table before, after and between its two versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.expressions import Expression
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Join,
    Nothing,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    Staged,
    State,
    TableAt,
    UnionAll,
)


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

    def delta_size(self, scan: Scan) -> int | None:
        """Rows of that delta, at most."""

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
    match relation:
        case Scan():
            return leaves.old(relation) if state is State.OLD else leaves.new(relation)
        case TableAt() | Staged() | Nothing():
            return relation
        case Filter(child, predicate):
            return Filter(at(child, state, leaves), predicate)
        case Project(child, items):
            return Project(at(child, state, leaves), items)
        case Join(inputs, conjuncts):
            return Join(tuple(at(child, state, leaves) for child in inputs), conjuncts)
        case UnionAll(inputs):
            return UnionAll(tuple(at(child, state, leaves) for child in inputs))
        case Distinct(child):
            return Distinct(at(child, state, leaves))
        case Aggregate(child, keys, calls):
            return Aggregate(at(child, state, leaves), keys, calls)
        case SemiJoin(child, keys_relation, on, anti):
            return SemiJoin(at(child, state, leaves), at(keys_relation, state, leaves), on, anti)
        case Expand(child, count):
            return Expand(at(child, state, leaves), count)
        case Repeat(child, number, times):
            return Repeat(at(child, state, leaves), number, times)


def old(relation: Relation, leaves: Leaves) -> Relation:
    """R_old."""
    return at(relation, State.OLD, leaves)


def new(relation: Relation, leaves: Leaves) -> Relation:
    """R_new."""
    return at(relation, State.NEW, leaves)
