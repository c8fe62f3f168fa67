"""How far databases are looked at in one epoch: to the same point, whoever looks.

Base views and swept views of one database may be kept apart, each with a position of its own. An epoch that
moves several of them shows them at one state of the database, so whoever reads its log in the epoch reads to
the point where it stood when the first did.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewkeeper.sources.postgres_server import Server


@dataclass(frozen=True, slots=True)
class Horizon:
    """A point in a database's life: how far its log was written, and what was seen after that."""

    lsn: str
    snapshot: str


Where = tuple[str, int, str]
"""Host, port and name of a database."""


@dataclass(slots=True)
class Horizons:
    """Those of one epoch."""

    _known: dict[Where, Horizon] = field(default_factory=dict)
    _locks: dict[Where, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _held: bool = False

    def renew(self) -> None:
        """Another epoch begins."""
        with self._lock:
            if not self._held:
                self._known.clear()

    @contextmanager
    def held(self) -> Iterator[None]:
        """However many epochs there are within, they look no further than the first."""
        self.renew()
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def of(self, server: Server) -> Horizon:
        """That of a database; the first who asks finds it. One that does not answer keeps nobody waiting who
        asks for another."""
        options = server.options
        where = (options.host, options.port, options.database)
        with self._lock:
            finding = self._locks.setdefault(where, threading.Lock())
        with finding:
            known = self._known.get(where)
            if known is None:
                known = self._known[where] = _found(server)
            return known


def _found(server: Server) -> Horizon:
    (lsn,) = server.one("SELECT pg_current_wal_flush_lsn()::text")
    (snapshot,) = server.one("SELECT pg_current_snapshot()::text")
    server.wait_for_log()  # what is seen must not be lost again if the server crashes
    return Horizon(str(lsn), str(snapshot))
