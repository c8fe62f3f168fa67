"""The database behind a ledger: connections, transactions, and errors that say what to do.

There is one writer at a time, on either database: a writing transaction of SQLite begins IMMEDIATE, and one
of PostgreSQL locks the only row of ``vk_lease`` first. So whatever a writing method has read still holds
when it writes. A reading transaction sees one state of the ledger, however many statements it takes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, select
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    NoResultFound,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)

from viewkeeper.errors import LedgerError, ViewkeeperError
from viewkeeper.ledger import migrations
from viewkeeper.ledger.schema import lease

_BUSY_SECONDS = 30.0
_URL_HINT = "Give sqlite:////absolute/path/ledger.db or postgresql://user@host/database."


def sqlite_url(path: Path) -> str:
    """The URL of a ledger in this file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path)).render_as_string()


class Database:
    """One engine, its two kinds of transaction, and its name in messages (without the password)."""

    def __init__(self, url: str) -> None:
        parsed = _parse(url)
        self.where = parsed.render_as_string(hide_password=True)
        self._sqlite = parsed.get_backend_name() == "sqlite"
        engine = _sqlite_engine(parsed) if self._sqlite else _postgres_engine(parsed)
        self._engine = engine
        self._file = _OpenFile(Path(parsed.database)) if self._sqlite and parsed.database else None
        self._writer = engine.execution_options(vk_writes=True)
        self._reader = engine if self._sqlite else engine.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger and changes nothing."""
        self._require_file()
        with self._translated(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is alone in writing; it commits at the end of the block, or rolls back."""
        self._require_file()
        with self._translated(), self._writer.begin() as connection:
            connection.execute(select(lease.c.id).with_for_update())
            yield connection

    def bring_up_to_date(self, now: Callable[[], datetime]) -> None:
        """Check that this is a ledger we can read, and apply the migrations it lacks."""
        with self.reading() as connection:
            version = migrations.schema_version(connection)
            migrations.refuse_newer(version, self.where)
        # Both change the file, so they come after the check.
        if self._sqlite:
            self._use_write_ahead_log()
        if version < migrations.LATEST:
            with self._translated(), self._writer.begin() as connection:
                migrations.migrate(connection, now(), self.where)
        if self._file is not None:
            self._file.remember()

    def _require_file(self) -> None:
        """SQLite goes on reading and writing a file that was deleted, which nobody would ever see again; and
        it makes an empty one where there is none."""
        if self._file is None:
            return
        match self._file.changed():
            case "gone":
                self._engine.dispose()
                raise LedgerError(
                    f"The ledger {self.where} cannot be reached: the file is gone",
                    code="VK-LEDGER-UNREACHABLE",
                    hint="Put the file back, then try again.",
                )
            case "another":
                self._engine.dispose()
                self._file.remember()

    def close(self) -> None:
        """Close the connections of the pool."""
        self._engine.dispose()

    def _use_write_ahead_log(self) -> None:
        """Readers then never wait for a writer. The mode stays with the file, so this happens once.

        Changing it needs the file alone, and SQLite does not wait for that by itself. If others keep
        the file busy we go on without: they change it, or the next to open does; either mode is safe.
        """
        with self._translated(), self._engine.connect() as connection:
            raw = connection.connection.cursor()
            try:
                for _ in range(20):
                    if raw.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                        return
                    try:
                        raw.execute("PRAGMA journal_mode = WAL")
                    except sqlite3.OperationalError:
                        time.sleep(0.02)
            finally:
                raw.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (StatementError, NoResultFound) as error:
            if isinstance(error, StatementError) and isinstance(error.orig, ViewkeeperError):
                raise error.orig from None
            raise self._explained(error) from error
        except SQLAlchemyError as error:
            raise LedgerError(f"The ledger {self.where} failed: {error}") from error

    def _explained(self, error: StatementError | NoResultFound) -> LedgerError:
        cause = " ".join(str(getattr(error, "orig", error)).split())
        if _is_corrupt(error, cause):
            return LedgerError(
                f"The ledger {self.where} is damaged, or is not a ledger: {cause}",
                code="VK-LEDGER-CORRUPT",
                hint="Check the path; if it is right, restore the file from a backup. Nothing was changed.",
            )
        if isinstance(error, DBAPIError) and _is_unreachable(error):
            return LedgerError(
                f"The ledger {self.where} cannot be reached: {cause}",
                code="VK-LEDGER-UNREACHABLE",
                hint="Check that it can be opened for writing from this machine, then try again.",
            )
        return LedgerError(f"The ledger {self.where} failed: {cause}")


class _OpenFile:
    """A file that was opened: whether it is still the one of that name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None

    def remember(self) -> None:
        self._identity = self._found()

    def changed(self) -> Literal["gone", "another"] | None:
        """What became of the file since it was remembered."""
        if self._identity is None:
            return None
        found = self._found()
        return "gone" if found is None else "another" if found != self._identity else None

    def _found(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


# How SQLite and PostgreSQL (undefined table, undefined column) say that what should be there is not.
_CORRUPT_SQLITE = (
    "file is not a database",
    "malformed",
    "no such table",
    "no such column",
    "unsupported file",
)
_CORRUPT_POSTGRES = ("42P01", "42703")


def _is_corrupt(error: StatementError | NoResultFound, cause: str) -> bool:
    if isinstance(error, NoResultFound):  # the only row of the lease is gone
        return True
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in _CORRUPT_POSTGRES
    return isinstance(error.orig, sqlite3.Error) and any(sign in cause for sign in _CORRUPT_SQLITE)


def _is_unreachable(error: DBAPIError) -> bool:
    return error.connection_invalidated or isinstance(error, OperationalError)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The text itself may hold a password, so it is not repeated.
        raise LedgerError(
            "The address of the ledger is not a URL", code="VK-LEDGER-URL", hint=_URL_HINT
        ) from None
    match parsed.drivername:
        case "sqlite" | "sqlite+pysqlite":
            return _checked_file(parsed)
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise LedgerError(f"A ledger cannot be kept in {other}", code="VK-LEDGER-URL", hint=_URL_HINT)


def _checked_file(url: URL) -> URL:
    if not url.database or url.database == ":memory:":
        raise LedgerError(
            "A ledger in memory would be lost with the process", code="VK-LEDGER-URL", hint=_URL_HINT
        )
    folder = Path(url.database).absolute().parent
    if not folder.is_dir():
        raise LedgerError(
            f"There is no folder {folder} for the ledger",
            code="VK-LEDGER-MISSING",
            hint=f"Create it (mkdir -p {str(folder)!r}), or check the path of the warehouse.",
        )
    return url


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        # The driver's own BEGIN comes too late and is never IMMEDIATE: we begin transactions ourselves.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        # A commit is on the disk when it returns; with a write-ahead log NORMAL would not promise that.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("vk_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres_engine(url: URL) -> Engine:
    try:
        # A warehouse may sleep for hours between refreshes; the ping replaces connections that died.
        return create_engine(url, hide_parameters=True, pool_pre_ping=True)
    except ImportError as error:
        raise LedgerError(
            "A ledger in PostgreSQL needs the package psycopg",
            code="VK-LEDGER-DRIVER",
            hint="pip install 'viewkeeper[postgres]'",
        ) from error
