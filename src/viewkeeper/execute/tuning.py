"""Session settings by the size of the work.

Spark's adaptive execution plans a query stage by stage, each a job of its own: right for large data, but
for a few thousand changed rows the jobs themselves are the cost. Where the number of rows is known to be
small, we say how many partitions there are, and the query runs as one job. And where all that is read is
small, too, compiling a query to bytecode takes longer than interpreting it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
# Dimension tables are worth broadcasting to a small delta, above Spark's cautious 10 MiB.
_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
_ADAPTIVE_BROADCAST = "spark.sql.adaptive.autoBroadcastJoinThreshold"
_SEEN_SMALL = "10485760"
_NO_HINTS = "spark.sql.optimizer.disableHints"
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

_TINY_ROWS = 100_000

_TASKS_PER_CORE = 3
_PARALLELISM = "spark.sql.iceberg.read.adaptive-split-size.parallelism"

_OPENING = 128 * 1024
_USUAL_OPENING = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tuning:
    """``partitions`` for a query of known, small size; ``None`` leaves it to Spark. Without ``hints`` nothing
    is broadcast but what Spark has seen to be small."""

    partitions: int | None = None
    interpreted: bool = False
    hints: bool = True

    @property
    def settings(self) -> Mapping[str, str]:
        if not self.hints:
            return {_NO_HINTS: "true", _BROADCAST: "-1", _ADAPTIVE_BROADCAST: _SEEN_SMALL, _ADAPTIVE: "true"}
        if self.partitions is None:
            return {}
        few = {_ADAPTIVE: "false", _PARTITIONS: str(self.partitions), _BROADCAST: "33554432"}
        return {**few, **_INTERPRETED} if self.interpreted else few


METADATA = Tuning(partitions=1, interpreted=True)
"""For the questions we ask about tables: a row for each file or snapshot."""
WITHOUT_HINTS = Tuning(hints=False)
"""For work that failed when what was broadcast turned out large."""


def tuning_for(changed: int | None, read: int | None = None) -> Tuning:
    """For a computation over so many changed rows, which reads at most so many rows of tables.

    >>> [tuning_for(rows).partitions for rows in (1_000, 120_000, 10_000_000, None)]
    [1, 4, None, None]
    >>> tuning_for(1_000, 5_000).interpreted, tuning_for(1_000, 5_000_000).interpreted
    (True, False)
    """
    for most, partitions in ((20_000, 1), (100_000, 2), (500_000, 4), (2_000_000, 8)):
        if changed is not None and changed <= most:
            return Tuning(partitions, interpreted=read is not None and changed + read <= _TINY_ROWS)
    return Tuning()


def reading_files(cores: int | None) -> tuple[tuple[str, str], ...]:
    """Options to read an Iceberg table with on so many cores.

    Iceberg counts every file as 4 MiB at least when it makes tasks of files, so that opening them is spread
    over many cores. A table of many small files, which every change adds some of, becomes very many tasks,
    and with few cores starting these takes longer than reading the files.

    >>> reading_files(2), reading_files(64), reading_files(None)
    ((('file-open-cost', '262144'),), (), ())
    """
    if cores is None or cores * _OPENING >= _USUAL_OPENING:
        return ()
    return (("file-open-cost", str(cores * _OPENING)),)


def sharing_reading(cores: int | None) -> dict[str, str]:
    """Settings by which the reading of an Iceberg table is spread over so many cores.

    Iceberg makes as many tasks of a table as there are cores, where it would make fewer by its size. They do
    not take equally long: files with deleted rows take longer, and then one core waits for the other.

    >>> sharing_reading(2), sharing_reading(None)
    ({'spark.sql.iceberg.read.adaptive-split-size.parallelism': '6'}, {})
    """
    return {} if cores is None else {_PARALLELISM: str(_TASKS_PER_CORE * cores)}
