"""A database at full speed, refreshed all the while, with connections and processes killed on the way.

pgbench moves money: each of its transactions adds the same amount to an account, a teller and a branch. So
the sums of the three agree in every state of the database, and in no mixture of states.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from postgres_server import PASSWORD, PostgresInstance, prepared
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

LEASE_SECONDS = 2.0
TABLES = ("pgbench_accounts", "pgbench_tellers", "pgbench_branches")
SUMS = (
    "SELECT (SELECT sum(balance) FROM by_branch) AS accounts, (SELECT sum(tellers) FROM desks) AS tellers, "
    "(SELECT sum(bbalance) FROM desks) AS branches, (SELECT sum(accounts) FROM by_branch) AS count"
)

REFRESHER = textwrap.dedent(
    """
    import json, sys, time
    import viewkeeper as vk
    from viewkeeper.errors import ViewkeeperError

    wh = vk.connect(sys.argv[1], lease_seconds=float(sys.argv[3]))
    print(json.dumps({"ready": True}), flush=True)
    while True:
        try:
            epoch = wh.refresh()
        except ViewkeeperError as error:
            print(json.dumps({"error": error.code, "said": error.message}), flush=True)
        else:
            row = wh.sql(sys.argv[2]).collect()[0].asDict()
            changed = sum(view.delta_rows for view in epoch.views if "pgbench" in view.view)
            how = sorted({view.strategy for view in epoch.views})
            told = {"epoch": epoch.id, "sums": row, "changed": changed, "how": how}
            print(json.dumps(told, default=int), flush=True)
        time.sleep(0.5)
    """
)


@contextmanager
def refresher(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that refreshes again and again, and tells of it; killed with its JVM in the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", REFRESHER, str(folder), SUMS, str(LEASE_SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "VIEWKEEPER_DRIVER_MEMORY": "2g"},
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the refreshing process ended"
    return json.loads(line)


@pytest.fixture
def bank(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresInstance]:
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    server = prepared(tmp_path_factory.mktemp("pg"), 18)
    server.run("pgbench", "-i", "-q", "-s", "1", "postgres").communicate(timeout=60)
    for table in (*TABLES, "pgbench_history"):
        server.sql(f"ALTER TABLE {table} OWNER TO keeper")
    yield server
    server.stop("immediate")


def make(wh: Warehouse, bank: PostgresInstance) -> None:
    tables = ", ".join(f"public.{table}" for table in TABLES)
    wh.sql(f"CREATE SOURCE bank USING postgres OPTIONS ({bank.options}, tables '{tables}')")
    wh.sql(
        "CREATE MATERIALIZED VIEW by_branch AS SELECT bid, SUM(abalance) AS balance, COUNT(*) AS accounts "
        "FROM bank.pgbench_accounts GROUP BY bid"
    )
    wh.sql(
        "CREATE MATERIALIZED VIEW desks AS SELECT b.bid, b.bbalance, SUM(t.tbalance) AS tellers "
        "FROM bank.pgbench_branches b JOIN bank.pgbench_tellers t ON t.bid = b.bid GROUP BY b.bid, b.bbalance"
    )


def check(report: dict[str, Any]) -> None:
    sums = report["sums"]
    assert sums["accounts"] == sums["tellers"] == sums["branches"], report
    assert sums["count"] == 100_000


def end_connections(bank: PostgresInstance) -> None:
    bank.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper' "
        "AND pid <> pg_backend_pid()"
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("seconds", "lives"), [(15, 1), pytest.param(60, 5, marks=pytest.mark.long)], ids=["short", "minute"]
)
def test_pgbench_at_full_speed(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    bank: PostgresInstance,
    seconds: int,
    lives: int,
):
    folder = tmp_path / "warehouse"
    make(open_warehouse(folder), bank)
    epochs: list[dict[str, Any]] = []
    errors: Counter[str] = Counter()
    begun = time.monotonic()
    speed = bank.run("pgbench", "-c", "2", "-T", str(24 * 3600), "postgres")
    try:
        for life in range(lives):
            last = time.monotonic() + seconds / lives
            with refresher(folder) as process:
                assert told(process)["ready"]
                mine, cut_off = 0, False
                while mine < 2 or time.monotonic() < last:
                    report = told(process)
                    if "epoch" in report:
                        check(report)
                        epochs.append(report)
                        mine += 1
                    else:
                        errors[report["error"]] += 1
                        assert report["error"] in ("VK-SOURCE-UNREACHABLE", "VK-LEASE-HELD"), report
                    if mine == 1 and not cut_off:
                        time.sleep(0.7 + 0.3 * life)  # somewhere in the next refresh
                        end_connections(bank)
                        cut_off = True
                time.sleep(0.7)  # and somewhere in this one it dies
    finally:
        speed.send_signal(signal.SIGINT)
        output = speed.communicate(timeout=30)[0].decode()
    assert time.monotonic() - begun >= seconds
    assert len(epochs) >= 2 * lives
    assert errors["VK-SOURCE-UNREACHABLE"] or lives < 5, "no connection was killed while it was used"
    changed = sum(report["changed"] for report in epochs)
    assert changed > 100, output

    wh = open_warehouse(folder)
    time.sleep(LEASE_SECONDS)  # whoever was killed last held it
    epoch = wh.refresh()
    print(f"{len(epochs)} epochs, {changed:,} changed rows, errors {dict(errors)}\n{output}")
    assert {view.strategy for view in epoch.views} <= {"incremental", "unchanged", "full"}
    for table in TABLES:
        ours = Counter(tuple(row) for row in wh.sql(f"SELECT * FROM bank.{table}").collect())
        assert ours == Counter(bank.sql(f"SELECT * FROM {table}")), table
    (row,) = wh.sql(SUMS).collect()
    (total,) = bank.sql("SELECT sum(abalance) FROM pgbench_accounts")[0]
    assert row["accounts"] == row["tellers"] == row["branches"] == total
    (moved,) = bank.sql("SELECT sum(delta) FROM pgbench_history")[0]
    assert moved == total
    assert all(found.ok for found in wh.verify())
