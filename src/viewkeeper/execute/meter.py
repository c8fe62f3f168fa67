"""How fast Spark reads, told while it does: for the first copy of a large table that is all there is to see.

Spark adds up what its tasks have read with every heartbeat, and keeps it whether or not its pages are served.
Over Connect there is no way to ask.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from viewkeeper.events import RowsRead
from viewkeeper.session import is_connect

_EVERY_SECONDS = 2.0
"""Short refreshes are over before anything is asked."""


@contextmanager
def metering(spark: SparkSession, emit: Callable[[RowsRead], None]) -> Iterator[None]:
    """Tell what is read, now and then, for as long as the block runs."""
    if is_connect(spark):
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(spark, emit, stop), name="viewkeeper-meter", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(spark: SparkSession, emit: Callable[[RowsRead], None], stop: threading.Event) -> None:
    begun = time.monotonic()
    read: dict[tuple[int, int], tuple[int, int]] = {}
    told = 0
    while not stop.wait(_EVERY_SECONDS):
        try:
            stages = cast(Any, spark.sparkContext)._jsc.sc().statusStore().activeStages()
            for stage in (stages.apply(at) for at in range(stages.size())):
                read[stage.stageId(), stage.attemptId()] = (stage.inputRecords(), stage.inputBytes())
        except (Py4JError, AttributeError):
            return  # no public API tells this, and a meter must not stop what it measures
        rows, size = (sum(each[at] for each in read.values()) for at in (0, 1))
        if rows > told:
            told = rows
            emit(RowsRead(rows, size, time.monotonic() - begun))
