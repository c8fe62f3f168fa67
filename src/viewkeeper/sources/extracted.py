"""What all sources without history have in common: they tell what is there, and nothing of it beforehand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.errors import ViewkeeperError
from viewkeeper.sources.contract import ColumnStatistics, Description, SourceColumn, Statistics
from viewkeeper.sources.horizons import Horizons
from viewkeeper.sql.quoting import quote


@dataclass(frozen=True, slots=True)
class QueriedChange:
    """The delta of a table, as queries of all its columns and the weight that are written already."""

    table: str
    old: str | None
    new: str
    inserted: int
    deleted: int
    method: str
    queries: tuple[str, ...]
    reason: str | None = None
    passed_over: int = 0

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        names = ", ".join(quote(name) for name in (*columns, WEIGHT))
        return tuple(f"SELECT {names} FROM (\n{query}\n)" for query in self.queries)


class Extracted(ABC):
    """A source whose tables are kept as base views. What it does not say otherwise holds of all of them."""

    read_options: tuple[tuple[str, str], ...] = ()

    def watch(self, horizons: Horizons) -> None:  # noqa: B027  (what is no database need not do anything)
        """Databases are looked at no further than to these."""

    @abstractmethod
    def describe(self, table: str) -> Description: ...

    @abstractmethod
    def current(self) -> Mapping[str, str | None]: ...

    def columns(self, table: str) -> tuple[SourceColumn, ...]:
        return self.describe(table).columns

    def schema(self, table: str) -> tuple[SourceColumn, ...]:
        return self.columns(table)

    def schema_version(self, table: str, version: str | None) -> str | None:
        """Pinned when it was declared; what differs from that is an error when it is read."""
        return "pinned"

    def identity(self, table: str) -> str | None:
        return None

    def statistics(self, table: str, version: str | None) -> Statistics:
        return Statistics(None, None, None)

    def row_count(self, table: str, version: str | None) -> int | None:
        return None

    def distinct(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        return {}

    def widths(self, table: str, version: str, columns: Sequence[str]) -> Mapping[str, float]:
        return {}

    def extents(
        self, table: str, old: str | None, new: str | None, columns: Sequence[str]
    ) -> Mapping[str, Extents]:
        return {}

    def versions_after(self, table: str, version: str | None) -> Sequence[str]:
        now = self.current()[table]
        return () if now is None or now == version else (now,)

    def holds(self, table: str, version: str) -> bool:
        return self.current()[table] == version

    @abstractmethod
    def let_go(self) -> None: ...

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        self.let_go()

    def rest(self) -> None:
        self.let_go()

    def take_leave(self) -> None:  # noqa: B027  (what keeps nothing elsewhere has nothing to note)
        """What it keeps elsewhere is noted, to be released."""

    def release(self) -> None:
        self.let_go()

    def give_up(self) -> None:
        self.let_go()


def as_problem(error: ViewkeeperError) -> str:
    """An error as a sentence with its remedy."""
    return f"{error.message}. {error.hint or ''}"
