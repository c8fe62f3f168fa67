"""Changes that a view's conditions leave out are told by metadata: the view is not even looked at."""

from __future__ import annotations

import pytest
from world import assert_exact, strategies

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

VIEWS = {
    "old_days": "SELECT count(*) AS n, sum(qty) AS qty FROM sales WHERE day < DATE'2024-02-01'",
    "recent": "SELECT store, qty FROM sales WHERE day >= DATE'2024-02-01' + INTERVAL '1' MONTH",
    "joined": "SELECT s.qty, t.city FROM sales s JOIN stores t ON s.store = t.store "
    "WHERE s.day BETWEEN DATE'2024-01-01' AND DATE'2024-01-31'",
    "either": "SELECT qty FROM sales WHERE day < DATE'2024-02-01' OR store = 1",
    "named": "SELECT qty FROM sales WHERE note < 'b'",
    "numbered": "SELECT qty FROM sales WHERE note > 500",
    "above": "SELECT max(n) AS n FROM old_days",
}


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql(
        "CREATE TABLE sales (store INT, day DATE, qty INT, note STRING) USING iceberg PARTITIONED BY (day) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read')"
    )
    wh.spark.sql("CREATE TABLE stores (store INT, city STRING)")
    wh.spark.sql("INSERT INTO stores VALUES (1, 'a'), (2, 'b')")
    wh.spark.sql(
        "INSERT INTO sales SELECT id % 3, DATE'2024-01-01' + CAST(30 * (id % 4) AS INT), id, string(id) "
        "FROM range(40)"
    )
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS {query}")
    wh.refresh()
    return wh


def changed(shop: Warehouse, *changes: str) -> dict[str, str]:
    for change in changes:
        shop.spark.sql(change)
    done = strategies(shop.refresh(policy="incremental strict"))
    assert_exact(shop)
    return done


NEW = "INSERT INTO sales VALUES (1, DATE'2024-03-31', 5, '7'), (2, DATE'2024-03-31', NULL, NULL)"


def test_changes_of_other_days_leave_a_view_alone(shop: Warehouse) -> None:
    done = changed(shop, NEW, "DELETE FROM sales WHERE day = DATE'2024-03-31' AND qty = 3")
    assert done["old_days"] == done["joined"] == done["above"] == "unchanged"
    assert done["recent"] == done["either"] == "incremental"


def test_what_it_reads_is_noticed(shop: Warehouse) -> None:
    done = changed(shop, "UPDATE sales SET qty = qty + 1 WHERE day = DATE'2024-01-01' AND store = 1")
    assert done["old_days"] == done["joined"] == "incremental"
    assert done["recent"] == "unchanged"


def test_rows_that_move_from_one_day_to_another_are_noticed_by_both(shop: Warehouse) -> None:
    done = changed(shop, "UPDATE sales SET day = DATE'2024-03-31' WHERE qty = 0")
    assert done["old_days"] == done["recent"] == "incremental"


def test_the_other_table_of_a_join_is_noticed(shop: Warehouse) -> None:
    done = changed(shop, "DELETE FROM sales WHERE qty = 3", "UPDATE stores SET city = 'z' WHERE store = 1")
    assert done["old_days"] == "unchanged"
    assert done["joined"] == "incremental"


def test_strings_that_are_compared_with_numbers_have_another_order(shop: Warehouse) -> None:
    """'7' is greater than '500', but not than 500; of what changed '1000' lies between '1' and '7'."""
    done = changed(
        shop, "INSERT INTO sales VALUES (1, DATE'2024-03-31', 5, '1'), (1, DATE'2024-03-31', 6, '7'), "
        "(1, DATE'2024-03-31', 7, '1000')", "DELETE FROM sales WHERE qty = 3"
    )  # fmt: skip
    assert done["numbered"] == "incremental"
    assert [row["qty"] for row in shop.sql("SELECT * FROM numbered").collect()] == [7]


def test_it_stays_up_to_date_with_what_it_did_not_look_at(shop: Warehouse) -> None:
    changed(shop, "DELETE FROM sales WHERE qty = 3")
    assert set(strategies(shop.refresh()).values()) == {"unchanged"}
    vector = shop._ledger.states()["lake.default.old_days"].vector
    assert vector == {"lake.default.sales": shop.history(limit=1)[0].source_versions["lake.default.sales"]}


def test_a_full_refresh_is_full(shop: Warehouse) -> None:
    shop.spark.sql("DELETE FROM sales WHERE qty = 3")
    assert strategies(shop.refresh("old_days", policy="full"))["old_days"] == "full"
