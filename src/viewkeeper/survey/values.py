"""What a survey finds: frozen values, in the words that people read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from viewkeeper.define.definitions import Expectation, ViewDefinition
from viewkeeper.explain import ToldStep
from viewkeeper.lattices import ViewLattice
from viewkeeper.ledger.records import EpochRecord, FailingView, FailureRecord, PastRefresh
from viewkeeper.ledger.surveys import EpochSummary
from viewkeeper.plan.steps import ViewPlan

Standing: TypeAlias = Literal["fresh", "stale", "failed", "empty"]


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """A view: how it stands, what it reads, and what was done to it last."""

    name: str
    label: str
    """Its name, without the catalog and namespace where all views have the same."""
    standing: Standing
    epoch: int
    """The one whose state it shows."""
    incremental: bool
    reason: str | None
    """Why it is not kept by deltas."""
    reads: tuple[str, ...]
    behind: tuple[str, ...]
    """Of those, the ones that moved on since."""
    last: PastRefresh | None
    """The last epoch that looked after it."""
    comment: str | None = None
    hidden: bool = False
    """Whether nobody defined it: it keeps an inner result of others."""
    failing: FailingView | None = None
    """What the service knows of its last refreshes, if they failed."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table that views read: a source."""

    name: str
    label: str
    kind: str
    version: str | None
    seen_at: datetime | None
    behind: bool
    """Whether a view holds less than was seen of it."""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """What a view reads, and the rows that came that way in the last epoch, if it was so."""

    source: str
    target: str
    inserted: int | None = None
    deleted: int | None = None
    shared: bool = False
    """Whether these rows were computed once for several views."""


@dataclass(frozen=True, slots=True)
class Running:
    """An epoch that is under way."""

    epoch: int
    since: datetime
    holder: str


@dataclass(frozen=True, slots=True)
class Whole:
    """The warehouse at a glance."""

    views: tuple[ViewFacts, ...]
    tables: tuple[TableFacts, ...]
    flows: tuple[Flow, ...]
    latest: EpochSummary | None
    failure: FailureRecord | None
    """The last attempt, if it failed and nothing was published since."""
    running: Running | None

    def count(self, *standings: Standing) -> int:
        """How many views of people's own stand so; none given: all of them."""
        own = (view.standing for view in self.views if not view.hidden)
        return sum(not standings or standing in standings for standing in own)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column of a view; the type where it is known without asking Spark."""

    name: str
    type: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """How an epoch brought a view up to date, as its plan says and as it turned out."""

    epoch: int
    plan: ViewPlan
    steps: tuple[ToldStep, ...]
    actual: PastRefresh


@dataclass(frozen=True, slots=True)
class Expected:
    """An expectation of a view, and the rows that came and broke it: in the last epoch, and in those that
    were looked at."""

    expectation: Expectation
    last: int
    total: int


@dataclass(frozen=True, slots=True)
class ViewPage:
    """All that is told of one view."""

    facts: ViewFacts
    definition: ViewDefinition
    columns: tuple[ColumnFacts, ...]
    stored_as: str
    readers: tuple[str, ...]
    vector: dict[str, str | None]
    plan: StoredPlan | None
    history: tuple[PastRefresh, ...]
    """Newest first."""
    expectations: tuple[Expected, ...]
    failure: FailureRecord | None
    """The last attempt, if it failed because of this view."""


@dataclass(frozen=True, slots=True)
class EpochPage:
    """A part of the timeline: epochs and attempts that failed, newest first."""

    epochs: tuple[EpochSummary, ...]
    failures: tuple[FailureRecord, ...]
    total: int
    older: int | None
    """Below which id the next part begins."""

    @property
    def entries(self) -> list[EpochSummary | FailureRecord]:
        """Both, in one order."""
        return sorted((*self.epochs, *self.failures), key=_number, reverse=True)


def _number(entry: EpochSummary | FailureRecord) -> int:
    return entry.epoch if isinstance(entry, FailureRecord) else entry.id


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """All that is told of one epoch, and which ones came before and after it."""

    record: EpochRecord
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class LatticeFacts:
    """Which views can be made from which, the columns that each groups by, and from which each was made in
    the last epoch that changed it."""

    lattice: ViewLattice
    keys: dict[str, tuple[str, ...]]
    used: dict[str, str]
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A declared source, or a table of the catalog that views read without one."""

    name: str
    kind: str
    options: dict[str, str]
    views: tuple[str, ...]
    """Its base views, or who reads it."""
    version: str | None
    seen: str | None
    seen_at: datetime | None
    bad_rows: int | None = None
    capture: str | None = None
    lag_transactions: int | None = None
    lag_seconds: float | None = None
    problem: str | None = None
    declared: bool = True

    @property
    def behind(self) -> bool:
        """Whether there is something that the warehouse does not hold yet, as far as it is known."""
        return self.seen != self.version if self.lag_transactions is None else self.lag_transactions > 0
