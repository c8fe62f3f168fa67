"""Ctrl-C while the main thread waits for Spark.

PySpark's own handler cancels the jobs over the very connection on which the main thread waits for an answer.
Python does not allow that: what arrives is an error of py4j instead of the interruption, and the jobs go on.
Here a thread cancels them, which has a connection of its own. The interrupted one is given up by py4j itself.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import suppress
from types import FrameType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession

from viewkeeper.session import is_connect

_PATIENCE = 5.0
"""Seconds. A JVM that is busy collecting garbage must not keep the interruption from the main thread."""

_BETWEEN_LOOKS = 0.05

_NOT_WORTH_TELLING = (
    "KeyboardInterrupt while sending command.",
    "Exception occurred while shutting down connection",
)
"""py4j tells the terminal where it was interrupted, although it raises it too; and that the connection which
it gives up for that was gone already, if the answer was quicker."""


def take_over_ctrl_c(spark: SparkSession) -> None:
    """Put our handler in the place of the one that PySpark has installed; any other stays as it is."""
    if is_connect(spark) or threading.current_thread() is not threading.main_thread():
        return
    if getattr(signal.getsignal(signal.SIGINT), "__module__", None) != SparkContext.__module__:
        return
    context = spark.sparkContext

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        canceller = threading.Thread(target=_cancel, args=(context,), name="viewkeeper-ctrl-c", daemon=True)
        canceller.start()
        canceller.join(_PATIENCE)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    for logger in (None, "py4j.clientserver"):
        logging.getLogger(logger).addFilter(_is_worth_telling)


def _cancel(context: SparkContext) -> None:
    # Py4JError: Spark may just be going away. AttributeError: it has gone, and the context knows of no JVM.
    with suppress(Py4JError, AttributeError):
        context.cancelAllJobs()
        # None is left when the interruption arrives, if that can be helped.
        jobs, until = context.statusTracker(), time.monotonic() + _PATIENCE
        while jobs.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS)


def _is_worth_telling(record: logging.LogRecord) -> bool:
    return record.msg not in _NOT_WORTH_TELLING
