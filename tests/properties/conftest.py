"""The oracle of a file's tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from viewkeeper.testing import Oracle


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Oracle:
    # The folder goes with the test run; dropping every view of a case would take longer than running it.
    return Oracle(spark, clean_up=False)
