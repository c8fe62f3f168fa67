"""Opening: migrations, what is refused and left as it was, and how long it takes."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect

from viewkeeper.errors import LedgerError
from viewkeeper.ledger import (
    Ledger,
    NewEpoch,
    ViewRecord,
    ViewRefreshRecord,
    ViewState,
    migrations,
    sqlite_url,
)
from viewkeeper.ledger.migrations import LATEST, MIGRATIONS
from viewkeeper.ledger.schema import metadata


def execute(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return [row for statement in statements for row in connection.execute(statement)]


def refused(url: str) -> LedgerError:
    with pytest.raises(LedgerError) as raised:
        Ledger.open(url)
    assert raised.value.hint
    return raised.value


def test_postgresql_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it were not installed
    error = refused("postgresql://nobody@localhost/nowhere")
    assert error.code == "VK-LEDGER-DRIVER"
    assert error.hint == "pip install 'viewkeeper[postgres]'"


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, LATEST + 1))


def test_the_migrations_make_the_schema(url: str) -> None:
    Ledger.open(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    found = inspect(engine)
    for table in metadata.tables.values():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(table.name)}
        primary = set(found.get_pk_constraint(table.name)["constrained_columns"])
        # SQLite calls a primary key nullable; the key is compared by itself.
        expected = {column.name: bool(column.nullable) for column in table.columns}
        assert columns.keys() == expected.keys(), table.name
        for name in columns.keys() - primary:
            assert columns[name] == expected[name], f"{table.name}.{name}"
        assert primary == {column.name for column in table.primary_key}
        assert {key["referred_table"] for key in found.get_foreign_keys(table.name)} == {
            key.column.table.name for key in table.foreign_keys
        }
    engine.dispose()


def test_many_open_a_new_ledger_at_once(url: str) -> None:
    together = threading.Barrier(6)

    def open_together(_number: int) -> int:
        together.wait(60)
        with Ledger.open(url) as ledger:
            return len(ledger.epochs())

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(open_together, range(6))) == [0] * 6


def test_opening_again_changes_nothing(url: str) -> None:
    with Ledger.open(url) as first:
        lease = first.acquire("me")
        first.publish(lease, NewEpoch(first.begin(lease), {}, (), ()))
        with Ledger.open(url) as second:
            assert second.epochs() == first.epochs()
            assert second.holder() == lease
    with Ledger.open(url) as third:
        assert third.latest() is not None


def test_a_sqlite_ledger_uses_a_write_ahead_log_and_foreign_keys(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(sqlite_url(path)) as ledger:
        assert execute(path, "PRAGMA journal_mode") == [("wal",)]
        with ledger._database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


@pytest.mark.parametrize("name", ["a b", "a?b#c%20d", "ü`;'", "x=1&y", "%41"])
def test_a_hostile_path(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    Ledger.open(sqlite_url(folder / "ledger.db")).close()
    assert [file.name for file in folder.iterdir()] == ["ledger.db"]


def test_a_missing_folder_is_named_and_not_created(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    error = refused(sqlite_url(folder / "ledger.db"))
    assert error.code == "VK-LEDGER-MISSING"
    assert str(folder) in error.message
    assert not folder.exists()


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 200, b"SQLite format 3\0" + b"\xff" * 4096, b"{}"]
)
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    error = refused(sqlite_url(path))
    assert error.code == "VK-LEDGER-CORRUPT"
    assert "ledger.db" in error.message
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]


def test_a_truncated_ledger_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(sqlite_url(path)).close()
    content = path.read_bytes()[: 4096 + 100]
    path.write_bytes(content)
    error = refused(sqlite_url(path))
    assert error.code == "VK-LEDGER-CORRUPT"
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("damage", "ask"),
    [
        ("DROP TABLE vk_state", Ledger.states),
        ("DELETE FROM vk_lease", Ledger.holder),
        ("UPDATE vk_epoch SET source_versions = '{'", Ledger.latest),
        ("UPDATE vk_chore SET kind = 'dance'", Ledger.chores),
    ],
)
def test_damage_inside_is_noticed_when_it_is_read(
    url: str, damage: str, ask: Callable[[Ledger], object]
) -> None:
    with Ledger.open(url) as ledger:
        lease = ledger.acquire("me")
        ledger.publish(lease, NewEpoch(ledger.begin(lease), {}, (), ()))
        with ledger._database.writing() as connection:
            connection.exec_driver_sql(
                "INSERT INTO vk_chore (epoch_id, intent, kind, payload) VALUES (1, false, 'drop_view', '{}')"
            )
            connection.exec_driver_sql(damage)
        with pytest.raises(LedgerError) as raised:
            ask(ledger)
        assert raised.value.code == "VK-LEDGER-CORRUPT"


def test_a_newer_ledger_is_refused(url: str) -> None:
    with Ledger.open(url) as ledger, ledger._database.writing() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO vk_schema (version, applied_at) VALUES ({LATEST + 1}, '2026-01-01 00:00:00+00')"
        )
    error = refused(url)
    assert error.code == "VK-LEDGER-NEWER"
    assert str(LATEST + 1) in error.message


def test_a_newer_sqlite_ledger_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    execute(
        path,
        "CREATE TABLE vk_schema (version BIGINT PRIMARY KEY, applied_at TEXT NOT NULL)",
        "INSERT INTO vk_schema VALUES (99, '2026-01-01 00:00:00.000000')",
    )
    before = path.read_bytes()
    assert refused(sqlite_url(path)).code == "VK-LEDGER-NEWER"
    assert path.read_bytes() == before


def test_a_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every, last = MIGRATIONS, MIGRATIONS[-1]
    broken = migrations.Migration(
        last.version, "broken", (*last.statements, "CREATE TABLE vk_schema (twice TEXT)")
    )
    monkeypatch.setattr(migrations, "MIGRATIONS", (*every[:-1], broken))
    with pytest.raises(LedgerError):
        Ledger.open(url)
    monkeypatch.setattr(migrations, "MIGRATIONS", every)
    with Ledger.open(url) as ledger:
        assert ledger.latest() is None


def test_an_older_ledger_is_brought_up_to_date(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = MIGRATIONS
    monkeypatch.setattr(migrations, "MIGRATIONS", every[:1])
    Ledger.open(url).close()
    monkeypatch.setattr(migrations, "MIGRATIONS", every)
    with Ledger.open(url) as ledger:
        assert ledger.latest() is None
        assert ledger.epochs() == ()


@pytest.mark.parametrize(
    "url", ["mysql://user:s3cret@host/db", "sqlite://", "sqlite:///:memory:", "not a url s3cret", ""]
)
def test_an_address_that_is_none(url: str) -> None:
    error = refused(url)
    assert error.code == "VK-LEDGER-URL"
    assert "s3cret" not in str(error)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    error = refused(f"postgresql://user:s3cret@/db?host={tmp_path}")
    assert error.code == "VK-LEDGER-UNREACHABLE"
    assert "s3cret" not in str(error)


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    assert refused(sqlite_url(tmp_path)).code == "VK-LEDGER-UNREACHABLE"


def test_opening_and_reading_the_states_is_quick(url: str) -> None:
    names = [f"view_{number}" for number in range(20)]
    with Ledger.open(url) as ledger:
        lease = ledger.acquire("me")
        for number in range(100):
            epoch_id = ledger.begin(lease)
            ledger.publish(
                lease,
                NewEpoch(
                    epoch_id,
                    {"lake.t": str(number)},
                    states=tuple(
                        ViewState(name, "d", "s", str(number), {"lake.t": "1"}, epoch_id) for name in names
                    ),
                    refreshes=tuple(ViewRefreshRecord(name, "incremental") for name in names),
                    define=tuple(ViewRecord(name, {"q": "x" * 500}, {}, "d", epoch_id) for name in names)
                    if number == 0
                    else (),
                    plan={"steps": ["SELECT 1" * 100]},
                ),
            )
    best = min(_seconds_to_open(url, names) for _ in range(5))
    assert best < 0.1


def _seconds_to_open(url: str, names: list[str]) -> float:
    start = time.perf_counter()
    with Ledger.open(url) as ledger:
        assert list(ledger.states()) == names
        return time.perf_counter() - start
