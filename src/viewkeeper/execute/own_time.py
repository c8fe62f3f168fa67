"""How much of the time each of several concurrent steps took for itself.

Steps that run at the same time slow each other down. While n of them run, each takes an n-th of the time:

    own seconds of a step = ∫ dt / n(t)  over the time that it runs

Together they are the time that passed. What a step takes from start to end would count that time n times,
and make whatever runs in company look dearer than what runs alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class OwnTime:
    """What one step has taken for itself, in seconds."""

    seconds: float = 0.0


class SharedTime:
    """Divides the time among the steps that run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._running: list[OwnTime] = []
        self._since = 0.0

    @contextmanager
    def running(self) -> Iterator[OwnTime]:
        """A step runs in the block; its own time is known when the block has ended."""
        own = OwnTime()
        with self._lock:
            self._divide()
            self._running.append(own)
        try:
            yield own
        finally:
            with self._lock:
                self._divide()
                self._running = [each for each in self._running if each is not own]

    def _divide(self) -> None:
        """Give the time since something last began or ended to those that ran meanwhile."""
        now = self._clock()
        for own in self._running:
            own.seconds += (now - self._since) / len(self._running)
        self._since = now
