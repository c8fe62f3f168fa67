"""Every operator, as views of a small shop whose tables all change: maintained equals recomputed.

The views stand in ``operators/``, one file for each kind of operator. All of them must be kept by deltas.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from viewkeeper.testing import Case, Cycle, Oracle, View, check
from viewkeeper.testing.changes import Changes
from viewkeeper.testing.tables import Table, random_properties

FILES = sorted((Path(__file__).parent / "operators").glob("*.sql"))
LONG = os.environ.get("VIEWKEEPER_SEEDS", "1-5")

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


def views_of(text: str) -> tuple[View, ...]:
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    queries = [query.strip() for query in "\n".join(lines).split(";\n")]
    return tuple(
        View(f"v{at}", query.removesuffix(";")) for at, query in enumerate(filter(None, queries), start=1)
    )


def shop_case(path: Path, seed: int, cycles: int) -> Case:
    random = Random(seed)
    tables = [replace(table, properties=random_properties(random)) for table in SHOP]
    changes = Changes(tables, random)
    setup = changes.fill()
    return Case(
        setup, views_of(path.read_text("utf-8")), tuple(Cycle(changes.cycle()) for _ in range(cycles))
    )


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Oracle:
    return Oracle(spark, clean_up=False)


@pytest.mark.spark
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_operators(oracle: Oracle, path: Path) -> None:
    outcome = check(oracle, shop_case(path, 1, 2), seed=1)
    assert outcome.incremental > 0


def _seeds() -> range:
    first, last = LONG.split("-")
    return range(int(first), int(last) + 1)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("seed", _seeds())
def test_operators_through_many_changes(oracle: Oracle, path: Path, seed: int) -> None:
    outcome = check(oracle, shop_case(path, seed, 8), seed=seed)
    assert outcome.incremental > 0
