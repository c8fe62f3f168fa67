"""CREATE OR REPLACE keeps what it can: rows that are stored are not computed again from the sources."""

from __future__ import annotations

import pytest
from world import assert_exact

from viewkeeper.errors import RefreshError
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark
KEPT = "its rows are made of those that were stored"


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql("CREATE TABLE orders (id INT, customer INT, qty INT, total DECIMAL(9,2))")
    wh.spark.sql("INSERT INTO orders VALUES (1, 1, 2, 10), (2, NULL, 1, 20), (2, NULL, 1, 20), (3, 2, 5, 5)")
    return wh


BAG = "SELECT id, customer, qty * total AS worth FROM orders WHERE qty > 0"
GROUPS = (
    "SELECT customer, sum(qty * total) AS worth, count(*) AS n, max(id) AS last FROM orders GROUP BY customer"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BAG, "SELECT id, customer, qty * total AS value FROM orders WHERE qty > 0"),
        (BAG, "SELECT qty * total AS worth, id FROM orders WHERE qty > 0"),
        (BAG, BAG),
        (
            GROUPS,
            "SELECT customer AS c, sum(qty * total) AS value, count(*) AS n FROM orders GROUP BY customer",
        ),
        (GROUPS, "SELECT max(id) AS last, customer FROM orders GROUP BY customer"),
        (GROUPS, GROUPS.replace("GROUP BY customer", "GROUP BY customer HAVING count(*) > 1")),
        (GROUPS, GROUPS.replace("count(*) AS n", "sum(qty * total) / count(*) AS n")),
    ],
)
def test_what_is_stored_is_kept(shop: Warehouse, before: str, after: str) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {before}")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v COMMENT 'other' AS {after}")
    assert shop.history()[0].view("v").reason == KEPT
    assert_exact(shop)
    shop.spark.sql("INSERT INTO orders VALUES (4, 1, 1, 1)")
    shop.spark.sql("DELETE FROM orders WHERE id = 3")
    assert shop.refresh(policy="incremental").view("v").strategy == "incremental"
    assert_exact(shop)


JOINED = (
    "SELECT name, count(*) AS n, sum(qty) AS items FROM orders JOIN people ON customer = person GROUP BY name"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GROUPS, GROUPS.replace("max(id)", "min(id)")),
        (GROUPS, GROUPS.replace("SELECT customer", "SELECT min(total) AS least, avg(qty) AS mean, customer")),
        (GROUPS.replace("count(*)", "sum(id)"), GROUPS.replace("count(*)", "count(DISTINCT total)")),
        (
            "SELECT sum(qty) AS items FROM orders WHERE id < 3",
            "SELECT sum(qty) AS items, max(total) AS most FROM orders WHERE id < 3",
        ),
        (JOINED, JOINED.replace("count(*)", "max(born) AS youngest, count(total)")),
    ],
)
def test_what_is_new_is_computed_alone(shop: Warehouse, before: str, after: str) -> None:
    shop.spark.sql("CREATE TABLE people (person INT, name STRING, born INT)")
    shop.spark.sql("INSERT INTO people VALUES (1, 'Ann', 1990), (2, NULL, NULL), (3, 'Bo', 2000)")
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {before}")
    shop.spark.sql("INSERT INTO orders VALUES (1, 7, 1, 3), (1, 1, NULL, 4)")  # the view lags behind
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {after}")
    assert shop.history()[1].view("v").reason == f"{KEPT}; only what is new in them was computed"
    assert shop.history()[0].view("v").strategy == "incremental"
    assert_exact(shop)
    shop.spark.sql("DELETE FROM orders WHERE id = 3")
    assert shop.refresh(policy="incremental").view("v").strategy == "incremental"
    assert_exact(shop)


def test_what_is_new_is_computed_with_the_rest_where_history_is_gone(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {GROUPS}")
    shop.spark.sql("INSERT INTO orders VALUES (1, 7, 1, 3)")
    shop.spark.sql("CALL lake.system.expire_snapshots(table => 'default.orders', retain_last => 1, "
                   "older_than => TIMESTAMP '2100-01-01 00:00:00')")  # fmt: skip
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {GROUPS.replace('max(id)', 'min(id)')}")
    assert KEPT not in (shop.history()[0].view("v").reason or "")
    assert_exact(shop)


def test_what_is_new_is_computed_from_the_view_below_as_it_was(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW below AS {BAG}")
    query = "SELECT customer, count(*) AS n, sum(worth) AS worth FROM below GROUP BY customer"
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    shop.sql(
        f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query.replace('count(*)', 'max(id) AS last, count(*)')}"
    )
    assert shop.history()[0].view("v").reason == f"{KEPT}; only what is new in them was computed"
    assert_exact(shop)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BAG, BAG.replace("qty > 0", "qty > 1")),
        (BAG, BAG.replace("id, ", "id + 1 AS id, ")),
        (BAG, BAG.replace("SELECT", "SELECT DISTINCT")),
        (GROUPS, "SELECT customer, id, count(*) AS n FROM orders GROUP BY customer, id"),
        (GROUPS, "SELECT count(*) AS n FROM orders"),
        ("SELECT DISTINCT id, qty FROM orders", "SELECT DISTINCT id, id AS again FROM orders"),
    ],
)
def test_what_is_not_is_computed(shop: Warehouse, before: str, after: str) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {before}")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {after}")
    assert shop.history()[0].view("v").reason != KEPT
    assert_exact(shop)


def test_a_view_that_lags_behind_is_brought_up_to_date(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {BAG}")
    shop.spark.sql("INSERT INTO orders VALUES (4, 1, 1, 1)")
    shop.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE qty > 0")
    assert shop.sql("SELECT * FROM v").count() == 5
    kept = [epoch.view("v").reason for epoch in shop.history()[:2]]
    assert KEPT in kept
    assert_exact(shop)


def test_a_column_that_is_another_one_is_read_again(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {BAG}")
    shop.spark.sql("ALTER TABLE orders DROP COLUMN customer")
    shop.spark.sql("ALTER TABLE orders ADD COLUMN customer INT")
    shop.spark.sql("INSERT INTO orders (id, customer, qty, total) VALUES (4, 7, 1, 1)")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {BAG}")
    assert shop.history()[0].view("v").reason != KEPT
    assert [row["id"] for row in shop.sql("SELECT id FROM v WHERE customer IS NOT NULL").collect()] == [4]
    assert_exact(shop)


def test_an_aggregate_of_a_column_that_came_later_is_computed_from_the_tables(shop: Warehouse) -> None:
    """At the version that the rows came from there was another column of that name."""
    shop.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT customer, sum(total) AS total FROM orders GROUP BY customer"
    )
    shop.spark.sql("ALTER TABLE orders ADD COLUMN tip INT")
    shop.spark.sql("INSERT INTO orders VALUES (5, 1, 1, 1, 100)")
    shop.refresh()
    shop.spark.sql("ALTER TABLE orders DROP COLUMN tip")
    shop.spark.sql("ALTER TABLE orders ADD COLUMN tip INT")
    shop.spark.sql("INSERT INTO orders VALUES (6, 2, 1, 1, 7)")
    shop.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS "
        "SELECT customer, sum(total) AS total, sum(tip) AS tip FROM orders GROUP BY customer"
    )
    shop.refresh()
    assert {tuple(row) for row in shop.sql("SELECT customer, tip FROM v").collect()} == {
        (1, None),
        (2, 7),
        (None, None),
    }
    assert_exact(shop)


def test_what_is_expected_now_is_looked_at_in_all_rows(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {BAG}")
    with pytest.raises(RefreshError, match="known"):
        shop.sql(f"""CREATE OR REPLACE MATERIALIZED VIEW v
            (CONSTRAINT known EXPECT (customer IS NOT NULL) ON VIOLATION FAIL EPOCH) AS {BAG}""")
    shop.sql(f"""CREATE OR REPLACE MATERIALIZED VIEW v
        (CONSTRAINT known EXPECT (customer IS NOT NULL) ON VIOLATION DROP ROW) AS {BAG}""")
    assert shop.sql("SELECT * FROM v").count() == 2
    assert_exact(shop)


def test_with_no_data_there_is_none(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {BAG}")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v WITH NO DATA AS {BAG}")
    shop.refresh()
    assert shop.history()[0].view("v").reason != KEPT
    assert_exact(shop)


def test_readers_follow(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {BAG}")
    shop.sql("CREATE MATERIALIZED VIEW above AS SELECT customer, count(*) AS n FROM v GROUP BY customer")
    shop.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id, customer FROM orders WHERE qty > 0")
    assert_exact(shop)
