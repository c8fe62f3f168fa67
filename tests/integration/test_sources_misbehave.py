"""Sources and storage tables that change in ways deltas cannot follow: exact, or loud and unchanged."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_refused, assert_tidy, strategies, world

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CREATE = "CREATE MATERIALIZED VIEW "


def version(warehouse: Warehouse, table: str = "sales") -> str:
    rows = warehouse.spark.sql(
        f"SELECT snapshot_id FROM lake.default.{table}.snapshots ORDER BY committed_at"
    )
    return str(rows.collect()[-1][0])


def make_views(warehouse: Warehouse) -> None:
    warehouse.sql(CREATE + "by_store AS SELECT store, sum(qty) AS total FROM sales GROUP BY store")
    warehouse.sql(CREATE + "pens AS SELECT store, qty FROM sales WHERE item = 'pen'")
    warehouse.sql(CREATE + "grand AS SELECT sum(total) AS total FROM by_store")


def test_expired_snapshots(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 2)")
    sales.spark.sql(
        "CALL lake.system.expire_snapshots(table => 'default.sales', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    error = assert_refused(sales, "VK-NOT-INCREMENTAL", lambda: sales.refresh(policy="incremental strict"))
    assert "expired" in error.message
    epoch = sales.refresh(policy="incremental")
    assert strategies(epoch)["pens"] == "full"
    assert "expired" in (epoch.view("pens").reason or "")
    assert_exact(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 2)")
    assert strategies(sales.refresh(policy="incremental strict"))["pens"] == "incremental"


def test_rollback(sales: Warehouse) -> None:
    first = version(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 2)")
    make_views(sales)
    sales.spark.sql(f"CALL lake.system.rollback_to_snapshot('default.sales', {first})")
    sales.spark.sql("INSERT INTO sales VALUES (4, 'pen', 9)")
    assert_refused(sales, "VK-NOT-INCREMENTAL", lambda: sales.refresh(policy="incremental strict"))
    epoch = sales.refresh()
    assert strategies(epoch)["by_store"] == "full"
    assert epoch.view("by_store").reason
    assert_exact(sales)
    assert sales.sql("SELECT total FROM grand").collect()[0][0] == 25


def test_dropped_and_recreated(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("DROP TABLE sales PURGE")
    sales.spark.sql("CREATE TABLE sales (store INT, item STRING, qty BIGINT) USING iceberg")
    sales.spark.sql("INSERT INTO sales VALUES (7, 'pen', 70)")
    epoch = sales.refresh()
    assert set(strategies(epoch).values()) == {"full"}
    assert "dropped and created again" in (epoch.view("pens").reason or "")
    assert_exact(sales)
    sales.spark.sql("INSERT INTO sales VALUES (8, 'pen', 1)")
    assert strategies(sales.refresh(policy="incremental strict"))["pens"] == "incremental"
    assert_exact(sales)


def test_recreated_and_still_empty(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("DROP TABLE sales PURGE")
    sales.spark.sql("CREATE TABLE sales (store INT, item STRING, qty BIGINT) USING iceberg")
    sales.refresh()
    assert sales.sql("SELECT count(*) FROM by_store").collect()[0][0] == 0
    assert_exact(sales)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        (("ALTER TABLE sales DROP COLUMN qty",), "dropped"),
        (("ALTER TABLE sales RENAME COLUMN qty TO quantity",), "renamed"),
        (("ALTER TABLE sales ALTER COLUMN store TYPE BIGINT",), "bigint"),
        (("ALTER TABLE sales DROP COLUMN qty", "ALTER TABLE sales ADD COLUMN qty BIGINT"), "added again"),
    ],
)
def test_a_used_column_is_no_longer_what_it_was(
    sales: Warehouse, changes: tuple[str, ...], word: str
) -> None:
    make_views(sales)
    sales.sql(CREATE + "items AS SELECT item FROM sales")
    for change in changes:
        sales.spark.sql(change)
    sales.spark.sql("INSERT INTO sales (store, item) VALUES (3, 'pen')")
    for policy in (None, "full"):
        error = assert_refused(sales, "VK-SOURCE-CHANGED", lambda policy=policy: sales.refresh(policy=policy))
        assert word in error.message
    # A view that does not use the column goes on.
    assert strategies(sales.refresh("items")) == {"items": "incremental"}
    assert_exact(sales, "items")
    # And the remedy works.
    sales.sql("DROP MATERIALIZED VIEW grand")
    sales.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT store, count(*) AS n FROM sales GROUP BY 1"
    )
    sales.sql("CREATE OR REPLACE MATERIALIZED VIEW pens AS SELECT store FROM sales WHERE item = 'pen'")
    sales.refresh()
    assert_exact(sales)


def test_a_used_column_is_another_one_since_what_main_was_moved_to_was_written(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("ALTER TABLE sales CREATE BRANCH audit")
    sales.spark.sql("INSERT INTO lake.default.sales.branch_audit VALUES (3, 'pen', 2)")
    sales.spark.sql("ALTER TABLE sales DROP COLUMN qty")
    sales.spark.sql("ALTER TABLE sales ADD COLUMN qty BIGINT")
    sales.spark.sql("CALL lake.system.fast_forward('default.sales', 'main', 'audit')")
    error = assert_refused(sales, "VK-SOURCE-CHANGED", sales.refresh)
    assert "added again" in error.message


def test_unused_columns_may_come_and_go(sales: Warehouse) -> None:
    sales.sql(CREATE + "pens AS SELECT store, qty FROM sales WHERE item = 'pen'")
    sales.sql(CREATE + "everything AS SELECT * FROM sales")
    sales.spark.sql("ALTER TABLE sales ADD COLUMN note STRING")
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 2, 'new')")
    assert set(strategies(sales.refresh(policy="incremental")).values()) == {"incremental"}
    assert_exact(sales)
    assert sales.sql("SELECT * FROM everything").columns == ["store", "item", "qty"]
    sales.spark.sql("ALTER TABLE sales DROP COLUMN note")
    sales.spark.sql("INSERT INTO sales VALUES (4, 'pen', 2)")
    assert set(strategies(sales.refresh(policy="incremental")).values()) == {"incremental"}
    assert_exact(sales)


def test_compaction_installs_nothing(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'ink', 2)")
    sales.spark.sql("DELETE FROM sales WHERE store = 3")
    sales.refresh()
    snapshots = {name: state.snapshot for name, state in sales._ledger.states().items()}
    sales.spark.sql(
        "CALL lake.system.rewrite_data_files(table => 'default.sales', options => map('rewrite-all', 'true'))"
    )
    epoch = sales.refresh()
    assert set(strategies(epoch).values()) == {"unchanged"}
    assert {name: state.snapshot for name, state in sales._ledger.states().items()} == snapshots
    assert all(view.delta_rows == 0 for view in epoch.views)
    again = sales.refresh()
    assert again.id == epoch.id
    assert_exact(sales)


def test_appends_around_a_compaction(sales: Warehouse) -> None:
    make_views(sales)
    for store in (7, 8, 9):
        sales.spark.sql(f"INSERT INTO sales VALUES ({store}, 'pen', {store})")
        sales.spark.sql(
            "CALL lake.system.rewrite_data_files(table => 'default.sales', "
            "options => map('rewrite-all', 'true'))"
        )
    assert set(strategies(sales.refresh(policy="incremental strict")).values()) == {"incremental"}
    assert_exact(sales)


def test_overflow_aborts_the_epoch(sales: Warehouse) -> None:
    """In a sum that is maintained, in one that is recomputed, and in the expression of a bag."""
    make_views(sales)
    sales.sql(CREATE + "others AS SELECT item FROM sales")
    most = 2**63 - 1
    sales.spark.sql(f"INSERT INTO sales VALUES (1, 'pen', {most})")
    for policy in ("incremental", "full"):
        error = assert_refused(sales, "VK-OVERFLOW", lambda policy=policy: sales.refresh(policy=policy))
        assert "view lake.default.by_store: a sum is too large" in error.message
        assert "column total in the group store = 1" in error.message
    assert_exact(sales)
    # The failing view and those that read it are left behind, the others go on.
    epoch = sales.refresh(on_error="skip")
    assert {name.rsplit(".", 1)[-1] for name in epoch.skipped} == {"by_store", "grand"}
    assert all("VK-OVERFLOW" in error for error in epoch.skipped.values())
    assert strategies(epoch)["others"] == "incremental"
    assert_exact(sales)
    # Once the source is put right, everything goes on.
    sales.spark.sql(f"DELETE FROM sales WHERE qty = {most}")
    sales.refresh()
    assert_exact(sales)
    assert_refused(
        sales,
        "VK-OVERFLOW",
        lambda: sales.sql(CREATE + f"too_much AS SELECT store, qty + {most - 3} AS q FROM sales"),
    )
    assert_tidy(sales)


def test_a_compaction_of_the_storage_by_somebody_else_is_adopted(sales: Warehouse) -> None:
    sales.sql("CREATE MATERIALIZED VIEW rows AS SELECT store, item, qty FROM sales")
    sales.sql("CREATE MATERIALIZED VIEW by_store AS SELECT store, count(*) AS n FROM rows GROUP BY store")
    for qty in (11, 12):
        sales.spark.sql(f"INSERT INTO sales VALUES (1, 'nut', {qty}), (7, 'nut', {qty})")
        sales.refresh(policy="incremental")
    for state in sales._library().states.values():
        sales.spark.sql(
            f"CALL lake.system.rewrite_data_files(table => '{state.storage}', "
            "options => map('rewrite-all', 'true'))"
        ).collect()
    assert {view.strategy for view in sales.refresh().views} == {"unchanged"}
    sales.spark.sql("DELETE FROM sales WHERE qty = 11")
    assert {view.strategy for view in sales.refresh(policy="incremental").views} == {"incremental"}
    assert_exact(sales)
    assert_tidy(sales)


def test_foreign_writes_to_storage(sales: Warehouse) -> None:
    make_views(sales)
    states = sales._ledger.states()
    sales.spark.sql(f"INSERT INTO {states['lake.default.pens'].storage} VALUES (99, 99, 0)")
    # Reads through us are pinned and see nothing of it.
    assert sales.sql("SELECT count(*) FROM pens WHERE store = 99").collect()[0][0] == 0
    assert_exact(sales)
    error = assert_refused(sales, "VK-FOREIGN-WRITE", lambda: sales.refresh())
    assert "pens" in error.message and "repair" in str(error)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 2)")
    assert_refused(sales, "VK-FOREIGN-WRITE", lambda: sales.refresh())
    # Other views are not held up by it.
    assert strategies(sales.refresh("by_store"))["by_store"] in ("incremental", "full")

    repaired = sales.repair("pens")
    assert strategies(repaired) == {"pens": "full"}
    assert sales.spark.sql("SELECT count(*) FROM lake.default.pens").collect()[0][0] == 2
    sales.refresh()
    assert_exact(sales)
    assert sales.spark.sql("SELECT count(*) FROM lake.default.pens").collect()[0][0] == 3

    sales.spark.sql(f"DELETE FROM {states['lake.default.by_store'].storage} WHERE store = 1")
    assert_refused(sales, "VK-FOREIGN-WRITE", lambda: sales.refresh("grand"))
    sales.sql("REFRESH MATERIALIZED VIEW by_store FULL")
    sales.refresh()
    assert_exact(sales)
    assert_tidy(sales)


def test_compaction_of_storage_by_a_stranger_is_noticed_and_mended(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 2)")
    sales.refresh(policy="incremental")
    storage = sales._ledger.states()["lake.default.pens"].storage
    sales.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{storage.split('.', 1)[1]}', "
        "options => map('rewrite-all', 'true'))"
    )
    sales.spark.sql("INSERT INTO sales VALUES (4, 'pen', 2)")
    sales.refresh(policy="full")
    assert_exact(sales)


def test_storage_that_is_gone(sales: Warehouse) -> None:
    make_views(sales)
    storage = sales._ledger.states()["lake.default.pens"].storage
    sales.spark.sql(f"DROP TABLE {storage} PURGE")
    before = world(sales)
    error = assert_refused(sales, "VK-STORAGE-MISSING", lambda: sales.refresh())
    assert "pens" in error.message
    assert world(sales) == before
    sales.sql("CREATE OR REPLACE MATERIALIZED VIEW pens AS SELECT store, qty FROM sales WHERE item = 'pen'")
    assert_exact(sales)


def test_repair_of_a_derived_view_uses_the_recorded_versions(sales: Warehouse) -> None:
    make_views(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 100)")
    sales.refresh("by_store")
    storage = sales._ledger.states()["lake.default.grand"].storage
    sales.spark.sql(f"DELETE FROM {storage}")
    assert strategies(sales.repair("grand")) == {"grand": "full"}
    # Rebuilt as it was, from the parent's rows of that time; the refresh brings it up to date.
    assert sales.sql("SELECT total FROM grand").collect()[0][0] == 16
    assert_exact(sales)
    epoch = sales.refresh("grand", policy="incremental")
    assert strategies(epoch)["grand"] == "incremental"
    assert sales.sql("SELECT total FROM grand").collect()[0][0] == 116
    assert_exact(sales)


def test_a_column_that_no_snapshot_has_yet(sales: Warehouse) -> None:
    """Added, but nothing was written since: the versions that there are lack it."""
    sales.spark.sql("ALTER TABLE sales ADD COLUMN note STRING")
    error = assert_refused(
        sales, "VK-SOURCE-UNWRITTEN", lambda: sales.sql(CREATE + "notes AS SELECT store, note FROM sales")
    )
    assert "note" in error.message
    sales.sql(CREATE + "stores AS SELECT store FROM sales")
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 1, 'new')")
    sales.sql(CREATE + "notes AS SELECT store, note FROM sales")
    sales.spark.sql("DELETE FROM sales WHERE item = 'ink'")
    assert set(strategies(sales.refresh(policy="incremental")).values()) == {"incremental"}
    assert sales.sql("SELECT count(*), count(note) FROM notes").collect()[0] == (4, 1)
    assert_exact(sales)


def test_a_column_that_was_replaced_after_the_last_write(sales: Warehouse) -> None:
    """The version has the old column, the table the new one, and what was appended would be read as that."""
    make_views(sales)
    sales.spark.sql("INSERT INTO sales VALUES (3, 'pen', 7)")
    sales.spark.sql("ALTER TABLE sales DROP COLUMN qty")
    sales.spark.sql("ALTER TABLE sales ADD COLUMN qty BIGINT")
    error = assert_refused(sales, "VK-SOURCE-CHANGED", lambda: sales.refresh(policy="incremental"))
    assert "added again" in error.message
    assert_exact(sales)
    # A view that is made now would show the old column at first, and then the new one.
    error = assert_refused(
        sales, "VK-SOURCE-UNWRITTEN", lambda: sales.sql(CREATE + "late AS SELECT store, qty FROM sales")
    )
    assert "qty" in error.message


def test_a_field_that_was_replaced(wh: Warehouse) -> None:
    wh.spark.sql("CREATE TABLE t (id INT, s STRUCT<x: INT, y: INT>) USING iceberg")
    wh.spark.sql("INSERT INTO t VALUES (1, named_struct('x', 1, 'y', 10))")
    wh.sql(CREATE + "v AS SELECT id, s.y AS y FROM t")
    wh.spark.sql("ALTER TABLE t DROP COLUMN s.y")
    wh.spark.sql("ALTER TABLE t ADD COLUMN s.y INT")
    wh.spark.sql("INSERT INTO t VALUES (2, named_struct('x', 2, 'y', 20))")
    error = assert_refused(wh, "VK-SOURCE-CHANGED", wh.refresh)
    assert "a field of column s" in error.message


def test_a_replaced_column_that_no_view_uses_prunes_nothing(wh: Warehouse) -> None:
    """The bounds of its files come under its name, and are those of another column."""
    wh.spark.sql(
        "CREATE TABLE t (id INT, note INT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    wh.spark.sql("INSERT INTO t SELECT id, id FROM range(1, 9)")
    wh.sql(CREATE + "v AS SELECT id FROM t")
    wh.spark.sql("ALTER TABLE t DROP COLUMN note")
    wh.spark.sql("ALTER TABLE t ADD COLUMN note INT")
    wh.spark.sql("INSERT INTO t SELECT id, 1000 + id FROM range(20, 29)")
    wh.spark.sql("DELETE FROM t WHERE id IN (3, 22)")
    assert strategies(wh.refresh(policy="incremental strict")) == {"v": "incremental"}
    assert_exact(wh)


def test_a_view_over_one_that_was_built_anew_is_built_anew_itself(sales: Warehouse) -> None:
    """What somebody wrote to the storage of a view is no change that its readers could take in."""
    sales.sql("CREATE MATERIALIZED VIEW p REFRESH POLICY FULL AS SELECT store, qty FROM sales")
    sales.sql(
        "CREATE MATERIALIZED VIEW c REFRESH POLICY INCREMENTAL "
        "AS SELECT store, sum(qty) AS s FROM p GROUP BY store"
    )
    storage = sales._ledger.states()["lake.default.p"].storage
    columns = len(sales.spark.table(storage).columns)
    sales.spark.sql(f"INSERT INTO {storage} VALUES ({', '.join(['99'] * columns)})")
    sales.spark.sql("INSERT INTO sales VALUES (2, 'pen', 5)")
    epoch = sales.refresh()
    assert strategies(epoch) == {"p": "full", "c": "full"}
    assert "built anew" in (epoch.view("c").reason or "")
    assert_exact(sales)
