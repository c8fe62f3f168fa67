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
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

_TINY_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Tuning:
    """``partitions`` for a query of known, small size; ``None`` leaves it to Spark."""

    partitions: int | None = None
    interpreted: bool = False

    @property
    def settings(self) -> Mapping[str, str]:
        if self.partitions is None:
            return {}
        few = {_ADAPTIVE: "false", _PARTITIONS: str(self.partitions), _BROADCAST: "33554432"}
        return {**few, **_INTERPRETED} if self.interpreted else few


METADATA = Tuning(partitions=1, interpreted=True)
"""For the questions we ask about tables: a row for each file or snapshot."""


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
