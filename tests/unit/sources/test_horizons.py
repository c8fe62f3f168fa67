"""How far databases are looked at: to one point in an epoch, whoever looks."""

from __future__ import annotations

import threading
from typing import Any

from viewkeeper.define.sources import PostgresOptions
from viewkeeper.sources.horizons import Horizons


class FakeServer:
    """Moves on whenever it is asked."""

    def __init__(self, host: str, wait: threading.Event | None = None) -> None:
        given = {"host": host, "database": "d", "user": "u", "tables": "t"}
        self.options = PostgresOptions.model_validate(given)
        self._wait = wait
        self.asked = 0

    def one(self, query: str, *values: object) -> tuple[Any, ...]:
        if self._wait is not None:
            assert self._wait.wait(20)
        self.asked += 1
        return (f"0/{self.asked}",)

    def wait_for_log(self) -> None: ...


def test_one_point_for_an_epoch_and_another_for_the_next() -> None:
    horizons, east, other = Horizons(), FakeServer("east"), FakeServer("east")
    first = horizons.of(east)  # type: ignore[arg-type]
    assert horizons.of(other) is first  # type: ignore[arg-type]
    assert other.asked == 0
    horizons.renew()
    assert horizons.of(east) is not first  # type: ignore[arg-type]


def test_several_epochs_of_one_refresh_look_no_further() -> None:
    horizons, east = Horizons(), FakeServer("east")
    before = horizons.of(east)  # type: ignore[arg-type]
    with horizons.held():
        first = horizons.of(east)  # type: ignore[arg-type]
        assert first is not before
        horizons.renew()
        assert horizons.of(east) is first  # type: ignore[arg-type]
    horizons.renew()
    assert horizons.of(east) is not first  # type: ignore[arg-type]


def test_a_database_that_does_not_answer_keeps_nobody_else_waiting() -> None:
    answer = threading.Event()
    horizons, slow = Horizons(), FakeServer("slow", answer)
    waiting = threading.Thread(target=horizons.of, args=(slow,))
    waiting.start()
    try:
        assert horizons.of(FakeServer("east")).lsn == "0/1"  # type: ignore[arg-type]
    finally:
        answer.set()
        waiting.join(20)
    assert slow.asked == 2
