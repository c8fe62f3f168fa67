"""``viewkeeper run`` as a process of its own, on a real project: data changes, views break, it is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from world import assert_tidy, ledger_of

from viewkeeper.cli.commands import open_warehouse as open_project
from viewkeeper.errors import DefinitionError
from viewkeeper.service.errands import Errands
from viewkeeper.service.logs import EventLog
from viewkeeper.service.service import Service
from viewkeeper.service.state import ServiceState
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

PATIENCE = 240.0
"""Seconds: the machine may be busy with other tests."""

SPEC = """\
name: shop
storage: storage
catalog: lake
database: default
libraries: [{glob: {include: views/**}}]
"""
SETTINGS = """\
service:
  listen: 127.0.0.1:0
  poll: 1 second
  grace: 2 minutes
  backoff: {first: 1 second, longest: 2 seconds, suspend_after: 3}
  lineage: {file: lineage.jsonl}
  alerts:
    - command: [sh, -c, "cat >> alerts.jsonl; echo >> alerts.jsonl"]
"""
TOTALS_QUERY = "AS SELECT store, sum(qty) AS qty FROM sales GROUP BY store"
TOTALS = f"CREATE MATERIALIZED VIEW totals TARGET LAG '3 seconds' {TOTALS_QUERY}"
SHARES_QUERY = "AS SELECT store, 100 DIV qty AS share FROM sales"
SHARES = f"CREATE MATERIALIZED VIEW shares TARGET LAG '3 seconds' {SHARES_QUERY}"


class Running:
    """The process, and what it says."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.log = folder / "service.log"
        self.log.touch()
        self.before = self.log.stat().st_size
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "viewkeeper", "run", "--log", "json", "--project", str(folder)]
            self.process = subprocess.Popen([*command, *options], stdout=log, stderr=log, cwd=folder)

    def said(self) -> list[dict[str, Any]]:
        text = self.log.read_bytes()[self.before :].decode()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]

    def wait_for(self, words: str, count: int = 1, *, ended: bool = False, **facts: Any) -> dict[str, Any]:
        """The so many-th line that says so."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = [
                line
                for line in self.said()
                if words in line["message"] and all(line.get(name) == value for name, value in facts.items())
            ]
            if len(found) >= count:
                return found[count - 1]
            assert ended or self.process.poll() is None, self.log.read_text()[-3000:]
            time.sleep(0.1)
        raise AssertionError(f"nobody said {words!r}:\n{self.log.read_text()[-3000:]}")

    def ask(self, path: str, token: str | None = None, **form: str) -> tuple[int, str]:
        """The answer to a GET, or with a form to a POST."""
        address = re.search(r"http://[\d.:]+", self.wait_for("starts;")["message"])
        assert address is not None
        body = urllib.parse.urlencode(form).encode() if form else None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(address[0] + path, body, headers), timeout=30
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def shop(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> tuple[Path, Warehouse]:
    """A project, and a warehouse through which the test changes its data."""
    folder = tmp_path / "shop"
    (folder / "views").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC)
    (folder / "viewkeeper.yml").write_text(SETTINGS)
    (folder / "views" / "totals.sql").write_text(TOTALS)
    wh = open_warehouse(folder / "warehouse")
    wh.spark.sql("CREATE TABLE sales (store INT, qty BIGINT) USING iceberg")
    wh.spark.sql("INSERT INTO sales VALUES (1, 10), (2, 20)")
    return folder, wh


@pytest.fixture
def run(shop: tuple[Path, Warehouse]) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(*options: str) -> Running:
        running.append(Running(shop[0], *options))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def totals(wh: Warehouse) -> dict[int, int]:
    return {row["store"]: row["qty"] for row in wh.sql("SELECT * FROM totals").collect()}


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def holder(folder: Path) -> object:
    with ledger_of(folder / "warehouse") as ledger:
        return ledger.holder()


def test_from_a_change_to_a_suspended_view_to_the_end(shop, run):
    folder, wh = shop
    service = run()
    service.wait_for("keeps 1 views fresh")
    assert service.ask("/ready")[0] == 200

    wh.spark.sql("INSERT INTO sales VALUES (1, 5)")
    until(lambda: totals(wh) == {1: 15, 2: 20})

    # A view comes with a new file, and breaks with the next row.
    (folder / "views" / "shares.sql").write_text(SHARES)
    service.wait_for("created lake.default.shares")
    wh.spark.sql("INSERT INTO sales VALUES (3, 0)")
    service.wait_for("suspended; `viewkeeper resume lake.default.shares`", view="lake.default.shares")
    wh.spark.sql("INSERT INTO sales VALUES (2, 1)")
    until(lambda: totals(wh) == {1: 15, 2: 21, 3: 0})
    status = {view.view: view for view in wh.status()}
    assert (status["lake.default.shares"].failures, status["lake.default.shares"].suspended) == (3, True)
    assert "DIVIDE_BY_ZERO" in (status["lake.default.shares"].problem or "")
    metrics = service.ask("/metrics")[1]
    assert 'viewkeeper_view_suspended{view="lake.default.shares"} 1.0' in metrics
    assert 'viewkeeper_view_suspended{view="lake.default.totals"} 0.0' in metrics
    told = [json.loads(line) for line in (folder / "alerts.jsonl").read_text().splitlines() if line]
    assert ("suspended", "broken", "lake.default.shares") in [
        (each["kind"], each["state"], each["view"]) for each in told
    ]

    # Mended and resumed, it is tried again.
    wh.spark.sql("DELETE FROM sales WHERE qty = 0")
    assert wh.resume("shares")
    until(lambda: not next(view for view in wh.status() if view.view.endswith("shares")).failures)
    until(lambda: wh.sql("SELECT * FROM shares").count() == 4)

    assert service.end() == 0
    assert holder(folder) is None
    assert all(each.ok for each in wh.verify())
    assert_tidy(wh)
    events = [json.loads(line) for line in (folder / "lineage.jsonl").read_text().splitlines()]
    assert {each["eventType"] for each in events} == {"START", "COMPLETE", "FAIL"}


def test_killed_in_the_middle_of_an_epoch_it_goes_on_at_the_next_start(shop, run):
    folder, wh = shop
    first = run()
    first.wait_for("keeps 1 views fresh")
    begun = sum("begins" in line["message"] for line in first.said())
    wh.spark.sql("INSERT INTO sales VALUES (1, 5)")
    first.wait_for("begins", begun + 1)
    first.end(signal.SIGKILL)

    second = run()
    second.wait_for("keeps 1 views fresh")
    until(lambda: totals(wh) == {1: 15, 2: 20})
    assert second.end(signal.SIGINT) == 0
    assert holder(folder) is None
    assert all(each.ok for each in wh.verify())
    assert_tidy(wh)


def test_an_epoch_that_takes_longer_than_the_grace_period_is_given_up(shop, run):
    folder, wh = shop
    (folder / "viewkeeper.yml").write_text(SETTINGS.replace("2 minutes", "1 second"))
    endless = "SELECT store, count(*) AS n FROM sales CROSS JOIN range(1000000000000) GROUP BY store"
    (folder / "views" / "totals.sql").write_text(f"CREATE MATERIALIZED VIEW endless AS {endless}")
    service = run()
    service.wait_for("begins", views=["lake.default.endless"])
    time.sleep(1)
    assert service.end() == 0
    assert "given up" in service.wait_for("interrupted", ended=True)["message"]
    assert holder(folder) is None
    assert wh.views() == []
    assert_tidy(wh)


def test_once_does_what_is_due_and_ends(shop, run):
    _, wh = shop
    wh.sql(f"CREATE MATERIALIZED VIEW totals WITH NO DATA {TOTALS_QUERY}")
    once = run("--once")
    assert once.process.wait(PATIENCE) == 0, once.log.read_text()
    assert totals(wh) == {1: 10, 2: 20}


@pytest.fixture
def in_process(shop: tuple[Path, Warehouse]) -> Callable[[], ServiceState]:
    """Runs the service once, in the JVM that is already warm."""

    def once() -> ServiceState:
        state = ServiceState()
        Service(shop[0], open_project, state, EventLog(), threading.Event(), Errands()).run(once=True)
        return state

    return once


def test_a_source_that_is_gone_stops_no_other_view(shop, in_process):
    folder, wh = shop
    wh.spark.sql("CREATE TABLE other (id INT) USING iceberg")
    others = "CREATE MATERIALIZED VIEW others TARGET LAG '3 seconds' AS SELECT count(*) AS n FROM other"
    (folder / "views" / "others.sql").write_text(others)
    in_process()
    wh.spark.sql("INSERT INTO sales VALUES (1, 5)")
    wh.spark.sql("DROP TABLE other")
    time.sleep(3)
    state = in_process()
    assert totals(wh) == {1: 15, 2: 20}
    assert state.views["lake.default.others"].failures >= 1
    assert state.views["lake.default.totals"].failures == 0


def test_a_new_lag_recomputes_nothing(shop):
    _, wh = shop
    wh.sql(f"CREATE MATERIALIZED VIEW totals TARGET LAG '3 minutes' {TOTALS_QUERY}")
    before = wh.ledger.states()["lake.default.totals"]
    wh.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals TARGET LAG '5 minutes' {TOTALS_QUERY}")
    wh.sql("ALTER MATERIALIZED VIEW totals SET SCHEDULE CRON '0 6 * * *'")
    after = wh.ledger.states()["lake.default.totals"]
    assert (after.storage, after.snapshot, after.vector) == (before.storage, before.snapshot, before.vector)
    assert [epoch.views[0].strategy for epoch in wh.history(limit=2)] == ["unchanged", "unchanged"]
    assert wh.status()[0].timing == "cron 0 6 * * *"
    assert not wh.ledger.chores()
    wh.sql("ALTER MATERIALIZED VIEW totals UNSET SCHEDULE")
    assert wh.status()[0].timing is None
    assert wh.verify()[0].ok


def test_the_console_asks_the_service(shop, run, monkeypatch):
    folder, wh = shop
    monkeypatch.setenv("VIEWKEEPER_TOKEN", token := "a token of some length")
    (folder / "views" / "totals.sql").write_text(TOTALS.replace("3 seconds", "1 hour"))
    service = run("--allow-actions")
    service.wait_for("keeps 1 views fresh")
    assert "totals" in service.ask("/")[1]
    assert service.ask("/do", what="refresh")[0] == 403, "who has no token can only read"
    wh.spark.sql("INSERT INTO sales VALUES (1, 90)")
    assert service.ask("/do", token, what="refresh")[0] == 200
    service.wait_for("published", count=2)
    assert totals(wh) == {1: 100, 2: 20}
    view = "/views/lake.default.totals"
    assert "100" in service.ask(f"{view}/rows", token)[1]
    assert service.ask(f"{view}/do", token, what="pause")[0] == 200
    assert wh.status()[0].suspended
    assert service.ask(f"{view}/do", token, what="resume")[0] == 200
    assert not wh.status()[0].suspended
    assert service.end() == 0
    assert_tidy(wh)


def test_a_mistake_in_one_file_changes_no_view(shop, in_process):
    folder, wh = shop
    in_process()
    before = wh.history()[0].id
    (folder / "views" / "totals.sql").write_text(TOTALS.replace("sum(qty)", "count(*)"))
    (folder / "views" / "shares.sql").write_text(SHARES.replace("store", "shop"))
    (folder / "views" / "of_shares.sql").write_text(
        "CREATE MATERIALIZED VIEW of_shares AS SELECT * FROM shares"
    )
    with pytest.raises(DefinitionError, match="shop"):
        in_process()
    assert (wh.views(), wh.history()[0].id) == (["lake.default.totals"], before)
    (folder / "views" / "shares.sql").write_text(SHARES)
    in_process()
    assert len(wh.views()) == 3
    assert all(each.ok for each in wh.verify())
