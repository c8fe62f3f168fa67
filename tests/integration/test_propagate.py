"""Propagate and refresh apart: deltas are computed while everybody works, and installed in a short window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from world import assert_exact, assert_refused, assert_tidy, make_sales, strategies, table_names

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CREATE = "CREATE MATERIALIZED VIEW "


def make(warehouse: Warehouse) -> None:
    make_sales(warehouse.spark)
    warehouse.sql(
        CREATE + "by_store AS SELECT store, sum(qty) AS total, min(item) AS m FROM sales GROUP BY store"
    )
    warehouse.sql(CREATE + "totals AS SELECT sum(total) AS total, count(*) AS stores FROM by_store")
    warehouse.sql(CREATE + "pens AS SELECT store, qty FROM sales WHERE item = 'pen'")
    warehouse.sql(CREATE + "ranked AS SELECT store, rank() OVER (ORDER BY qty) AS place FROM sales")


def change(warehouse: Warehouse) -> None:
    warehouse.spark.sql("INSERT INTO sales VALUES (1, 'pen', 20), (7, 'ink', 70), (7, 'ink', 70)")
    warehouse.spark.sql("DELETE FROM sales WHERE store = 2")


def total(warehouse: Warehouse) -> object:
    return warehouse.sql("SELECT total FROM totals").collect()[0][0]


def kept_tables(warehouse: Warehouse) -> list[str]:
    return [name for name in table_names(warehouse.spark, "lake", "_viewkeeper") if name.startswith("d_")]


def test_what_was_propagated_is_installed_as_it_was(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path
) -> None:
    first = open_warehouse(tmp_path)
    make(first)
    before = total(first)
    change(first)
    kept = first.propagate(policy="incremental")
    assert {view.view.rsplit(".", 1)[-1] for view in kept.views} == {"by_store", "totals", "pens", "ranked"}
    assert total(first) == before
    assert_exact(first)
    first.spark.sql("INSERT INTO sales VALUES (9, 'nib', 1000)")
    first.close()

    # Another process, and the sources have moved on: what is installed is what was kept.
    second = open_warehouse(tmp_path)
    epoch = second.refresh(propagated=True)
    assert set(strategies(epoch)) == {"by_store", "totals", "pens", "ranked"}
    assert epoch.source_versions == kept.source_versions
    assert_exact(second)
    assert kept_tables(second) == []
    after = total(second)
    assert after != before
    second.refresh(policy="incremental")
    assert total(second) == after + 1000  # type: ignore[operator]
    assert_exact(second)
    assert_tidy(second)


def test_a_plain_refresh_takes_it_in_and_what_came_since(wh: Warehouse) -> None:
    make(wh)
    change(wh)
    wh.propagate()
    wh.spark.sql("INSERT INTO sales VALUES (9, 'nib', 1000)")
    wh.propagate()  # again: it replaces what was kept
    assert len(kept_tables(wh)) == 4
    wh.spark.sql("DELETE FROM sales WHERE store = 7")
    wh.refresh(policy="incremental")
    assert_exact(wh)
    assert_tidy(wh)
    assert wh.sql("SELECT count(*) FROM by_store WHERE store = 9").collect()[0][0] == 1
    assert wh.sql("SELECT count(*) FROM by_store WHERE store = 7").collect()[0][0] == 0


def test_what_somebody_compacted_is_propagated_anew(wh: Warehouse) -> None:
    make(wh)
    change(wh)
    wh.propagate()
    state = wh._ledger.states()["lake.default.by_store"]
    catalog, namespace, table = state.storage.split(".")
    options = "map('rewrite-all', 'true')"
    wh.spark.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{namespace}.{table}', options => {options})"
    )
    assert_refused(wh, "VK-NOTHING-PROPAGATED", lambda: wh.refresh(propagated=True))
    wh.refresh(policy="incremental")
    assert_exact(wh)
    assert_tidy(wh)


def test_what_is_of_no_use_any_more_is_given_up(wh: Warehouse) -> None:
    make(wh)
    assert_refused(wh, "VK-NOTHING-PROPAGATED", lambda: wh.refresh(propagated=True))
    assert wh.propagate().id is None  # nothing changed
    change(wh)
    wh.propagate()
    wh.sql("CREATE OR REPLACE MATERIALIZED VIEW pens AS SELECT store FROM sales WHERE item = 'pen'")
    assert_refused(wh, "VK-NOTHING-PROPAGATED", lambda: wh.refresh(propagated=True))
    wh.refresh()
    assert_exact(wh)
    assert_tidy(wh)
    wh.spark.sql("INSERT INTO sales VALUES (9, 'nib', 1000)")
    wh.propagate()
    wh.refresh(policy="full")
    assert_exact(wh)
    assert_tidy(wh)
