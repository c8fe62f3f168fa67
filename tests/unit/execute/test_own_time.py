"""Time that passes once is counted once, however many steps run."""

from __future__ import annotations

import pytest

from viewkeeper.execute.own_time import SharedTime


class Clock:
    """Stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_step_that_runs_alone_has_all_the_time(clock: Clock) -> None:
    with SharedTime(clock).running() as share:
        clock.now += 3
    assert share.seconds == 3


def test_steps_in_company_share_the_time(clock: Clock) -> None:
    shares = SharedTime(clock)
    with shares.running() as long:
        clock.now += 1
        with shares.running() as short:
            clock.now += 4
        clock.now += 2
    assert short.seconds == 2
    assert long.seconds == 1 + 2 + 2
    assert long.seconds + short.seconds == 7


def test_time_in_which_nothing_runs_belongs_to_nobody(clock: Clock) -> None:
    shares = SharedTime(clock)
    with shares.running() as first:
        clock.now += 1
    clock.now += 50
    with shares.running() as second:
        clock.now += 1
    assert (first.seconds, second.seconds) == (1, 1)


def test_a_step_that_fails_runs_no_longer(clock: Clock) -> None:
    shares = SharedTime(clock)
    with pytest.raises(ValueError, match="wrong"), shares.running():
        clock.now += 1
        raise ValueError("wrong")
    with shares.running() as next_:
        clock.now += 2
    assert next_.seconds == 2
