"""How many values columns have, as the ledger has it: Iceberg's statistics, sketches, and how they follow."""

from __future__ import annotations

import pytest
from world import ORDERED_LINES, assert_exact

from viewkeeper.execute.engine import Engine
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CHAIN = (
    "CREATE MATERIALIZED VIEW chain AS SELECT name, orders.o, qty FROM customer "
    "JOIN orders ON customer.c = orders.c JOIN line ON line.o = orders.o"
)
STATISTICS = "CALL lake.system.compute_table_stats(table => 'default.orders', columns => array('o'))"


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    for table in ("customer", "orders", "line"):
        columns, rows = ORDERED_LINES[table]
        wh.spark.sql(
            f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '3', "
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
        )
        wh.spark.sql(f"INSERT INTO {table} {rows}")
    return wh


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is counted from now on, and how."""
    done: list[str] = []
    count, add = Engine.count_values, Engine.add_values

    def counting(self: Engine, table: str, version: str, columns: list[str]) -> object:
        if columns:
            done.append(f"count {table.rsplit('.', 1)[-1]} {','.join(columns)}")
        return count(self, table, version, columns)

    def adding(self: Engine, table: str, old: str, new: str, sketches: dict[str, str]) -> object:
        done.append(f"add {table.rsplit('.', 1)[-1]} {','.join(sorted(sketches))}")
        return add(self, table, old, new, sketches)

    monkeypatch.setattr(Engine, "count_values", counting)
    monkeypatch.setattr(Engine, "add_values", adding)
    return done


def known(warehouse: Warehouse, table: str) -> dict[str, float]:
    """The values of a table's columns that the next plan would believe in."""
    _, situation = warehouse._maintainer.plan(["lake.default.chain"], None)
    return dict(situation.distinct[f"lake.default.{table}"])


def orders(first: int, last: int, customers: str = "id") -> str:
    return f"INSERT INTO orders SELECT INT(id), INT({customers}), 1 FROM range({first}, {last})"


def test_sketches_follow_a_table_that_grows(shop: Warehouse, work: list[str]) -> None:
    shop.spark.sql(orders(100, 20_080, "id % 5000"))
    shop.sql(CHAIN)
    assert sorted(work) == ["count customer c", "count line o", "count orders c,o"]
    assert known(shop, "orders") == pytest.approx({"c": 5_000, "o": 20_000}, rel=0.1)
    work.clear()

    def after(statement: str) -> None:
        shop.spark.sql(statement)
        shop.refresh()

    after(orders(30_000, 31_500, "1"))
    assert work == [], "less than a tenth"
    assert known(shop, "orders") == pytest.approx({"c": 5_000, "o": 21_500}, rel=0.1)
    # By old values, and by new ones: only what came is read.
    after(orders(40_000, 50_000, "id % 5000"))
    assert work == ["add orders c,o"]
    assert known(shop, "orders") == pytest.approx({"c": 5_000, "o": 31_500}, rel=0.1)
    after(orders(50_000, 60_000))
    assert work == ["add orders c,o"] * 2
    assert known(shop, "orders") == pytest.approx({"c": 15_000, "o": 41_500}, rel=0.1)
    after(orders(40_000, 50_000, "id % 5000"))
    assert known(shop, "orders") == pytest.approx({"c": 15_000, "o": 41_500}, rel=0.1), "keys no more"
    work.clear()

    after("UPDATE orders SET day = 2 WHERE o < 1000")
    assert work == []
    after("DELETE FROM orders WHERE o >= 40000 OR o < 5000")
    assert work == ["count orders c,o"]
    assert known(shop, "orders") == pytest.approx({"c": 5_000, "o": 16_600}, rel=0.1)
    assert_exact(shop)


def test_a_table_that_is_rewritten_again_and_again_is_counted_less_and_less(
    shop: Warehouse, work: list[str]
) -> None:
    """By copy-on-write a change of one row is as large as its file."""
    shop.spark.sql("ALTER TABLE orders SET TBLPROPERTIES ('write.update.mode' = 'copy-on-write')")
    shop.spark.sql(orders(100, 5_000))
    shop.sql(CHAIN)
    work.clear()
    counts = []
    for day in range(8):
        shop.spark.sql(f"UPDATE orders SET day = {day + 7} WHERE o = 200")
        shop.refresh(policy="incremental")
        counts.append(len(work))
    assert counts[-1] <= 5
    work.clear()
    # That there is nothing new is not believed for ever.
    shop.spark.sql("INSERT OVERWRITE orders SELECT 1, INT(id), 1 FROM range(5000)")
    for day in range(4):
        shop.spark.sql(f"UPDATE orders SET day = {day} WHERE c % 100 = 0")
        shop.refresh(policy="incremental")
    assert known(shop, "orders")["o"] == pytest.approx(1, abs=0.1)
    assert_exact(shop)


def test_small_tables_are_counted_again_when_they_have_doubled(shop: Warehouse, work: list[str]) -> None:
    shop.sql(CHAIN)
    assert known(shop, "orders") == {"c": 9, "o": 20}
    work.clear()
    shop.spark.sql("INSERT INTO orders SELECT INT(id), INT(id), 1 FROM range(100, 110)")
    shop.refresh()
    assert work == []
    assert known(shop, "orders") == {"c": 9, "o": 30}
    shop.spark.sql("INSERT INTO orders SELECT INT(id), INT(id), 1 FROM range(200, 300)")
    shop.refresh()
    assert work == ["add orders c,o"]
    assert known(shop, "orders") == pytest.approx({"c": 119, "o": 130}, rel=0.1)
    assert_exact(shop)


def test_statistics_of_today_are_believed(shop: Warehouse, work: list[str]) -> None:
    shop.spark.sql(STATISTICS)
    shop.spark.sql(orders(100, 110))
    shop.sql(CHAIN)
    assert "count orders c" in work, "nobody had counted that"
    assert known(shop, "orders")["o"] == 30, "twenty were the key of twenty rows"


def test_statistics_of_another_time_are_not(shop: Warehouse, work: list[str]) -> None:
    shop.spark.sql(STATISTICS)
    shop.spark.sql("DELETE FROM orders")
    shop.spark.sql("INSERT INTO orders SELECT 1, INT(id), 1 FROM range(20)")
    shop.sql(CHAIN)
    assert known(shop, "orders") == {"c": 20, "o": 1}
    shop.spark.sql("INSERT INTO orders SELECT INT(id), 1, 1 FROM range(50)")
    shop.refresh(policy="incremental")
    assert_exact(shop)


def test_statistics_that_are_made_later_are_read(shop: Warehouse, work: list[str]) -> None:
    shop.spark.sql(STATISTICS)
    shop.sql(CHAIN)
    work.clear()
    shop.spark.sql(orders(100, 200))
    shop.spark.sql(STATISTICS)
    shop.refresh()
    assert work == ["add orders c"]
    assert known(shop, "orders") == pytest.approx({"c": 109, "o": 120}, rel=0.1)
    assert (
        shop._ledger.observations()["lake.default.orders"].details["distinct"]["columns"]["o"]["sketch"]
        is None
    )


def test_sketches_are_small_and_nobody_is_shown_them(shop: Warehouse) -> None:
    shop.spark.sql(orders(100, 100_000))
    shop.sql(CHAIN)
    kept = shop._ledger.observations()["lake.default.orders"].details["distinct"]["columns"]
    assert 100 < len(kept["o"]["sketch"]) < 4096
    assert kept["o"]["sketch"] not in str(shop.status())
