"""A cube: one statement, a view for each node, all filled in one epoch, the coarse from the fine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from world import assert_exact, assert_refused, assert_tidy, strategies

import viewkeeper as vk
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CUBE = """CREATE MATERIALIZED CUBE by AS
    SELECT city, item, count(*) AS n, sum(qty) AS q, max(qty) AS most
    FROM sales JOIN stores ON store = id
    GROUP BY CUBE (city, item)"""


@pytest.fixture
def shop(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> Warehouse:
    warehouse = open_warehouse(tmp_path)
    spark = warehouse.spark
    spark.sql("CREATE TABLE sales (store INT, item STRING, qty BIGINT) USING iceberg")
    spark.sql("CREATE TABLE stores (id INT, city STRING) USING iceberg")
    spark.sql("INSERT INTO stores VALUES (1, 'Ulm'), (2, 'Ulm'), (3, NULL), (4, 'Bonn')")
    spark.sql("INSERT INTO sales SELECT id % 5, concat('i', id % 3), id FROM range(40)")
    spark.sql("INSERT INTO sales VALUES (1, NULL, 3), (4, 'i1', NULL)")
    return warehouse


def test_a_cube_is_the_views_of_its_nodes(shop: Warehouse) -> None:
    epochs = len(shop.history())
    shop.sql(CUBE)
    assert shop.views() == [f"lake.default.by_{keys}" for keys in ("city_item", "city", "item", "all")]
    assert len(shop.history()) == epochs + 1
    filled = shop.history()[0]
    made_from = {view.view.rsplit(".", 1)[-1]: view.derived_from for view in filled.views}
    finest = "lake.default.by_city_item"
    assert made_from == {"by_city_item": None, "by_city": finest, "by_item": finest, "by_all": None}
    assert_exact(shop)
    shop.spark.sql("DELETE FROM sales WHERE qty > 30 OR item IS NULL")
    shop.spark.sql("INSERT INTO sales VALUES (1, 'i9', 99), (4, 'i1', 7)")
    assert set(strategies(shop.refresh(policy="incremental")).values()) == {"incremental"}
    assert_exact(shop)
    shop.spark.sql("UPDATE stores SET city = 'Bonn' WHERE id = 2")
    shop.refresh(policy="incremental")
    assert_exact(shop)
    shop.refresh(policy="full")
    assert_exact(shop)
    assert_tidy(shop)


def test_a_cube_is_created_whole_or_not_at_all(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW by_item AS SELECT item FROM sales")
    assert_refused(shop, "VK-VIEW-EXISTS", lambda: shop.sql(CUBE))
    shop.sql("DROP MATERIALIZED VIEW by_item")
    wrong = CUBE.replace("sum(qty) AS q", "sum(nothing) AS q")
    assert_refused(shop, "VK-UNKNOWN-COLUMN", lambda: shop.sql(wrong))
    assert_refused(shop, "VK-CUBE", lambda: shop.sql(CUBE.replace("CUBE (city, item)", "city, item")))
    shop.sql(CUBE)
    assert shop.sql(CUBE.replace("CUBE by", "CUBE IF NOT EXISTS by")).count() == 0


def test_the_ways_to_work_out_aggregates_agree(shop: Warehouse) -> None:
    shop.sql(CUBE)
    for way in vk.Aggregates:
        shop.options = vk.Options(way)
        shop.spark.sql("DELETE FROM sales WHERE qty % 7 = 1 OR item = 'i9'")
        shop.spark.sql(f"INSERT INTO sales VALUES (1, 'i9', 99), (4, '{way.value}', 7), (3, 'i2', NULL)")
        shop.spark.sql("UPDATE stores SET city = concat(city, '+') WHERE id = 1")
        assert set(strategies(shop.refresh(policy="incremental")).values()) == {"incremental"}
        assert_exact(shop)
        shop.spark.sql("INSERT INTO sales VALUES (2, 'i0', -5)")
        assert set(strategies(shop.refresh(policy="full")).values()) == {"full"}
        assert_exact(shop)
