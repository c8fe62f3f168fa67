"""The oracle of a file's tests."""

from __future__ import annotations

import zlib

import pytest
from pyspark.sql import SparkSession

from viewkeeper.algebra.rules import read_once
from viewkeeper.testing import Oracle


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Oracle:
    # The folder goes with the test run; dropping every view of a case would take longer than running it.
    return Oracle(spark, clean_up=False)


@pytest.fixture(autouse=True)
def as_if_tables_were_large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables are read once where small ones are read twice; half of the tests take that way."""
    if zlib.crc32(request.node.name.encode()) % 2:
        monkeypatch.setattr(read_once, "LARGE_ROWS", 0)
