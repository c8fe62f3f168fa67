"""What the ledger holds, as frozen values.

Whatever is typed ``JsonObject`` is the caller's: it is stored as JSON text and comes back equal, tuples as
lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A view as it was last published. ``definition_id`` tells one definition of a name from the next;
    ``defined_in`` is the epoch that brought it."""

    name: str
    definition: JsonObject
    analysis: JsonObject
    definition_id: str
    defined_in: int


@dataclass(frozen=True, slots=True)
class ViewState:
    """Where the rows of a view are, and which versions they were computed from.

    ``snapshot`` is None while the view has no data. ``vector`` maps each source to its version, and each
    parent view to its storage snapshot. ``epoch`` is the one that published this state.
    """

    view: str
    definition_id: str
    storage: str
    snapshot: str | None
    vector: dict[str, str | None]
    epoch: int


@dataclass(frozen=True, slots=True)
class ViewRefreshRecord:
    """What an epoch did to one view, and what that cost; a row count is None where nobody counted."""

    view: str
    strategy: str
    install: str | None = None
    reason: str | None = None
    delta_rows: int = 0
    inserted: int | None = None
    deleted: int | None = None
    updated: int | None = None
    compute_seconds: float = 0.0
    install_seconds: float = 0.0
    estimates: JsonObject = field(default_factory=dict)
    recomputed: int | None = None
    derived_from: str | None = None


class ChoreKind(Enum):
    """Something to do in the catalog that can be done again without harm."""

    DROP_BRANCH = "drop_branch"
    FAST_FORWARD = "fast_forward"
    CREATE_VIEW = "create_view"
    DROP_VIEW = "drop_view"
    DROP_STORAGE = "drop_storage"


@dataclass(frozen=True, slots=True)
class Chore:
    """Work that outlives its epoch: to finish it once it is published, or to clean up if it never is.

    ``id`` is None until the ledger has it.
    """

    id: int | None
    kind: ChoreKind
    epoch: int
    payload: dict[str, str]


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """A published epoch. ``published_at`` is aware and in UTC; ``plan`` is None if it was left out."""

    id: int
    published_at: datetime
    holder: str
    source_versions: dict[str, str]
    views: tuple[ViewRefreshRecord, ...]
    plan: JsonObject | list[Any] | None
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class PastRefresh:
    """What an epoch did to a view."""

    epoch: int
    published_at: datetime
    refresh: ViewRefreshRecord


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """An epoch that was begun and will never be published. ``failed_at`` and ``error`` are None when its
    process stopped without a word."""

    epoch: int
    holder: str
    begun_at: datetime
    failed_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class FailingView:
    """A view whose last refreshes failed: how many in a row, when the last of them, and why. One that is
    ``suspended`` is left alone until it is resumed or defined anew."""

    view: str
    definition_id: str
    failures: int
    failed_at: datetime
    reason: str
    suspended: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not as it should be: of which kind, and with which view."""

    kind: str
    """``lag``, ``expectation`` or ``suspended``."""
    view: str
    what: str = ""
    """The expectation, say."""


@dataclass(frozen=True, slots=True)
class NewPropagation:
    """Computed deltas to keep: the plan that installs them, and for each view the table that holds its delta
    and what was counted in it."""

    id: int
    plan: JsonObject
    tables: JsonObject


@dataclass(frozen=True, slots=True)
class Propagation:
    """Computed deltas that wait to be installed."""

    id: int
    kept_at: datetime
    plan: JsonObject
    tables: JsonObject


@dataclass(frozen=True, slots=True)
class SourceObservation:
    """The version a source was last seen at; None when it had none yet."""

    version: str | None
    observed_at: datetime
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A declared source, and the epoch that brought it."""

    name: str
    definition: JsonObject
    declared_in: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to refresh. ``token`` grows with every lease, so the ledger can tell an old holder."""

    holder: str
    token: int
    acquired_at: datetime
    expires_at: datetime


def _refuse(names: Iterable[object], why: str) -> None:
    found = sorted(set(names), key=str)
    if found:
        raise ValueError(f"{why}: {found}")


def _refuse_twice(names: Iterable[str], where: str) -> None:
    _refuse((name for name, count in Counter(names).items() if count > 1), f"{where} names a view twice")


@dataclass(frozen=True, slots=True)
class NewEpoch:
    """Everything that one epoch publishes.

    A view that is defined gets its state in the same epoch (without data: with snapshot None), which is
    what lets the ledger find the state of every view by looking back for the last one. Replacing a
    view is defining it again; a name in both ``drop`` and ``define`` is dropped first, then created anew.
    """

    id: int
    source_versions: dict[str, str]
    states: tuple[ViewState, ...]
    refreshes: tuple[ViewRefreshRecord, ...]
    define: tuple[ViewRecord, ...] = ()
    drop: tuple[str, ...] = ()
    declare: tuple[SourceRecord, ...] = ()
    """Sources that are declared, or declared anew."""
    forget: tuple[str, ...] = ()
    """Sources that are dropped."""
    redo: tuple[Chore, ...] = ()
    plan: JsonObject | list[Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    installs_propagation: bool = False
    """What was propagated is installed by this epoch, and waits no longer."""

    def __post_init__(self) -> None:
        stated = {state.view for state in self.states}
        defined = {record.name for record in self.define}
        _refuse_twice((state.view for state in self.states), "states")
        _refuse_twice((refresh.view for refresh in self.refreshes), "refreshes")
        _refuse_twice((record.name for record in self.define), "define")
        _refuse_twice(self.drop, "drop")
        _refuse(defined - stated, "defined without a state")
        _refuse((set(self.drop) - defined) & stated, "dropped, yet with a state")
        epochs = {
            *(state.epoch for state in self.states),
            *(record.defined_in for record in self.define),
            *(source.declared_in for source in self.declare),
            *(chore.epoch for chore in self.redo),
        }
        _refuse(epochs - {self.id}, f"epoch {self.id} has parts that name another epoch")
