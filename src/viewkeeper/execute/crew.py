"""Work that runs at the same time, and stops together: at the first failure, or when someone presses Ctrl-C.

A ``ThreadPoolExecutor`` alone waits for what it has begun, however long that takes, when the interruption
arrives while work is still being handed out. Here every piece of work is known before a thread can begin it,
so that none is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

_BETWEEN_INTERRUPTIONS = 0.2

# A signal that arrives when the main thread is about to sleep, and no longer looks, is seen only when the
# thread wakes; without a limit that would be when the work has ended.
_BETWEEN_LOOKS = 0.5


class Crew:
    """Hands out work to threads."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._work: list[Future[None]] = []

    def begin(self, work: Callable[[], None]) -> Future[None]:
        """Let a thread do this as soon as one is free; work begins in the order in which it is handed out."""
        future: Future[None] = Future()
        self._work.append(future)
        self._pool.submit(_do, work, future)
        return future

    def wait(self) -> None:
        """Wait for all of it, or for the first failure."""
        ended: set[Future[None]] = set()
        while len(ended) < len(self._work):
            ended, _ = wait(self._work, timeout=_BETWEEN_LOOKS, return_when=FIRST_EXCEPTION)
            for future in (each for each in self._work if each in ended):
                future.result()  # of several failures, that of the work that was handed out first

    def stop(self, interrupt: Callable[[], None]) -> None:
        """Begin nothing more, and interrupt what runs until it has ended."""
        running = [future for future in self._work if not future.cancel()]
        interrupt()
        while not all(future.done() for future in running):
            # What was between two jobs when we interrupted has begun another one since.
            time.sleep(_BETWEEN_INTERRUPTIONS)
            interrupt()


@contextmanager
def crew(size: int, interrupt: Callable[[], None]) -> Iterator[Crew]:
    """Threads to hand work to. All of it has ended when the block has: well, or stopped by ``interrupt``."""
    pool = ThreadPoolExecutor(size, "viewkeeper")
    crew = Crew(pool)
    try:
        yield crew
        crew.wait()
    except BaseException:
        crew.stop(interrupt)
        raise
    finally:
        pool.shutdown(wait=False)


def _do(work: Callable[[], None], future: Future[None]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)
