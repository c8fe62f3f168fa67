"""A process may die between any two steps of an epoch: nothing is ever half visible, nothing is left over.

Most crashes are simulated in one warm JVM: at the k-th event everything that could tidy up is gone, as if
the process had been killed, and another warehouse opens the folder. A few are real SIGKILLs of a process and
its JVM; ``make test-long`` does that at every event.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from world import assert_exact, assert_tidy, ledger_of

from viewkeeper.epochs import EpochRunner
from viewkeeper.events import EpochPublished, Event, PointPassed, RowsRead
from viewkeeper.ledger import Ledger
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

LEASE_SECONDS = 0.3


class Killed(BaseException):
    """Stands for SIGKILL; nothing in the library may catch it and carry on."""


class Trap:
    """Counts events, and from the k-th on lets nobody pass. What happens before the sources are looked at,
    to finish what an earlier epoch left, does not count."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.seen: list[Event] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, RowsRead) or (not self.seen and isinstance(event, PointPassed)):
            return
        self.seen.append(event)
        if self.at is not None and len(self.seen) >= self.at:
            raise Killed(f"at event {self.at}: {self.seen[self.at - 1]}")

    def set(self, at: int | None) -> None:
        self.at, self.seen = at, []

    @property
    def point(self) -> Event | None:
        return self.seen[self.at - 1] if self.at is not None and len(self.seen) >= self.at else None


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], bool]:
    """Runs something into a trap, with all that a dying process would not do left undone; did it die?"""

    def run(act: Callable[[], object]) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(EpochRunner, "_give_up", lambda *_: None)
            patch.setattr(Ledger, "release", lambda *_: None)
            try:
                act()
            except Killed:
                return True
        return False

    return run


def totals(warehouse: Warehouse) -> tuple[int, ...]:
    """What readers see in one query over all views: rows of the source, counted in three ways."""
    row = warehouse.sql(
        "SELECT (SELECT sum(n) FROM by_item), (SELECT sum(m) FROM by_count), (SELECT count(*) FROM pens)"
    ).collect()[0]
    return tuple(row)


def make(warehouse: Warehouse) -> None:
    spark = warehouse.spark
    spark.sql("CREATE TABLE sales (item STRING, qty INT) USING iceberg")
    spark.sql("INSERT INTO sales VALUES ('pen', 1), ('ink', 2), ('pen', 3)")
    warehouse.sql("CREATE MATERIALIZED VIEW by_item AS SELECT item, count(*) AS n FROM sales GROUP BY item")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW by_count AS SELECT n > 2 AS many, sum(n) AS m FROM by_item GROUP BY n > 2"
    )
    warehouse.sql("CREATE MATERIALIZED VIEW pens AS SELECT qty FROM sales")


def change(warehouse: Warehouse) -> None:
    """Touches all three views, by insertions and deletions."""
    warehouse.spark.sql("INSERT INTO sales VALUES ('pen', 1), ('ink', 8), ('nib', 9)")


def wait_for_lease(folder: Path) -> None:
    with ledger_of(folder) as ledger:
        while ledger.holder() is not None:
            time.sleep(LEASE_SECONDS / 4)


def test_refresh_killed_at_every_event(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    killed: Callable[[Callable[[], object]], bool],
) -> None:
    trap = Trap()
    victim = open_warehouse(tmp_path, on_event=trap, lease_seconds=LEASE_SECONDS)
    make(victim)
    change(victim)
    rows = 3
    at, published, points = 0, 0, []
    while True:
        at += 1
        before = victim.history(limit=1)[0].id
        trap.set(at)
        if not killed(lambda: victim.refresh(policy="incremental")):
            break  # fewer events than that: every boundary has been tried
        points.append(trap.point)
        wait_for_lease(tmp_path)
        after = victim.history(limit=1)[0].id
        rows += 3 if after != before else 0
        assert totals(victim) == (rows, rows, rows), trap.point
        trap.set(None)
        if after != before:
            published += 1
            # Past the commit point: the next attempt finishes this epoch first, and needs work of its own.
            change(victim)
    assert published >= 3, points
    kinds = {type(point) for point in points}
    assert {EpochPublished, PointPassed} <= kinds
    wait_for_lease(tmp_path)
    trap.set(None)
    victim.refresh(policy="incremental")
    assert_exact(victim)
    assert_tidy(victim)


def test_propagate_killed_at_every_event(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    killed: Callable[[Callable[[], object]], bool],
) -> None:
    """Either nothing is kept and nothing left over, or all of it waits to be installed."""
    trap = Trap()
    victim = open_warehouse(tmp_path, on_event=trap, lease_seconds=LEASE_SECONDS)
    make(victim)
    change(victim)
    at = 0
    while True:
        at += 1
        trap.set(at)
        if not killed(lambda: victim.propagate(policy="incremental")):
            break
        wait_for_lease(tmp_path)
        assert totals(victim) == (3, 3, 3), trap.point
    trap.set(None)
    wait_for_lease(tmp_path)
    victim.refresh(propagated=True)
    assert totals(victim) == (6, 6, 6)
    assert_exact(victim)
    assert_tidy(victim)


def test_another_open_finishes_a_published_epoch(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    killed: Callable[[Callable[[], object]], bool],
) -> None:
    """A plain Spark reader sees the published rows as soon as anybody opens the warehouse with Spark."""
    trap = Trap()
    victim = open_warehouse(tmp_path, on_event=trap, lease_seconds=LEASE_SECONDS)
    make(victim)
    change(victim)
    trap.set(None)
    victim.refresh()
    last = next(at for at, event in enumerate(trap.seen, 1) if isinstance(event, EpochPublished))
    change(victim)
    trap.set(last)
    assert killed(lambda: victim.refresh())
    wait_for_lease(tmp_path)
    assert totals(victim) == (9, 9, 9)
    heir = open_warehouse(tmp_path)
    plain = heir.spark.sql("SELECT sum(n) FROM lake.default.by_item").collect()[0][0]
    assert plain == 9
    assert_tidy(heir)


def test_create_replace_and_drop_killed_at_every_event(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    killed: Callable[[Callable[[], object]], bool],
) -> None:
    """A view is there with its rows, or not at all; replaced, or as it was; its storage goes with it."""
    trap = Trap()
    victim = open_warehouse(tmp_path, on_event=trap, lease_seconds=LEASE_SECONDS)
    victim.spark.sql("CREATE TABLE sales (item STRING, qty INT) USING iceberg")
    victim.spark.sql("INSERT INTO sales VALUES ('pen', 1), ('ink', 2)")

    def at_every_event(statement: str, name: Callable[[int], str]) -> int:
        """Runs it for one view after the other and kills each at a later event, until one gets through."""
        at = 0
        while True:
            at += 1
            view = name(at)
            text = statement.format(view)
            trap.set(at)
            died = killed(partial(victim.sql, text))
            trap.set(None)
            wait_for_lease(tmp_path)
            if f"lake.default.{view}" in victim.views():
                assert victim.sql(f"SELECT qty FROM {view}").count() == 2, text
            if not died:
                return at

    events = at_every_event("CREATE MATERIALIZED VIEW {} AS SELECT qty FROM sales", "v{}".format)
    created = victim.views()
    assert 3 < len(created) < events  # killed after the commit point, and before it
    create = "CREATE OR REPLACE MATERIALIZED VIEW {} AS SELECT qty, 'new' AS k FROM sales"
    events = at_every_event(create, lambda at: f"v{1 + at % events}")
    replaced = [view for view in victim.views() if "k" in victim.sql(f"SELECT * FROM {view}").columns]
    assert 3 < len(replaced) < events
    before = len(victim.views())
    at_every_event("DROP MATERIALIZED VIEW {}", lambda at: victim.views()[0].rsplit(".", 1)[-1])
    left = victim.views()
    assert len(left) < before - 3

    heir = open_warehouse(tmp_path)  # whoever comes next finishes what is left
    assert_exact(heir)
    assert_tidy(heir)
    listed = [row["viewName"] for row in heir.spark.sql("SHOW VIEWS IN lake.default").collect()]
    assert sorted(listed) == sorted(view.rsplit(".", 1)[-1] for view in left)


CHILD = textwrap.dedent(
    """
    import json, os, signal, sys
    import viewkeeper as vk
    from viewkeeper.events import RowsRead

    folder, at = sys.argv[1], int(sys.argv[2])
    seen = []

    def kill(event):
        if isinstance(event, RowsRead):
            return  # by the clock
        seen.append(event)
        if len(seen) == at:
            os.killpg(os.getpgrp(), signal.SIGKILL)  # this process and its JVM

    vk.connect(folder, on_event=kill, lease_seconds=0.3).refresh(policy="incremental")
    print(json.dumps([type(event).__name__ for event in seen]))
    """
)


def run_child(folder: Path, at: int) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VIEWKEEPER_DRIVER_MEMORY": "900m"}
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), str(at)],
        capture_output=True,
        text=True,
        timeout=240,
        start_new_session=True,
        env=environment,
        check=False,
    )


def kill_and_recover(warehouse: Warehouse, folder: Path, at: int) -> None:
    rows = totals(warehouse)[0]
    change(warehouse)
    before = warehouse.history(limit=1)[0].id
    child = run_child(folder, at)
    assert child.returncode == -signal.SIGKILL, child.stderr
    seen = rows + (3 if warehouse.history(limit=1)[0].id != before else 0)
    assert totals(warehouse) == (seen, seen, seen)
    wait_for_lease(folder)
    warehouse.refresh()
    assert totals(warehouse) == (rows + 3, rows + 3, rows + 3)
    assert_exact(warehouse)
    assert_tidy(warehouse)


def events_of_a_refresh(open_warehouse: Callable[..., Warehouse], folder: Path) -> list[Event]:
    trap = Trap()
    warehouse = open_warehouse(folder, on_event=trap)
    make(warehouse)
    change(warehouse)
    trap.set(None)
    warehouse.refresh(policy="incremental")
    return trap.seen


def test_process_killed_before_and_after_the_commit_point(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    events = events_of_a_refresh(open_warehouse, tmp_path)
    warehouse = open_warehouse(tmp_path)
    commit = next(at for at, event in enumerate(events, 1) if isinstance(event, EpochPublished))
    for at in (commit - 2, commit):
        kill_and_recover(warehouse, tmp_path, at)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_process_killed_at_every_event(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> None:
    events = events_of_a_refresh(open_warehouse, tmp_path)
    warehouse = open_warehouse(tmp_path)
    for at in range(1, len(events) + 1):
        kill_and_recover(warehouse, tmp_path, at)
