"""Warehouses in folders of their own, all in the JVM that is already warm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from world import make_sales

import viewkeeper as vk
from viewkeeper.execute.staging import Staging
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from remote_world import World


@pytest.fixture
def open_warehouse(spark: SparkSession) -> Iterator[Callable[..., Warehouse]]:
    """Opens an embedded warehouse; closed when the test is over."""
    opened: list[Warehouse] = []

    def make(folder: Path, **options: Any) -> Warehouse:
        warehouse = vk.connect(folder, **options)
        warehouse.spark.conf.set("spark.sql.shuffle.partitions", "2")
        opened.append(warehouse)
        return warehouse

    yield make
    for warehouse in opened:
        warehouse.close()


@pytest.fixture
def wh(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> Warehouse:
    """An empty warehouse."""
    return open_warehouse(tmp_path / "warehouse")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The physical plan of whatever is staged from now on."""
    seen: list[str] = []
    stage = Staging.stage

    def recording(
        self: Staging, session: SparkSession, name: str, rows: DataFrame, expected: int | None = None
    ) -> DataFrame:
        seen.append(rows._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]
        return stage(self, session, name, rows, expected)

    monkeypatch.setattr(Staging, "stage", recording)
    return seen


@pytest.fixture
def sales(wh: Warehouse) -> Warehouse:
    """A warehouse with a small source table, ``sales (store INT, item STRING, qty BIGINT)``."""
    make_sales(wh.spark)
    return wh


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Three PostgreSQL servers."""
    from remote_world import servers  # most tests of this folder need none

    instances = servers(tmp_path_factory.mktemp, track_commit_timestamp="on", max_prepared_transactions="2")
    yield instances
    for each in instances.values():
        each.stop("immediate")


@pytest.fixture
def world(databases: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Their tables, as they are at first."""
    from remote_world import filled

    from postgres_server import PASSWORD

    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    with filled(databases) as ready:
        yield ready
