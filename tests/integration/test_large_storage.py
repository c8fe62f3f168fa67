"""What is done only with large storages, tried on small ones: deletions by hash and beside insertions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from world import assert_exact, assert_tidy, strategies

from viewkeeper.events import Event, PointPassed
from viewkeeper.execute import installing
from viewkeeper.plan.methods import Method
from viewkeeper.testing import Oracle, check, random_case
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def every_storage_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "cheapest_install", lambda *sizes: Method.SDBATCH)


def test_a_bag_is_deleted_from_by_hash_where_that_is_certain(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    events: list[Event] = []
    wh = open_warehouse(tmp_path, on_event=events.append)
    spark = wh.spark
    spark.sql("CREATE TABLE t (id INT, a STRING, n DECIMAL(8,2)) USING iceberg")
    spark.sql("INSERT INTO t VALUES (1, 'x', 1.5), (2, 'x', 1.5), (3, 'y', NULL), (4, NULL, 2), (5, 'z', 0)")
    wh.sql("CREATE MATERIALIZED VIEW copies AS SELECT a, n FROM t")
    wh.sql("CREATE MATERIALIZED VIEW by_a AS SELECT a, count(*) AS c, max(n) AS m FROM t GROUP BY a")

    def taken_back() -> bool:
        found = any(isinstance(event, PointPassed) and "taken back" in event.what for event in events)
        events.clear()
        return found

    taken_back()
    spark.sql("DELETE FROM t WHERE id IN (3, 4)")
    spark.sql("INSERT INTO t VALUES (6, 'w', 9), (7, NULL, NULL)")
    epoch = wh.refresh(policy="incremental")
    assert strategies(epoch) == {"copies": "incremental", "by_a": "incremental"}
    assert not taken_back()
    assert_exact(wh)

    # One of two equal rows: by their hash both would go.
    spark.sql("DELETE FROM t WHERE id = 1")
    spark.sql("INSERT INTO t VALUES (8, 'v', 1)")
    wh.refresh(policy="incremental")
    assert taken_back()
    assert_exact(wh)
    # Which is not tried again so soon.
    spark.sql("DELETE FROM t WHERE id = 8")
    assert wh.refresh(policy="incremental").view("copies").install == "apply bag by value"
    assert not taken_back()
    spark.sql("DELETE FROM t")
    wh.refresh(policy="incremental")
    assert_exact(wh)
    assert_tidy(wh)


def test_random_views(spark: SparkSession) -> None:
    outcome = check(Oracle(spark, clean_up=False), random_case(4, views=10, cycles=2), seed=4, random=True)
    assert outcome.incremental > 0
