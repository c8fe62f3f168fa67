"""Whether PostgreSQL's tables are still those that a source was declared with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from viewkeeper.errors import SourceError
from viewkeeper.sources.pgoutput import Relation
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server, ServerTable, Snapshot, text_literal

_MODIFIER = re.compile(r"\(([\d,-]+)\)")
_FILES = (
    "WITH RECURSIVE parts AS ("
    "SELECT n.nspname || '.' || c.relname AS path, c.oid AS id FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "JOIN unnest(%s::text[], %s::text[]) AS t (schema, name) ON (t.schema, t.name) = (nspname, relname) "
    "UNION SELECT parts.path, i.inhrelid FROM parts JOIN pg_inherits i ON i.inhparent = parts.id) "
    "SELECT parts.path, c.oid::bigint, c.relfilenode::bigint FROM parts JOIN pg_class c ON c.oid = parts.id"
)
"""The files in which the rows of tables lie, and those of their parts."""


def require_same_tables(server: Server, tables: Sequence[PinnedTable]) -> None:
    """Raise if a table is not what it was when its source was declared."""
    for pinned, now in zip(tables, server.tables(), strict=True):
        require_same(server, pinned, now)


def require_untouched(server: Server, tables: Sequence[PinnedTable], snapshot: Snapshot) -> None:
    """Raise if a table was emptied or rewritten since the snapshot that it is copied from. TRUNCATE, and an
    ALTER that rewrites, do not heed snapshots: who reads an older one finds no rows."""
    paths = [[table.namespace for table in tables], [table.name for table in tables]]
    with server.asking() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT {text_literal(snapshot.name)}")
        then = set(connection.execute(_FILES, paths).fetchall())
        connection.execute("COMMIT")
        now = set(connection.execute(_FILES, paths).fetchall())
    touched = sorted({path for path, _, _ in then ^ now})
    if touched:
        raise SourceError(
            f"source {server.source}: {', '.join(touched)} was emptied or rewritten while it was copied",
            code="VK-SOURCE-LIMIT",
            hint="Nothing was changed; refresh again.",
        )


def require_same(server: Server, pinned: PinnedTable, now: ServerTable) -> None:
    """Raise if one of them is another."""
    what = None
    if now.oid != pinned.oid:
        what = "is another table of the same name"
    elif now.key != pinned.key:
        what = f"has the key ({', '.join(now.key)}) and had ({', '.join(pinned.key)})"
    elif now.identity != pinned.identity and server.options.capture == "log":
        what = "has another replica identity: the log tells rows by other columns"
    elif not now.is_whole:
        what = "has become a table that consists of others"
    else:
        what = (
            altered(pinned, now)
            or _refitted(pinned, now)
            or _replaced(pinned, now)
            or _relabelled(pinned, now)
        )
    if what is not None:
        raise SourceError(
            f"source {server.source}: {pinned.namespace}.{pinned.name} {what}",
            code="VK-SOURCE-CHANGED",
            hint="CREATE OR REPLACE SOURCE copies the table as it is now. A view that is swept over it is "
            "dropped before, and created again.",
        )


def speaks_of(pinned: PinnedTable, relation: Relation) -> bool:
    """Whether a change in the log is one of this table. The log tells names and identities as they were then:
    a table that had another name for a while is known by its number."""
    named = (relation.namespace, relation.name) == (pinned.namespace, pinned.name)
    if not relation.id or not pinned.oid:
        return named  # triggers tell no number
    is_same = relation.id == pinned.oid and relation.identity.value == pinned.identity
    if (named and not is_same) or (relation.id == pinned.oid and not named):
        raise SourceError(
            f"{pinned.namespace}.{pinned.name} had another name or replica identity for a while, or was "
            "another table: changes may be missing",
            code="VK-SOURCE-CHANGED",
            hint="CREATE OR REPLACE SOURCE copies the table as it is now. A view that is swept over it is "
            "created anew.",
        )
    return named


def altered(pinned: PinnedTable, now: ServerTable) -> str | None:
    """Which column is gone or has another type, if one is so. The modifier counts where it makes another type
    of Spark's: the digits of a NUMERIC, which would be rounded, not the length of a VARCHAR."""
    there = {column.name: column for column in now.columns}
    for name, _, spark, type_id in pinned.columns:
        column = there.get(name)
        if column is None:
            return f"has no column {name} now"
        if column.type_id != type_id or column.spark is None or column.spark.spark != spark:
            return f"has another type in column {name} now"
    return None


def _refitted(pinned: PinnedTable, now: ServerTable) -> str | None:
    """Of which column the type has another modifier, if one is so: its values may have been rounded, cut off
    or filled up with blanks, and no row event told so. Only those of a VARCHAR that may be longer stay."""
    there = {column.name: column.type for column in now.columns}
    for name, kind, _, _ in pinned.columns:
        if not _fits(kind, there[name]):
            return f"has the type {there[name]} in column {name}, which was {kind}"
    return None


def _fits(before: str, after: str) -> bool:
    """Whether values of a type with one modifier are the same with another.

    >>> _fits("character varying(9)", "character varying(20)"), _fits("character(5)", "character(8)")
    (True, False)
    >>> _fits("character varying(9)", "character varying"), _fits("character varying", "character varying(9)")
    (True, False)
    """
    old, new = (None if found is None else found[1] for found in map(_MODIFIER.search, (before, after)))
    if old == new:
        return True
    is_longer = old is not None and (new is None or int(old) < int(new))
    return before.startswith("character varying") and is_longer


def _replaced(pinned: PinnedTable, now: ServerTable) -> str | None:
    """Which column was dropped and added again, if one was: its values changed, and no row event told so."""
    there = {column.name: column.number for column in now.columns}
    for name, number in zip(pinned.names, pinned.numbers, strict=False):
        if there[name] != number:
            return f"has another column now that is called {name}"
    return None


def _relabelled(pinned: PinnedTable, now: ServerTable) -> str | None:
    """Of which column a value of its enum was renamed, if one was: the rows that have it read otherwise, and
    no row event told so. Labels that were added are in no row that was seen."""
    there = {column.name: column.labels for column in now.columns}
    for name, labels in zip(pinned.names, pinned.labels, strict=False):
        renamed = sorted(text for _, text in set(labels) - set(there[name]))
        if renamed:
            return f"has another name now for {', '.join(renamed)} in column {name}"
    return None
