"""Sums of decimals that leave no room for a weight: kept by adding where no digit can be lost."""

from __future__ import annotations

import pytest

from viewkeeper.warehouse import Warehouse


@pytest.mark.parametrize(
    ("kind", "added"), [("decimal(32,4)", True), ("decimal(38,6)", True), ("decimal(38,7)", False)]
)
def test_sums_of_wide_decimals(wh: Warehouse, kind: str, added: bool):
    scale = int(kind[:-1].split(",")[1])
    small, large = "0." + "0" * (scale - 1) + "1", "9" * 26 + "." + "9" * scale
    wh.spark.sql(f"CREATE TABLE t (k INT, v {kind}) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    wh.spark.sql(f"INSERT INTO t VALUES (1, {large}), (1, {small}), (1, {small}), (2, -{large}), (3, NULL)")
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM t GROUP BY k")
    for change in (
        f"INSERT INTO t VALUES (1, {small}), (1, -{large}), (2, {large}), (3, {small}), (4, {large})",
        f"DELETE FROM t WHERE v = {small}",
        f"UPDATE t SET v = v - {small} WHERE k IN (1, 2, 4)",
    ):
        wh.spark.sql(change)
        wh.refresh(policy="incremental")
        assert all(check.ok for check in wh.verify())
    assert ("the summary-delta of" in str(wh.explain("v"))) is added
