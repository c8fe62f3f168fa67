"""Statistics that are missing, stale or absurd: a worse plan perhaps, never a wrong result nor a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession
from world import assert_exact, assert_tidy, strategies

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


@contextmanager
def small_results_only(spark: SparkSession, most: str) -> Iterator[None]:
    """Spark's driver takes no more than this from the tasks of a job, and so broadcasts no more."""
    settings = spark.sparkContext._jsc.sc().conf()  # type: ignore[union-attr]
    settings.set("spark.driver.maxResultSize", most)
    try:
        yield
    finally:
        settings.remove("spark.driver.maxResultSize")


def test_a_delta_that_is_a_thousand_times_larger_than_expected(
    wh: Warehouse, plans: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """To broadcast it fails for real; then all is computed once more, without hints."""
    monkeypatch.setattr("viewkeeper.algebra.rules.join.SMALL_ROWS", 100)  # no dimension tables here
    monkeypatch.setattr("viewkeeper.execute.tuning._SEEN_SMALL", "100000")
    spark = wh.spark
    spark.sql("CREATE TABLE few (k INT) USING iceberg")
    spark.sql("CREATE TABLE many (k INT, v INT) USING iceberg")
    spark.sql("CREATE TABLE wide (v INT, w INT) USING iceberg")
    spark.sql("INSERT INTO few SELECT INT(id) FROM range(10)")
    spark.sql("INSERT INTO many SELECT INT(id), INT(id) FROM range(100000)")
    spark.sql("INSERT INTO wide SELECT INT(id), INT(id % 50) FROM range(100000)")
    wh.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT w, count(*) AS n, sum(b.v) AS s "
        "FROM few a JOIN many b ON a.k = b.k JOIN wide c ON b.v = c.v GROUP BY w"
    )
    # A hundred thousand rows for the one key, where there was one for each.
    spark.sql("INSERT OVERWRITE many SELECT 7, INT(id) FROM range(100000)")
    wh.refresh(policy="full")
    spark.sql("INSERT INTO few VALUES (7), (8), (7), (7), (7), (7), (7), (7), (7), (7)")
    plans.clear()
    with small_results_only(spark, "512k"):
        epoch = wh.refresh(policy="incremental")
    assert "computing again without hints" in caplog.text
    first, last = plans[0], plans[-1]
    assert first.count("BroadcastHashJoin") == 2
    assert "Broadcast" not in last
    assert set(strategies(epoch).values()) == {"incremental"}
    assert_exact(wh)
    assert_tidy(wh)
    # Learned or not, the next ones are not in the way of it.
    spark.sql("DELETE FROM few WHERE k = 7")
    with small_results_only(spark, "512k"):
        wh.refresh(policy="incremental")
    assert_exact(wh)
