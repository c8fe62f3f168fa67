"""Where the columns of a relation come from."""

from __future__ import annotations

from viewkeeper.algebra.relations import Aggregate, Distinct, Filter, Project, Relation, SemiJoin, Staged


def origin(relation: Relation, column: str) -> tuple[Staged, str] | None:
    """The staged result that a column comes from unchanged, and what it is called there."""
    match relation:
        case Staged():
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
        case _:
            return None
