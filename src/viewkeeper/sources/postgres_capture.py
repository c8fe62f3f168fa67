"""How changes are captured from a database: what :mod:`viewkeeper.sources.postgres` asks of each way.

Both give whole transactions: the log with the changes of a row in their order, triggers with whole rows,
which add up in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

from viewkeeper.sources.contract import Shelf
from viewkeeper.sources.horizons import Horizon
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.pgoutput import Transaction, lsn_text
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server, Snapshot
from viewkeeper.sources.postgres_slot import MOST_CHANGES, Slot
from viewkeeper.sources.postgres_triggers import TriggerCapture
from viewkeeper.sources.visibility import Visible

_HEARTBEAT = "heartbeat"
"""Where a slot was let go to without an epoch; remembered beside versions."""


class Capture(Protocol):
    """One way to capture changes."""

    def begin(self, tables: Sequence[PinnedTable]) -> Snapshot:
        """A state of the database to be copied; changes are captured from exactly there on."""

    def read(
        self, position: str, tables: Sequence[PinnedTable], horizon: Horizon
    ) -> tuple[Sequence[Transaction], str]:
        """The transactions behind a position, as far as the horizon, and the position behind all of them."""

    def lag(self, position: str) -> Lag:
        """What waits behind a position."""

    def acknowledge(self, position: str) -> None:
        """What lies before it is no longer needed."""

    def rest(self) -> None:
        """The last reading found nothing."""

    def release(self) -> None:
        """Leave nothing behind on the server."""

    def problems(self) -> Sequence[str]:
        """What the server lacks for it, each with the remedy."""

    def warnings(self) -> Sequence[str]:
        """What is dangerous, each with the remedy."""


def capture_of(server: Server, name: str, shelf: Shelf) -> Capture:
    """The way that the source was declared with."""
    if server.options.capture == "trigger":
        return TriggerCapture(server, name)
    return LogCapture(server, name, shelf)


class LogCapture:
    """From the server's log, by a replication slot."""

    def __init__(self, server: Server, name: str, shelf: Shelf) -> None:
        self._server = server
        self._shelf = shelf
        self._slot = Slot(server, name)
        self._idle_to: str | None = None
        """How far nothing of ours was found, if nothing was."""

    def begin(self, tables: Sequence[PinnedTable]) -> Snapshot:
        return self._slot.begin([table.sql for table in tables])

    def read(
        self, position: str, tables: Sequence[PinnedTable], horizon: Horizon
    ) -> tuple[Sequence[Transaction], str]:
        seen = self.read_seen(position, tables, horizon, most=MOST_CHANGES)
        return seen, lsn_text(seen[-1].end) if seen else position

    def read_seen(
        self, position: str, tables: Sequence[PinnedTable], horizon: Horizon, *, most: int | None = None
    ) -> list[Transaction]:
        """The first transactions behind a position that are seen at the horizon: one that waits for a
        synchronous standby is in the log before it is, and those behind it wait with it."""
        read = self._slot.read(position, self._let_go_to, tables, upto=horizon.lsn, most=most)
        self._idle_to = read.reached if read.is_idle else None
        visible = Visible.of(horizon.snapshot)
        return list(takewhile(lambda each: visible.sees(each.xid), read.transactions))

    def read_all(self, position: str, tables: Sequence[PinnedTable]) -> list[Transaction]:
        """All the transactions behind a position that are in the log now."""
        return self._slot.read(position, self._let_go_to, tables, most=None).transactions

    @property
    def _let_go_to(self) -> str | None:
        noted = self._shelf.load(_HEARTBEAT)
        return noted["lsn"] if noted else None

    def lag(self, position: str) -> Lag:
        return self._slot.lag(position)

    def acknowledge(self, position: str) -> None:
        self._slot.acknowledge(position)

    def rest(self) -> None:
        """An idle slot must not hold back the log that other tables fill: it goes on to where nothing of ours
        was found. That is noted first: a slot ahead of what we know would be one that lost changes."""
        if self._idle_to is not None:
            self._shelf.save(_HEARTBEAT, {"lsn": self._idle_to})
            self._slot.acknowledge(self._idle_to)

    def release(self) -> None:
        self._slot.drop()

    def problems(self) -> Sequence[str]:
        level, replicates = self._server.one(
            "SELECT current_setting('wal_level'), (SELECT rolreplication OR rolsuper FROM pg_roles "
            "WHERE rolname = current_user)"
        )
        found = []
        if level != "logical":
            found.append(
                f"wal_level is {level}. ALTER SYSTEM SET wal_level = 'logical', and restart the server; "
                "or capture changes by triggers: capture 'trigger'"
            )
        if not replicates:
            found.append(f"the user may not replicate. ALTER ROLE {self._server.options.user} REPLICATION")
        untold = self._slot.unpublished() if self._server.options.publication is not None else None
        return [*found, untold] if untold is not None else found

    def warnings(self) -> Sequence[str]:
        (kept,) = self._server.one("SELECT current_setting('max_slot_wal_keep_size')")
        if kept != "-1":
            return ()
        return (
            "max_slot_wal_keep_size is unlimited: should nobody refresh for long, the server's disk fills "
            "up. ALTER SYSTEM SET max_slot_wal_keep_size = '50GB'",
        )
