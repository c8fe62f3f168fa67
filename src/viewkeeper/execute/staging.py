"""Staged results: computed once, read by several steps, gone when the epoch is over.

They are global temporary views, so that every session of ours can read them by name, over rows that stay
where they were computed. A lost executor takes its rows along: the epoch fails, nothing changed, and is run
again.
"""

from __future__ import annotations

import threading

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.session import is_connect

_GLOBAL = "global_temp."
_FEW = 100_000
"""So many rows are kept as they are: to serialise them takes as long as to compute them. More of them would
keep the garbage collector busy."""


class Staging:
    """The staged results of one epoch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._staged: dict[str, tuple[SparkSession, DataFrame]] = {}

    def stage(
        self, session: SparkSession, name: str, rows: DataFrame, expected: int | None = None
    ) -> DataFrame:
        """Make the rows readable under the name; they are kept when first computed. ``expected``: about how
        many there will be, or what they are made of."""
        kept = self._keep(session, rows, few=expected is not None and expected <= _FEW)
        kept.createOrReplaceGlobalTempView(name.removeprefix(_GLOBAL))
        with self._lock:
            self._staged[name] = (session, kept)
        return kept

    def name(self, session: SparkSession, name: str, rows: DataFrame) -> None:
        """Make rows that are stored elsewhere, or a query, readable under the name."""
        rows.createOrReplaceGlobalTempView(name.removeprefix(_GLOBAL))
        with self._lock:
            self._staged[name] = (session, rows)

    def rename(self, old: str, name: str) -> None:
        """Make what is staged under one name readable under another."""
        with self._lock:
            session, rows = self._staged.pop(old)
            self._staged[name] = (session, rows)
        rows.createOrReplaceGlobalTempView(name.removeprefix(_GLOBAL))
        session.catalog.dropGlobalTempView(old.removeprefix(_GLOBAL))

    @staticmethod
    def _keep(session: SparkSession, rows: DataFrame, *, few: bool) -> DataFrame:
        if is_connect(session):
            # A checkpoint lives as long as a Python object over there, and its end is a call to the server
            # out of the garbage collector, which hangs when the server is gone.
            return rows.persist(StorageLevel.MEMORY_AND_DISK)
        # Not persist(): persisted rows still carry the query that made them, and with it those of everything
        # it read, as often as it read them. Three views upon each other, and Spark plans for minutes.
        level = StorageLevel.MEMORY_AND_DISK_DESER if few else StorageLevel.MEMORY_AND_DISK
        return rows.localCheckpoint(eager=False, storageLevel=level)

    def clear(self) -> None:
        """Forget all of them; Spark frees checkpoints when nobody refers to them any more."""
        with self._lock:
            staged, self._staged = self._staged, {}
        for session, rows in reversed(staged.values()):
            if is_connect(session):
                rows.unpersist()  # while what it reads still has its name: Connect analyses it again
        for name, (session, _) in staged.items():
            session.catalog.dropGlobalTempView(name.removeprefix(_GLOBAL))
