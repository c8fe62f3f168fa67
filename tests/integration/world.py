"""What the integration tests look at from outside: warehouses, catalogs and what is left in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from viewkeeper.errors import ViewkeeperError
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.sql.quoting import quote_path
from viewkeeper.warehouse import Warehouse

HIDDEN = "_viewkeeper"
ORDERED_LINES = {
    "customer": ("c INT, name STRING", "SELECT INT(id), concat('c', id) FROM range(8)"),
    "orders": ("o INT, c INT, day INT", "SELECT INT(id), INT(pmod(id, 9)), INT(id % 5) FROM range(20)"),
    "line": (
        "o INT, s INT, qty INT",
        "SELECT INT(pmod(id * 7, 21)), INT(id % 4), INT(id % 6) FROM range(60)",
    ),
    "supplier": ("s INT, n INT", "SELECT INT(id), INT(id % 3) FROM range(4)"),
    "nation": ("n INT, region STRING", "SELECT INT(id), concat('r', id % 2) FROM range(3)"),
}
"""Customers, orders, their lines, suppliers and nations: by name the columns, and a query for the rows."""


@dataclass(frozen=True)
class World:
    """Everything that must be as it was when a statement failed."""

    epoch: int | None
    views: tuple[str, ...]
    tables: frozenset[str]
    catalog_views: frozenset[str]
    storages: frozenset[str]
    branches: frozenset[str]


def world(warehouse: Warehouse, catalog: str = "lake", namespaces: tuple[str, ...] = ("default",)) -> World:
    """The warehouse and its catalog as they are now."""
    spark = warehouse.spark
    latest = warehouse.history(limit=1)
    storages = table_names(spark, catalog, HIDDEN)
    return World(
        latest[0].id if latest else None,
        tuple(warehouse.views()),
        frozenset(name for space in namespaces for name in table_names(spark, catalog, space)),
        frozenset(
            row["viewName"]
            for space in (*namespaces, HIDDEN)
            for row in spark.sql(f"SHOW VIEWS IN {quote_path((catalog, space))}").collect()
        ),
        frozenset(storages),
        frozenset(leftover_branches(spark, storages, catalog)),
    )


def table_names(spark: SparkSession, catalog: str, namespace: str) -> list[str]:
    listed = spark.sql(f"SHOW TABLES IN {quote_path((catalog, namespace))}").collect()
    views = {
        row["viewName"] for row in spark.sql(f"SHOW VIEWS IN {quote_path((catalog, namespace))}").collect()
    }
    return [row["tableName"] for row in listed if row["tableName"] not in views]


def leftover_branches(spark: SparkSession, storages: list[str], catalog: str = "lake") -> list[str]:
    """``storage@branch`` of every branch but main, in one query."""
    if not storages:
        return []
    each = [
        f"SELECT '{name}@' || name AS branch FROM {quote_path((catalog, HIDDEN, name))}.refs "
        "WHERE name <> 'main'"
        for name in storages
    ]
    return [row["branch"] for row in spark.sql(" UNION ALL ".join(each)).collect()]


def current_storages(warehouse: Warehouse) -> set[str]:
    """The names of the storage tables that the ledger knows, of any epoch."""
    states = (warehouse._ledger.states(epoch.id) for epoch in warehouse.history())
    return {state.storage.rsplit(".", 1)[-1] for each in states for state in each.values()}


def assert_exact(warehouse: Warehouse, *views: str) -> None:
    """The views equal their queries, recomputed."""
    wrong = [str(found) for found in warehouse.verify(*views) if not found.ok]
    assert not wrong


def assert_tidy(warehouse: Warehouse, catalog: str = "lake") -> None:
    """No branch of an epoch is left, no storage that no epoch knows, no chore undone."""
    storages = table_names(warehouse.spark, catalog, HIDDEN)
    assert leftover_branches(warehouse.spark, storages, catalog) == []
    assert set(storages) <= current_storages(warehouse)
    assert warehouse._ledger.chores() == ()


def assert_refused(warehouse: Warehouse, code: str, act: Callable[[], object]) -> ViewkeeperError:
    """The action fails with that code, and the world is as it was; the error, to look at its words."""
    before = world(warehouse)
    with pytest.raises(ViewkeeperError) as caught:
        act()
    assert caught.value.code == code, str(caught.value)
    assert world(warehouse) == before
    return caught.value


def strategies(epoch: vk.Epoch) -> dict[str, str]:
    """Each view's strategy by the last part of its name."""
    return {view.view.rsplit(".", 1)[-1]: view.strategy for view in epoch.views}


def ledger_of(folder: Path) -> Ledger:
    """The ledger of an embedded warehouse, opened beside it."""
    return Ledger.open(sqlite_url(folder / "ledger.db"))


def make_sales(spark: SparkSession) -> None:
    """A small source table."""
    spark.sql(
        "CREATE TABLE sales (store INT, item STRING, qty BIGINT) USING iceberg TBLPROPERTIES "
        "('format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = "
        "'merge-on-read')"
    )
    spark.sql("INSERT INTO sales VALUES (1, 'pen', 3), (1, 'ink', 5), (2, 'pen', 7), (2, NULL, 1)")
