"""What others ask of the service: done between epochs, one thing at a time, in the service's own thread."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from viewkeeper.errors import RefreshError

T = TypeVar("T")


class Errands:
    """Asked for by any thread, run by the service's."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._closed = False

    @property
    def waiting(self) -> bool:
        """Whether there is something to do."""
        return not self._waiting.empty()

    def ask(self, work: Callable[[], T]) -> T:
        """Wait for the service to do it; what it raises is raised here."""
        if self._closed:
            raise _ended()
        answer: Future[T] = Future()
        self._waiting.put((answer, work))
        return answer.result()

    def run(self) -> None:
        """Do what waits."""
        while self.waiting:
            answer, work = self._waiting.get()
            try:
                answer.set_result(work())
            except BaseException as error:  # the asker is told; an interruption is the service's, too
                answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise

    def close(self) -> None:
        """Nothing more is done; whoever waits is told."""
        self._closed = True
        while self.waiting:
            self._waiting.get()[0].set_exception(_ended())


def _ended() -> RefreshError:
    return RefreshError("the service has ended", code="VK-SERVICE-ENDED", hint="Start it again.")
