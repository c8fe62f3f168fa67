"""SDAPPEND: summary-deltas are appended as they are, readers combine them, later epochs fold them."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_tidy

from viewkeeper.errors import DefinitionError
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

APPEND = "TBLPROPERTIES ('viewkeeper.install' = 'sdappend')"
QUERY = """\
SELECT store, COUNT(*) AS n, COUNT(qty) AS known, SUM(qty) AS qty, AVG(price) AS price
FROM sales GROUP BY store"""


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql(
        "CREATE TABLE sales (store INT, qty INT, price DECIMAL(8, 2)) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    wh.spark.sql("INSERT INTO sales SELECT INT(id % 4), IF(id % 3 = 0, NULL, INT(id)), id FROM range(40)")
    wh.sql(f"CREATE MATERIALIZED VIEW per_store {APPEND} AS {QUERY}")
    wh.sql(f"CREATE MATERIALIZED VIEW total {APPEND} AS SELECT COUNT(*) AS n, SUM(qty) AS qty FROM sales")
    wh.sql("CREATE MATERIALIZED VIEW large AS SELECT n, COUNT(*) AS stores FROM per_store WHERE qty > 20 "
           "GROUP BY n")  # fmt: skip
    return wh


CHANGES = (
    "INSERT INTO sales VALUES (1, 5, 1), (9, NULL, 2), (NULL, 3, NULL)",
    "DELETE FROM sales WHERE store = 2",
    "UPDATE sales SET qty = NULL WHERE store = 3",
    "DELETE FROM sales WHERE store IS NULL OR store = 9",
    "INSERT INTO sales SELECT 2, 7, 1 FROM range(3)",
    "UPDATE sales SET store = store + 1",
    "DELETE FROM sales",
    "INSERT INTO sales SELECT INT(id % 3), INT(id), id FROM range(9)",
)


def stored_rows(wh: Warehouse, view: str) -> int:
    return wh.spark.table(wh._library().states[f"lake.default.{view}"].storage).count()


def test_parts_are_appended_and_folded_and_every_reader_sees_whole_groups(shop: Warehouse) -> None:
    variants, most = [], 0
    for change in (*CHANGES, *CHANGES[:3]):
        shop.spark.sql(change)
        epoch = shop.refresh(policy="incremental")
        refreshed = {each.view.rsplit(".", 1)[-1]: each for each in epoch.views}
        if refreshed["per_store"].strategy == "unchanged":
            continue  # in the second round one of them finds nothing to change
        assert refreshed["per_store"].method == "sdappend"
        variants.append(refreshed["per_store"].install)
        most = max(most, stored_rows(shop, "per_store"))
        assert_exact(shop)
    by_catalog, asked = shop.spark.table("per_store"), shop.sql(QUERY)
    assert by_catalog.exceptAll(asked).isEmpty() and asked.exceptAll(by_catalog).isEmpty()
    assert {"append parts of groups", "overwrite"} <= set(variants), "some epochs append, a later one folds"
    assert 4 < most <= 20, "parts never grow over twice the groups by much"
    assert_tidy(shop)


def test_no_stored_group_is_read_to_append(shop: Warehouse) -> None:
    shop.spark.sql("INSERT INTO sales VALUES (1, 5, 1)")
    storage = shop._library().states["lake.default.total"].storage.rsplit(".", 1)[-1]
    statements = shop.explain("total").sql.split("-- install")
    assert storage not in statements[0]
    assert "MERGE" not in statements[1]


def test_a_view_left_behind_catches_up(shop: Warehouse) -> None:
    for change in CHANGES[:4]:
        shop.spark.sql(change)
        shop.refresh("per_store", policy="incremental")
    shop.refresh("large", policy="incremental")
    assert_exact(shop)


def test_into_parts_and_back(shop: Warehouse) -> None:
    shop.sql("ALTER MATERIALIZED VIEW per_store SET TBLPROPERTIES ('viewkeeper.install' = 'sdbatch')")
    assert_exact(shop)
    for method in ("sdappend", "auto", "sdappend"):
        for change in CHANGES[:3]:
            shop.spark.sql(change)
            shop.refresh(policy="incremental")
        shop.sql(f"ALTER MATERIALIZED VIEW per_store SET TBLPROPERTIES ('viewkeeper.install' = '{method}')")
        assert_exact(shop)
    shop.spark.sql(CHANGES[5])
    shop.refresh(policy="incremental")
    assert_exact(shop)
    assert_tidy(shop)


def test_propagated_parts_are_installed_later(shop: Warehouse) -> None:
    shop.spark.sql(CHANGES[1])
    shop.propagate(policy="incremental")
    shop.spark.sql(CHANGES[2])
    shop.refresh(propagated=True)
    shop.refresh(policy="incremental")
    assert_exact(shop)


def test_what_does_not_add_up_is_refused(shop: Warehouse) -> None:
    for query in ("SELECT store, MIN(qty) AS least FROM sales GROUP BY store", "SELECT store FROM sales"):
        with pytest.raises(DefinitionError) as raised:
            shop.sql(f"CREATE MATERIALIZED VIEW v {APPEND} AS {query}")
        assert raised.value.code == "VK-INSTALL-METHOD"
