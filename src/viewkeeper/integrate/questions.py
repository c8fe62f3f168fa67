"""A question to a database: the rows of a table that have one of these keys; and how it is put.

Few keys are sent in arrays, in chunks, many in a temporary table. The answer is copied out, so its values are
in the same texts in which the log tells them. A question that takes too long, or has too large an answer, is
given up: the server is somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewkeeper.define.sources import WantedTable
from viewkeeper.errors import SourceError
from viewkeeper.integrate.bags import Row
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_drift import require_same
from viewkeeper.sources.postgres_server import Server, quoted
from viewkeeper.sources.visibility import Visible

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

KEYS_IN_ARRAYS = 20_000
"""More than that go into a temporary table."""
_KEYS_AT_ONCE = 5_000
_PRIMARY = (
    "CASE WHEN pg_is_in_recovery() THEN 'a standby' ELSE (SELECT system_identifier FROM pg_control_system()) "
    "|| '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END"
)
"""Its identifier and its timeline: tells a server from its copies, also from one that took its place."""


@dataclass(frozen=True, slots=True)
class Question:
    """``columns`` of the rows that have one of the ``keys`` in the columns ``on``, which are sent as
    ``kinds``. ``where``: what else the server can tell of the rows that are wanted."""

    table: PinnedTable
    columns: tuple[str, ...]
    on: tuple[str, ...]
    kinds: tuple[str, ...]
    keys: Sequence[Row]
    where: str = ""


def primary_of(server: Server) -> str:
    """Which server it is."""
    (told,) = server.one(f"SELECT {_PRIMARY}")
    return str(told)


def another_server(server: Server) -> SourceError:
    """It is not the one that the view was filled from."""
    return SourceError(
        f"source {server.source}: it is not the server any more whose log is read",
        code="VK-SOURCE-CHANGED",
        hint="Name the primary. If another server has taken its place, create the view anew.",
    )


@contextmanager
def answering(
    server: Server, primary: str, question: Question
) -> Iterator[tuple[Connection, Visible, Iterator[Row]]]:
    """A transaction with the rows of the answer, and what they contain; all is read from one state."""
    with server.asking() as connection:
        in_table = len(question.keys) > KEYS_IN_ARRAYS and _made_table(connection, question)
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET LOCAL statement_timeout = '{server.options.statement_seconds}s'")
        # TRUNCATE, and an ALTER that rewrites the table, do not heed snapshots: none may come in between.
        connection.execute(f"LOCK TABLE {question.table.sql} IN ACCESS SHARE MODE")
        visible = _snapshot(server, connection, primary)
        table = question.table
        require_same(server, table, server.table(connection, WantedTable(table.namespace, table.name)))
        yield connection, visible, _limited(server, _rows(connection, question, in_table=in_table))
        connection.execute("COMMIT")


def _snapshot(server: Server, connection: Connection, primary: str) -> Visible:
    row = connection.execute(f"SELECT pg_current_snapshot()::text, {_PRIMARY}").fetchone()
    assert row is not None
    snapshot, there = row
    if there != primary:
        raise another_server(server)
    return Visible.of(snapshot)


def _made_table(connection: Connection, question: Question) -> bool:
    """Whether the keys are in a temporary table now; not where we may not make one."""
    import psycopg

    columns = ", ".join(f"k{at} {kind}" for at, kind in enumerate(question.kinds))
    try:
        connection.execute(f"CREATE TEMPORARY TABLE vk_keys ({columns})")
    except psycopg.errors.InsufficientPrivilege:
        return False
    with connection.cursor().copy("COPY vk_keys FROM STDIN") as copy:
        for key in question.keys:
            copy.write_row(key)
    connection.execute("ANALYZE vk_keys")
    return True


def _rows(connection: Connection, question: Question, *, in_table: bool) -> Iterator[Row]:
    columns = ", ".join(quoted(name) for name in question.columns)
    on = ", ".join(quoted(name) for name in question.on)
    select = f"SELECT {columns} FROM {question.table.sql} WHERE ({on}) IN "
    rest = f" AND {question.where}" if question.where else ""
    if in_table:
        keys = ", ".join(f"k{at}" for at in range(len(question.kinds)))
        yield from _copied(connection, f"{select}(SELECT {keys} FROM vk_keys){rest}", None)
        return
    places = [question.columns.index(name) for name in question.on]
    arrays = ", ".join(f"%s::text[]::{kind}[]" for kind in question.kinds)
    for start in range(0, len(question.keys), _KEYS_AT_ONCE):
        chunk = question.keys[start : start + _KEYS_AT_ONCE]
        values = [list(column) for column in zip(*chunk, strict=True)]
        before, behind = (part.replace("%", "%%") for part in (select, rest))
        wanted = set(chunk)
        for row in _copied(connection, f"{before}(SELECT * FROM unnest({arrays})){behind}", values):
            # A collation may take texts for equal that are not the same: each row is for one chunk only.
            if tuple(row[place] for place in places) in wanted:
                yield row


def _copied(connection: Connection, query: str, values: list[Any] | None) -> Iterator[Row]:
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT", values) as copy:
        yield from copy.rows()


def _limited(server: Server, rows: Iterator[Row]) -> Iterator[Row]:
    most = server.options.rows_per_answer
    for count, row in enumerate(rows, 1):
        if count > most:
            raise SourceError(
                f"source {server.source}: an answer has more than {most:,} rows",
                code="VK-SOURCE-LIMIT",
                hint="Raise rows_per_answer, refresh more often, or copy the table: list it in tables.",
            )
        yield row
