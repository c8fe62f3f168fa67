"""What every kind of source promises.

Versions belong to a source *system* of one or more tables that move together: a lakehouse table is a
system of one, a database is a system of many. Between two versions of a table lies its delta: a bag of
rows with a signed multiplicity ``_vk_w``. A source is asked in this order, once per epoch::

    current()  ──►  change(table, old, new)  ──►  change.statements(columns)  ──►  confirm, acknowledge
    versions        metadata only: sizes,          the signed rows,                 before publish, and after
                    kind, how it will be read      as Spark SQL
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.define.sources import SourceDefinition
from viewkeeper.sources.horizons import Horizons


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column as the source declares it. ``id`` tells a column from a later one of the same name."""

    name: str
    type: str
    id: str | None = None


INNER = ":"
"""Between the id of a column and those of its parts."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a table is, under its name: its columns with their ids, what tells it from a later table of the
    same name, and the key that it declares, each as far as the source can tell."""

    columns: tuple[SourceColumn, ...]
    identity: str | None
    key: tuple[str, ...]
    unwritten: tuple[str, ...] = ()
    """Columns that the current version does not have: nothing was written since they were added."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of a table at a version without reading its rows."""

    rows: int | None
    bytes: int | None
    files: int | None


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """About how many values a column had when its table had so many rows, and how many rows came and went
    since."""

    values: int
    rows: int
    came: int = 0
    went: int = 0


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this kind of source can do; the planner asks, it never guesses."""

    rows_at_version: bool
    """Rows of an earlier version can be read (time travel)."""
    lists_versions: bool
    """Versions after a given one can be listed in order."""
    acknowledges: bool
    """The source keeps history for us until it is acknowledged."""
    read_apart: bool = False
    """A statement that writes elsewhere cannot read it: its rows are to be read before."""


class Change(Protocol):
    """The delta of one table between two versions: known by its metadata, read by its SQL."""

    @property
    def table(self) -> str: ...
    @property
    def old(self) -> str | None:
        """``None``: before the first version, so that every row is new."""

    @property
    def new(self) -> str: ...

    @property
    def inserted(self) -> int:
        """Rows with positive weight, at most, as far as that can be told without reading them."""

    @property
    def deleted(self) -> int:
        """Rows with negative weight, at most; 0 promises that the delta is insert-only."""

    @property
    def passed_over(self) -> int:
        """About how many rows are read beside those that went, which had gone before."""

    @property
    def method(self) -> str:
        """How the rows will be found, in words for explain: "appended files", "position deletes" …"""

    @property
    def reason(self) -> str | None:
        """Why a dearer method had to be taken, if so."""

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        """SELECTs of these columns and ``_vk_w`` BIGINT, each to be run by itself; summed over equal rows of
        all of them it is exact."""


class Shelf(Protocol):
    """Where a source without history keeps what it has to remember of a version: the ledger."""

    def load(self, version: str) -> Mapping[str, Any] | None: ...
    def save(self, version: str, content: Mapping[str, Any]) -> None: ...
    def forget_others(self, version: str) -> None: ...


class Source(Protocol):
    """One source system."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def read_options(self) -> tuple[tuple[str, str], ...]:
        """How its tables are best read, in the words of their format."""

    def current(self) -> Mapping[str, str | None]:
        """The version of each table now, in one consistent vector (``None``: exists, never written)."""

    def versions_after(self, table: str, version: str | None) -> Sequence[str]:
        """The versions after that one, oldest first; raises a ``SourceError`` if that one is not in the
        table's history (expired, rolled back, another table of the same name)."""

    def columns(self, table: str) -> Sequence[SourceColumn]:
        """Names and types as they are now, perhaps without ids: cheap enough for every refresh."""

    def describe(self, table: str) -> Description:
        """What the table is now; asked when a view is defined, or when something looks wrong."""

    def schema(self, table: str) -> Sequence[SourceColumn]:
        """The columns of :meth:`describe`; see ``sources/drift.py``."""

    def schema_version(self, table: str, version: str | None) -> str | None:
        """Something that changes whenever the schema does, cheap beside :meth:`change`; ``version`` is the
        current one. ``None``: cannot be told, compare the schemas themselves."""

    def identity(self, table: str) -> str | None:
        """The identity of :meth:`describe`; kept by the caller and handed back to :meth:`change`. ``None``
        where the source cannot tell."""

    def statistics(self, table: str, version: str | None) -> Statistics: ...

    def row_count(self, table: str, version: str | None) -> int | None:
        """The rows of :meth:`statistics`; of the version that was asked for last it costs nothing."""

    def distinct(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        """About how many values these columns had, as far as the source keeps statistics of it."""

    def widths(self, table: str, version: str, columns: Sequence[str]) -> Mapping[str, float]:
        """About how many bytes of a row these columns take as they are stored, as far as that is known
        without reading them."""

    def extents(
        self, table: str, old: str | None, new: str | None, columns: Sequence[str]
    ) -> Mapping[str, Extents]:
        """Between which values these columns lie, at both versions and in what came between them; no values
        are left out, and no rows are read. Columns of which nothing is known may be missing."""

    def rows(self, table: str, version: str | None) -> str:
        """A relation for FROM that holds the rows at that version, e.g. ``t VERSION AS OF 5``."""

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> Change | None:
        """What lies between two versions, from metadata alone; ``None`` when no row changed.

        ``identity``: the table's identity when ``old`` was current, if it was recorded."""

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """All is computed from these versions and about to be published: raise if what was read may have been
        something else."""

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """An epoch that read these versions is published: history before them is no longer needed."""

    def release(self) -> None:
        """The source is dropped: give back what it keeps elsewhere for us."""


class ExtractedSource(Source, Protocol):
    """A source without history: its table is kept in the warehouse as a base view."""

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        """The declaration with what has to be found out once, such as the columns."""

    def give_up(self) -> None:
        """It was not declared after all."""

    def take_leave(self) -> None:
        """It is about to be dropped, and what is on its shelf with it."""

    def show(self, table: str, rows: str | None, version: str | None) -> None:
        """What the base view of a table holds, as a SELECT, and the version that it is of: what was seen of
        the table. ``None``: nothing that could be built upon, so it will be read whole."""

    def holds(self, table: str, version: str) -> bool:
        """Whether the rows of that version are those that are there now; then :meth:`rows` reads them."""

    def watch(self, horizons: Horizons) -> None:
        """Databases are looked at no further than to these: the same for all that move in one epoch."""

    def let_go(self) -> None:
        """Nothing more is read of what :meth:`current` found: keep no connection open for it."""

    def rest(self) -> None:
        """Nothing that we read has changed: let the source forget what it keeps for us."""

    def problems(self) -> Sequence[str]:
        """What is missing, or dangerous, as sentences with the remedy; asked when somebody checks."""
