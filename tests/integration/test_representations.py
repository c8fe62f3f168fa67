"""DUP and CNT: the same rows, stored in two ways, and converted from one into the other."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_tidy, strategies

from viewkeeper.errors import DefinitionError
from viewkeeper.events import Event, PointPassed
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CNT = "TBLPROPERTIES ('viewkeeper.representation' = 'cnt')"
ROWS = (
    "INSERT INTO sales SELECT INT(id % 4), IF(id % 5 = 0, NULL, concat('p', id % 3)), id % 2 FROM range(60)"
)


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql(
        "CREATE TABLE sales (store INT, product STRING, price DECIMAL(8, 2)) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    wh.spark.sql("CREATE TABLE stores (store INT, city STRING) USING iceberg")
    wh.spark.sql(ROWS)
    wh.spark.sql("INSERT INTO stores VALUES (0, 'a'), (1, 'a'), (2, 'b'), (2, 'b'), (NULL, 'c')")
    return wh


def stored_rows(wh: Warehouse, view: str) -> int:
    name = next(name for name in wh._library().states if name.endswith(f".{view}"))
    return wh.spark.table(wh._library().states[name].storage).count()


def test_a_view_stored_as_cnt_is_kept_and_read_like_any_other(shop: Warehouse) -> None:
    query = "SELECT product, price, city FROM sales JOIN stores ON sales.store = stores.store"
    shop.sql(f"CREATE MATERIALIZED VIEW counted {CNT} AS {query}")
    shop.sql(f"CREATE MATERIALIZED VIEW plain AS {query}")
    shop.sql("CREATE MATERIALIZED VIEW cities AS SELECT city, COUNT(*) AS n, SUM(price) AS p "
             "FROM counted GROUP BY city")  # fmt: skip
    shop.sql("CREATE MATERIALIZED VIEW copies AS SELECT city, product FROM counted WHERE price > 0")
    assert stored_rows(shop, "counted") < stored_rows(shop, "plain")
    changes = (
        "INSERT INTO sales SELECT INT(id % 3), 'p1', 1 FROM range(7)",
        "DELETE FROM sales WHERE product = 'p2' AND store = 1",
        "UPDATE sales SET price = price + 1 WHERE store = 2",
        "DELETE FROM stores WHERE city = 'a'",
        "INSERT INTO stores VALUES (0, 'a'), (3, NULL)",
        "DELETE FROM sales WHERE product IS NULL",
        "DELETE FROM sales",
        ROWS,
    )
    for change in changes:
        shop.spark.sql(change)
        epoch = shop.refresh(policy="incremental")
        assert set(strategies(epoch).values()) <= {"incremental", "unchanged"}, change
        assert_exact(shop)
    rows = [shop.spark.table(view) for view in ("counted", "plain")]
    assert rows[0].exceptAll(rows[1]).isEmpty() and rows[1].exceptAll(rows[0]).isEmpty()
    assert not rows[0].isEmpty()
    shop.refresh(policy="full")
    assert_exact(shop)
    assert_tidy(shop)


def test_a_row_may_have_very_many_copies(shop: Warehouse) -> None:
    shop.spark.sql("CREATE TABLE ones (x INT) USING iceberg")
    shop.spark.sql("INSERT INTO ones SELECT 1 FROM range(2000)")
    shop.sql(f"CREATE MATERIALIZED VIEW pairs {CNT} AS SELECT a.x FROM ones a JOIN ones b ON a.x = b.x")
    assert stored_rows(shop, "pairs") == 1
    assert shop.spark.table("pairs").count() == shop.sql("SELECT * FROM pairs").count() == 4_000_000
    shop.spark.sql("INSERT INTO ones SELECT 1 FROM range(500)")
    shop.refresh(policy="incremental")
    assert shop.spark.table("pairs").count() == 2_500 * 2_500


def test_converting_changes_no_row(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW v AS SELECT product, price FROM sales")
    shop.sql("CREATE MATERIALIZED VIEW per_product AS SELECT product, COUNT(*) AS n FROM v GROUP BY product")
    before, first = shop.spark.table("v").collect(), shop.history()[0].id
    for form, stored in (("cnt", 8), ("dup", 60), ("cnt", 8)):
        shop.sql(f"ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('viewkeeper.representation' = '{form}')")
        assert stored_rows(shop, "v") == stored
        assert sorted(map(str, shop.spark.table("v").collect())) == sorted(map(str, before))
        shop.spark.sql("INSERT INTO sales VALUES (1, 'p1', 1), (9, 'new', 9)")
        epoch = shop.refresh(policy="incremental")
        assert set(strategies(epoch).values()) == {"incremental"}, "the view above it follows"
        assert_exact(shop)
        shop.spark.sql("TRUNCATE TABLE sales")
        shop.spark.sql(ROWS)
        shop.refresh(policy="incremental")
        assert_exact(shop)
    assert shop.at(first).sql("SELECT * FROM v").count() == 60, "epochs before it can still be read"
    assert_tidy(shop)


def test_setting_what_is_set_does_nothing(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW v {CNT} AS SELECT product, price FROM sales")
    latest = shop.history()[0].id
    shop.sql(f"ALTER MATERIALIZED VIEW v SET {CNT}")
    assert shop.history()[0].id == latest
    shop.sql("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('viewkeeper.install' = 'sdbatch')")
    shop.spark.sql("DELETE FROM sales WHERE store = 1")
    (refreshed,) = shop.refresh(policy="incremental").views
    assert refreshed.method == "sdbatch"
    assert_exact(shop)


def test_maintain_counts_copies(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW many AS SELECT product, price FROM sales")
    shop.sql("CREATE MATERIALIZED VIEW few AS SELECT DISTINCT product, price FROM sales")
    shop.sql(
        "CREATE MATERIALIZED VIEW pinned TBLPROPERTIES ('viewkeeper.representation' = 'dup') AS "
        "SELECT product, price FROM sales"
    )
    done = {each.view.rsplit(".", 1)[-1]: each.stored_as for each in shop.maintain()}
    assert done == {"many": "cnt", "few": None, "pinned": None}
    assert_exact(shop)
    shop.spark.sql("TRUNCATE TABLE sales")
    shop.spark.sql("INSERT INTO sales SELECT INT(id), concat('p', id), id FROM range(40)")
    shop.refresh()
    done = {each.view.rsplit(".", 1)[-1]: each.stored_as for each in shop.maintain()}
    assert done["many"] == "dup"
    assert_exact(shop)


@pytest.mark.parametrize("point", ["intents noted", "storage of lake.default.v made"])
def test_interrupted_half_way_the_old_one_is_there(
    shop: Warehouse, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.sql("CREATE MATERIALIZED VIEW v AS SELECT product, price FROM sales")

    def die(event: Event) -> None:
        if event == PointPassed(point):
            raise KeyboardInterrupt

    monkeypatch.setattr(shop, "_emit", die)
    with pytest.raises(KeyboardInterrupt):
        shop.sql(f"ALTER MATERIALIZED VIEW v SET {CNT}")
    monkeypatch.undo()
    assert stored_rows(shop, "v") == 60
    assert_exact(shop)
    shop.sql(f"ALTER MATERIALIZED VIEW v SET {CNT}")
    assert stored_rows(shop, "v") == 8
    assert_exact(shop)
    assert_tidy(shop)


@pytest.mark.parametrize(
    ("query", "form", "said"),
    [
        ("SELECT store FROM sales", "twice", "'twice'"),
        ("SELECT store, COUNT(*) AS n FROM sales GROUP BY store", "cnt", "groups"),
        ("SELECT CAST(price AS DOUBLE) AS d FROM sales", "cnt", "double"),
        ("SELECT map(store, product) AS m FROM sales", "cnt", "recomputed|map"),
    ],
)
def test_what_cannot_be_counted_is_refused(shop: Warehouse, query: str, form: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said) as raised:
        shop.sql(
            f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('viewkeeper.representation' = '{form}') AS {query}"
        )
    assert raised.value.code == "VK-REPRESENTATION"
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    with pytest.raises(DefinitionError) as raised:
        shop.sql(f"ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('viewkeeper.representation' = '{form}')")
    assert raised.value.code == "VK-REPRESENTATION"
    assert_exact(shop)
