"""Where the columns of a relation come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from viewkeeper.algebra.join_sizes import equal_columns
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    children,
)

Stored: TypeAlias = Scan | TableAt | Staged


def origin(relation: Relation, column: str) -> tuple[Stored, str] | None:
    """What holds the column that this one is, unchanged, and its name there."""
    match relation:
        case Scan() | TableAt() | Staged():
            return relation, next(field.stored for field in relation.fields if field.name == column)
        case Project():
            item = next(item for item in relation.items if item.name == column)
            if not item.scalar.is_column:
                return None
            (below,) = item.scalar.columns
            return origin(relation.child, below)
        case Aggregate() if column in relation.keys:
            return origin(relation.child, column)
        case Filter() | Distinct() | SemiJoin():
            return origin(relation.child, column)
        case Join():
            child = next(child for child in relation.inputs if column in child.columns)
            return origin(child, column)
        case _:
            return None


def staged_origin(relation: Relation, column: str) -> tuple[Staged, str] | None:
    """The staged result that a column comes from, and its name there; ``None`` if it comes from elsewhere."""
    found = origin(relation, column)
    return None if found is None or not isinstance(found[0], Staged) else (found[0], found[1])


def joined_columns(relation: Relation, inputs: int = 2) -> Iterator[tuple[str, str]]:
    """The tables and their columns that joins of at least so many inputs set equal to others."""
    if isinstance(relation, Join) and len(relation.inputs) >= inputs:
        for pair in filter(None, map(equal_columns, relation.conjuncts)):
            for column in pair:
                found = origin(relation, column)
                if found is not None and isinstance(found[0], Scan):
                    yield found[0].table, found[1]
    for child in children(relation):
        yield from joined_columns(child, inputs)
