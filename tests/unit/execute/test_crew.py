"""Work that runs together stops together, wherever the interruption comes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from viewkeeper.execute.crew import crew


class LongWork:
    """Goes on until someone interrupts it; like a job of Spark, it misses what comes before it has begun."""

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self.began = threading.Event()
        self.ended = 0
        self._interrupted = threading.Event()

    def __call__(self) -> None:
        for _ in range(self.jobs):
            self._interrupted.clear()
            self.began.set()
            assert self._interrupted.wait(30)
        self.ended += 1

    def interrupt(self) -> None:
        self._interrupted.set()


def test_all_work_is_done_when_the_block_ends() -> None:
    done: list[int] = []

    def note(number: int) -> Callable[[], None]:
        return lambda: done.append(number)

    with crew(2, lambda: None) as threads:
        for number in range(20):
            threads.begin(note(number))
    assert sorted(done) == list(range(20))


def test_ctrl_c_while_work_is_handed_out_stops_what_has_begun() -> None:
    work = LongWork()
    never: list[str] = []
    with pytest.raises(KeyboardInterrupt), crew(1, work.interrupt) as threads:
        threads.begin(work)
        threads.begin(lambda: never.append("begun"))
        assert work.began.wait(30)
        raise KeyboardInterrupt
    assert work.ended == 1
    assert never == []


def test_ctrl_c_inside_the_pool_itself_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has begun the work, and the interruption arrives before ``submit`` has returned."""
    work = LongWork()
    with pytest.raises(KeyboardInterrupt), crew(1, work.interrupt) as threads:
        submit = threads._pool.submit

        def interrupted(*arguments: object) -> None:
            submit(*arguments)  # type: ignore[arg-type]
            assert work.began.wait(30)
            raise KeyboardInterrupt

        monkeypatch.setattr(threads._pool, "submit", interrupted)
        threads.begin(work)
    assert work.ended == 1


def test_interrupts_again_what_began_another_job() -> None:
    work = LongWork(jobs=3)
    with pytest.raises(KeyboardInterrupt), crew(1, work.interrupt) as threads:
        threads.begin(work)
        assert work.began.wait(30)
        raise KeyboardInterrupt
    assert work.ended == 1


def test_the_first_failure_stops_the_rest() -> None:
    work = LongWork()

    def fail() -> None:
        assert work.began.wait(30)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), crew(2, work.interrupt) as threads:
        threads.begin(fail)
        threads.begin(work)
    assert work.ended == 1


def test_a_signal_that_the_main_thread_overlooked_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives when the thread is about to sleep and no longer looks; there is no second one."""
    work = LongWork()
    looks: list[float | None] = []

    def overlooking(*arguments: object, timeout: float | None = None, return_when: str) -> object:
        looks.append(timeout)
        if len(looks) == 1:
            return set(), set()  # slept, and saw nothing
        raise KeyboardInterrupt

    monkeypatch.setattr("viewkeeper.execute.crew.wait", overlooking)
    with pytest.raises(KeyboardInterrupt), crew(1, work.interrupt) as threads:
        threads.begin(work)
        assert work.began.wait(30)
    assert len(looks) == 2 and None not in looks
    assert work.ended == 1


def test_of_several_failures_that_of_the_first_work_is_told() -> None:
    first = threading.Event()

    def fail(name: str) -> Callable[[], None]:
        def work() -> None:
            assert first.wait(30)
            raise ValueError(name)

        return work

    with pytest.raises(ValueError, match="one"), crew(2, lambda: None) as threads:
        works = [threads.begin(fail(name)) for name in ("one", "two")]
        first.set()
        while not all(work.done() for work in works):
            threading.Event().wait(0.01)
