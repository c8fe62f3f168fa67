"""Every test of the ledger runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from viewkeeper.ledger import Ledger, sqlite_url


class SettableClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture(params=["sqlite", "postgres"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes the URL of a place where no ledger is yet."""
    if request.param == "postgres":
        made: Callable[[], str] = request.getfixturevalue("postgres_schema")
        return made
    numbers = itertools.count(1)
    return lambda: sqlite_url(tmp_path / f"ledger-{next(numbers)}.db")


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    return new_url()


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def ledger(url: str, clock: SettableClock) -> Iterator[Ledger]:
    with Ledger.open(url, clock=clock) as opened:
        yield opened
