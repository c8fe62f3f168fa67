"""ΔQ for any query Q: the dispatcher over the operators' rules."""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Filter,
    IllFormed,
    Join,
    Project,
    Relation,
    Repeat,
    Scan,
    UnionAll,
)
from viewkeeper.algebra.rules import affected_keys, join, linear
from viewkeeper.algebra.rules.leaves import Leaves


def delta(relation: Relation, leaves: Leaves) -> Delta | None:
    """What the change does to the relation; ``None`` when certainly nothing."""

    def recur(child: Relation) -> Delta | None:
        return delta(child, leaves)

    match relation:
        case Scan():
            return leaves.delta(relation)
        case Filter():
            return linear.filter_delta(relation, recur(relation.child))
        case Project():
            return linear.project_delta(relation, recur(relation.child))
        case Repeat():
            return linear.repeat_delta(relation, recur(relation.child))
        case UnionAll():
            return linear.union_delta(relation, [recur(child) for child in relation.inputs])
        case Join():
            return join.join_delta(relation, [recur(child) for child in relation.inputs], leaves)
        case Distinct():
            return affected_keys.distinct_delta(relation, recur(relation.child), leaves)
        case Aggregate():
            return affected_keys.aggregate_delta(relation, recur(relation.child), leaves)
        case _:
            raise IllFormed(f"{type(relation).__name__} is no operator of a view's query")


def insert_only(relation: Relation, leaves: Leaves) -> bool:
    """Whether the relation's delta is known to hold insertions only: the operators between are monotone."""
    match relation:
        case Scan():
            return leaves.insert_only(relation)
        case Filter(child) | Project(child) | Repeat(child):
            return insert_only(child, leaves)
        case Join(inputs) | UnionAll(inputs):
            return all(insert_only(child, leaves) for child in inputs)
        case _:
            return False
