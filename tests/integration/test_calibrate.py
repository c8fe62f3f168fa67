"""Calibrating: it measures on the user's session, leaves nothing behind, and is chosen by from then on."""

from __future__ import annotations

import pytest

from viewkeeper.calibrating import Shape, calibrate
from viewkeeper.plan.prices import BELIEVED, Operation
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


def test_it_measures_and_leaves_nothing_behind(sales: Warehouse) -> None:
    sales.sql("CREATE MATERIALIZED VIEW v AS SELECT store, sum(qty) AS q FROM sales GROUP BY store")
    assert sales.rates == BELIEVED
    spark = sales.spark
    before = {row[0] for row in spark.sql("SHOW NAMESPACES IN lake").collect()}
    storages = spark.sql("SHOW TABLES IN lake._viewkeeper").count()
    said: list[str] = []
    found = calibrate(sales, [Shape(2_000, 1)], said.append)
    assert said == ["2,000 rows of 3 columns"]
    assert sales.rates == found
    assert found[Operation.INSERT] != BELIEVED[Operation.INSERT]
    assert {row[0] for row in spark.sql("SHOW NAMESPACES IN lake").collect()} == before
    assert spark.sql("SHOW TABLES IN lake._viewkeeper").count() == storages
    assert sales.views() == ["lake.default.v"]
    assert len(sales.history()) == 1


def test_prices_are_explained(sales: Warehouse) -> None:
    sales.sql("CREATE MATERIALIZED VIEW v AS SELECT store, sum(qty) AS q FROM sales GROUP BY store")
    sales.spark.sql("INSERT INTO sales VALUES (1, 'a', 5)")
    told = str(sales.explain("v"))
    for method in ("sdcursor", "sdbatch", "sdoverwrite", "fullrecomp"):
        assert method in told
