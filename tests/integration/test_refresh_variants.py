"""The variants of refresh (Mumick et al. 1997, Section 4.3, and our own): which is chosen, always exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from world import assert_exact, assert_tidy

import viewkeeper as vk
from aggregate_functions import CALLS, COLUMNS, named
from viewkeeper.plan.methods import Method
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

KEPT = (
    "count(*) AS n, count(q) AS nq, sum(q) AS s, avg(q) AS a, min(q) AS lo, max(q) AS hi, "
    "var_pop(q) AS v, bool_or(q > 3) AS b, bit_and(q) AS ba, bit_xor(q) AS bx, "
    "sum(q) FILTER (WHERE q > 2) AS sf"
)
RECOMPUTED = "count(DISTINCT q) AS d, max_by(k, q) AS m"


@pytest.fixture
def shop(open_warehouse: Callable[..., Warehouse], tmp_path: Path) -> Warehouse:
    warehouse = open_warehouse(tmp_path)
    warehouse.spark.sql("CREATE TABLE t (g INT, k INT, q INT) USING iceberg")
    warehouse.spark.sql("INSERT INTO t VALUES (1, 1, 1), (1, 2, 5), (2, 3, NULL), (2, 4, 4), (NULL, 5, 6)")
    warehouse.sql(f"CREATE MATERIALIZED VIEW kept AS SELECT g, {KEPT} FROM t GROUP BY g")
    warehouse.sql(f"CREATE MATERIALIZED VIEW holistic AS SELECT g, {RECOMPUTED} FROM t GROUP BY g")
    return warehouse


def variants(warehouse: Warehouse) -> set[str | None]:
    epoch = warehouse.refresh(policy="incremental")
    assert_exact(warehouse)
    return {view.install for view in epoch.views}


METHODS = pytest.mark.parametrize(
    ("method", "matched", "both"),
    [
        (Method.SDCURSOR, "merge groups by identity", "merge groups by key"),
        (Method.SDBATCH, "delete and insert groups", "delete and insert groups"),
        (Method.SDOVERWRITE, "write all groups anew", "write all groups anew"),
    ],
    ids=lambda value: value.value if isinstance(value, Method) else "",
)
"""The methods, and the variants of each for changes without and with new groups."""


@METHODS
def test_the_variant_follows_from_what_changed(
    shop: Warehouse, method: Method, matched: str, both: str
) -> None:
    shop.options = vk.Options(install=method)
    spark = shop.spark

    spark.sql("INSERT INTO t VALUES (3, 6, 7), (3, 7, NULL), (4, 8, NULL)")
    assert variants(shop) == {"insert new groups"}

    spark.sql("INSERT INTO t VALUES (1, 9, 9), (NULL, 10, 0), (4, 11, 2)")
    assert variants(shop) == {matched}

    # Extrema go, a value becomes NULL, a group vanishes, another appears: the general case.
    spark.sql("DELETE FROM t WHERE k IN (1, 5, 9, 6, 7)")
    spark.sql("UPDATE t SET q = NULL WHERE k = 4")
    spark.sql("INSERT INTO t VALUES (5, 12, 3)")
    assert variants(shop) == {both}
    kept = shop.history()[0].view("kept")
    assert (kept.inserted, kept.deleted) == (1, 1)
    assert kept.recomputed == 2, "the groups 1 and NULL lost an extremum, and have rows left"

    spark.sql("DELETE FROM t WHERE g = 5 OR g = 4")
    assert variants(shop) == {matched}
    spark.sql("DELETE FROM t")
    assert variants(shop) == {matched}
    spark.sql("INSERT INTO t VALUES (NULL, 1, 1)")
    assert variants(shop) == {"insert new groups"}
    assert_tidy(shop)


@pytest.mark.long
@METHODS
def test_every_function_under_every_variant(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, method: Method, matched: str, both: str
) -> None:
    shop = open_warehouse(tmp_path)
    shop.options = vk.Options(install=method)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    shop.spark.sql(f"CREATE TABLE r ({columns}) USING iceberg")

    def insert(*rows: tuple[int | None, int]) -> None:
        """Rows of group k; ``at`` chooses the other values, every fifth of them a NULL."""
        values = [
            [str(k) if k is not None else "NULL"]
            + [
                "NULL" if (at + place) % 5 == 4 else known[(at + place) % len(known)]
                for place, known in others
            ]
            for k, at in rows
        ]
        shop.spark.sql("INSERT INTO r VALUES " + ", ".join(f"({', '.join(row)})" for row in values))

    others = [(place, known) for place, (_, known) in enumerate(list(COLUMNS.values())[1:])]
    insert((0, 0), (0, 1), (1, 2), (1, 3), (1, 3), (None, 4))
    for name, calls in CALLS.items():
        # Spark itself raises an error for CORR over a constant.
        listed = named(calls.partition(", corr")[0])
        shop.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS SELECT k, {listed} FROM r GROUP BY k")
    shop.refresh()
    assert_exact(shop)
    insert((2, 0), (2, 5), (3, 6))
    assert variants(shop) == {"insert new groups"}
    insert((0, 7), (None, 8), (3, 9))
    assert variants(shop) == {matched}
    shop.spark.sql("DELETE FROM r WHERE i IN (-2, 7) OR k = 2 OR s = 'p'")
    insert((5, 3), (1, 4))
    assert variants(shop) == {both}
    shop.spark.sql("UPDATE r SET i = NULL, j = NULL, n = NULL, x = NULL, t = NULL WHERE k IN (0, 1)")
    assert variants(shop) == {matched}
    shop.spark.sql("DELETE FROM r")
    assert variants(shop) == {matched}
    insert((None, 1), (1, 2))
    assert variants(shop) == {"insert new groups"}
