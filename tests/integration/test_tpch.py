"""The 22 queries of TPC-H as views: all kept by deltas, and exact after each round of changes.

A round is RF1 (new orders with their lines) and RF2 (orders that go, with theirs), and updates of customers,
suppliers, parts and their offers, all in one epoch.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from world import assert_exact

from viewkeeper.algebra.rules import read_once
from viewkeeper.warehouse import Warehouse

QUERIES = sorted((Path(__file__).parents[2] / "benchmarks" / "tpch_queries").glob("q*.sql"))
TABLES = ("customer", "orders", "lineitem", "supplier", "nation", "region", "part", "partsupp")
SHIFT = 100_000_000
"""New orders have keys beyond those of the generator."""


def make_tables(spark: SparkSession, folder: Path, scale: float) -> None:
    tool = Path(sys.executable).with_name("tpchgen-cli")
    modes = ", ".join(f"'write.{each}.mode' = 'merge-on-read'" for each in ("delete", "update", "merge"))
    for table in TABLES:
        subprocess.run(
            [tool, "parquet", "-s", f"{scale:g}", "--tables", table, "--output-dir", folder], check=True
        )
        spark.sql(
            f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ('format-version' = '3', {modes}) "
            f"AS SELECT * FROM parquet.`{folder / table}.parquet`"
        )


def refresh_functions(spark: SparkSession, round_: int) -> None:
    """RF1 and RF2: about one order in a hundred comes, another one goes."""

    def chosen(part: int) -> str:
        return f"o_orderkey < {SHIFT} AND pmod(hash(o_orderkey), 100) = {part}"

    orders = f"SELECT o_orderkey FROM orders WHERE {chosen(round_)}"
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        columns = [
            f"{name} + {(round_ + 1) * SHIFT} AS {name}" if name == key else name
            for name in spark.table(table).columns
        ]
        spark.sql(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM {table} WHERE {key} IN ({orders})")
    gone = chosen(50 + round_)
    spark.sql(f"DELETE FROM lineitem WHERE l_orderkey IN (SELECT o_orderkey FROM orders WHERE {gone})")
    spark.sql(f"DELETE FROM orders WHERE {gone}")


def update_the_rest(spark: SparkSession, round_: int) -> None:
    def some(key: str, parts: int) -> str:
        return f"pmod(hash({key}), {parts}) = {round_}"

    spark.sql(
        f"UPDATE customer SET c_acctbal = c_acctbal + {round_ + 1}, c_nationkey = pmod(c_nationkey + 1, 25) "
        f"WHERE {some('c_custkey', 50)}"
    )
    spark.sql(
        f"UPDATE supplier SET s_acctbal = s_acctbal - 1, s_comment = 'Customer of Complaints' "
        f"WHERE {some('s_suppkey', 20)}"
    )
    spark.sql(f"UPDATE part SET p_size = 15, p_type = 'SMALL BRASS' WHERE {some('p_partkey', 100)}")
    spark.sql(
        "UPDATE partsupp SET ps_supplycost = ps_supplycost * 0.9, ps_availqty = ps_availqty + 1 "
        f"WHERE {some('ps_partkey', 100)}"
    )


def run(wh: Warehouse, folder: Path, scale: float, rounds: int, state: str = "none") -> None:
    make_tables(wh.spark, folder, scale)
    for path in QUERIES:
        wh.sql(
            f"CREATE MATERIALIZED VIEW {path.stem} TBLPROPERTIES ('viewkeeper.hidden-state' = '{state}') "
            f"WITH NO DATA AS {path.read_text('utf-8')}"
        )
    wh.refresh()
    for round_ in range(rounds):
        refresh_functions(wh.spark, round_)
        update_the_rest(wh.spark, round_)
        epoch = wh.refresh(policy="incremental strict")
        assert {view.view for view in epoch.views} >= set(wh.views())
        assert {view.strategy for view in epoch.views} == {"incremental"}
        assert_exact(wh)


@pytest.mark.spark
@pytest.mark.timeout(1_200)
def test_all_queries_are_kept_by_deltas(
    wh: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_once, "LARGE_ROWS", 10_000)  # orders and lineitem are read as if they were
    run(wh, tmp_path / "tpch", 0.01, 2)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(2_400)
def test_with_their_inner_results_kept(wh: Warehouse, tmp_path: Path) -> None:
    run(wh, tmp_path / "tpch", 0.01, 3, state="keep")
    assert len(wh._library().views) > len(wh.views())


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_all_queries_through_ten_rounds(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> None:
    run(open_warehouse(tmp_path / "warehouse"), tmp_path / "tpch", 0.1, 10)
