"""Foreign keys let joins leave out old children of new parents, as far as they are found to hold."""

from __future__ import annotations

import pytest
from world import assert_exact, strategies

from viewkeeper.define.settings import ForeignKey
from viewkeeper.plan.methods import Method
from viewkeeper.plan.situation import Options
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

LINE_OF_ORDER = ForeignKey(table="line", columns=("of",), references="orders", referenced_columns=("key",))


@pytest.fixture
def shop(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Orders whose keys are scattered: what comes lies between what is there."""
    monkeypatch.setattr("viewkeeper.foreign_keys._LARGE_ROWS", 0)
    spark = wh.spark
    for table in ("orders (key STRING, day INT)", "line (of STRING, qty INT)"):
        spark.sql(
            f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ('format-version' = '3', "
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
        )
    order(wh, 0, 20)
    spark.sql("INSERT INTO line SELECT md5(STRING(id % 20)), INT(id % 7) FROM range(200)")
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT key, day, qty FROM orders JOIN line ON key = of")
    wh.foreign_keys = (LINE_OF_ORDER,)
    wh.options = Options(install=Method.GENINSTALL)  # by deltas, however little there is to recompute
    return wh


def order(wh: Warehouse, first: int, last: int, *, lines: bool = False) -> None:
    wh.spark.sql(f"INSERT INTO orders SELECT md5(STRING(id)), INT(id % 5) FROM range({first}, {last})")
    if lines:
        wh.spark.sql(
            "INSERT INTO line SELECT md5(STRING(id)), INT(id % 7) "
            f"FROM (SELECT explode(array({first}, {last - 1}, {first})) AS id)"
        )


def left_out(wh: Warehouse) -> list[str]:
    (told,) = wh.plan("v", policy="incremental").views[0].propagations
    return [line for line in told.lines() if line.startswith("left out")]


def refresh(wh: Warehouse) -> None:
    assert strategies(wh.refresh(policy="incremental")) == {"v": "incremental"}
    assert_exact(wh)


SAID = ["left out: Δ(orders) ⋈ line, new keys have no old children (foreign key of, checked)"]


def test_scattered_keys_that_are_new_have_no_old_children(shop: Warehouse) -> None:
    order(shop, 20, 25, lines=True)
    assert left_out(shop) == [], "it is not known yet"
    refresh(shop)  # now both tables are looked at whole
    order(shop, 25, 28, lines=True)
    shop.spark.sql("INSERT INTO line VALUES (NULL, 1), (md5('3'), 2), (md5('3'), 2)")
    shop.spark.sql("INSERT INTO orders VALUES (NULL, 7)")
    assert left_out(shop) == SAID
    assert SAID[0] in str(shop.explain("v"))
    refresh(shop)
    shop.spark.sql("DELETE FROM line WHERE of = md5('3')")
    shop.spark.sql("UPDATE line SET of = md5('4') WHERE of = md5('5')")
    shop.spark.sql(
        "CALL lake.system.rewrite_data_files(table => 'default.orders', "
        "options => map('rewrite-all', 'true'))"
    )
    refresh(shop)  # from the rows touched it follows that it still holds
    order(shop, 28, 30, lines=True)
    assert left_out(shop) == SAID
    shop.foreign_keys = ()
    assert left_out(shop) == [], "it is not declared any more"
    shop.foreign_keys = (LINE_OF_ORDER,)
    refresh(shop)
    # A copy of an order is no new key; its old lines are found.
    shop.spark.sql("INSERT INTO orders SELECT * FROM orders WHERE key = md5('4')")
    order(shop, 30, 31, lines=True)
    assert left_out(shop) == []
    refresh(shop)


def test_a_deleted_parent_ends_what_was_known(shop: Warehouse) -> None:
    order(shop, 20, 21, lines=True)
    refresh(shop)
    shop.spark.sql("DELETE FROM orders WHERE key = md5('7')")
    order(shop, 21, 22, lines=True)
    assert left_out(shop) == []
    refresh(shop)
    order(shop, 7, 8, lines=True)  # the same key again, and its old lines are still there
    assert left_out(shop) == []
    refresh(shop)
    shown = "SELECT count(*) AS n FROM v WHERE key = md5('7')"
    assert shop.sql(shown).collect()[0]["n"] == 10 + 3
    # Now it holds again, and that is found when the whole tables are looked at for the second time.
    order(shop, 40, 41, lines=True)
    refresh(shop)
    order(shop, 41, 42, lines=True)
    assert left_out(shop) == SAID
    refresh(shop)


def test_what_is_declared_and_not_so_is_not_believed(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO line VALUES (md5('99'), 3)")
    for first in range(20, 26, 2):
        order(shop, first, first + 2, lines=True)
        assert left_out(shop) == []
        refresh(shop)
    order(shop, 99, 100, lines=True)
    assert left_out(shop) == []
    refresh(shop)


def test_keys_of_two_columns(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.foreign_keys._LARGE_ROWS", 0)
    spark = wh.spark
    spark.sql("CREATE TABLE stock (part INT, place STRING) USING iceberg")
    spark.sql("CREATE TABLE sold (part INT, place STRING, n INT) USING iceberg")
    some = "WHERE id % 12 NOT IN (5, 10)"  # part 1 is not at p2, nor part 2 at p1
    spark.sql(f"INSERT INTO stock SELECT INT(id % 4), concat('p', id % 3) FROM range(12) {some}")
    spark.sql(f"INSERT INTO sold SELECT INT(id % 4), concat('p', id % 3), INT(id) FROM range(120) {some}")
    spark.sql("INSERT INTO sold VALUES (1, NULL, 5), (NULL, 'p1', 6)")
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT part, place, n FROM stock JOIN sold USING (part, place)")
    wh.foreign_keys = (
        ForeignKey(
            table="sold",
            columns=("part", "place"),
            references="stock",
            referenced_columns=("part", "place"),
        ),
    )
    for part, place in ((1, "p2"), (2, "p1")):
        spark.sql(f"INSERT INTO stock VALUES ({part}, '{place}'), (9, NULL)")
        spark.sql(f"INSERT INTO sold VALUES ({part}, '{place}', 1), (1, 'p1', 1), (1, NULL, 2)")
        assert bool(left_out(wh)) == (part == 2), "both tables were looked at whole"
        refresh(wh)
