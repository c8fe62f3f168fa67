"""Whether a table still has the columns that a view was defined over."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from viewkeeper.sources.contract import INNER, SourceColumn


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """A used column is no longer what it was. ``message`` is a sentence for people."""

    column: str
    message: str


def compare_schemas(
    recorded: Sequence[SourceColumn], now: Sequence[SourceColumn], used: Collection[str]
) -> SchemaDrift | None:
    """The first used column, in the order recorded, that was dropped, renamed, retyped or re-created.

    New columns, a new order, and changes to columns that nobody uses are fine. Names compare as Spark
    compares them, without regard to case. Ids compare only where both sides know them: without ids a
    renamed column looks dropped, and one dropped and re-added under its old name cannot be noticed.
    """
    wanted = {name.casefold() for name in used}
    by_name = {column.name.casefold(): column for column in now}
    by_id = {_own(column.id): column for column in now if column.id is not None}
    for before in recorded:
        if before.name.casefold() not in wanted:
            continue
        after = by_name.get(before.name.casefold())
        message = _difference(before, after, by_id.get(_own(before.id)) if before.id is not None else None)
        if message is not None:
            return SchemaDrift(before.name, message)
    return None


def _difference(before: SourceColumn, after: SourceColumn | None, heir: SourceColumn | None) -> str | None:
    """``after`` has the name of ``before``; ``heir`` has its id."""
    if heir is not None and heir is not after:
        return f"column {before.name} was renamed to {heir.name}"
    if after is None:
        return f"column {before.name} was dropped"
    if before.id is not None and after.id is not None and _own(before.id) != _own(after.id):
        return f"column {before.name} was dropped and added again: it is another column of the same name"
    if before.type != after.type:
        return f"column {before.name} was {before.type} and is now {after.type}"
    if _parts(before.id) and _parts(after.id) and _parts(before.id) != _parts(after.id):
        return f"a field of column {before.name} was dropped and added again: it is another of the same name"
    return None


def _own(id_: str) -> str:
    return id_.partition(INNER)[0]


def _parts(id_: str | None) -> str:
    """The ids of what a column consists of; none where that was not recorded."""
    return "" if id_ is None else id_.partition(INNER)[2]
