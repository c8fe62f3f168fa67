"""Delta tables as sources: what only they can do to us. What all sources promise is in the contract suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from viewkeeper.warehouse import Warehouse

TABLE = "spark_catalog.default.events"


@pytest.fixture
def events(wh: Warehouse) -> Iterator[Warehouse]:
    wh.spark.sql(f"DROP TABLE IF EXISTS {TABLE}")
    create(wh)
    wh.sql(
        "CREATE MATERIALIZED VIEW by_kind REFRESH POLICY incremental "
        f"AS SELECT kind, COUNT(*) AS n FROM {TABLE} GROUP BY kind"
    )
    yield wh
    wh.spark.sql(f"DROP TABLE IF EXISTS {TABLE}")


def create(wh: Warehouse) -> None:
    wh.spark.sql(f"CREATE TABLE {TABLE} (id INT, kind STRING) USING delta")
    wh.spark.sql(f"INSERT INTO {TABLE} VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, NULL)")


def counts(wh: Warehouse) -> dict[str, int]:
    return {row["kind"]: row["n"] for row in wh.sql("SELECT * FROM by_kind").collect()}


def test_a_delta_table_is_read_in_place(events: Warehouse):
    spark = events.spark
    spark.sql(f"INSERT INTO {TABLE} VALUES (5, 'b')")
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 1")
    epoch = events.refresh()
    assert epoch.view("by_kind").strategy == "incremental"
    assert counts(events) == {"a": 1, "b": 2, None: 1}
    assert all(check.ok for check in events.verify())
    spark.sql(f"OPTIMIZE {TABLE}")
    assert events.refresh().view("by_kind").strategy == "unchanged"
    spark.sql(f"RESTORE TABLE {TABLE} TO VERSION AS OF 1")
    events.refresh()
    assert counts(events) == {"a": 2, "b": 1, None: 1}
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"UPDATE {TABLE} SET kind = 'c' WHERE id = 2")
    assert "change data feed" not in str(events.explain("by_kind"))  # it was not kept all the way
    events.refresh()
    spark.sql(f"UPDATE {TABLE} SET kind = 'd' WHERE id IN (1, 2)")
    assert "change data feed" in str(events.explain("by_kind"))
    events.refresh()
    assert counts(events) == {"d": 2, "b": 1, None: 1}


def vacuum(wh: Warehouse) -> None:
    wh.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    wh.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # how it lists files
    wh.spark.sql(f"VACUUM {TABLE} RETAIN 0 HOURS")


@pytest.mark.parametrize("feed", ["false", "true"])
def test_history_that_was_vacuumed_is_rebuilt_and_said(events: Warehouse, feed: str):
    spark = events.spark
    properties = f"'delta.enableChangeDataFeed' = '{feed}', 'delta.enableDeletionVectors' = 'false'"
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ({properties})")
    events.refresh()
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 1")
    vacuum(events)
    epoch = events.refresh()
    assert epoch.view("by_kind").strategy == "full"
    assert "expired" in (epoch.view("by_kind").reason or "")
    assert counts(events) == {"a": 1, "b": 1, None: 1}


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_a_feed_that_was_vacuumed_is_not_needed_where_both_versions_are_there(
    events: Warehouse, vectors: str
):
    spark = events.spark
    properties = f"'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = '{vectors}'"
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ({properties})")
    events.refresh()
    spark.sql(f"INSERT INTO {TABLE} SELECT id, 'x' FROM range(10, 20, 1, 1)")
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 10")
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 11")
    vacuum(events)
    assert events.refresh(policy="incremental strict").view("by_kind").strategy == "incremental"
    assert counts(events) == {"a": 2, "b": 1, "x": 8, None: 1}
    assert all(check.ok for check in events.verify())


def test_rows_of_a_table_with_deletion_vectors_are_read_before_they_are_written(events: Warehouse):
    spark = events.spark
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"INSERT INTO {TABLE} SELECT id, 'x' FROM range(10, 20, 1, 1)")
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 10")
    events.sql(f"CREATE MATERIALIZED VIEW late AS SELECT id, kind FROM {TABLE} WHERE id > 1")
    assert events.sql("SELECT * FROM late").count() == 12
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 11")
    events.refresh(policy="full")
    assert counts(events) == {"a": 2, "b": 1, "x": 8, None: 1}
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 12")
    assert events.refresh(policy="incremental strict").view("late").strategy == "incremental"
    assert all(check.ok for check in events.verify())


def test_a_table_that_was_made_anew_is_noticed(events: Warehouse):
    events.spark.sql(f"DROP TABLE {TABLE}")
    create(events)
    events.spark.sql(f"INSERT INTO {TABLE} VALUES (9, 'z')")
    epoch = events.refresh()
    assert epoch.view("by_kind").strategy == "full"
    assert counts(events) == {"a": 2, "b": 1, "z": 1, None: 1}


def test_a_table_that_was_made_anew_and_has_as_many_commits_is_noticed(events: Warehouse):
    before = events.refresh().source_versions[TABLE]
    for kind in ("x", "y"):
        events.spark.sql(f"DROP TABLE {TABLE}")
        events.spark.sql(f"CREATE TABLE {TABLE} (id INT, kind STRING) USING delta")
        events.spark.sql(f"INSERT INTO {TABLE} VALUES (1, '{kind}')")
        epoch = events.refresh()
        assert epoch.view("by_kind").strategy == "full"
        assert "dropped and created again" in (epoch.view("by_kind").reason or "")
        assert epoch.source_versions[TABLE].partition("@")[0] == before.partition("@")[0]
        assert counts(events) == {kind: 1}
        assert all(check.ok for check in events.verify())
    # From then on it is followed as any other, also by views that knew the table before.
    events.sql(f"CREATE MATERIALIZED VIEW b AS SELECT * FROM {TABLE}")
    events.spark.sql(f"INSERT INTO {TABLE} VALUES (2, 'z')")
    assert {view.strategy for view in events.refresh(policy="incremental strict").views} == {"incremental"}
    assert counts(events) == {"y": 1, "z": 1}


def test_rows_that_came_and_were_overwritten_between_two_refreshes(events: Warehouse):
    """The change data feed tells of them: what came alone is not all there is to it."""
    spark = events.spark
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    spark.sql(f"DELETE FROM {TABLE}")
    events.sql(f"CREATE MATERIALIZED VIEW latest AS SELECT MAX(id) AS id FROM {TABLE}")
    events.sql(f"CREATE MATERIALIZED VIEW copies AS SELECT id, kind FROM {TABLE}")
    events.refresh()
    spark.sql(f"INSERT INTO {TABLE} VALUES (9, 'x')")
    spark.sql(f"INSERT OVERWRITE {TABLE} VALUES (5, 'y')")
    epoch = events.refresh(policy="incremental strict")
    assert {view.strategy for view in epoch.views} == {"incremental"}
    assert all(check.ok for check in events.verify())
    assert [row["id"] for row in events.sql("SELECT id FROM latest").collect()] == [5]
