"""Towards somebody else's server."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from viewkeeper.define.sources import PostgresOptions
from viewkeeper.errors import SourceError
from viewkeeper.integrate import politeness
from viewkeeper.integrate.politeness import Politeness


class Shelf:
    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}

    def load(self, version: str) -> Mapping[str, Any] | None:
        return self.kept.get(version)

    def save(self, version: str, content: Mapping[str, Any]) -> None:
        self.kept[version] = content

    def forget_others(self, version: str) -> None: ...


def options(host: str, **more: int) -> PostgresOptions:
    given = {"host": host, "database": "d", "user": "u", "remote": "t"}
    return PostgresOptions.model_validate({**given, **more})


def away(code: str = "VK-SOURCE-UNREACHABLE") -> None:
    raise SourceError("away", code=code)


def test_what_fails_three_times_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    clock = [1000.0]
    monkeypatch.setattr(politeness.time, "time", lambda: clock[0])
    polite = Politeness(options("breaker", rest_seconds=60), Shelf(), "east")
    for _ in range(3):
        with pytest.raises(SourceError) as caught:
            polite.run(away)
        assert caught.value.code == "VK-SOURCE-UNREACHABLE"
    with pytest.raises(SourceError) as caught:
        polite.run(lambda: pytest.fail("it is not asked"))
    assert caught.value.code == "VK-SOURCE-RESTING"
    clock[0] += 61
    assert polite.run(lambda: "there") == "there"
    with pytest.raises(SourceError) as caught:
        polite.run(away)
    assert caught.value.code == "VK-SOURCE-UNREACHABLE", "it counts from the beginning again"


def test_what_is_wrong_in_itself_does_not_count():
    polite = Politeness(options("wrong"), Shelf(), "east")
    for _ in range(5):
        with pytest.raises(SourceError) as caught:
            polite.run(lambda: away("VK-SLOT-LOST"))
        assert caught.value.code == "VK-SLOT-LOST"


def test_no_more_at_a_time_than_are_allowed():
    polite = Politeness(options("crowded", connections=2), Shelf(), "east")
    inside, most, lock = 0, 0, threading.Lock()

    def act() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.02)
        with lock:
            inside -= 1

    threads = [threading.Thread(target=polite.run, args=(act,)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == 2


def test_patience(monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr(politeness.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(politeness.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    asked = []

    def act() -> str:
        asked.append(clock[0])
        if clock[0] < 5:
            away()
        return "there"

    assert Politeness(options("patient", patience=10), Shelf(), "east").run(act) == "there"
    assert len(asked) == 6
    clock[0] = 0.0
    with pytest.raises(SourceError):
        Politeness(options("hasty", patience=3), Shelf(), "east").run(act)
