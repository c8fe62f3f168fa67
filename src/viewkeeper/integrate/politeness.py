"""Somebody else's server: how many connections it is asked for, and when it is left alone.

What fails three times in a row is not asked again for a while (a *circuit breaker*): a server that is down,
or too slow, does not get better from being asked. Views that do not need it go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from viewkeeper.define.sources import PostgresOptions
from viewkeeper.errors import SourceError
from viewkeeper.sources.contract import Shelf

T = TypeVar("T")
AWAY = frozenset({"VK-SOURCE-UNREACHABLE", "VK-SOURCE-LIMIT", "VK-SOURCE-RESTING"})
"""What passes by itself, or with another limit: nothing is wrong with what was read before."""
_BREAKER = "breaker"
_FAILURES = 3
_NAP_SECONDS = 1.0

_gates: dict[tuple[str, int, str], threading.BoundedSemaphore] = {}
_gates_lock = threading.Lock()


def _gate(options: PostgresOptions) -> threading.BoundedSemaphore:
    """One for each database, whichever views ask it."""
    where = (options.host, options.port, options.database)
    with _gates_lock:
        return _gates.setdefault(where, threading.BoundedSemaphore(options.connections))


@dataclass(frozen=True, slots=True)
class Politeness:
    """Towards one source."""

    options: PostgresOptions
    shelf: Shelf
    source: str

    def run(self, act: Callable[[], T]) -> T:
        """Do it, when it is our turn; again for as long as the source's patience lasts."""
        kept = self.shelf.load(_BREAKER) or {"failures": 0, "until": 0.0}
        if time.time() < kept["until"]:
            raise SourceError(
                f"source {self.source} failed {kept['failures']} times in a row, and is left alone for "
                f"{kept['until'] - time.time():.0f} s",
                code="VK-SOURCE-RESTING",
                hint=f"`viewkeeper sources check {self.source}` asks it all the same.",
            )
        until = time.monotonic() + self.options.patience
        while True:
            try:
                with _gate(self.options):
                    done = act()
            except SourceError as error:
                if error.code == "VK-SOURCE-UNREACHABLE" and time.monotonic() < until:
                    time.sleep(_NAP_SECONDS)
                    continue
                if error.code in AWAY:
                    self._failed(int(kept["failures"]) + 1)
                raise
            if kept["failures"]:
                self.shelf.save(_BREAKER, {"failures": 0, "until": 0.0})
            return done

    def _failed(self, failures: int) -> None:
        rests = self.options.rest_seconds if failures >= _FAILURES else 0
        self.shelf.save(_BREAKER, {"failures": failures, "until": time.time() + rests})
