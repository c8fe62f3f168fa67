"""LIMIT over rows: more of them are kept than are shown, so that what goes is replaced by what is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from world import assert_exact

from viewkeeper.execute.executor import Executor
from viewkeeper.install.counts import Counts
from viewkeeper.plan.steps import ComputeBag
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

VIEWS = {
    "dearest": "SELECT id, price FROM goods ORDER BY price DESC LIMIT 3",
    "cheapest": "SELECT kind, price FROM goods ORDER BY price NULLS LAST, kind LIMIT 2 OFFSET 1",
    "by_expression": "SELECT id FROM goods WHERE kind <> 'c' ORDER BY price * 2 DESC, id LIMIT 4",
    "joined": "SELECT g.id, g.price, k.name FROM goods g JOIN kinds k ON g.kind = k.kind "
    "ORDER BY g.price DESC NULLS FIRST LIMIT 5",
    "ranked": "SELECT id, price, rank() OVER (ORDER BY price) AS place "
    "FROM (SELECT id, price FROM goods ORDER BY price LIMIT 6)",
    "reader": "SELECT count(*) AS n, sum(price) AS price FROM dearest",
}


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql("CREATE TABLE goods (id INT, kind STRING, price DECIMAL(10,2))")
    wh.spark.sql("CREATE TABLE kinds (kind STRING, name STRING)")
    wh.spark.sql("INSERT INTO kinds VALUES ('a', 'ink'), ('b', 'pen'), (NULL, 'none')")
    wh.spark.sql(
        "INSERT INTO goods SELECT id, substr('abc', id % 3 + 1, 1), CASE WHEN id % 50 > 0 THEN id % 90 END "
        "FROM range(300)"
    )
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS {query}")
    wh.refresh()
    return wh


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The views whose change was computed, each time that it was."""
    found: list[str] = []
    usual = Executor._stage_bag

    def noted(executor: Executor, session: SparkSession, step: ComputeBag, rows: DataFrame) -> Counts:
        found.append(step.view.rsplit(".", 1)[-1])
        return usual(executor, session, step, rows)

    monkeypatch.setattr(Executor, "_stage_bag", noted)
    yield found


CHANGES = (
    "INSERT INTO goods VALUES (1000, 'a', 999), (1001, 'b', NULL), (1002, NULL, 0.5)",
    "DELETE FROM goods WHERE price = 89",
    "UPDATE goods SET price = price + 1 WHERE id % 7 = 0",
    "DELETE FROM goods WHERE price > 10",
    "DELETE FROM goods WHERE id % 2 = 0",
    "INSERT INTO goods SELECT id, 'b', 7 FROM range(5000, 5200)",
    "DELETE FROM goods",
    "INSERT INTO goods VALUES (1, 'a', 1), (2, 'a', 2)",
    "INSERT INTO goods VALUES (3, 'b', 3), (4, 'c', NULL)",
)


def test_exact_whatever_changes(shop: Warehouse) -> None:
    for change in CHANGES:
        shop.spark.sql(change)
        epoch = shop.refresh(policy="incremental strict")
        assert {view.strategy for view in epoch.views} == {"incremental"}
        assert_exact(shop)
    shop.refresh(policy="full")
    assert_exact(shop)


def test_what_goes_is_replaced_without_looking_for_it(shop: Warehouse, staged: list[str]) -> None:
    for least in (89, 88, 87):
        shop.spark.sql(f"DELETE FROM goods WHERE price >= {least}")
        shop.refresh("dearest", policy="incremental strict")
    assert staged == ["dearest"] * 3, "computed once each time: enough rows were left"
    assert [row["price"] for row in shop.sql("SELECT * FROM dearest").collect()] == [86, 86, 86]
    assert_exact(shop, "dearest")


def test_when_too_few_are_left_all_rows_are_read_again(shop: Warehouse, staged: list[str]) -> None:
    assert "only if fewer than 3 rows would be left" in shop.explain("dearest").sql
    shop.spark.sql("DELETE FROM goods WHERE price > 3")
    shop.refresh("dearest", policy="incremental strict")
    assert staged == ["dearest"] * 2
    assert shop.sql("SELECT * FROM dearest").count() == 3
    assert_exact(shop, "dearest")


def test_a_table_of_few_rows_is_kept_whole(shop: Warehouse, staged: list[str]) -> None:
    shop.spark.sql("DELETE FROM goods WHERE id > 1")
    shop.refresh("dearest", policy="incremental strict")
    shop.spark.sql("INSERT INTO goods VALUES (7, 'a', 0.1)")
    shop.refresh("dearest", policy="incremental strict")
    assert staged == ["dearest"] * 3, "what is there is known to be all; the row that came is the last"
    assert shop.sql("SELECT * FROM dearest").count() == 3
    assert_exact(shop, "dearest")


def test_rows_that_agree_in_all_columns_are_all_there(shop: Warehouse) -> None:
    shop.spark.sql("DELETE FROM goods")
    shop.spark.sql("INSERT INTO goods SELECT 1, 'a', 5 FROM range(400)")
    shop.refresh(policy="incremental strict")
    assert_exact(shop)
    shop.spark.sql("INSERT INTO goods VALUES (2, 'a', 6)")
    shop.refresh(policy="incremental strict")
    shop.spark.sql("DELETE FROM goods WHERE id = 1")
    shop.refresh(policy="incremental strict")
    assert_exact(shop)


def test_a_reader_that_lags_behind_catches_up(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO goods VALUES (1000, 'a', 999)")
    shop.refresh("dearest", policy="incremental")
    shop.spark.sql("DELETE FROM goods WHERE price = 89")
    shop.refresh("dearest", policy="incremental")
    shop.refresh(policy="incremental")
    assert_exact(shop)


def test_it_can_be_defined_anew(shop: Warehouse) -> None:
    again = "CREATE OR REPLACE MATERIALIZED VIEW dearest AS SELECT price, id AS n FROM goods"
    shop.sql(f"{again} ORDER BY 1 LIMIT 2")
    assert_exact(shop, "dearest")
    shop.sql(again)
    shop.spark.sql("DELETE FROM goods WHERE price = 89")
    shop.refresh("dearest", policy="incremental strict")
    assert_exact(shop, "dearest")


def test_what_is_expected_is_looked_at_in_what_is_shown(shop: Warehouse) -> None:
    shop.sql(
        "CREATE MATERIALIZED VIEW watched (CONSTRAINT small EXPECT (price < 500)) AS "
        "SELECT id, price FROM goods ORDER BY price DESC LIMIT 1"
    )
    shop.spark.sql("INSERT INTO goods VALUES (1000, 'a', 999), (1001, 'a', 998)")
    epoch = shop.refresh("watched", policy="incremental strict")
    (found,) = [view for view in epoch.views if view.view.endswith("watched")]
    assert found.violations == {"small": 1}, "one of the two is shown"
