"""Staged results: computed once, read by several steps, gone when the epoch is over.

They are global temporary views over persisted rows, so that every session of ours can read them by name.
Sources are read at pinned versions, so a lost executor recomputes the very same rows.
"""

from __future__ import annotations

import threading

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

_GLOBAL = "global_temp."


class Staging:
    """The staged results of one epoch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._staged: dict[str, tuple[SparkSession, DataFrame]] = {}

    def stage(self, session: SparkSession, name: str, rows: DataFrame) -> DataFrame:
        """Make the rows readable under the name; they are kept when first computed."""
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        kept.createOrReplaceGlobalTempView(name.removeprefix(_GLOBAL))
        with self._lock:
            replaced = self._staged.get(name)
            self._staged[name] = (session, kept)
        if replaced is not None:
            replaced[1].unpersist()
        return kept

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            staged, self._staged = self._staged, {}
        for name, (session, rows) in staged.items():
            rows.unpersist()
            session.catalog.dropGlobalTempView(name.removeprefix(_GLOBAL))
