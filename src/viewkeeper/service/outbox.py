"""What is sent elsewhere while the service works: never waited for, and dropped when too much waits."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

logger = logging.getLogger("viewkeeper.service")

T = TypeVar("T")
_QUIET_SECONDS = 60.0
_GRACE_SECONDS = 1.0


class Outbox(Generic[T]):
    """A thread that delivers, in order, what is put here. A delivery that fails is lost, told of in the log
    (not every time) and counted. ``patience``: how many seconds a delivery may take."""

    def __init__(
        self,
        name: str,
        deliver: Callable[[T], None],
        lost: Callable[[], None],
        size: int = 1000,
        patience: float = 5.0,
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._lost = lost
        self._size = size
        self._patience = patience
        self._queue: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._under_way: T | None = None
        self._told_at = -_QUIET_SECONDS
        self._thread = threading.Thread(target=self._work, name=f"viewkeeper-{name}", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Deliver it some time; returns at once."""
        if self._queue.qsize() < self._size:
            self._queue.put(item)
        else:
            self._complain("too much waits to be sent")

    def close(self) -> list[T]:
        """Deliver what waits, for as long as a delivery may take. What is left then is lost, and returned."""
        self._queue.put(None)
        self._thread.join(self._patience + _GRACE_SECONDS)
        left = [] if self._under_way is None else [self._under_way]
        with suppress(queue.Empty):
            while (item := self._queue.get_nowait()) is not None:
                left.append(item)
        for _ in left:
            self._lost()
        if left:
            logger.warning("%s: %d could not be sent before the end", self._name, len(left))
        return left

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            self._under_way = item
            try:
                self._deliver(item)
            except Exception as error:
                self._complain(str(error) or type(error).__name__)
            self._under_way = None

    def _complain(self, why: str) -> None:
        self._lost()
        if time.monotonic() - self._told_at >= _QUIET_SECONDS:
            self._told_at = time.monotonic()
            logger.warning("%s: something was lost: %s", self._name, why)
