"""What is known of a staged result sharpens the statements that read it: fewer files, a plainer join."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession
from world import assert_exact, strategies

from viewkeeper.algebra.sharpening import Keys
from viewkeeper.execute import executor, profiles
from viewkeeper.plan import lookups, maintaining
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    monkeypatch.setattr(lookups, "_LARGE_ROWS", 1)
    monkeypatch.setattr(lookups, "_LARGER", 1)
    monkeypatch.setattr(maintaining, "SMALL_ROWS", 1)
    wh.spark.sql("CREATE TABLE orders (o BIGINT, day DATE, name STRING) USING iceberg")
    wh.spark.sql("CREATE TABLE lines (o BIGINT, qty DECIMAL(10, 2)) USING iceberg")
    for at in range(3):
        wh.spark.sql(
            "INSERT INTO orders SELECT id, date_add(DATE'2026-01-01', INT(id)), concat('n', id) "
            f"FROM range({at * 100}, {at * 100 + 100})"
        )
        wh.spark.sql(f"INSERT INTO lines SELECT id DIV 2, id % 7 FROM range({at * 200}, {at * 200 + 200})")
    wh.sql("CREATE MATERIALIZED VIEW joined AS SELECT orders.o, day, qty FROM orders JOIN lines USING (o)")
    wh.sql(
        "CREATE MATERIALIZED VIEW totals AS SELECT o, SUM(qty) AS q, MAX(qty) AS most FROM lines GROUP BY o"
    )
    wh.sql("CREATE MATERIALIZED VIEW days AS SELECT day, name, COUNT(*) AS n FROM orders GROUP BY day, name")
    return wh


def bounds(plans: list[str], table: str, column: str) -> set[tuple[str, str]]:
    """The ranges of a column that scans of a table were given."""
    scans = [
        line for plan in plans for line in plan.splitlines() if f"{table}" in line and "filters=" in line
    ]
    found = [re.findall(rf"{column} >= (\S+?),.*{column} <= (\S+?)[,\]]", line) for line in scans]
    return {pair for pairs in found for pair in pairs}


def test_only_files_within_the_range_of_the_keys_are_read(
    shop: Warehouse, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "FEW_KEYS", 5)
    shop.spark.sql("INSERT INTO orders SELECT id, DATE'2026-06-01', 'new' FROM range(1000, 1010)")
    shop.spark.sql("INSERT INTO lines SELECT id, 3 FROM range(1000, 1010)")
    epoch = shop.refresh(policy="incremental")
    assert set(strategies(epoch).values()) == {"incremental"}
    assert_exact(shop)
    assert ("1000", "1009") in bounds(plans, "default.orders", "o")
    assert ("1000", "1009") in bounds(plans, "default.lines", "o")
    groups = next(plan for plan in plans if "LeftSemi" in plan and "_row_id" in plan and "day" not in plan)
    assert "isnull" not in groups.split("LeftSemi")[1].splitlines()[0], "a key of one column, compared by ="


def test_a_range_that_spares_less_than_half_of_a_table_is_no_condition(
    shop: Warehouse, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would only make Iceberg put the dictionaries of all files in order."""
    monkeypatch.setattr(executor, "FEW_KEYS", 0)
    shop.spark.sql("INSERT INTO orders SELECT id * 99, DATE'2026-06-01', 'new' FROM range(3)")  # of 3 files
    shop.refresh("joined", policy="incremental")
    assert_exact(shop, "joined")
    assert not bounds(plans, "default.lines", "o")
    shop.spark.sql("INSERT INTO orders SELECT id, DATE'2026-06-01', 'new' FROM range(20, 30)")  # of one
    shop.refresh("joined", policy="incremental")
    assert_exact(shop, "joined")
    assert bounds(plans, "default.lines", "o") == {("20", "29")}


def test_few_keys_are_looked_up_one_by_one(shop: Warehouse, plans: list[str]) -> None:
    shop.spark.sql("INSERT INTO orders VALUES (7, DATE'2026-06-01', 'new'), (290, DATE'2026-06-01', 'new')")
    shop.refresh("joined", policy="incremental")
    assert_exact(shop, "joined")
    lines = [line for plan in plans for line in plan.splitlines() if "default.lines" in line]
    assert any("filters=o IN (7, 290)" in line for line in lines), lines


def test_null_keys_are_found_as_before(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO orders VALUES (NULL, NULL, NULL), (5, NULL, 'x'), (7, DATE'2026-01-01', '')")
    shop.spark.sql("INSERT INTO lines VALUES (NULL, 1), (5, NULL)")
    shop.refresh(policy="incremental")
    assert_exact(shop)
    shop.spark.sql("INSERT INTO orders VALUES (NULL, NULL, NULL), (6, NULL, 'x')")
    shop.spark.sql("DELETE FROM lines WHERE o IS NULL OR o BETWEEN 3 AND 9")
    shop.refresh(policy="incremental")
    assert_exact(shop)


def test_a_change_that_comes_to_nothing(shop: Warehouse) -> None:
    """Rows that came and went again: what is staged is empty, and nothing is read for it."""
    shop.spark.sql("INSERT INTO lines VALUES (5, 1)")
    shop.spark.sql("DELETE FROM lines WHERE o = 5")
    shop.spark.sql("INSERT INTO lines VALUES (5, 3), (5, 4)")
    shop.refresh(policy="incremental")
    assert_exact(shop)


def test_a_profile_tells_rows_nulls_and_ranges(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES (1, DATE'2026-01-01', 'a', 1.5D, map(1, 2), NULL, 'é'), "
        "(3, DATE'2026-02-01', repeat('z', 300), -0.0D, map(), 4, 'b') AS t(`a b`, d, s, f, m, n, u)"
    )
    known = profiles.profile(rows, ["a b", "d", "s", "f", "m", "n", "u"])
    assert known.rows == 2
    assert set(known.never_null) == {"a b", "d", "s", "f", "m", "u"}
    assert set(known.keys) == {"a b", "d", "n", "u"}
    assert known.keys["n"] == Keys(4, 4), "NULL apart"
    assert known.keys["u"] == Keys("b", "é")
    assert profiles.profile(rows, ["a b"], few=True).keys == {"a b": Keys(1, 3, (1, 3))}
    broken = spark.sql("SELECT * FROM VALUES ('a'), (string(X'62FF')), ('c') AS t(s)")
    assert profiles.profile(broken, ["s"], few=True).keys == {"s": Keys("a", "c")}, "not as it came"
    assert profiles.profile(broken.where("s > 'a'"), ["s"], few=True).keys == {}
    none = profiles.profile(rows.where("d IS NULL"), ["d"])
    assert (none.rows, none.keys) == (0, {})
