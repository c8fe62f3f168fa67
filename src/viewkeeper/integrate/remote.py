"""One database whose tables are not copied: what changed in it, and what it answers.

SWEEP assumes channels that keep the order (Agrawal et al. 1997, Section 2): an answer contains every update
that came before it, and none that comes after. A server's log and its answers come on different ways, so that
is made true here: the answer is read together with its snapshot, and of every transaction of the log the
snapshot says whether the answer contains it. The log is read behind everything that the snapshot can see.

What a snapshot sees is no prefix of the log: a transaction that waits for a synchronous standby is in the log
before it is seen. So one is taken in only once it is seen, and all before it are; every later answer has it
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from viewkeeper.integrate.bags import Row
from viewkeeper.integrate.questions import Question, another_server, answering, primary_of
from viewkeeper.sources.contract import Shelf
from viewkeeper.sources.horizons import Horizon
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.pgoutput import Transaction, lsn_text
from viewkeeper.sources.postgres_capture import LogCapture
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_drift import require_same_tables
from viewkeeper.sources.postgres_server import Server, Snapshot, text_literal
from viewkeeper.sources.postgres_triggers import TriggerCapture
from viewkeeper.sources.visibility import Visible


@dataclass(frozen=True, slots=True)
class Taken:
    """A transaction, and the position behind it."""

    transaction: Transaction
    position: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Rows, the transactions that were not told before, and the ends of those that the rows contain;
    ``None``: all that were told."""

    rows: list[Row]
    news: Sequence[Transaction]
    contains: frozenset[int] | None


class Remote(Protocol):
    """A database, seen from where a view stands."""

    server: Server
    primary: str
    """Which server it is that the view was filled from."""

    def begin(self) -> Snapshot:
        """A state to be copied; changes are captured from exactly there on."""

    def start(self, position: str, horizon: Horizon) -> list[Taken]:
        """What lies between a position and a horizon and can be taken in; a sweep begins there."""

    def ask(self, question: Question) -> Reply:
        """What the server answers now."""

    def lag(self, position: str) -> Lag: ...
    def acknowledge(self, position: str) -> None: ...
    def rest(self) -> None: ...
    def release(self) -> None: ...


def remote(server: Server, name: str, tables: Sequence[PinnedTable], shelf: Shelf) -> Remote:
    """By the way in which the source captures changes."""
    if server.options.capture == "trigger":
        return TriggeredRemote(server, name, tables)
    return LoggedRemote(server, name, tables, shelf)


def _require_same(server: Server, primary: str, tables: Sequence[PinnedTable]) -> None:
    """It must be the same server with the same tables: a copy of it has another log."""
    if primary_of(server) != primary:
        raise another_server(server)
    require_same_tables(server, tables)


class LoggedRemote:
    """Changes come from the log."""

    def __init__(self, server: Server, name: str, tables: Sequence[PinnedTable], shelf: Shelf) -> None:
        self.server = server
        self._tables = tables
        self._capture = LogCapture(server, name, shelf)
        self.primary = ""
        self._position = ""
        self._told: set[int] = set()

    def begin(self) -> Snapshot:
        self.primary = primary_of(self.server)
        snapshot = self._capture.begin(self._tables)
        try:
            self._wait_until_seen(snapshot)
        except BaseException:
            snapshot.close()
            raise
        return snapshot

    def _wait_until_seen(self, snapshot: Snapshot) -> None:
        """The snapshot that comes with a slot is made from the log: it has what waits for a standby. Answers
        must have it, too."""
        with self.server.asking() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(f"SET TRANSACTION SNAPSHOT {text_literal(snapshot.name)}")
            row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        copied = Visible.of(row[0])

        def answers_have_it() -> bool:
            (text,) = self.server.one("SELECT pg_current_snapshot()::text")
            return Visible.of(text).sees_all_of(copied)

        self.server.wait_until(
            answers_have_it,
            "a transaction is committed and waits for a standby",
            "Is its synchronous standby up? Try again when it is.",
        )

    def start(self, position: str, horizon: Horizon) -> list[Taken]:
        self._position = position
        seen = self._capture.read_seen(position, self._tables, horizon)
        _require_same(self.server, self.primary, self._tables)
        self._told = {each.end for each in seen}
        return [Taken(each, lsn_text(each.end)) for each in seen]

    def ask(self, question: Question) -> Reply:
        with answering(self.server, self.primary, question) as (_, visible, rows):
            answer = list(rows)
        self.server.wait_for_log()
        known = self._capture.read_all(self._position, self._tables)
        news = [each for each in known if each.end not in self._told]
        self._told.update(each.end for each in news)
        return Reply(answer, news, frozenset(each.end for each in known if visible.sees(each.xid)))

    def lag(self, position: str) -> Lag:
        return self._capture.lag(position)

    def acknowledge(self, position: str) -> None:
        self._capture.acknowledge(position)

    def rest(self) -> None:
        self._capture.rest()

    def release(self) -> None:
        self._capture.release()


class TriggeredRemote:
    """Changes come from the table that triggers fill, and are read with the answer, from one state."""

    def __init__(self, server: Server, name: str, tables: Sequence[PinnedTable]) -> None:
        self.server = server
        self._tables = tables
        self._capture = TriggerCapture(server, name)
        self.primary = ""
        self._position = ""
        self._told = 0

    def begin(self) -> Snapshot:
        self.primary = primary_of(self.server)
        return self._capture.begin(self._tables)

    def start(self, position: str, horizon: Horizon) -> list[Taken]:
        found, self._position = self._capture.read(position, self._tables, horizon)
        _require_same(self.server, self.primary, self._tables)
        self._told = 0
        return [Taken(self._numbered(each), self._position) for each in found]

    def ask(self, question: Question) -> Reply:
        with answering(self.server, self.primary, question) as (connection, _, rows):
            answer = list(rows)
            found, position = self._capture.read_within(connection, self._position, self._tables)
        self._position = position  # not before the answer is whole: it may be asked for again
        return Reply(answer, [self._numbered(found)] if found.changes else [], None)

    def _numbered(self, transaction: Transaction) -> Transaction:
        self._told += 1
        transaction.end = self._told
        return transaction

    def lag(self, position: str) -> Lag:
        return self._capture.lag(position)

    def acknowledge(self, position: str) -> None:
        self._capture.acknowledge(position)

    def rest(self) -> None:
        """Nothing waits."""

    def release(self) -> None:
        self._capture.release()
