"""Session settings by the size of the work.

Spark's adaptive execution plans a query stage by stage, each a job of its own: right for large data, but
for a few thousand changed rows the jobs themselves are the cost. Where the number of rows is known to be
small, we say how many partitions there are, and the query runs as one job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
# Dimension tables are worth broadcasting to a small delta, above Spark's cautious 10 MiB.
_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


@dataclass(frozen=True, slots=True)
class Tuning:
    """``partitions`` for a query of known, small size; ``None`` leaves it to Spark."""

    partitions: int | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        if self.partitions is None:
            return {}
        return {_ADAPTIVE: "false", _PARTITIONS: str(self.partitions), _BROADCAST: "33554432"}


def tuning_for(rows: int | None) -> Tuning:
    """For a computation over that many changed rows.

    >>> [tuning_for(rows).partitions for rows in (1_000, 120_000, 10_000_000, None)]
    [1, 4, None, None]
    """
    for most, partitions in ((20_000, 1), (100_000, 2), (500_000, 4), (2_000_000, 8)):
        if rows is not None and rows <= most:
            return Tuning(partitions)
    return Tuning()
