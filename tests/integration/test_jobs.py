"""The cost of a small refresh, counted: Spark jobs per view, and the shape of the plans that run."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from world import assert_exact, strategies

from viewkeeper.cli.retail import VIEWS, Retail
from viewkeeper.execute.tuning import tuning_for
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

ROWS = 4000
MOST_JOBS_PER_VIEW = 6


def jobs_so_far(spark: SparkSession) -> int:
    """Job ids are given out in order; those of this thread and of the library's belong to no group."""
    spark.range(1).collect()
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


@pytest.fixture
def retail(wh: Warehouse) -> tuple[Warehouse, Retail]:
    shop = Retail(wh.spark, ROWS)
    shop.create()
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    shop.pass_day(1)
    wh.refresh(policy="incremental")  # warms up every kind of plan
    return wh, shop


def small_change(spark: SparkSession, day: int) -> None:
    spark.sql(f"INSERT INTO pos SELECT id, id % 10, date_add(DATE'2026-04-12', {day}), 3, 1.5 FROM range(20)")
    spark.sql(f"DELETE FROM pos WHERE storeID = {day} AND date = DATE'2026-04-08'")


def test_jobs_per_view(retail: tuple[Warehouse, Retail]) -> None:
    warehouse, _ = retail
    counted = []
    for day in (1, 2):
        small_change(warehouse.spark, day)
        before = jobs_so_far(warehouse.spark)
        epoch = warehouse.refresh(policy="incremental")
        counted.append(jobs_so_far(warehouse.spark) - before - 1)
        assert set(strategies(epoch).values()) == {"incremental"}
    assert_exact(warehouse)
    assert max(counted) <= MOST_JOBS_PER_VIEW * len(VIEWS), counted

    # Nothing to do costs nothing.
    before = jobs_so_far(warehouse.spark)
    warehouse.refresh()
    assert jobs_so_far(warehouse.spark) - before - 1 <= 1


def test_plan_shapes(retail: tuple[Warehouse, Retail], plans: list[str]) -> None:
    """A change to the items alone reads no store, and joins by broadcasting the change."""
    warehouse, _ = retail
    warehouse.spark.sql("UPDATE items SET category = 'category 3' WHERE itemID = 1")
    epoch = warehouse.refresh(policy="incremental")
    assert strategies(epoch) == {
        "SID_sales": "unchanged",
        "sCD_sales": "unchanged",
        "SiC_sales": "incremental",
        "sR_sales": "unchanged",
        "city_totals": "unchanged",
    }
    assert_exact(warehouse, "SiC_sales")
    together = "\n".join(plans)
    assert "default.stores" not in together
    assert "SortMergeJoin" not in together
    assert "BroadcastHashJoin" in together
    assert "CartesianProduct" not in together and "BroadcastNestedLoopJoin" not in together


def test_reading_is_shared_out_in_more_tasks_than_cores(wh: Warehouse) -> None:
    """With one task for each, one core waits for the other where files with deleted rows take longer."""
    wh.spark.sql("CREATE TABLE wide USING iceberg AS SELECT id, uuid() AS word FROM range(0, 2000000, 1, 6)")
    engine = wh._maintainer.shop.engine
    ours = engine.sessions.pinned(engine.pins, tuning_for(1000))
    tasks, usual = (
        each.sql("SELECT word FROM lake.default.wide").rdd.getNumPartitions() for each in (ours, wh.spark)
    )
    assert tasks >= usual
    assert tasks > 2, "more than 16 MB for each of two cores"
