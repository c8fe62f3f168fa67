"""One PostgreSQL server: connections to it, and what it says of itself and of its tables.

The password is looked up when a connection is made, from where the declaration says that it is kept, and goes
nowhere else: messages name the host, the database and the user, and no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewkeeper.define.sources import PostgresOptions, WantedTable
from viewkeeper.errors import DefinitionError, SetupError, SourceError
from viewkeeper.sources.postgres_types import PostgresType, spark_type

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
_NAP_SECONDS = 0.02
_SETTINGS = {
    # The texts of values must not depend on how a server is set up.
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "statement_timeout": "0",
    # A policy that hides rows from us is an error: the log tells of them all the same.
    "row_security": "off",
    "idle_in_transaction_session_timeout": "0",
}


Label = tuple[int, str]
"""Of an enum: its number, which it keeps, and its text, which may be changed."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column, and its type on both sides; ``spark`` is ``None`` where there is no type for it."""

    name: str
    type: str
    spark: PostgresType | None
    type_id: int
    generated: str = ""
    """How the server works it out by itself: s(tored), v(irtual), or not at all."""
    is_large: bool = False
    """Whether its values may lie outside of the row, and then are not told when they stay as they are."""
    number: int = 0
    """The server counts a table's columns, and gives no number twice."""
    labels: tuple[Label, ...] = ()
    """Of an enum, or an array of them."""


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table as the server describes it."""

    namespace: str
    name: str
    oid: int
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    identity: str
    """What the log holds of rows that go: d, n, f or i."""
    is_whole: bool = True
    """Whether its rows lie in itself, and not in partitions or in tables that inherit from it."""
    where: str | None = None
    """Which rows are wanted; all, if nothing is said."""
    named: frozenset[str] = frozenset()
    """The columns that are wanted; none if all are."""

    @property
    def kept(self) -> tuple[TableColumn, ...]:
        """The columns that a base view holds: those that are wanted, and the key."""
        names = self.named | set(self.key) if self.named else {each.name for each in self.columns}
        return tuple(each for each in self.columns if each.name in names)

    @property
    def sql(self) -> str:
        return quoted(self.namespace, self.name)


@dataclass(slots=True)
class Snapshot:
    """A state of the database that other connections can read: it stands exactly at a position, and lasts
    as long as the connection."""

    name: str
    position: str
    connection: Any

    def close(self) -> None:
        self.connection.close()


class Server:
    """Connects, and asks."""

    def __init__(self, source: str, options: PostgresOptions, patience: int = _CONNECT_SECONDS) -> None:
        self.source = source
        self.options = options
        self._patience = patience

    def connect(self, *, replication: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection on which every statement commits by itself."""
        try:
            import psycopg
        except ImportError as error:
            raise SetupError(
                "PostgreSQL needs a driver",
                code="VK-SETUP-POSTGRES",
                hint="pip install 'viewkeeper[postgres]'",
            ) from error
        given: dict[str, Any] = {
            "host": self.options.host,
            "port": self.options.port,
            "dbname": self.options.database,
            "user": self.options.user,
            "password": self.options.secret(),
            "sslmode": self.options.sslmode,
            "connect_timeout": self._patience,
            "application_name": "viewkeeper",
            "autocommit": True,
        }
        settings = {**_SETTINGS, "lock_timeout": f"{self.options.statement_seconds}s"}
        given["options"] = " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())
        if replication:
            # Commands of the replication protocol are not prepared.
            given |= {"replication": "database", "cursor_factory": psycopg.ClientCursor}
        try:
            return psycopg.connect(**given)
        except psycopg.OperationalError as error:
            raise self._unreachable(error) from None

    def snapshot(self, position: str) -> Snapshot:
        """The state of the database now; ``position`` is the query that tells where that is."""
        connection = self.connect()
        try:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = connection.execute(f"SELECT pg_export_snapshot(), ({position})").fetchone()
        except Exception as error:
            connection.close()
            raise self.refused(error) from None
        assert row is not None
        return Snapshot(row[0], str(row[1]), connection)

    @contextmanager
    def asking(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """A connection for as long as the block runs; what goes wrong with it is told in our words."""
        import psycopg

        connection = self.connect()
        try:
            yield connection
        except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
            raise SourceError(
                f"source {self.source}: an answer took longer than {self.options.statement_seconds} s",
                code="VK-SOURCE-LIMIT",
                hint="Does somebody hold a lock, or is an index missing? Raise statement_seconds, or refresh "
                "again later.",
            ) from None
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise SourceError(
                f"source {self.source}: {str(error).strip().splitlines()[0]}",
                code="VK-SOURCE-CHANGED",
                hint="A table or column that is read is gone. Declare the source anew without it.",
            ) from None
        except psycopg.OperationalError as error:
            raise self._unreachable(error) from None
        except psycopg.Error as error:
            raise self.refused(error) from None
        finally:
            connection.close()

    def wait_for_log(self) -> None:
        """Until all that can be seen now is in the log on disk: what is committed asynchronously is seen
        before that, and the log can be read no further than it is on disk."""
        (written,) = self.one("SELECT pg_current_wal_insert_lsn()")
        flushed = "SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn"
        if self.one(flushed, written)[0]:
            return
        try:
            with self.asking() as connection:
                # A message that nobody reads, committed here: with it all before it goes to disk.
                connection.execute(
                    "BEGIN; SET LOCAL synchronous_commit TO local; "
                    "SELECT pg_logical_emit_message(true, 'viewkeeper', ''); COMMIT"
                )
        except SourceError as error:
            if error.code != "VK-SOURCE-REFUSED":
                raise  # without that right it takes a moment longer
        self.wait_until(
            lambda: self.one(flushed, written)[0],
            "its log is not written to disk",
            "Is its disk full, or too slow? Nothing was changed; refresh again then.",
        )

    def wait_until(self, holds: Callable[[], bool], otherwise: str, hint: str) -> None:
        """Ask again and again, for as long as a statement may take."""
        until = time.monotonic() + self.options.statement_seconds
        while not holds():
            if time.monotonic() > until:
                raise SourceError(f"source {self.source}: {otherwise}", code="VK-SOURCE-LIMIT", hint=hint)
            time.sleep(_NAP_SECONDS)

    def one(self, query: str, *values: object) -> tuple[Any, ...]:
        """The only row of an answer."""
        with self.asking() as connection:
            row = connection.execute(query, values or None).fetchone()
        assert row is not None
        return row

    def refused(self, error: Exception) -> SourceError:
        """What the server said, without anything that we told it."""
        said = str(error).strip().splitlines()
        return SourceError(
            f"source {self.source}: the server refused: {said[0] if said else type(error).__name__}",
            code="VK-SOURCE-REFUSED",
            hint=f"`viewkeeper sources check {self.source}` says what is missing.",
        )

    def _unreachable(self, error: Exception) -> SourceError:
        said = str(error).strip().splitlines()
        where = f"{self.options.user}@{self.options.host}:{self.options.port}/{self.options.database}"
        return SourceError(
            f"source {self.source}: no connection to {where}: {said[-1].strip() if said else 'no answer'}",
            code="VK-SOURCE-UNREACHABLE",
            hint="Is the server up, are user and password right? Nothing was changed; refresh again then.",
        )

    def tables(self) -> tuple[ServerTable, ...]:
        """The tables that the source names; one that is not there, or cannot be read, is an error."""
        with self.asking() as connection:
            return tuple(self.table(connection, wanted) for wanted in self.options.wanted)

    def table(self, connection: psycopg.Connection[tuple[Any, ...]], wanted: WantedTable) -> ServerTable:
        """A table as it is now."""
        namespace, table = wanted.schema, wanted.name
        found = connection.execute(
            "SELECT c.oid::bigint, c.relreplident::text, c.relkind::text, c.relkind = 'r' AND NOT EXISTS "
            "(SELECT FROM pg_inherits i WHERE i.inhparent = c.oid) FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
            (namespace, table),
        ).fetchone()
        if found is None or found[2] not in ("r", "p"):
            raise DefinitionError(
                f"source {self.source}: there is no table {namespace}.{table}",
                code="VK-SOURCE-MISSING",
                hint="Write tables with their schema: public.orders.",
            )
        columns = connection.execute(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid::bigint, "
            "coalesce(e.typtype, t.typtype) = 'e', a.attgenerated::text, a.attstorage <> 'p', a.attnum, "
            "ARRAY(SELECT ARRAY[l.oid::text, l.enumlabel] FROM pg_enum l "
            "WHERE l.enumtypid = coalesce(e.oid, t.oid) ORDER BY l.enumsortorder) "
            "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            "LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' "
            "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            (found[0],),
        ).fetchall()
        key = connection.execute(
            "SELECT a.attname FROM pg_index i JOIN unnest(i.indkey) WITH ORDINALITY AS k(num, at) ON true "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num "
            "WHERE i.indrelid = %s AND i.indisprimary AND i.indimmediate ORDER BY k.at",
            (found[0],),
        ).fetchall()
        return ServerTable(
            namespace,
            table,
            found[0],
            tuple(
                TableColumn(
                    column,
                    kind,
                    spark_type(kind, is_enum=bool(is_enum)),
                    type_id,
                    generated,
                    is_large,
                    number,
                    tuple((int(label), text) for label, text in labels),
                )
                for column, kind, type_id, is_enum, generated, is_large, number, labels in columns
            ),
            tuple(column for (column,) in key),
            str(found[1]),
            bool(found[3]),
            wanted.where,
            frozenset(wanted.columns),
        )


def quoted(*path: str) -> str:
    """An identifier for PostgreSQL, or a path of them.

    >>> quoted('a"b'), quoted("public", "t")
    ('"a""b"', '"public"."t"')
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in path)


def text_literal(value: str) -> str:
    """A text for PostgreSQL.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
