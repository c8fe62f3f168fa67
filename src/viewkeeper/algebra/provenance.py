"""Where the columns of a relation come from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from viewkeeper.algebra.join_sizes import constant_column, equalities
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Exists,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    TimeFilter,
    Window,
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
        case Filter() | TimeFilter() | Distinct() | SemiJoin():
            return origin(relation.child, column)
        case Exists() | Window() | Generate() if column in relation.child.columns:
            return origin(relation.child, column)
        case OuterJoin(full=False) if column in relation.left.columns:
            return origin(relation.left, column)
        case Join():
            child = next(child for child in relation.inputs if column in child.columns)
            return origin(child, column)
        case _:
            return None


def scan_origin(relation: Relation, column: str) -> tuple[Scan, str] | None:
    """The table that a column comes from, and its name there; ``None`` if it comes from elsewhere."""
    found = origin(relation, column)
    return None if found is None or not isinstance(found[0], Scan) else (found[0], found[1])


def staged_origin(relation: Relation, column: str) -> tuple[Staged, str] | None:
    """The staged result that a column comes from, and its name there; ``None`` if it comes from elsewhere."""
    found = origin(relation, column)
    return None if found is None or not isinstance(found[0], Staged) else (found[0], found[1])


def contributors(relation: Relation, column: str) -> frozenset[tuple[str, str]]:
    """The tables and their columns whose values this one is made of. What only decides which rows there are,
    a condition or a key of a join, is not among them."""
    if isinstance(relation, Scan):
        return frozenset((relation.table, field.stored) for field in relation.fields if field.name == column)
    read = _computed_from(relation, column)
    return frozenset().union(
        *(
            contributors(child, each)
            for child in children(relation)
            for each in ({column} if read is None else read)
            if each in child.columns
        )
    )


def _computed_from(relation: Relation, column: str) -> frozenset[str] | None:
    """The columns of its inputs from which a relation makes one; ``None`` if it is one of theirs."""
    match relation:
        case Project():
            return next(item.scalar.columns for item in relation.items if item.name == column)
        case Aggregate() | Window():
            calls = {call.name: call for call in relation.calls}
            if column not in calls:
                return None
            made = calls[column]
            return made.columns if isinstance(made, AggregateCall) else made.scalar.columns
        case Generate() if column in relation.names:
            return relation.call.columns
        case Exists() if column == relation.mark:
            return frozenset().union(*(conjunct.columns for conjunct in relation.conjuncts))
        case _:
            return None


def equated(relation: Join) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """The columns of inputs that a join sets equal, each with the place of its input; both ways round."""
    owner = {name: at for at, child in enumerate(relation.inputs) for name in child.columns}
    for one, two in equalities(relation.conjuncts):
        yield (owner[one], one), (owner[two], two)
        yield (owner[two], two), (owner[one], one)


def joined_tables(relation: Relation, inputs: int = 2) -> Iterator[Scan]:
    """The tables, with the columns that are read of them, that joins of at least so many inputs join."""
    if isinstance(relation, Join) and len(relation.inputs) >= inputs:
        yield from (child for child in relation.inputs if isinstance(child, Scan))
    for child in children(relation):
        yield from joined_tables(child, inputs)


def joined_columns(relation: Relation, inputs: int = 2) -> Iterator[tuple[str, str]]:
    """The tables and their columns that joins of at least so many inputs set equal to others, or to a
    constant."""
    if isinstance(relation, Join) and len(relation.inputs) >= inputs:
        constant = (constant_column(conjunct) for conjunct in relation.conjuncts)
        for column in chain(*equalities(relation.conjuncts), filter(None, constant)):
            found = scan_origin(relation, column)
            if found is not None:
                yield found[0].table, found[1]
    for child in children(relation):
        yield from joined_columns(child, inputs)
