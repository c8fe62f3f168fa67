"""A report and HTML of a warehouse that ran."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from viewkeeper.ledger import sqlite_url
from viewkeeper.reporting import report
from viewkeeper.warehouse import Warehouse


@pytest.mark.spark
def test_a_warehouse_that_ran(new_spark: Callable[[str], SparkSession], tmp_path: Path) -> None:
    with vk.connect(spark=new_spark("shop"), catalog="lake", ledger=sqlite_url(tmp_path / "ledger.db")) as wh:
        wh.spark.sql("CREATE TABLE sales (store INT, amount INT) USING iceberg")
        wh.spark.sql("INSERT INTO sales VALUES (1, 10), (2, 20)")
        wh.sql(
            "CREATE MATERIALIZED VIEW `<i>by store</i>` (CONSTRAINT sold EXPECT (amount > 15)) AS "
            "SELECT store, SUM(amount) AS amount FROM sales GROUP BY store"
        )
        wh.sql("CREATE MATERIALIZED VIEW over_it AS SELECT COUNT(*) AS stores FROM `<i>by store</i>`")
        wh.spark.sql("INSERT INTO sales VALUES (3, 5)")
        assert {view.state for view in wh.status()} == {"fresh"}, "nobody has looked at the sources since"
        wh.refresh("`<i>by store</i>`")
        assert [view.state for view in wh.status()] == ["fresh", "stale"], "what the other reads has moved on"
        assert wh.outlook("over_it").views[0].changed == ("lake.default.`<i>by store</i>`",)
        wh.refresh()
        assert {view.state for view in wh.status()} == {"fresh"}
        stored, outlook = wh.explain_last("over_it"), wh.outlook()
        page = report(wh, "shop <1>", datetime.now(timezone.utc))
        shown = wh._repr_html_() + wh.history()._repr_html_() + stored._repr_html_()
    assert "for epoch 4" in str(stored)
    assert [view.strategy for view in outlook.views] == ["unchanged", "unchanged"]
    for html in (page, shown):
        assert "<i>" not in html and "&lt;i&gt;by store&lt;/i&gt;" in html and "over_it" in html
    assert "amount &gt; 15" in page and "shop &lt;1&gt;" in page


@pytest.mark.spark
def test_what_is_hidden_is_not_shown(wh: Warehouse) -> None:
    wh.spark.sql("CREATE TABLE orders (id INT, customer INT) USING iceberg")
    wh.spark.sql("INSERT INTO orders VALUES (1, 1), (2, 1), (3, 2)")
    wh.sql(
        "CREATE MATERIALIZED VIEW spread TBLPROPERTIES ('viewkeeper.hidden-state' = 'keep') AS "
        "SELECT n, count(*) AS customers FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) "
        "GROUP BY n"
    )
    assert len(wh.outlines()) == 2, "there is a hidden view"
    (view,) = wh.status()
    assert (wh.views(), view.view, view.reads) == (
        ["lake.default.spread"],
        "lake.default.spread",
        ("lake.default.orders",),
    )
    assert [each.view for each in wh.outlook().views] == ["lake.default.spread"]
    assert "_viewkeeper" not in wh.status()._repr_html_()
