"""What a view is: the query the user named, and the session in which it has its meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from viewkeeper.define.timing import Timing

NAMESPACE = "_viewkeeper"
"""Where storage is, and what people do not see."""


@dataclass(frozen=True, slots=True)
class SessionPins:
    """The session settings that give a query its meaning; pinned when the view is defined."""

    catalog: str
    namespace: tuple[str, ...]
    time_zone: str
    ansi: bool = True
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column that the user renamed or commented on in the DDL."""

    name: str
    comment: str | None = None


class OnViolation(Enum):
    """What happens to rows that come and break an expectation."""

    WARN = "warn"
    DROP_ROW = "drop row"
    FAIL_EPOCH = "fail epoch"


@dataclass(frozen=True, slots=True)
class Expectation:
    """``CONSTRAINT name EXPECT (predicate) ON VIOLATION …``: what is to be true of every row of a view. A row
    breaks it unless the predicate is true for it."""

    name: str
    predicate: str
    on_violation: OnViolation = OnViolation.WARN

    @property
    def holds(self) -> str:
        """Whether it is true of a row, as SQL: never unknown."""
        return f"coalesce(({self.predicate}), false)"


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A materialized view as the user defined it. ``name`` is catalog, namespace and view, one part each
    or more; ``query`` is the SELECT, letter for letter."""

    name: tuple[str, ...]
    query: str
    session: SessionPins
    columns: tuple[ColumnSpec, ...] = ()
    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = field(default=())
    policy: str | None = None
    consistency: str | None = None
    """Of a view that is swept: *strong* or *complete*."""
    expectations: tuple[Expectation, ...] = ()
    timing: Timing | None = None
    """How fresh the service keeps it; ``None``: as fresh as those that read it need."""

    @property
    def looked_at(self) -> tuple[Expectation, ...]:
        """The expectations whose rows are let in, and so are looked at in what is computed for the view."""
        return tuple(each for each in self.expectations if each.on_violation is not OnViolation.DROP_ROW)
