"""A database is not kept waiting: whatever is asked of a warehouse, no connection stays open behind it.

One that does holds back the server's vacuum, its log, and one of its connections.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres_server import PASSWORD, PostgresInstance, prepared
from viewkeeper.errors import ViewkeeperError
from viewkeeper.events import Event, Phase, StepFinished
from viewkeeper.sources.postgres_triggers import install_sql
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

_OPEN = "SELECT pid, state, left(query, 100) FROM pg_stat_activity WHERE usename = 'keeper'"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresInstance]:
    instance = prepared(tmp_path_factory.mktemp("pg"))
    instance.sql("CREATE SCHEMA shop AUTHORIZATION keeper")
    instance.sql("SET ROLE keeper", "CREATE TABLE shop.t (id INT PRIMARY KEY, qty INT)")
    instance.sql(install_sql(["shop.t"], "keeper"))
    yield instance
    instance.stop("immediate")


def left_open(server: PostgresInstance) -> list[tuple[object, ...]]:
    """A backend takes a moment to notice that its client is gone."""
    deadline = time.monotonic() + 5
    while (found := server.sql(_OPEN)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("capture", ["log", "trigger", "diff"])
def test_no_connection_stays_open(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    server: PostgresInstance,
    monkeypatch: pytest.MonkeyPatch,
    capture: str,
) -> None:
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    insert = "INSERT INTO shop.t SELECT coalesce(max(id), 0) + 1, 1 FROM shop.t"
    fails = False

    def interrupt(event: Event) -> None:
        if fails and isinstance(event, StepFinished) and event.phase is Phase.EXTRACT:
            raise KeyboardInterrupt

    def changed(act: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            server.sql(insert)
            return act()

        return run

    wh = open_warehouse(tmp_path / "warehouse", on_event=interrupt)
    options = f"{server.options}, tables 'shop.t', capture '{capture}'"
    declared = f"SOURCE bank USING postgres OPTIONS ({options})"
    acts: dict[str, Callable[[], object]] = {
        "declare": lambda: wh.sql(f"CREATE {declared}"),
        "view": lambda: wh.sql("CREATE MATERIALIZED VIEW n AS SELECT SUM(qty) AS n FROM bank.t"),
        "refresh": changed(wh.refresh),
        "refresh of nothing": wh.refresh,
        "plan": changed(wh.plan),
        "plan whole": lambda: wh.plan(policy="full"),
        "explain": lambda: wh.explain("n"),
        "check": wh.check_sources,
        "sources": wh.sources,
        "status": wh.status,
        "verify": wh.verify,
        "propagate": changed(wh.propagate),
        "refresh of what was propagated": lambda: wh.refresh(propagated=True),
        "refresh whole": changed(lambda: wh.refresh(policy="full")),
        "declare anew": changed(lambda: wh.sql(f"CREATE OR REPLACE {declared}")),
    }
    with pytest.raises(ViewkeeperError):
        wh.sql(f"CREATE {declared.replace('shop.t', 'shop.no')}")
    found = {"a declaration that fails": left_open(server)}
    for name, act in acts.items():
        act()
        found[name] = left_open(server)
    fails = True
    server.sql(insert)
    with pytest.raises(KeyboardInterrupt):
        wh.refresh()
    found["a refresh that is interrupted"] = left_open(server)
    fails = False
    wh.refresh()
    assert wh.sql("SELECT n FROM n").collect()[0]["n"] == server.sql("SELECT sum(qty) FROM shop.t")[0][0]
    wh.sql("DROP MATERIALIZED VIEW n")
    wh.sql("DROP SOURCE bank")
    found["drop"] = left_open(server)
    assert {name: open_ for name, open_ in found.items() if open_} == {}
    assert server.sql("SELECT slot_name FROM pg_replication_slots") == []


@pytest.mark.parametrize("capture", ["log", "trigger", "diff"])
def test_a_warehouse_can_be_verified_at_any_time(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    server: PostgresInstance,
    monkeypatch: pytest.MonkeyPatch,
    capture: str,
) -> None:
    """What a source no longer holds is left out; all else is compared, by whoever opens the warehouse."""
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    wh = open_warehouse(tmp_path / "warehouse")
    wh.sql(
        f"CREATE SOURCE bank USING postgres OPTIONS ({server.options}, tables 'shop.t', capture '{capture}')"
    )
    wh.sql("CREATE MATERIALIZED VIEW n AS SELECT SUM(qty) AS n FROM bank.t")
    found = [wh.verify()]
    wh.refresh()
    found.append(wh.verify())
    server.sql("INSERT INTO shop.t SELECT coalesce(max(id), 0) + 1, 1 FROM shop.t")
    found.append(wh.verify())
    wh.refresh()
    found.append(wh.verify())
    found.append(open_warehouse(tmp_path / "warehouse").verify())
    for checks in found:
        assert all(check.ok for check in checks)
        assert "n" in {check.view.rsplit(".", 1)[-1] for check in checks}
    wh.sql("DROP MATERIALIZED VIEW n")
    wh.sql("DROP SOURCE bank")
