"""Every test of the ledger runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from viewkeeper.ledger import Ledger, sqlite_url

_schema_numbers = itertools.count(1)


class SettableClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def postgres_schema(postgres: str) -> Callable[[], str]:
    """Makes the URL of an empty schema: as good as a new database, and much quicker."""

    def make() -> str:
        schema = f"ledger_{next(_schema_numbers)}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        return f"{postgres}&options=-csearch_path%3D{schema}"

    return make


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
