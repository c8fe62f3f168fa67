"""KEYREPLACE: rows that show a key of what changed are replaced, whatever changed in whichever tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import ORDERED_LINES, assert_exact, assert_tidy

import viewkeeper as vk
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

PATH = (
    "customer JOIN orders ON customer.c = orders.c JOIN line ON line.o = orders.o "
    "JOIN supplier ON line.s = supplier.s"
)
VIEWS = {
    # The lines show their order and supplier by columns that they are set equal to.
    "chain": f"SELECT name, orders.o, day, qty + 1 AS more, supplier.s, n FROM {PATH} WHERE qty > 0",
    "by_order": "SELECT orders.o, day, qty FROM orders JOIN line ON orders.o <=> line.o",
    "twice": "SELECT a.c AS both, a.o AS one, b.o AS other, b.day FROM orders a JOIN orders b ON a.c = b.c",
}
REPLACED = "TBLPROPERTIES ('viewkeeper.install' = 'keyreplace')"


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    for table, (columns, rows) in ORDERED_LINES.items():
        wh.spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
        wh.spark.sql(f"INSERT INTO {table} {rows}")
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} {REPLACED} AS {query}")
    return wh


def installed(shop: Warehouse) -> dict[str, str | None]:
    epoch = shop.refresh(policy="incremental")
    assert_exact(shop)
    assert {view.strategy for view in epoch.views} <= {"incremental", "unchanged"}
    return {view.view.rsplit(".", 1)[-1]: view.install for view in epoch.views}


ALL = dict.fromkeys(VIEWS, "replace rows")


def test_a_parent_of_which_no_size_is_known(wh: Warehouse, tmp_path: Path) -> None:
    """Files do not tell how many rows they hold: nothing is expected to change, and yet it does."""
    inbox = tmp_path / "inbox"
    wh.spark.sql("SELECT 1 AS k, 5 AS x").write.parquet(str(inbox))
    wh.sql(f"CREATE SOURCE f USING files OPTIONS (path '{inbox}', format 'parquet')")
    wh.spark.sql("CREATE TABLE b (k INT, y INT) USING iceberg")
    wh.spark.sql("INSERT INTO b VALUES (1, 10), (2, 20)")
    wh.sql(f"CREATE MATERIALIZED VIEW v {REPLACED} AS SELECT f.k, f.x, b.y FROM f JOIN b ON f.k = b.k")
    for at in range(2):
        wh.spark.sql(f"SELECT 2 AS k, {at} AS x").write.mode("append").parquet(str(inbox))
        wh.spark.sql("INSERT INTO b VALUES (1, 11)")  # the view moves past the change of the files
        assert wh.refresh(policy="incremental").view("v").install == "replace rows"
        assert_exact(wh)


def test_a_parent_that_was_empty_and_is_recomputed(wh: Warehouse) -> None:
    wh.spark.sql("CREATE TABLE a (k INT, x INT) USING iceberg")
    wh.spark.sql("CREATE TABLE b (k INT, y INT) USING iceberg")
    wh.spark.sql("INSERT INTO a VALUES (1, -1)")
    wh.spark.sql("INSERT INTO b VALUES (1, 10), (2, 20)")
    wh.sql("CREATE MATERIALIZED VIEW top AS SELECT k, x FROM a WHERE x > 0 ORDER BY k LIMIT 2 + 1")
    wh.sql(f"CREATE MATERIALIZED VIEW v {REPLACED} AS SELECT top.k, x, y FROM top JOIN b ON top.k = b.k")
    wh.spark.sql("INSERT INTO a VALUES (1, 5)")
    wh.spark.sql("INSERT INTO b VALUES (2, 21)")
    wh.refresh(policy="incremental")
    assert_exact(wh)


def test_changes_of_all_tables_at_once(shop: Warehouse) -> None:
    spark = shop.spark
    for at in range(3):
        spark.sql("UPDATE line SET qty = qty + 1 WHERE o % 3 = 0")
        spark.sql(f"DELETE FROM orders WHERE o % 7 = {at}")
        spark.sql(f"INSERT INTO customer VALUES (3, 'twin {at}'), (NULL, 'nobody'), (99, 'new')")
        spark.sql(f"UPDATE supplier SET n = IF(n IS NULL, 2, NULL) WHERE s = {at}")
        spark.sql("INSERT INTO orders VALUES (NULL, 1, 1), (NULL, 3, NULL), (4, 5, 6)")
        spark.sql("INSERT INTO line VALUES (NULL, 1, 5), (NULL, NULL, 0), (4, 2, 2), (4, 2, 2)")
        assert installed(shop) == ALL
    assert_tidy(shop)
    told = shop.history()[0].view("chain")
    assert told.inserted > 0
    assert told.deleted > 0, "what went is counted when it has gone"


def test_tables_that_are_emptied_and_filled_again(shop: Warehouse) -> None:
    spark = shop.spark
    spark.sql("DELETE FROM line")
    assert installed(shop) == {**ALL, "twice": None}
    spark.sql("INSERT INTO line VALUES (4, 1, 5), (4, 1, 5), (NULL, 1, 1), (77, 1, 1)")
    spark.sql("DELETE FROM customer WHERE c > 3")
    assert installed(shop) == {**ALL, "twice": None}
    spark.sql("DELETE FROM orders")
    spark.sql("DELETE FROM supplier")
    assert installed(shop) == ALL
    spark.sql("INSERT INTO orders VALUES (77, 1, 1)")
    assert installed(shop) == ALL
    assert_tidy(shop)


def test_a_change_that_no_row_of_the_view_shows(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO customer VALUES (1000, 'nobody buys')")
    shop.spark.sql("INSERT INTO supplier VALUES (1000, 1)")
    installed(shop)
    shop.spark.sql("DELETE FROM customer WHERE c = 1000")
    installed(shop)
    assert_tidy(shop)


def test_what_others_read_or_look_at_is_kept_by_its_delta(shop: Warehouse) -> None:
    """Also rows that were made anew before: they carry their hash like all others."""
    shop.spark.sql("UPDATE orders SET day = day + 2 WHERE o < 6")
    assert installed(shop) == ALL
    shop.sql("CREATE MATERIALIZED VIEW days AS SELECT day, count(*) AS n FROM by_order GROUP BY day")
    shop.sql(
        "CREATE MATERIALIZED VIEW looked_at (CONSTRAINT some_day EXPECT (day IS NOT NULL) ON VIOLATION WARN) "
        f"{REPLACED} AS {VIEWS['by_order']}"
    )
    shop.spark.sql("UPDATE orders SET day = day + 1 WHERE o < 4")
    shop.spark.sql("DELETE FROM line WHERE o = 2")
    found = installed(shop)
    assert found["by_order"] == found["looked_at"] == "apply bag by hash"
    assert found["chain"] == "replace rows"


def test_what_is_kept_for_later_is_a_delta(shop: Warehouse) -> None:
    shop.spark.sql("UPDATE orders SET day = day + 1 WHERE o < 4")
    shop.propagate(policy="incremental")
    shop.spark.sql("UPDATE orders SET day = day + 1 WHERE o > 4")
    shop.refresh(propagated=True)
    assert_exact(shop)
    assert shop.history()[0].view("by_order").install == "apply bag by hash"
    assert installed(shop)["by_order"] == "replace rows"


def test_only_rows_of_joins_are_replaced(shop: Warehouse) -> None:
    for query in ("SELECT * FROM orders", "SELECT name, day FROM customer LEFT JOIN orders USING (c)"):
        with pytest.raises(vk.ViewkeeperError) as refused:
            shop.sql(f"CREATE MATERIALIZED VIEW v {REPLACED} AS {query}")
        assert refused.value.code == "VK-INSTALL-METHOD"


def test_explain_shows_the_keys_and_what_is_deleted_by_them(shop: Warehouse) -> None:
    shop.spark.sql("UPDATE orders SET day = day + 1 WHERE o < 4")
    told = str(shop.explain("chain"))
    assert "keyreplace" in told
    assert "EXISTS (SELECT" in told
