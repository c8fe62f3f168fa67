"""What others ask of the service: done between epochs, one thing at a time, in the service's own thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from viewkeeper.errors import RefreshError

T = TypeVar("T")


class Errands:
    """Asked for by any thread, run by the service's."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def waiting(self) -> bool:
        """Whether there is something to do."""
        return not self._waiting.empty()

    def ask(self, work: Callable[[], T], patience: float | None = None) -> T:
        """Wait for the service to do it; what it raises is raised here. After ``patience`` seconds, an
        error."""
        answer: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise _ended()
            self._waiting.put((answer, work))
        try:
            return answer.result(patience)
        except FutureTimeout:
            answer.cancel()
            raise RefreshError(
                "the service is busy with an epoch", code="VK-SERVICE-BUSY", hint="Ask again in a while."
            ) from None

    def run(self) -> None:
        """Do what waits."""
        while self.waiting:
            answer, work = self._waiting.get()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(work())
            except BaseException as error:  # the asker is told; an interruption is the service's, too
                answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise

    def close(self) -> None:
        """Nothing more is done; whoever waits is told."""
        with self._lock:
            self._closed = True
        while self.waiting:
            answer, _ = self._waiting.get()
            if answer.set_running_or_notify_cancel():  # or who asked waits no longer
                answer.set_exception(_ended())


def _ended() -> RefreshError:
    return RefreshError("the service has ended", code="VK-SERVICE-ENDED", hint="Start it again.")
