"""Windows and LIMIT over groups: the groups are stored, and the rest is found when they are read."""

from __future__ import annotations

import pytest
from world import assert_exact

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

VIEWS = {
    "top": "SELECT city, sum(qty) AS total FROM sales GROUP BY city ORDER BY total DESC LIMIT 2",
    "ranked": "SELECT city, sum(qty) AS total, rank() OVER (ORDER BY sum(qty) DESC) AS place "
    "FROM sales GROUP BY city HAVING count(*) > 0",
    "share": "SELECT city, sum(qty) / sum(sum(qty)) OVER () AS share FROM sales GROUP BY city",
    "by_day": "SELECT day, city, sum(qty) AS qty, sum(sum(qty)) OVER (PARTITION BY day ORDER BY city) AS run "
    "FROM sales GROUP BY day, city",
    "reader": "SELECT count(*) AS n, min(total) AS least FROM top",
    "joined": "SELECT r.city, r.place, s.qty FROM ranked r JOIN sales s ON s.city = r.city WHERE r.place = 1",
}


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql("CREATE TABLE sales (city STRING, day INT, qty INT)")
    wh.spark.sql("INSERT INTO sales VALUES ('a', 1, 5), ('b', 1, 3), ('b', 2, 4), ('c', 2, 1), (NULL, 1, 2)")
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return wh


def test_maintained_without_reading_the_source_again(shop: Warehouse) -> None:
    assert {tuple(row) for row in shop.sql("SELECT * FROM top").collect()} == {("b", 7), ("a", 5)}
    for change in (
        "INSERT INTO sales VALUES ('c', 3, 9), ('d', 3, 1)",
        "DELETE FROM sales WHERE city = 'b'",
        "UPDATE sales SET qty = qty + 1 WHERE day = 1",
        "DELETE FROM sales",
        "INSERT INTO sales VALUES ('z', 1, 1)",
    ):
        shop.spark.sql(change)
        plan = shop.plan("top", policy="incremental")
        assert "VERSION AS OF" not in "".join(
            line for line in str(plan).splitlines() if "sales" in line and "extract" not in line
        )
        epoch = shop.refresh(policy="incremental strict")
        assert {view.strategy for view in epoch.views} == {"incremental"}
        assert_exact(shop)


def test_a_reader_that_lags_behind_catches_up(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO sales VALUES ('c', 3, 9)")
    shop.refresh("top", policy="incremental")
    shop.spark.sql("INSERT INTO sales VALUES ('d', 3, 99)")
    shop.refresh("top", policy="incremental")
    shop.refresh(policy="incremental")
    assert_exact(shop)
    assert shop.sql("SELECT n FROM reader").collect()[0][0] == 2


def test_recomputed_it_is_the_same(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO sales VALUES ('c', 3, 9)")
    shop.refresh(policy="full")
    assert_exact(shop)


def test_what_is_partitioned_is_stored_as_it_is_shown(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW parted PARTITIONED BY (place) AS {VIEWS['ranked']}")
    shop.spark.sql("INSERT INTO sales VALUES ('c', 3, 9)")
    shop.refresh(policy="incremental")
    assert_exact(shop)
