"""Every operator, as views of a small shop whose tables all change: maintained equals recomputed.

The views stand in ``operators/``, one file for each kind of operator. All of them must be kept by deltas.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from view_files import case_of, long_seeds

import viewkeeper as vk
from viewkeeper.plan.maintaining import Maintained, Maintaining
from viewkeeper.testing import Oracle, check
from viewkeeper.testing.tables import Table

FILES = sorted((Path(__file__).parent / "operators").glob("*.sql"))

_NUMBERS = tuple(str(number) for number in range(6))
SHOP = (
    Table(
        "c",
        (
            ("id", "int"), ("id2", "int"), ("name", "string"), ("nation", "int"),
            ("bal", "decimal(12,2)"), ("d", "double"),
        ),
        values={
            "id": _NUMBERS, "id2": _NUMBERS, "name": ("'a'", "'b'", "'c'"), "nation": ("1", "2", "3"),
            "bal": ("1.50", "10", "-3", "20"), "d": ("0.1D", "0.2D", "0.7D"),
        },
    ),
    Table(
        "o",
        (
            ("oid", "int"), ("cid", "int"), ("day", "date"), ("total", "decimal(12,2)"),
            ("tags", "array<string>"),
        ),
        values={
            "oid": _NUMBERS, "cid": _NUMBERS, "day": ("DATE'2024-01-01'", "DATE'2024-01-02'"),
            "total": ("1", "2.5", "10", "100"), "tags": ("array('x', 'y')", "array('z')", "array()"),
        },
    ),
    Table(
        "l",
        (("oid", "int"), ("num", "int"), ("part", "int"), ("qty", "int"), ("price", "decimal(12,2)")),
        values={
            "oid": _NUMBERS, "num": _NUMBERS, "part": ("1", "2", "3"), "qty": ("1", "2", "3"),
            "price": ("5", "7.5", "50"),
        },
    ),
)  # fmt: skip
VISITS = Table(
    "v",
    (
        ("page", "string"), ("at", "timestamp"), ("local", "timestamp_ntz"), ("day", "date"), ("hits", "int"),
    ),
    values={
        "page": ("'a'", "'b'"), "hits": ("1", "2"), "day": ("DATE'2024-01-01'", "DATE'2024-01-02'"),
        "at": (
            "TIMESTAMP'2024-03-10 01:59:59.999999'", "TIMESTAMP'2024-03-10 03:00:00'",
            "TIMESTAMP'1969-12-31 23:59:58.5'", "TIMESTAMP'2024-01-01 00:00:00'",
        ),
        "local": (
            "TIMESTAMP_NTZ'2024-03-10 02:30:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
            "TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'9999-12-30 12:00:00'",
        ),
    },
)  # fmt: skip
OWN_TABLES = {"time_windows": (VISITS, SHOP[0])}
"""Of files that are about other tables than those of the shop."""


@pytest.mark.spark
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_operators(oracle: Oracle, path: Path) -> None:
    outcome = check(oracle, case_of(path, OWN_TABLES.get(path.stem, SHOP), 1, 2), seed=1)
    assert outcome.incremental > 0


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_joins_whose_touched_rows_are_replaced(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    replaced = Counter[str]()
    usual = Maintaining._replaced

    def counted(maintaining: Maintaining, *given: Any) -> Maintained | None:
        replaced[maintaining.view.name] += 1
        return usual(maintaining, *given)

    monkeypatch.setattr(Maintaining, "_replaced", counted)
    oracle = Oracle(spark, clean_up=False, options=vk.Options(install=vk.Method.KEYREPLACE))
    joins = next(path for path in FILES if path.stem == "inner_joins")
    check(oracle, case_of(joins, SHOP, seed, 3), seed=seed, random=True)
    assert len(replaced) >= 8, replaced


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("seed", long_seeds("1-5"))
def test_operators_through_many_changes(oracle: Oracle, path: Path, seed: int) -> None:
    """A random change that Iceberg itself fails at is passed over; a view is not."""
    case = case_of(path, OWN_TABLES.get(path.stem, SHOP), seed, 8)
    outcome = check(oracle, case, seed=seed, random=True)
    assert outcome.incremental > 0
    assert not {view.name for view in case.views} & set(outcome.skipped)
