"""Sessions of our own: work never runs in the user's, nor under the user's settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.define.definitions import SessionPins
from viewkeeper.session import work_session

_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."


class Sessions:
    """One session per set of pins for computing, and one per concurrent install."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._pinned: dict[SessionPins, SparkSession] = {}
        self._idle: list[SparkSession] = []
        self._busy: list[SparkSession] = []

    def pinned(self, pins: SessionPins) -> SparkSession:
        """The session in which queries with these pins mean what they mean."""
        with self._lock:
            if pins not in self._pinned:
                self._pinned[pins] = work_session(self._spark, pins)
            return self._pinned[pins]

    @contextmanager
    def writing(
        self, pins: SessionPins, branch: str, properties: Mapping[str, str]
    ) -> Iterator[SparkSession]:
        """A session whose writes go to the branch, with these properties in each snapshot's summary.

        Both are session settings, so two installs never share a session at the same time.
        """
        with self._lock:
            session = self._idle.pop() if self._idle else work_session(self._spark, pins)
            self._busy.append(session)
        settings = {
            "spark.wap.branch": branch,
            "spark.sql.session.timeZone": pins.time_zone,
            "spark.sql.ansi.enabled": str(pins.ansi).lower(),
            **{_SNAPSHOT_PROPERTY + key: value for key, value in properties.items()},
        }
        try:
            for key, value in settings.items():
                session.conf.set(key, value)
            yield session
        finally:
            for key in ("spark.wap.branch", *(_SNAPSHOT_PROPERTY + key for key in properties)):
                session.conf.unset(key)
            with self._lock:
                self._busy.remove(session)
                self._idle.append(session)

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
