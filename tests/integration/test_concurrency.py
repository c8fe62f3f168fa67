"""Several at once: refreshers, readers during refreshes, and a person who presses Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from world import assert_exact, assert_tidy, ledger_of, make_sales, strategies, world

from viewkeeper.errors import LeaseError, RefreshError
from viewkeeper.events import Event, Phase, PointPassed, StepFinished, StepStarted
from viewkeeper.results import Epoch
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


class Gate:
    """Stops a refresh at a chosen event, until it is told to go on."""

    def __init__(self, stops: Callable[[Event], bool]) -> None:
        self._stops = stops
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, event: Event) -> None:
        if self._stops(event) and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(120)


def before_publish(event: Event) -> bool:
    return isinstance(event, StepStarted) and event.phase is Phase.PUBLISH


def before_install(event: Event) -> bool:
    return isinstance(event, StepStarted) and event.phase is Phase.INSTALL


class Background(threading.Thread):
    """Runs something in a thread and keeps how it ended."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self.result: object = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._act()
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        self.join(180)
        assert not self.is_alive()


def make_views(warehouse: Warehouse) -> None:
    make_sales(warehouse.spark)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW by_store AS SELECT store, count(*) AS n FROM sales GROUP BY store"
    )
    warehouse.sql("CREATE MATERIALIZED VIEW copies AS SELECT item, qty FROM sales")


def test_second_refresher_is_told_who_works(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> None:
    gate = Gate(before_publish)
    first = open_warehouse(tmp_path, on_event=gate)
    gate.reached.set()  # not during the creation
    make_views(first)
    gate.reached.clear()
    first.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    second = open_warehouse(tmp_path)

    at_work = Background(lambda: first.refresh())
    assert gate.reached.wait(120)
    for act in (
        lambda: second.refresh(),
        lambda: second.sql("CREATE MATERIALIZED VIEW more AS SELECT store FROM sales"),
        lambda: second.sql("DROP MATERIALIZED VIEW copies"),
        lambda: second.repair("copies"),
    ):
        with pytest.raises(LeaseError) as caught:
            act()
        assert caught.value.code == "VK-LEASE-HELD"
        assert f"pid {os.getpid()}" in caught.value.message
    # Reading, planning and verifying need no lease.
    assert second.sql("SELECT sum(n) FROM by_store").collect()[0][0] == 4
    assert second.plan().epoch.view("lake.default.copies").changed
    gate.go_on.set()
    at_work.end()
    assert at_work.error is None
    assert strategies(second.refresh()) == {"by_store": "unchanged", "copies": "unchanged"}
    assert_exact(second)


@pytest.mark.parametrize("stop", [before_publish, before_install])
def test_a_lost_lease_cannot_publish(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, stop: Callable[[Event], bool]
) -> None:
    """The first refresher sleeps past its expiry; the second takes over, cleans up and publishes. What the
    first stages after it woke up, it removes itself."""
    gate = Gate(stop)
    first = open_warehouse(tmp_path, on_event=gate, lease_seconds=3600)
    gate.reached.set()
    make_views(first)
    gate.reached.clear()
    first.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    second = open_warehouse(tmp_path)
    sleeper = Background(lambda: first.refresh())
    assert gate.reached.wait(120)
    with ledger_of(tmp_path) as ledger:
        held = ledger.holder()
        assert held is not None
        ledger.release(held)  # as good as expired: another may take it
    second.spark.sql("INSERT INTO sales VALUES (4, 'cap', 1)")
    epoch = second.refresh()
    assert set(strategies(epoch).values()) <= {"incremental", "full"}
    before = world(second)
    gate.go_on.set()
    sleeper.end()
    assert isinstance(sleeper.error, LeaseError)
    assert sleeper.error.code == "VK-LEASE-LOST"
    assert world(second).epoch == before.epoch
    assert second.sql("SELECT sum(n) FROM by_store").collect()[0][0] == 6
    assert_exact(second)
    assert_tidy(second)


def test_chores_that_another_has_done_are_left(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    """The first refresher sleeps past its expiry between its chores; the second finishes them, and publishes
    another definition of the view. The catalog keeps that one when the first wakes up."""

    def between_chores(event: Event) -> bool:
        return isinstance(event, PointPassed) and event.what == "fast_forward struck off"

    gate = Gate(between_chores)
    first = open_warehouse(tmp_path, on_event=gate, lease_seconds=3600)
    gate.reached.set()
    make_views(first)
    gate.reached.clear()
    second = open_warehouse(tmp_path)
    create = "CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT store, "
    sleeper = Background(lambda: first.sql(create + "sum(qty) AS older FROM sales GROUP BY store"))
    assert gate.reached.wait(120)
    with ledger_of(tmp_path) as ledger:
        held = ledger.holder()
        assert held is not None
        ledger.release(held)  # as good as expired: another may take it
    second.sql(create + "max(qty) AS newer FROM sales GROUP BY store")
    gate.go_on.set()
    sleeper.end()
    assert sleeper.error is None
    assert second.spark.table("lake.default.by_store").columns == ["store", "newer"]
    assert_exact(second)
    assert_tidy(second)


def test_a_reader_never_sees_two_epochs(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> None:
    writer = open_warehouse(tmp_path)
    make_views(writer)
    reader = open_warehouse(tmp_path)
    seen: list[tuple[int, int]] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            row = reader.sql(
                "SELECT a.n, b.n FROM (SELECT sum(n) AS n FROM by_store) AS a "
                "JOIN (SELECT count(*) AS n FROM copies) AS b"
            ).collect()[0]
            seen.append((row[0], row[1]))

    reading = Background(read)
    for number in range(4):
        writer.spark.sql(f"INSERT INTO sales VALUES ({number}, 'nib', 2)")
        writer.refresh(policy="incremental")
    over.set()
    reading.end()
    assert reading.error is None
    assert len(seen) > 4
    assert [pair for pair in seen if pair[0] != pair[1]] == []
    assert seen == sorted(seen)


def test_a_write_to_the_storage_during_the_epoch_is_noticed(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    """The branch would begin with the stranger's rows; building upon them would be wrong in silence."""
    gate = Gate(before_install)
    warehouse = open_warehouse(tmp_path, on_event=gate)
    gate.reached.set()
    make_views(warehouse)
    gate.reached.clear()
    warehouse.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    storage = warehouse._ledger.states()["lake.default.copies"].storage
    refreshing = Background(lambda: warehouse.refresh(policy="incremental"))
    assert gate.reached.wait(120)
    warehouse.spark.sql(f"INSERT INTO {storage} VALUES ('strange', 1, 0)")
    gate.go_on.set()
    refreshing.end()
    assert getattr(refreshing.error, "code", None) == "VK-FOREIGN-WRITE"
    assert warehouse.sql("SELECT count(*) FROM copies").collect()[0][0] == 4
    warehouse.refresh(policy="full")
    assert_exact(warehouse)
    assert_tidy(warehouse)


def before_chores(event: Event) -> bool:
    return isinstance(event, StepStarted) and event.phase is Phase.FINISH


def rewritten(warehouse: Warehouse, storage: str) -> None:
    """As somebody who tidies up all tables of a catalog does."""
    compact = "CALL lake.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))"
    (done,) = warehouse.spark.sql(compact.format(storage)).collect()
    assert done["rewritten_data_files_count"] > 0


@pytest.mark.parametrize("stop", [before_install, before_publish, before_chores])
def test_a_compaction_during_the_epoch_is_adopted(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    stop: Callable[[Event], bool],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Before the first write the branch would begin with other files; after it, main is no ancestor of the
    branch. The rows are the same, so that nobody is to be told of it, and nothing of the change is lost."""
    gate = Gate(stop)
    warehouse = open_warehouse(tmp_path, on_event=gate)
    gate.reached.set()
    make_views(warehouse)
    warehouse.sql("CREATE MATERIALIZED VIEW top AS SELECT store, max(n) AS n FROM by_store GROUP BY store")
    gate.reached.clear()
    warehouse.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2), (1, 'nib', 2)")
    warehouse.spark.sql("DELETE FROM sales WHERE item = 'ink'")
    states = warehouse._ledger.states()
    refreshing = Background(lambda: warehouse.refresh(policy="incremental"))
    assert gate.reached.wait(120)
    for name in ("copies", "by_store", "top"):
        rewritten(warehouse, states[f"lake.default.{name}"].storage)
    gate.go_on.set()
    refreshing.end()
    assert refreshing.error is None
    assert isinstance(refreshing.result, Epoch)
    assert set(strategies(refreshing.result).values()) == {"incremental"}
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
    assert warehouse.spark.sql("SELECT count(*) FROM lake.default.copies").collect()[0][0] == 5
    assert warehouse.spark.sql("SELECT sum(n) FROM lake.default.by_store").collect()[0][0] == 5
    assert_exact(warehouse)
    assert_tidy(warehouse)

    warehouse.spark.sql("DELETE FROM sales WHERE store = 3")
    assert set(strategies(warehouse.refresh(policy="incremental")).values()) == {"incremental"}
    assert_exact(warehouse)
    assert_tidy(warehouse)


@pytest.mark.parametrize("again", [False, True])
def test_a_statement_that_fails_because_of_a_compaction(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, *, again: bool
) -> None:
    """Iceberg refuses to mark rows of files as deleted that went between reading and writing."""
    armed: list[str] = []

    def fail(event: Event) -> None:
        if armed and isinstance(event, StepStarted) and event.phase is Phase.INSTALL and event.view:
            storage = armed[0] if again else armed.pop()
            rewritten(warehouse, storage)
            raise RuntimeError("Cannot commit, missing data files")

    warehouse = open_warehouse(tmp_path, on_event=fail)
    make_views(warehouse)
    warehouse.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    before = world(warehouse)
    armed.append(warehouse._ledger.states()["lake.default.copies"].storage)
    if again:
        with pytest.raises(RefreshError) as caught:
            warehouse.refresh("copies", policy="incremental")
        assert caught.value.code == "VK-STORAGE-REWRITTEN"
        assert len(warehouse._ledger.failures()) == 3
        assert world(warehouse) == before
        armed.clear()
    assert strategies(warehouse.refresh("copies", policy="incremental")) == {"copies": "incremental"}
    assert_exact(warehouse)
    assert_tidy(warehouse)


def test_what_was_propagated_before_a_compaction_is_computed_anew(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    gate = Gate(before_install)
    warehouse = open_warehouse(tmp_path, on_event=gate)
    gate.reached.set()
    make_views(warehouse)
    warehouse.spark.sql("DELETE FROM sales WHERE item = 'ink'")
    warehouse.propagate()
    gate.reached.clear()
    refreshing = Background(lambda: warehouse.refresh(policy="incremental"))
    assert gate.reached.wait(120)
    rewritten(warehouse, warehouse._ledger.states()["lake.default.by_store"].storage)
    gate.go_on.set()
    refreshing.end()
    assert refreshing.error is None
    assert warehouse._ledger.propagation() is None
    assert_exact(warehouse)
    assert_tidy(warehouse)


def test_a_write_after_the_commit_point_is_reported_and_loses_nothing(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is published stays on the epoch's branch, where no expiry reaches it, until main is ours again."""
    gate = Gate(before_chores)
    warehouse = open_warehouse(tmp_path, on_event=gate)
    gate.reached.set()
    make_views(warehouse)
    gate.reached.clear()
    warehouse.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    storage = warehouse._ledger.states()["lake.default.copies"].storage
    refreshing = Background(lambda: warehouse.refresh(policy="incremental"))
    assert gate.reached.wait(120)
    warehouse.spark.sql(f"INSERT INTO {storage} VALUES ('strange', 1, 0)")
    gate.go_on.set()
    refreshing.end()
    assert refreshing.error is None, "it is published"
    assert [storage in record.message for record in caplog.records if record.levelname == "WARNING"] == [True]
    published = warehouse._ledger.states()["lake.default.copies"].snapshot
    expire = "CALL lake.system.expire_snapshots(table => '{}', older_than => now(), retain_last => 1)"
    warehouse.spark.sql(expire.format(storage))
    kept = {
        row["id"]
        for row in warehouse.spark.sql(f"SELECT string(snapshot_id) AS id FROM {storage}.snapshots").collect()
    }
    assert published in kept
    assert warehouse.sql("SELECT count(*) FROM copies").collect()[0][0] == 5
    with pytest.raises(RefreshError) as caught:
        warehouse.refresh()
    assert caught.value.code == "VK-FOREIGN-WRITE"

    warehouse.refresh(policy="full")
    assert_exact(warehouse)
    assert_tidy(warehouse)
    assert warehouse.spark.sql("SELECT count(*) FROM lake.default.copies").collect()[0][0] == 5


CHILD = textwrap.dedent(
    """
    import sys
    import viewkeeper as vk
    from viewkeeper.events import Phase, StepStarted

    def say(event):
        if isinstance(event, StepStarted) and event.phase is Phase.INSTALL and event.view:
            print("installing", flush=True)

    warehouse = vk.connect(sys.argv[1], on_event=say)
    warehouse.spark
    try:
        warehouse.sql(
            "CREATE MATERIALIZED VIEW slow AS SELECT count(*) AS n FROM sales AS a "
            "JOIN sales AS b ON a.qty <> b.qty JOIN sales AS c ON b.qty <> c.qty"
        )
    except KeyboardInterrupt:
        running = warehouse.spark.sparkContext.statusTracker().getActiveJobsIds()
        print("interrupted", len(running), flush=True)
    """
)


def test_ctrl_c_cancels_releases_and_publishes_nothing(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    warehouse = open_warehouse(tmp_path)
    warehouse.spark.sql("CREATE TABLE sales (qty BIGINT) USING iceberg")
    # It would run for hours; but one row of the first table takes a second, and then a task can be stopped.
    warehouse.spark.sql("INSERT INTO sales SELECT id FROM range(20000)")
    before = world(warehouse)
    environment = {**os.environ, "VIEWKEEPER_DRIVER_MEMORY": "900m"}
    with (
        ledger_of(tmp_path) as ledger,
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as child,
    ):
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "installing\n"
            assert ledger.holder() is not None
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=120)
            assert out == "interrupted 0\n", err
            assert ledger.holder() is None
        finally:
            child.kill()
    assert world(warehouse) == before


WAITING = textwrap.dedent(
    """
    import os, signal, sys, threading, time
    from py4j.protocol import Py4JNetworkError
    import viewkeeper as vk

    warehouse = vk.connect(sys.argv[1])
    spark = warehouse.spark
    jobs = spark.sparkContext.statusTracker()

    def press() -> None:
        while not jobs.getActiveJobsIds():
            time.sleep(0.1)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    try:
        spark.sql(
            "SELECT count(*) FROM sales AS a "
            "JOIN sales AS b ON a.qty <> b.qty JOIN sales AS c ON b.qty <> c.qty"
        ).collect()
    except (KeyboardInterrupt, Py4JNetworkError) as error:
        # On a busy machine PySpark's own clean-up, on its way out, may find a connection that the JVM has
        # closed. It was interrupted all the same, and the next question is answered.
        assert isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)
        # While the exception lives, so does the connection that was interrupted.
        answers = [spark.sql(f"SELECT {number}").collect()[0][0] for number in range(3)]
        print("interrupted", answers, len(jobs.getActiveJobsIds()), flush=True)
    """
)


def test_ctrl_c_while_the_main_thread_waits_for_spark(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    warehouse = open_warehouse(tmp_path)
    warehouse.spark.sql("CREATE TABLE sales (qty BIGINT) USING iceberg")
    warehouse.spark.sql("INSERT INTO sales SELECT id FROM range(20000)")
    child = subprocess.run(
        [sys.executable, "-c", WAITING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "VIEWKEEPER_DRIVER_MEMORY": "900m"},
    )
    assert (child.stdout, child.stderr) == ("interrupted [0, 1, 2] 0\n", "")


def test_ctrl_c_in_a_notebook_thread(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> None:
    """An interruption that arrives while views are computed: the lease is free, the next refresh works."""
    armed: list[bool] = []

    def interrupt(event: Event) -> None:
        if armed and isinstance(event, StepFinished) and event.phase is Phase.COMPUTE:
            armed.clear()
            raise KeyboardInterrupt

    warehouse = open_warehouse(tmp_path, on_event=interrupt)
    make_views(warehouse)
    warehouse.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    before = world(warehouse)
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh()
    assert world(warehouse) == before
    assert warehouse._ledger.holder() is None
    warehouse.refresh()
    assert_exact(warehouse)
