"""What a view is: the query the user named, and the session in which it has its meaning."""

from __future__ import annotations

from dataclasses import dataclass, field


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
