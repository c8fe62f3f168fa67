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

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from viewkeeper.errors import SourceError
from viewkeeper.integrate.bags import Row
from viewkeeper.integrate.questions import Question, answering, primary_of
from viewkeeper.integrate.visibility import Visible
from viewkeeper.sources.contract import Shelf
from viewkeeper.sources.horizons import Horizon
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.pgoutput import Transaction, lsn_of, lsn_text
from viewkeeper.sources.postgres_capture import LogCapture
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server, Snapshot
from viewkeeper.sources.postgres_triggers import TriggerCapture

_PRIMARY = "primary"
"""Under this name it is remembered which server it is."""
_NAP_SECONDS = 0.02


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
        return TriggeredRemote(server, name, tables, shelf)
    return LoggedRemote(server, name, tables, shelf)


class _Pinned:
    """It must stay the same server: a copy of it, or itself put back in time, has another log."""

    def __init__(self, server: Server, shelf: Shelf) -> None:
        self.server = server
        self._shelf = shelf

    def pin(self) -> None:
        self._shelf.save(_PRIMARY, {"is": primary_of(self.server)})

    @property
    def primary(self) -> str:
        kept = self._shelf.load(_PRIMARY)
        assert kept is not None, "it is pinned when the view is filled"
        return str(kept["is"])


class LoggedRemote:
    """Changes come from the log."""

    def __init__(self, server: Server, name: str, tables: Sequence[PinnedTable], shelf: Shelf) -> None:
        self.server = server
        self._tables = tables
        self._capture = LogCapture(server, name, shelf)
        self._pinned = _Pinned(server, shelf)
        self._position = ""
        self._told: set[int] = set()
        self._is_idle = False

    def begin(self) -> Snapshot:
        self._pinned.pin()
        return self._capture.begin(self._tables)

    def start(self, position: str, horizon: Horizon) -> list[Taken]:
        self._position, self._told = position, set()
        seen, found = Visible.of(horizon.snapshot), list[Taken]()
        waiting = self._capture.read_all(position, horizon.lsn)
        self._is_idle = not any(each.changes for each in waiting)
        for transaction in waiting:
            if not seen.sees(transaction.xid):
                break
            self._told.add(transaction.end)
            found.append(Taken(transaction, lsn_text(transaction.end)))
        return found

    def ask(self, question: Question) -> Reply:
        self._is_idle = False
        with answering(self.server, self._pinned.primary, question) as (_, visible, rows):
            answer = list(rows)
        self._wait_for_log()
        known = self._capture.read_all(self._position)
        news = [each for each in known if each.end not in self._told]
        self._told.update(each.end for each in news)
        return Reply(answer, news, frozenset(each.end for each in known if visible.sees(each.xid)))

    def _wait_for_log(self) -> None:
        """What the answer contains is in the log, but perhaps not on disk yet, and then not to be read."""
        (written,) = self.server.one("SELECT pg_current_wal_insert_lsn()::text")
        until = time.monotonic() + self.server.options.statement_seconds
        while True:
            (flushed,) = self.server.one("SELECT pg_current_wal_flush_lsn()::text")
            if lsn_of(flushed) >= lsn_of(written):
                return
            if time.monotonic() > until:
                raise SourceError(
                    f"source {self.server.source}: its log is not written to disk",
                    code="VK-SOURCE-LIMIT",
                    hint="Is its disk full, or too slow? Nothing was changed; refresh again then.",
                )
            time.sleep(_NAP_SECONDS)

    def lag(self, position: str) -> Lag:
        return self._capture.lag(position)

    def acknowledge(self, position: str) -> None:
        self._capture.acknowledge(position)

    def rest(self) -> None:
        """The slot goes on, unless something waits behind it, though it may not be seen yet."""
        if self._is_idle:
            self._capture.rest()

    def release(self) -> None:
        self._capture.release()


class TriggeredRemote:
    """Changes come from the table that triggers fill, and are read with the answer, from one state."""

    def __init__(self, server: Server, name: str, tables: Sequence[PinnedTable], shelf: Shelf) -> None:
        self.server = server
        self._tables = tables
        self._capture = TriggerCapture(server, name)
        self._pinned = _Pinned(server, shelf)
        self._position = ""
        self._told = 0

    def begin(self) -> Snapshot:
        self._pinned.pin()
        return self._capture.begin(self._tables)

    def start(self, position: str, horizon: Horizon) -> list[Taken]:
        found, self._position = self._capture.read(position, self._tables, horizon)
        self._told = 0
        return [Taken(self._numbered(each), self._position) for each in found]

    def ask(self, question: Question) -> Reply:
        with answering(self.server, self._pinned.primary, question) as (connection, _, rows):
            answer = list(rows)
            found, self._position = self._capture.read_within(connection, self._position, self._tables)
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
