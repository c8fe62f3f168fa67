"""What stands in the way of keeping a query by deltas although each of its operators has a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

from viewkeeper.algebra.aggregates import is_reproducible
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Filter,
    Project,
    Relation,
    Window,
    children,
    scans,
)
from viewkeeper.algebra.scalars import Named
from viewkeeper.analyse.analysis import Reason
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.plan.layout import Types
from viewkeeper.sql.printer import print_relation

_COLLATE = re.compile(r"\bcollate\b", re.IGNORECASE)

Kind = TypeVar("Kind", Aggregate, Window)


def obstacle(relation: Relation, types: Types, *, as_rows: bool = False) -> Reason | None:
    """The first reason why the query must be recomputed, if there is one. ``as_rows``: its rows are stored as
    they are, though it ends in groups."""
    return (
        _uncomparable_source_column(relation, types)
        or _collated(relation)
        or _inexact_inner_aggregate(relation, types, all_of_them=as_rows)
        or _inexact_window(relation, types)
    )


def _uncomparable_source_column(relation: Relation, types: Types) -> Reason | None:
    """Rows of a delta cancel out by grouping, and Spark groups neither maps nor variants."""
    for scan in scans(relation):
        if not scan.fields:
            continue
        for name, kind in types(scan).items():
            if "map<" in kind or "variant" in kind:
                return ReasonCode.MAP_COLUMN.reason(name, kind)
            if "collate" in kind:
                return ReasonCode.COLLATION.reason()
    return None


def _collated(relation: Relation) -> Reason | None:
    """−'A' and +'a' are one group where case does not count, and a change from one to the other is none."""
    return ReasonCode.COLLATION.reason() if _COLLATE.search(print_relation(relation)) else None


def _inexact_inner_aggregate(relation: Relation, types: Types, *, all_of_them: bool) -> Reason | None:
    """A delta takes away old rows by computing them again. A floating-point SUM or AVG over the same rows in
    another order differs in the last bits, and the row to take away would not be found. At the top of a
    view that does no harm: groups are replaced by their key."""
    for aggregate in _all(relation, Aggregate) if all_of_them else _inner(relation):
        for call in aggregate.calls:
            reason = _inexact(aggregate.child, call, types)
            if reason is not None:
                return reason
    return None


def _inexact_window(relation: Relation, types: Types) -> Reason | None:
    """A partition that a change touches is computed again, to take away the rows that it had."""
    for window in _all(relation, Window):
        for call in window.calls:
            added = AggregateCall(call.name, call.function, call.arguments)
            reason = _inexact(window.child, added, types) if call.arguments else None
            if reason is not None:
                return reason
    return None


def _inexact(child: Relation, call: AggregateCall, types: Types) -> Reason | None:
    kinds = argument_types(child, call, types)
    if is_reproducible(call, kinds):
        return None
    return ReasonCode.INEXACT_INNER_AGGREGATE.reason(call.function, ", ".join(kinds))


def argument_types(child: Relation, call: AggregateCall, types: Types) -> list[str]:
    """The types of the arguments, or of the call itself where it is written out."""
    if call.written is not None:
        return [types(Aggregate(child, (), (call,)))[call.name]]
    named = tuple(Named(f"_vk_argument_{at}", each) for at, each in enumerate(call.arguments))
    return list(types(Project(child, named)).values()) if named else []


def _inner(relation: Relation) -> Iterator[Aggregate]:
    """Every aggregate but the one at the top."""
    while isinstance(relation, (Project, Filter)):
        relation = relation.child
    for child in children(relation):
        yield from _all(child, Aggregate)


def _all(relation: Relation, kind: type[Kind]) -> Iterator[Kind]:
    """Every operator of that kind."""
    if isinstance(relation, kind):
        yield relation
    for child in children(relation):
        yield from _all(child, kind)
