"""Machines that fail: a full disk, a task, an executor. Nothing is published; the next refresh succeeds."""

from __future__ import annotations

import resource
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_elsewhere import run_child, standalone_cluster
from world import assert_exact, assert_tidy, world

from viewkeeper.errors import RefreshError
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


@contextmanager
def small_files_only(wh: Warehouse, most: int) -> Iterator[None]:
    """Spark can write no file of more bytes, as on a disk that is full."""
    pid = wh.spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("policy", ["incremental", "full"])
def test_a_disk_that_is_full(wh: Warehouse, policy: str) -> None:
    wh.spark.sql("CREATE TABLE numbers (a BIGINT, b BIGINT) USING iceberg")
    wh.spark.sql("INSERT INTO numbers VALUES (1, 1), (2, 2)")
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT a, b FROM numbers")
    wh.spark.sql("INSERT INTO numbers SELECT xxhash64(id), xxhash64(id, 1) FROM range(400000)")
    before = world(wh)
    with small_files_only(wh, 1_500_000), pytest.raises(RefreshError, match="space") as raised:
        wh.refresh(policy=policy)
    assert raised.value.code == "VK-DISK-FULL"
    assert world(wh) == before
    wh.refresh(policy=policy)
    assert_exact(wh)
    assert_tidy(wh)


def test_a_task_that_fails(wh: Warehouse) -> None:
    wh.spark.sql("CREATE TABLE numbers (a INT, b INT) USING iceberg")
    wh.spark.sql("INSERT INTO numbers VALUES (1, 1), (2, 2)")
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT a DIV b AS q FROM numbers")
    wh.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(q) AS q FROM v")
    wh.spark.sql("INSERT INTO numbers VALUES (3, 0), (4, 2)")
    before = world(wh)
    with pytest.raises(RefreshError, match="every view is as it was"):
        wh.refresh(policy="incremental")
    assert world(wh) == before
    wh.spark.sql("DELETE FROM numbers WHERE b = 0")
    wh.refresh(policy="incremental")
    assert_exact(wh)
    assert_tidy(wh)


LOSING_EXECUTORS = textwrap.dedent(
    """
    import json, os, signal, subprocess, sys
    import viewkeeper as vk
    from viewkeeper.errors import RefreshError
    from viewkeeper.events import Phase, StepStarted
    from viewkeeper.session import configured_session

    how, where, folder, settings = sys.argv[1:5]
    spark = configured_session(settings=json.loads(settings), **{how: where})
    spark.sql("CREATE NAMESPACE shop.retail")
    spark.sql("USE shop.retail")
    spark.sql("CREATE TABLE sales (store INT, qty INT) USING iceberg")
    spark.sql("INSERT INTO sales SELECT INT(id % 50), INT(id % 9) FROM range(20000)")
    armed, killed = [], []

    def kill_executors(event):
        if armed and isinstance(event, StepStarted) and event.phase is Phase.INSTALL and event.view:
            ours = "CoarseGrainedScheduler@127.0.0.1:" + spark.conf.get("spark.driver.port")
            found = subprocess.run(["pgrep", "-f", ours], capture_output=True, text=True).stdout.split()
            for pid in found:
                os.kill(int(pid), signal.SIGKILL)
            killed.extend(found)
            armed.clear()

    ledger = f"sqlite:///{folder}/ledger.db"
    wh = vk.connect(spark=spark, catalog="shop", ledger=ledger, on_event=kill_executors)
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT store, COUNT(*) AS n FROM sales GROUP BY store")
    wh.sql("CREATE MATERIALIZED VIEW rows AS SELECT store, qty FROM sales WHERE qty > 3")
    epoch = wh.history()[0].id
    spark.sql("INSERT INTO sales SELECT INT(id % 60), INT(id % 9) FROM range(3000)")
    armed.append(True)
    code = None
    try:
        wh.refresh(policy="incremental")
    except RefreshError as error:
        code = error.code
    same = wh.history()[0].id == epoch and all(found.ok for found in wh.verify())
    wh.refresh(policy="incremental")
    print(json.dumps({
        "killed": len(killed),
        "code": code,
        "same": same,
        "moved": wh.history()[0].id > epoch,
        "exact": all(found.ok for found in wh.verify()),
    }), flush=True)
    """
)


@pytest.mark.long
def test_an_executor_that_is_lost(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        answer = run_child("master", master, tmp_path, LOSING_EXECUTORS, **{"spark.executor.memory": "600m"})
    assert answer["killed"] and answer["moved"] and answer["exact"], answer
    # Spark computes again what it can; rows that were staged are gone for good, and the epoch is given up.
    assert answer["code"] in ("VK-EXECUTOR-LOST", None), answer
    assert answer["same"] or answer["code"] is None, answer
