"""The clock: one row, one column, and a version for every moment; see ``define/clock.py``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.define.clock import NOW, hand_of, literal, shown
from viewkeeper.sources.contract import Capabilities, ColumnStatistics, Description, SourceColumn, Statistics


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Clock:
    """What all clocks of an epoch are read from, once."""

    def __init__(self, read: Callable[[], datetime] = _utc_now) -> None:
        self.read = read
        self._held: datetime | None = None
        self._lock = threading.Lock()

    def renew(self) -> None:
        """From now on it is later."""
        self._held = None

    @property
    def now(self) -> datetime:
        with self._lock:  # sources are asked several at a time
            if self._held is None:
                self._held = self.read()
            return self._held


@dataclass(frozen=True, slots=True)
class ClockChange:
    """One moment went, another came."""

    table: str
    old: str | None
    new: str
    inserted: int = 1
    deleted: int = 1
    method: str = "what the clock shows now"
    reason: str | None = None
    passed_over: int = 0

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        moments = [(self.new, 1), *([] if self.old is None else [(self.old, -1)])]
        return tuple(
            "SELECT " + ", ".join([*(f"{literal(self.table, at)} AS {NOW}" for _ in columns), _weight(sign)])
            for at, sign in moments
        )


def _weight(sign: int) -> str:
    return f"CAST({sign} AS BIGINT) AS {WEIGHT}"


@dataclass(frozen=True, slots=True)
class ClockSource:
    """One clock's table."""

    table: str
    clock: Clock
    read_options: tuple[tuple[str, str], ...] = ()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(rows_at_version=True, lists_versions=True, acknowledges=False)

    def current(self) -> Mapping[str, str | None]:
        return {self.table: shown(self.table, self.clock.now)}

    def versions_after(self, table: str, version: str | None) -> Sequence[str]:
        now = shown(table, self.clock.now)
        return [] if version == now else [now]

    def columns(self, table: str) -> Sequence[SourceColumn]:
        return (SourceColumn(NOW, hand_of(table).type),)

    def describe(self, table: str) -> Description:
        return Description(tuple(self.columns(table)), None, ())

    def schema(self, table: str) -> Sequence[SourceColumn]:
        return self.columns(table)

    def schema_version(self, table: str, version: str | None) -> str | None:
        return hand_of(table).type

    def identity(self, table: str) -> str | None:
        return None

    def statistics(self, table: str, version: str | None) -> Statistics:
        return Statistics(1, None, None)

    def row_count(self, table: str, version: str | None) -> int | None:
        return 1

    def distinct(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        return dict.fromkeys(columns, ColumnStatistics(1, 1))

    def widths(self, table: str, version: str, columns: Sequence[str]) -> Mapping[str, float]:
        return {}

    def extents(
        self, table: str, old: str | None, new: str | None, columns: Sequence[str]
    ) -> Mapping[str, Extents]:
        return {}

    def rows(self, table: str, version: str | None) -> str:
        assert version is not None, "a clock always shows something"
        return f"(SELECT {literal(table, version)} AS {NOW})"

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> ClockChange | None:
        assert new is not None, "a clock always shows something"
        return None if old == new else ClockChange(table, old, new)

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """What was read is what the epoch says, whatever the time is by now."""

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """It keeps nothing for us."""

    def release(self) -> None:
        """It keeps nothing for us."""
