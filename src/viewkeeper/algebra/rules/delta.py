"""ΔQ for any query Q: the dispatcher over the operators' rules."""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.estimates import excludes_input
from viewkeeper.algebra.relations import (
    Aggregate,
    Constant,
    Distinct,
    Exists,
    Expand,
    Filter,
    Generate,
    IllFormed,
    Join,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    TimeFilter,
    UnionAll,
    Window,
    children,
)
from viewkeeper.algebra.rules import affected_keys, existence, join, linear, outer_join, time_filter, window
from viewkeeper.algebra.rules.leaves import Leaves


def delta(relation: Relation, leaves: Leaves) -> Delta | None:
    """What the change does to the relation; ``None`` when certainly nothing."""

    def recur(child: Relation) -> Delta | None:
        return delta(child, leaves)

    def grows(child: Relation) -> bool:
        return insert_only(child, leaves)

    match relation:
        case Scan():
            return leaves.delta(relation)
        case Constant():
            return None
        case Filter():
            if leaves.excludes(relation):
                return None
            return linear.filter_delta(relation, recur(relation.child))
        case TimeFilter():
            return time_filter.time_filter_delta(relation, recur(relation.child), leaves)
        case Project():
            return linear.project_delta(relation, recur(relation.child))
        case Repeat():
            return linear.repeat_delta(relation, recur(relation.child))
        case Generate():
            return linear.generate_delta(relation, recur(relation.child))
        case Expand():
            return linear.expand_delta(relation, recur(relation.child))
        case UnionAll():
            return linear.union_delta(relation, [recur(child) for child in relation.inputs])
        case Join():
            deltas = [
                None if excludes_input(relation, at, leaves) else recur(child)
                for at, child in enumerate(relation.inputs)
            ]
            return join.join_delta(relation, deltas, leaves)
        case OuterJoin():
            return outer_join.outer_join_delta(relation, leaves, recur, grows)
        case Exists():
            return existence.exists_delta(relation, recur, leaves, growing=grows(relation.among))
        case Window():
            return window.window_delta(relation, recur, leaves)
        case Distinct():
            return affected_keys.distinct_delta(relation, recur, leaves)
        case Aggregate():
            return affected_keys.aggregate_delta(relation, recur, leaves)
        case _:
            raise IllFormed(f"{type(relation).__name__} is no operator of a view's query")


def insert_only(relation: Relation, leaves: Leaves) -> bool:
    """Whether the relation's delta is known to hold insertions only: the operators between are monotone."""
    match relation:
        case Scan():
            return leaves.insert_only(relation)
        case Constant():
            return True
        case Filter(child) | Project(child) | Repeat(child) | Generate(child) | Expand(child):
            return insert_only(child, leaves)
        case Exists(child, among, anti=False, mark=None):
            return insert_only(child, leaves) and insert_only(among, leaves)
        case TimeFilter(child, clock):
            return insert_only(child, leaves) and insert_only(clock, leaves)
        case Join(inputs) | UnionAll(inputs):
            return all(insert_only(child, leaves) for child in inputs)
        case _:
            return False


def untouched(relation: Relation, leaves: Leaves) -> bool:
    """Whether it is certain that nothing changed that the relation reads, or could notice."""
    match relation:
        case Scan():
            return leaves.untouched(relation)
        case Filter() if leaves.excludes(relation):
            return True
        case Join():
            return all(
                excludes_input(relation, at, leaves) or untouched(child, leaves)
                for at, child in enumerate(relation.inputs)
            )
        case _:
            return all(untouched(child, leaves) for child in children(relation))
