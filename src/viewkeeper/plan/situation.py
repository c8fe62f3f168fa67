"""What the planner is given: the views to refresh, where they stand, and what is known of the sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from viewkeeper.algebra.empty_terms import Extents, KeyReference
from viewkeeper.algebra.relations import Filter, TableAt
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.analyse.analysis import Analysis
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import BELIEVED, Rates
from viewkeeper.plan.source_change import SourceChange

ReadOptions = tuple[tuple[str, str], ...]
"""How a table is best read, in the words of its format."""


@dataclass(frozen=True, slots=True)
class ViewInput:
    """A view as it stands: its definition, its storage, and the versions its rows were computed from."""

    name: str
    definition: ViewDefinition
    analysis: Analysis
    layout: Layout
    storage: str
    snapshot: str | None
    vector: Mapping[str, str | None]
    needs_full: str | None = None
    """Why nothing stored can be built upon, if so (new definition, foreign write, history lost)."""
    rows: int | None = None
    read_options: ReadOptions = ()
    key: tuple[str, ...] = ()
    """A key of the view's rows that follows from those of its tables; none is known if it is empty."""
    method: Method | None = None
    """How its definition says that it is to be installed, if it does."""
    has_copies: bool = False
    """Whether equal rows were in the way the last time that some were deleted."""
    groups_when_whole: int | None = None
    """How many groups there were when each was last stored in one row, if it is stored in parts."""
    keeps_all: bool = False
    """Whether what is kept beyond a LIMIT is known to be all there is."""

    @property
    def stored(self) -> TableAt:
        """Its rows as they are stored."""
        return self.stored_at(self.snapshot)

    def stored_at(self, snapshot: str | None) -> TableAt:
        return self._read(self.layout.stored(self.storage, snapshot))

    @property
    def identified(self) -> TableAt:
        """Its rows as they are stored, each with its identity."""
        return self._read(self.layout.identified(self.storage, self.snapshot))

    def _read(self, table: TableAt) -> TableAt:
        return replace(table, options=self.read_options, rows=self.rows)


class Aggregates(Enum):
    """How the aggregates of an epoch are worked out; all but the first are there to be compared with it."""

    LATTICE = "lattice"
    """Each from another view where that reads less (Mumick et al. 1997, Section 5)."""
    ALONE = "alone"
    """Each from the tables that it reads."""
    COUNTING = "counting"
    """As ALONE, but every touched group is computed from its rows, as in the counting algorithm [GMS93]."""


class Joins(Enum):
    """By which delta expression joins are kept; all but the first are there to be compared with it."""

    OPTIMAL = "optimal"
    """The delta expression that reads least (Lee et al. 2001)."""
    N_TERM = "n-term"
    """One term for each relation that changed [GMS93]."""
    ALL_TERMS = "all terms"
    """One term for each set of relations that changed [BLT86]."""


@dataclass(frozen=True, slots=True)
class Options:
    """How plans are made; what differs from the default is there to be compared with it."""

    aggregates: Aggregates = Aggregates.LATTICE
    stage_extracts: bool = False
    """Keep what is extracted apart although it is read once, so that its time can be told."""
    joins: Joins = Joins.OPTIMAL
    install: Method | None = None
    """How views are installed that this method suits."""


USUAL = Options()

Span = tuple[str, str | None, str | None]
"""A table and two of its versions."""


_MOST_ROWS = 1 << 60


def _some(rows: int) -> int:
    """So many rows as there can be."""
    return min(max(0, rows), _MOST_ROWS)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the delta of some relations was once estimated to hold, and what it held."""

    estimated: int
    actual: int

    @property
    def factor(self) -> float:
        """How many times more there were; whatever was noted, it is a number above zero."""
        return (_some(self.actual) + 1) / (_some(self.estimated) + 1)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything an epoch's plan depends on. ``views`` come in an order in which parents go first."""

    views: tuple[ViewInput, ...]
    versions: Mapping[str, str | None]
    changes: Mapping[Span, SourceChange | None]
    lost: Mapping[Span, str] = field(default_factory=dict)
    """Spans that the source can no longer tell, with its reason."""
    rows: Mapping[str, int | None] = field(default_factory=dict)
    read_options: Mapping[str, ReadOptions] = field(default_factory=dict)
    relations: Mapping[str, str] = field(default_factory=dict)
    """Of sources without versions in SQL that are to be read whole: what stands for them in FROM."""
    read_apart: frozenset[str] = frozenset()
    """Sources that a statement which writes to a storage table cannot read."""
    unwritten: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of sources that were never written, now or when a view was computed: the types of their columns."""
    distinct: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of sources: about how many values some of their columns have."""
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of sources: the types of their columns."""
    widths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of sources: about how many bytes a row takes of some columns of any length."""
    pruned: Mapping[Filter, int] = field(default_factory=dict)
    """Of large sources that are read under a condition: rows of the files that it cannot skip."""
    extents: Mapping[tuple[Span, str], Extents] = field(default_factory=dict)
    """Of sources that changed: between which values some of their columns lie."""
    unreferred: frozenset[tuple[KeyReference, Span, str]] = frozenset()
    """Foreign keys, spans of their parents and versions of their children: no row of that version refers to a
    row that came in the span, and none went."""
    excluded: frozenset[tuple[Span, Scalar]] = frozenset()
    """Changes of sources that cannot meet conditions under which they are read, with these."""
    learned: Mapping[str, Mapping[str, Counted]] = field(default_factory=dict)
    """Of each view and part of its joins what was counted last."""
    rates: Rates = field(default_factory=lambda: BELIEVED)
    """What operations take here."""
    paid: Mapping[str, Mapping[Method, float]] = field(default_factory=dict)
    """Of each view and method, how many times its price was paid before."""
    policy: str | None = None
    options: Options = USUAL
    prefix: str = "vk"
    keeps_deltas: bool = False
    """Whether what is computed is kept, to be installed later."""
    read_only: tuple[ViewInput, ...] = ()
    """Views that are read as they are, and not refreshed in this epoch."""
