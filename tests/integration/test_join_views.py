"""Joins of many relations, kept by each kind of delta expression."""

from __future__ import annotations

import pytest
from world import ORDERED_LINES, assert_exact, assert_tidy, strategies

import viewkeeper as vk
from viewkeeper.plan.references import staged_by
from viewkeeper.plan.steps import Share
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

PATH = (
    "customer JOIN orders ON customer.c = orders.c JOIN line ON line.o = orders.o "
    "JOIN supplier ON line.s = supplier.s JOIN nation USING (n)"
)
VIEWS = {
    "chain": f"SELECT name, orders.o, day, qty, region FROM {PATH}",
    "twice": "SELECT a.o AS earlier, b.o AS later, name "
    "FROM orders a JOIN orders b ON a.c = b.c AND a.day < b.day JOIN customer ON customer.c = a.c",
    "over_three": "SELECT customer.c, orders.o, line.s FROM customer, orders, line "
    "WHERE customer.c = orders.c AND orders.day + customer.c = line.qty + line.s",
    "crossed": "SELECT name, region, qty FROM customer JOIN orders ON customer.c <=> orders.c, "
    "nation JOIN line ON qty > n AND s = n",
    "per_region": "SELECT region, name, COUNT(*) AS n, SUM(qty) AS q, MAX(day) AS last "
    f"FROM {PATH} GROUP BY region, name",
}


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    for table, (columns, rows) in ORDERED_LINES.items():
        wh.spark.sql(
            f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '3', "
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
        )
        wh.spark.sql(f"INSERT INTO {table} {rows}")
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return wh


CHANGES = {
    "line": "UPDATE line SET qty = qty + 1 WHERE o % 3 = 0",
    "orders": "DELETE FROM orders WHERE o % 7 = {at}",
    "customer": "INSERT INTO customer VALUES (3, 'twin {at}'), (NULL, 'nobody'), (99, 'new')",
    "supplier": "UPDATE supplier SET n = IF(n IS NULL, 2, NULL) WHERE s = {at}",
    "nation": "UPDATE nation SET region = 'r9{at}' WHERE n = 2",
}


def test_every_expression_keeps_every_join_exact(shop: Warehouse) -> None:
    for at, way in enumerate(vk.Joins):
        shop.options = vk.Options(joins=way)
        for table, change in CHANGES.items():
            shop.spark.sql(change.format(at=at))
            shop.spark.sql(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
        (chain,) = shop.plan("chain", policy="incremental").views
        (told,) = chain.propagations
        lines = list(told.lines())
        assert any("├─ " in line for line in lines) == (way is not vk.Joins.ALL_TERMS)
        assert lines[-1].endswith("n − 1 is 4")
        assert told.cost <= told.n_term_cost or way is vk.Joins.ALL_TERMS
        assert set(strategies(shop.refresh(policy="incremental")).values()) == {"incremental"}
        assert_exact(shop)
    # What was counted is remembered: as estimated, or corrected by it.
    newest = shop.estimates("chain")[0]
    assert newest.part == "customer ⋈ orders ⋈ line ⋈ supplier ⋈ nation"
    assert newest.actual == shop.history("chain")[0].view("chain").delta_rows
    # Some of them alone: emptied, and filled again.
    shop.options = vk.Options()
    shop.spark.sql("DELETE FROM line")
    shop.spark.sql("INSERT INTO orders VALUES (50, 3, 1)")
    shop.refresh(policy="incremental")
    assert_exact(shop)
    shop.spark.sql("INSERT INTO line VALUES (50, 1, 5), (50, 2, 2), (3, 1, 1)")
    shop.refresh(policy="incremental")
    assert_exact(shop)
    assert_tidy(shop)


def test_what_several_views_join_is_computed_once(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW days AS SELECT day, name, qty FROM {PATH}")
    for table in ("line", "orders", "customer"):
        shop.spark.sql(CHANGES[table].format(at=1))
    views = ("chain", "days", "per_region")
    steps = shop.plan(*views, policy="incremental").epoch.steps
    shared = [step for step in steps if isinstance(step, Share) and "several views" in step.what]
    assert shared
    for step in shared:
        assert sum(staged_by(other, [step.name])[step.name] for other in steps) > 1, step.what
    assert len({step.what for step in shared}) == len(shared), "each is computed once"
    assert set(strategies(shop.refresh(*views, policy="incremental")).values()) == {"incremental"}
    assert_exact(shop, *views)


def test_texts_are_as_wide_as_their_files_say(wh: Warehouse) -> None:
    columns = {
        "o": "o INT, n STRING",
        "l": "o INT, s INT, note STRING, mark STRING",
        "s": "s INT, pay BINARY",
    }
    for table, each in columns.items():
        wh.spark.sql(f"CREATE TABLE {table} ({each}) USING iceberg")
    wh.spark.sql("INSERT INTO o SELECT INT(id), NULL FROM range(100)")
    wide = "concat_ws('', transform(sequence(1, 20), each -> md5(string(id * 100 + each))))"
    wh.spark.sql(f"INSERT INTO l SELECT INT(id), INT(id % 9), {wide}, 'x' FROM range(500)")
    query = "SELECT n, note, mark, pay FROM o JOIN l ON o.o = l.o JOIN s ON l.s = s.s"
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    widths = wh._ledger.observations()["lake.default.l"].details["widths"]["columns"]
    assert set(widths) == {"note", "mark"}
    assert 300 <= widths["note"] <= 700, "640 digits, which take half a byte each"
    assert widths["mark"] < 1
    assert wh._ledger.observations()["lake.default.o"].details["widths"]["columns"].keys() == {"n"}
    wh.spark.sql("INSERT INTO s VALUES (3, NULL)")
    wh.refresh(policy="incremental")
    assert_exact(wh)


def test_new_parents_are_not_looked_for_among_old_children(
    shop: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewkeeper.join_metadata._LARGE_ROWS", 0)
    shop.spark.sql("INSERT INTO orders SELECT INT(100 + id), INT(id % 8), INT(id % 5) FROM range(10)")
    shop.spark.sql("INSERT INTO line SELECT INT(100 + id % 10), INT(id % 4), 1 FROM range(30)")
    (told,) = shop.plan("chain", policy="incremental").views[0].propagations
    lines = list(told.lines())
    assert [line for line in lines if line.startswith("left out:")], lines
    assert "line 0," in lines[-1], "no old line is read"
    assert set(strategies(shop.refresh(policy="incremental")).values()) == {"incremental"}
    assert_exact(shop)
    # Now a line comes that an order was waiting for, and an order that a line was waiting for.
    shop.spark.sql("INSERT INTO line VALUES (200, 1, 5), (109, 2, 7), (NULL, 1, 1)")
    shop.spark.sql("INSERT INTO orders VALUES (110, 1, 1), (NULL, 2, 2)")
    shop.refresh(policy="incremental")
    shop.spark.sql("INSERT INTO orders VALUES (200, 2, 3)")
    shop.spark.sql("INSERT INTO line VALUES (300, 1, 5)")
    shop.refresh(policy="incremental")
    assert_exact(shop)


def test_files_that_a_condition_skips_do_not_count(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.join_metadata._LARGE_ROWS", 0)
    spark = wh.spark
    spark.sql("CREATE TABLE visits (day INT, c INT) USING iceberg PARTITIONED BY (day)")
    spark.sql("INSERT INTO visits SELECT INT(id % 10), INT(id % 7) FROM range(1000)")
    spark.sql("CREATE TABLE people (c INT, name STRING) USING iceberg")
    spark.sql("INSERT INTO people SELECT INT(id), concat('p', id) FROM range(7)")
    wh.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT name, day FROM visits JOIN people ON visits.c = people.c "
        "WHERE day = 3"
    )
    spark.sql("INSERT INTO people VALUES (1, 'twin')")
    (told,) = wh.plan(policy="incremental").views[0].propagations
    monkeypatch.setattr("viewkeeper.join_metadata._LARGE_ROWS", 1 << 40)
    (blind,) = wh.plan(policy="incremental").views[0].propagations
    width = 8  # two columns of four bytes
    assert blind.cost - told.cost == 900 * width, "nine of ten partitions are not read"
    wh.refresh(policy="incremental")
    assert_exact(wh)
