"""The steps of an epoch. The executor runs them, explain prints them, the ledger keeps them as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from viewkeeper.algebra.relations import Relation, TableAt
from viewkeeper.algebra.rules.touched_rows import TouchedKeys
from viewkeeper.plan.layout import Layout, Reserve
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import Price
from viewkeeper.plan.propagation import Propagation
from viewkeeper.sql.printer import print_relation


class Strategy(Enum):
    """What an epoch does with a view."""

    INCREMENTAL = "incremental"
    FULL = "full"
    UNCHANGED = "unchanged"


class Installer(Enum):
    """How a view's change gets into its storage."""

    MERGE_GROUPS = "merge groups"
    APPLY_BAG = "apply bag"
    REPLACE_ROWS = "replace rows"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class Extract:
    """Stage the delta of a source (or of a storage table that a view lags behind) between two versions.

    Not staged where it is read once: then it is but a name for the query.
    """

    name: str
    table: str
    old: str | None
    new: str | None
    columns: tuple[str, ...]
    statements: tuple[str, ...]
    method: str
    reason: str | None
    inserted: int
    deleted: int
    table_rows: int | None = None
    staged: bool = True
    looked_up: tuple[str, ...] = ()
    """The columns by which rows of large tables are looked up for it."""


@dataclass(frozen=True, slots=True)
class Share:
    """Stage a result that is read more than once. ``parts``: what it goes through.

    Not staged where it turns out to be read once: then it is but a name for the query.
    """

    name: str
    view: str
    what: str
    relation: Relation
    parts: tuple[str, ...] = ()
    staged: bool = True
    counts: str | None = None
    """The part of a join whose delta this is, when its rows are to be counted because nobody knows how many
    there are."""
    looked_up: tuple[str, ...] = ()
    """The columns by which rows of large tables are looked up for it."""


@dataclass(frozen=True, slots=True)
class ComputeGroups:
    """Compute the touched groups of a view as they will be, each with its operation.

    Where deletions may take an extremum, what is computed first is a draft, in which some groups may be
    marked; only then ``recomputed`` is run, which computes these from their rows, or from those of the view
    that ``recomputed_from`` names.
    """

    name: str
    view: str
    relation: Relation
    draft: str | None = None
    recomputed: Relation | None = None
    recomputed_from: str | None = None
    in_parts: bool = False
    """Whether these are parts of groups, to be combined with those that are stored."""
    remembers: bool = False
    """Whether each also tells what it was."""
    counts: bool = False
    """Whether rows only came, so that how many did follows from what the groups count."""


@dataclass(frozen=True, slots=True)
class ComputeBag:
    """Compute the net signed rows of a view, and which stored copies the deletions take.

    With a ``reserve``, fewer rows may be left than the view shows. Then ``refilled`` is computed instead,
    from all the rows there are; ``None``: what is stored is all of them.
    """

    name: str
    view: str
    relation: Relation
    victims: str
    stored: TableAt
    types: tuple[str, ...]
    key: tuple[str, ...] = ()
    """Columns by which a stored row is found, if a key of the view is known."""
    reserve: Reserve | None = None
    refilled: Relation | None = None


@dataclass(frozen=True, slots=True)
class ComputeReplacement:
    """Compute anew the rows of a view that a change touches. They take the place of the stored rows that show
    one of the staged ``keys``."""

    name: str
    view: str
    relation: Relation
    keys: tuple[TouchedKeys, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputeRows:
    """Compute all the rows of a view anew. Staged only when other steps read them too, or if they are to be
    read ``apart`` from being written."""

    name: str
    view: str
    query: Relation | str
    columns: tuple[str, ...]
    staged: bool
    apart: bool = False

    @property
    def sql(self) -> str:
        return self.query if isinstance(self.query, str) else print_relation(self.query)

    @property
    def rows(self) -> str:
        """A SELECT of its rows: of the staged ones, or the query itself."""
        return f"SELECT * FROM {self.name}" if self.staged else self.sql


Compute: TypeAlias = ComputeGroups | ComputeBag | ComputeReplacement | ComputeRows
"""What is computed of a view to be installed."""


@dataclass(frozen=True, slots=True)
class ComputeVisible:
    """Compute a view's delta as the views that read it see it."""

    name: str
    view: str
    relation: Relation


@dataclass(frozen=True, slots=True)
class CheckRows:
    """Count the rows that come and break expectations of a view: one row, a column for each of them."""

    name: str
    view: str
    relation: Relation
    expectations: tuple[str, ...]
    failing: tuple[str, ...] = ()
    """Those that must hold, or nothing is published."""


@dataclass(frozen=True, slots=True)
class Install:
    """Apply what was computed to the view's storage, on the epoch's branch."""

    view: str
    storage: str
    snapshot: str | None
    installer: Installer
    layout: Layout
    source: Compute
    method: Method | None = None
    """The method that is asked for; ``None``: the cheapest for what was counted."""
    expected: Method | None = None
    """The one that seems cheapest before that."""
    has_copies: bool = False
    """Whether equal rows were in the way the last time that some were deleted."""


@dataclass(frozen=True, slots=True)
class Publish:
    """One ledger transaction: the views' new snapshots and the version vector. Then fast-forward."""

    views: tuple[str, ...]


Computing: TypeAlias = Extract | Share | Compute | ComputeVisible | CheckRows
Step: TypeAlias = Computing | Install | Publish


@dataclass(frozen=True, slots=True)
class Work:
    """Estimated work of refreshing a view: the linear metric of Lee et al. 2001, rows that operands read.

    ``changed`` are the changed rows themselves, ``known`` those of them that source metadata vouches for.
    """

    changed: int | None = None
    known: int | None = None
    incremental: int | None = None
    full: int | None = None


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """What an epoch will do with one view, and why."""

    view: str
    strategy: Strategy
    installer: Installer | None
    reason: str | None
    work: Work
    changed: tuple[str, ...]
    vector: tuple[tuple[str, str | None], ...]
    derived_from: str | None = None
    """The view from whose summary-delta this one's is made."""
    propagations: tuple[Propagation, ...] = ()
    """The delta expressions of its joins."""
    prices: tuple[Price, ...] = ()
    """What every method was expected to cost, cheapest first."""
    method: Method | None = None
    """The one that is asked for, or seems cheapest."""
    because: str | None = None
    """Why deltas are used, where recomputing had a price, too."""


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The whole plan: what happens to each view, and the steps in the order of their dependencies."""

    views: tuple[ViewPlan, ...]
    steps: tuple[Step, ...]
    versions: tuple[tuple[str, str | None], ...]

    @property
    def changes_nothing(self) -> bool:
        """No version moved: there is nothing to do and nothing to record."""
        return all(not view.changed for view in self.views)

    def view(self, name: str) -> ViewPlan:
        return next(view for view in self.views if view.view == name)

    def steps_of(self, name: str) -> tuple[Step, ...]:
        """The steps that belong to one view alone."""
        return tuple(step for step in self.steps if getattr(step, "view", None) == name)
