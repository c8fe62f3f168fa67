"""What the warehouse answers: frozen values for programs, with a text for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from viewkeeper.ledger.records import EpochRecord, Propagation, ViewRefreshRecord
from viewkeeper.markup import block, count, html, moment, picture, seconds, table

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.plan.steps import EpochPlan


@dataclass(frozen=True, slots=True)
class ViewRefresh:
    """What an epoch did to one view."""

    view: str
    strategy: str
    install: str | None
    reason: str | None
    delta_rows: int
    inserted: int
    deleted: int
    updated: int
    compute_seconds: float
    install_seconds: float
    recomputed: int = 0
    """Of the updated groups, those that were computed from their rows: their extremum had been deleted."""
    derived_from: str | None = None
    """The view from whose summary-delta this one's was made."""
    method: str | None = None
    """The method by which it was installed."""
    prices: dict[str, float] = field(default_factory=dict)
    """Seconds that each method was expected to take."""
    violations: dict[str, int] = field(default_factory=dict)
    """By expectation of the view: rows that came and broke it, whether they were dropped or let in."""
    because: str | None = None
    """Why deltas were used, where recomputing had a price, too."""

    @property
    def expected_seconds(self) -> float | None:
        """What the method that was used was expected to take."""
        return None if self.method is None else self.prices.get(self.method)

    @property
    def compute_install_ratio(self) -> float | None:
        """How much longer it took to compute the change than to install it."""
        return self.compute_seconds / self.install_seconds if self.install_seconds else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **asdict(self),
            "expected_seconds": self.expected_seconds,
            "compute_install_ratio": self.compute_install_ratio,
        }


@dataclass(frozen=True, slots=True)
class Epoch:
    """One refresh of a set of views, published in one step."""

    id: int
    source_versions: dict[str, str]
    views: list[ViewRefresh]
    published_at: datetime | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Views that failed, or read one that did, with the error; they are as they were."""

    def view(self, name: str) -> ViewRefresh:
        """What happened to that view; by its full name or its last part."""
        found = next((view for view in self.views if f".{view.view}".endswith(f".{name}")), None)
        if found is None:
            raise KeyError(f"epoch {self.id} did nothing to a view {name}")
        return found

    def _repr_html_(self) -> str:
        when = f", published {moment(self.published_at)}" if self.published_at else ""
        skipped = [f"<p>{html(view)} was skipped: {html(error)}</p>" for view, error in self.skipped.items()]
        return block(f"<p><b>Epoch {self.id}</b>{html(when)}</p>", _refreshes([self]), *skipped)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        published = self.published_at.isoformat() if self.published_at else None
        views = [view.to_dict() for view in self.views]
        return {**asdict(self), "views": views, "published_at": published}


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """A declared source: what was seen of it last, and what the warehouse holds of it."""

    name: str
    kind: str
    options: dict[str, str]
    views: list[str]
    """Its base views."""
    version: str | None
    """The version that they hold."""
    seen: str | None
    """The version that was seen last."""
    seen_at: datetime | None
    bad_rows: int | None = None
    """Rows that are set aside, where they are."""
    lag_transactions: int | None = None
    """How many transactions wait to be taken in, where the source can be asked."""
    lag_seconds: float | None = None
    """How long the oldest of them has waited."""
    problem: str | None = None
    """Why the lag is not known though it could be: the source does not answer, or lost what it kept."""

    @property
    def behind(self) -> bool:
        """Whether there is something that the warehouse does not hold yet, as far as it is known."""
        return self.seen != self.version if self.lag_transactions is None else self.lag_transactions > 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        seen_at = self.seen_at.isoformat() if self.seen_at else None
        return {**asdict(self), "seen_at": seen_at, "behind": self.behind}


class History(list[Epoch]):
    """Epochs, newest first, one row per view and epoch when turned into a table."""

    def __init__(self, epochs: Sequence[Epoch], spark: SparkSession | None = None) -> None:
        super().__init__(epochs)
        self._spark = spark

    def rows(self) -> list[dict[str, Any]]:
        """One row per epoch and view."""
        return [
            {"epoch": epoch.id, "published_at": epoch.published_at, **view.to_dict()}
            for epoch in self
            for view in epoch.views
        ]

    def _repr_html_(self) -> str:
        from viewkeeper.pictures import bars_of  # drawings are for those who look at them

        if not self:
            return block("<p>No epochs yet.</p>")
        shown = self[:_SHOWN]
        more = f"<p>and {len(self) - _SHOWN:,} older epochs</p>" if len(self) > _SHOWN else ""
        return block(picture(bars_of(self)), _refreshes(shown), more)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas DataFrame."""
        import pandas  # an extra: only who asks for it needs it

        columns = [each.split(" ")[0] for each in _HISTORY_SCHEMA.split(", ")]
        frame: pandas.DataFrame = pandas.DataFrame(self.rows(), columns=columns)
        return frame

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """As a Spark DataFrame, in the warehouse's session unless another is given."""
        session = spark or self._spark
        if session is None:
            raise ValueError("no Spark session: pass one, or ask a connected warehouse for its history")
        rows = [tuple(row.values()) for row in self.rows()]
        frame: DataFrame = session.createDataFrame(rows, _HISTORY_SCHEMA)
        return frame


_SHOWN = 20
"""So many epochs a notebook lists."""


def _refreshes(epochs: Sequence[Epoch]) -> str:
    """One row per epoch and view."""
    columns = ("epoch>", "published", "view", "strategy", "Δ rows>", "compute>", "install>", "reason")
    rows = [
        (
            epoch.id,
            moment(epoch.published_at),
            view.view,
            view.strategy,
            count(view.delta_rows),
            seconds(view.compute_seconds),
            seconds(view.install_seconds),
            view.reason or "",
        )
        for epoch in epochs
        for view in epoch.views
    ]
    return table(columns, rows)


_HISTORY_SCHEMA = (
    "epoch BIGINT, published_at TIMESTAMP, view STRING, strategy STRING, install STRING, reason STRING, "
    "delta_rows BIGINT, inserted BIGINT, deleted BIGINT, updated BIGINT, "
    "compute_seconds DOUBLE, install_seconds DOUBLE, recomputed BIGINT, derived_from STRING, method STRING, "
    "prices MAP<STRING,DOUBLE>, violations MAP<STRING,BIGINT>, because STRING, expected_seconds DOUBLE, "
    "compute_install_ratio DOUBLE"
)


@dataclass(frozen=True, slots=True)
class PropagatedView:
    """A view whose delta waits to be installed."""

    view: str
    strategy: str
    inserted: int
    deleted: int
    updated: int
    compute_seconds: float


@dataclass(frozen=True, slots=True)
class Propagated:
    """What was computed and kept; ``id`` is None when nothing had changed."""

    id: int | None
    source_versions: dict[str, str]
    views: list[PropagatedView]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verification:
    """A view against its query, recomputed at the recorded versions."""

    view: str
    ok: bool
    missing: int
    extra: int
    epoch: int

    def __str__(self) -> str:
        verdict = "exact" if self.ok else f"{self.missing} rows missing, {self.extra} rows extra"
        return f"{self.view}: {verdict} (epoch {self.epoch})"


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
    """Something that a project declares of a table, and whether it is so."""

    constraint: str
    ok: bool
    violations: int
    example: str | None

    def __str__(self) -> str:
        verdict = "holds" if self.ok else f"{self.violations} violations, such as {self.example}"
        return f"{self.constraint}: {verdict}"


@dataclass(frozen=True, slots=True)
class Upkept:
    """What was done for one view: why its files were rewritten, if they were, and how many there were before
    and after; how many snapshots and old storage tables were removed."""

    view: str
    reason: str | None
    files_before: int
    files_after: int
    expired: int
    dropped: int
    stored_as: str | None = None
    """``cnt`` or ``dup``, if copies of its rows are stored so from now on, and were not before."""
    hidden_state: str | None = None
    """``keep`` if inner results of its query are kept from now on, ``none`` if no longer."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """How fresh a view is, as far as the ledger knows."""

    view: str
    epoch: int | None
    refreshed_at: datetime | None
    strategy: str | None
    incremental: bool
    reason: str | None
    stale: bool
    versions: dict[str, str | None]
    reads: tuple[str, ...]
    consistency: str | None = None
    """Of a view over remote tables: which of their states it shows."""
    timing: str | None = None
    """How fresh the service keeps it: its target lag, or its schedule."""
    failures: int = 0
    """How many of its refreshes failed in a row, where the service tried."""
    suspended: bool = False
    """Whether the service leaves it alone until it is resumed."""
    problem: str | None = None
    """Why its last refresh failed."""

    @property
    def state(self) -> str:
        """In a word: fresh, stale or empty."""
        return "empty" if self.epoch is None else "stale" if self.stale else "fresh"


class Status(list[ViewStatus]):
    """How fresh the views of a warehouse are, in the order of their creation."""

    def table(self) -> str:
        """As an HTML table."""
        columns = ("view", "state", "epoch>", "refreshed", "last", "kept", "reads")
        return table(
            columns,
            [
                (
                    view.view,
                    view.state,
                    "" if view.epoch is None else view.epoch,
                    moment(view.refreshed_at),
                    view.strategy or "",
                    "incrementally" if view.incremental else f"by full recompute: {view.reason}",
                    ", ".join(view.reads),
                )
                for view in self
            ],
        )

    def _repr_html_(self) -> str:
        from viewkeeper.pictures import graph_of  # drawings are for those who look at them

        return block(picture(graph_of(self)), self.table()) if self else block("<p>No views yet.</p>")


@dataclass(frozen=True, slots=True)
class SweptState:
    """What brought a view over remote tables to a state: which transactions of each source, and what it took
    to sweep them. None at all: its tables were read."""

    consistency: str
    transactions: dict[str, list[int]]
    changed: int
    questions: int
    rows: int


def propagated_of(plan: EpochPlan, kept: Propagation | None) -> Propagated:
    """A kept propagation as the user sees it."""
    versions = {table: version or "" for table, version in plan.versions}
    if kept is None:
        return Propagated(None, versions, [])
    views = [
        PropagatedView(
            view,
            plan.view(view).strategy.value,
            *(delta[kind] for kind in ("inserted", "deleted", "updated", "seconds")),
        )
        for view, delta in kept.tables.items()
    ]
    return Propagated(kept.id, versions, views)


def epoch_of(record: EpochRecord) -> Epoch:
    """A ledger's record as the user sees it."""
    views = [refresh_of(view) for view in record.views]
    return Epoch(record.id, record.source_versions, views, record.published_at, record.seconds)


def refresh_of(record: ViewRefreshRecord) -> ViewRefresh:
    """One view's part of a ledger's record."""
    return ViewRefresh(
        record.view,
        record.strategy,
        record.install,
        record.reason,
        record.delta_rows,
        record.inserted or 0,
        record.deleted or 0,
        record.updated or 0,
        record.compute_seconds,
        record.install_seconds,
        record.recomputed or 0,
        record.derived_from,
        record.estimates.get("method"),
        dict(record.estimates.get("prices", {})),
        dict(record.estimates.get("violations", {})),
        record.estimates.get("because"),
    )
