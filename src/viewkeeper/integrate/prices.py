"""Whether tables are better copied or left where they are: what each way takes, per refresh.

*Mirror*: the tables are copied once and stored, and every changed row is taken in from the log. *Remote*:
nothing is stored but the join, and every refresh asks questions. The rates are those of a small machine,
measured with ``benchmarks/remote.py`` and ``benchmarks/extract.py``; it is the difference that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_COPIED_PER_SECOND = 800_000
_ABSORBED_PER_SECOND = 25_000
_SECONDS_PER_QUESTION = 0.08
_ANSWERED_PER_SECOND = 100_000
_SECONDS_PER_STORED_GB = 0.2
"""What it takes to keep files in order, say; a belief."""
_REFRESHES = 100
"""A copy is made for so many refreshes, at least."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep took: changed rows, questions and rows that came back."""

    changed: int
    questions: int
    rows: int


@dataclass(frozen=True, slots=True)
class RemotePrice:
    """Both prices of a view's tables."""

    tables: tuple[str, ...]
    rows: int
    bytes: int
    swept: Swept
    """What a sweep takes on average."""
    sweeps: int
    """So many were looked at; none: a change of one row in a thousand is assumed."""

    @property
    def remote_seconds(self) -> float:
        return self.swept.questions * _SECONDS_PER_QUESTION + self.swept.rows / _ANSWERED_PER_SECOND

    @property
    def mirror_seconds(self) -> float:
        stored = self.bytes / 1e9 * _SECONDS_PER_STORED_GB
        return self.swept.changed / _ABSORBED_PER_SECOND + self.copy_seconds / _REFRESHES + stored

    @property
    def copy_seconds(self) -> float:
        return self.rows / _COPIED_PER_SECOND

    @property
    def recommends(self) -> str:
        """*remote* or *mirror*.

        >>> small = RemotePrice(("east.t",), 1000, 80_000, Swept(10, 2, 10), 5)
        >>> large = RemotePrice(("east.t",), 10_000_000, 1 << 30, Swept(10, 2, 10), 5)
        >>> small.recommends, large.recommends
        ('mirror', 'remote')
        """
        return "mirror" if self.mirror_seconds < self.remote_seconds else "remote"

    def lines(self) -> list[str]:
        """For people."""
        known = f"as in the last {self.sweeps}" if self.sweeps else "if one row in a thousand changes"
        return [
            f"{', '.join(self.tables)}: {self.rows:,} rows, {self.bytes / 1e6:,.0f} MB; {known}:",
            f"remote: {self.swept.questions:,} questions and {self.swept.rows:,} rows back, about "
            f"{self.remote_seconds:.2f} s a refresh, nothing stored",
            f"mirror: {self.swept.changed:,} changed rows, a share of the copy and of its upkeep, about "
            f"{self.mirror_seconds:.2f} s a refresh, all of it stored",
            f"recommended: {self.recommends}",
        ]


def price(tables: Sequence[str], rows: int, size: int, sweeps: Sequence[Swept]) -> RemotePrice:
    """By the last sweeps, or as if one row in a thousand changed in each table."""
    count = len(sweeps)
    if not count:
        changed = max(1, rows // 1000)
        return RemotePrice(
            tuple(tables), rows, size, Swept(changed, len(tables) * (len(tables) - 1), changed), 0
        )
    average = Swept(
        sum(each.changed for each in sweeps) // count,
        sum(each.questions for each in sweeps) // count,
        sum(each.rows for each in sweeps) // count,
    )
    return RemotePrice(tuple(tables), rows, size, average, count)
