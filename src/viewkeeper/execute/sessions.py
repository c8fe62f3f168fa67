"""Sessions of our own: work never runs in the user's, nor under the user's settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.define.definitions import SessionPins
from viewkeeper.execute.tuning import Tuning, sharing_reading
from viewkeeper.session import apply_settings, cores, work_session

LEFT_TO_SPARK = Tuning()
_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."

# Spark 4.1 gives a checkpointed result constraints on columns that it does not have, and then fails to find
# them ("key not found"); results are staged by checkpoints.
_STAGING = {"spark.sql.constraintPropagation.enabled": "false"}


class Sessions:
    """One session per set of pins for computing, and one per concurrent install."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._reading = sharing_reading(cores(spark))
        self._lock = threading.Lock()
        self._pinned: dict[tuple[SessionPins, Tuning], SparkSession] = {}
        self._idle: dict[tuple[SessionPins, Tuning], list[SparkSession]] = {}
        self._busy: list[SparkSession] = []

    def pinned(self, pins: SessionPins, tuning: Tuning = LEFT_TO_SPARK) -> SparkSession:
        """The session in which queries with these pins mean what they mean, set for work of that size."""
        with self._lock:
            if (pins, tuning) not in self._pinned:
                session = work_session(self._spark, pins)
                apply_settings(session, {**tuning.settings, **self._reading, **_STAGING})
                self._pinned[pins, tuning] = session
            return self._pinned[pins, tuning]

    @contextmanager
    def writing(
        self, pins: SessionPins, branch: str, properties: Mapping[str, str], tuning: Tuning = LEFT_TO_SPARK
    ) -> Iterator[SparkSession]:
        """A session whose writes go to the branch, with these properties in each snapshot's summary.

        Both are session settings, so two installs never share a session at the same time.
        """
        with self._lock:
            idle = self._idle.setdefault((pins, tuning), [])
            session = idle.pop() if idle else None
        if session is None:
            session = work_session(self._spark, pins)
        settings = {
            "spark.wap.branch": branch,
            **{_SNAPSHOT_PROPERTY + key: value for key, value in properties.items()},
        }
        with self._lock:
            self._busy.append(session)
        try:
            apply_settings(session, {**tuning.settings, **self._reading, **settings})
            yield session
        finally:
            for key in settings:
                session.conf.unset(key)
            with self._lock:
                self._busy.remove(session)
                idle.append(session)

    def interrupt(self) -> None:
        """Cancel whatever our sessions are running."""
        with self._lock:
            sessions = [*self._pinned.values(), *self._busy]
        for session in sessions:
            try:
                session.interruptAll()
            except PySparkException:
                # The operation may have ended by itself; there is nothing left to cancel then.
                continue
