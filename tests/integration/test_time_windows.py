"""Windows of time in a zone that puts its clocks forward: verify recomputes by Spark's own window(…)."""

from __future__ import annotations

import pytest
from world import assert_exact, strategies

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

_TIMES = (
    "'2024-03-10 01:59:59.999999'",
    "'2024-03-10 02:30:00'",
    "'2024-03-10 03:00:00'",
    "'2024-11-03 01:30:00'",
    "'1969-12-31 23:59:59.5'",
    "'0001-01-01 00:00:00'",
)


def test_time_windows_where_clocks_are_put_forward(sales: Warehouse) -> None:
    spark = sales.spark
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    spark.sql("CREATE TABLE visits (at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, n INT) USING iceberg")
    rows = ", ".join(
        f"(TIMESTAMP {time}, TIMESTAMP_NTZ {time}, DATE(TIMESTAMP_NTZ {time}), {n})"
        for n, time in enumerate(_TIMES)
    )
    spark.sql(f"INSERT INTO visits VALUES {rows}, (NULL, NULL, NULL, 9)")
    for column in ("at", "local", "day"):
        for name, window in (
            ("hours", f"window({column}, '1 hour')"),
            ("days", f"window({column}, '1 day', '1 day', '3 hours')"),
            ("sliding", f"window({column}, '1 hour 30 minutes', '40 minutes', '-1 microsecond')"),
        ):
            query = f"SELECT window, sum(n) AS n FROM visits GROUP BY {window}"
            sales.sql(f"CREATE MATERIALIZED VIEW {column}_{name} AS {query}")
    assert_exact(sales)
    spark.sql(f"INSERT INTO visits VALUES {rows.replace('00', '07')}")
    spark.sql("DELETE FROM visits WHERE n IN (1, 3)")
    assert set(strategies(sales.refresh(policy="incremental strict")).values()) == {"incremental"}
    assert_exact(sales)
