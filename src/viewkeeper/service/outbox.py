"""What is sent elsewhere while the service works: never waited for, and dropped when too much waits."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

logger = logging.getLogger("viewkeeper.service")

T = TypeVar("T")
_QUIET_SECONDS = 60.0


class Outbox(Generic[T]):
    """A thread that delivers, in order, what is put here. A delivery that fails is lost, told of in the log
    (not every time) and counted."""

    def __init__(
        self, name: str, deliver: Callable[[T], None], lost: Callable[[], None], size: int = 1000
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._lost = lost
        self._queue: queue.Queue[T | None] = queue.Queue(size)
        self._told_at = -_QUIET_SECONDS
        self._thread = threading.Thread(target=self._work, name=f"viewkeeper-{name}", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Deliver it some time; returns at once."""
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self._complain("too much waits to be sent")

    def close(self, timeout: float = 5.0) -> None:
        """Deliver what waits, for as long as that may take."""
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._deliver(item)
            except Exception as error:
                self._complain(str(error) or type(error).__name__)

    def _complain(self, why: str) -> None:
        self._lost()
        if time.monotonic() - self._told_at >= _QUIET_SECONDS:
            self._told_at = time.monotonic()
            logger.warning("%s: something was lost: %s", self._name, why)
