"""What metadata tells about the tables that views join, before a plan is made; no row is read for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from viewkeeper.algebra.conditions import conditions_alone
from viewkeeper.algebra.empty_terms import Extents, plain_equalities
from viewkeeper.algebra.provenance import scan_origin
from viewkeeper.algebra.relations import Filter, Join, Relation, Scan, TableAt, children
from viewkeeper.execute.observing import Observed, Observer
from viewkeeper.plan.situation import Span, ViewInput
from viewkeeper.sql.printer import print_relation

_LARGE_ROWS = 1_000_000
"""Asking takes as long as reading so many rows."""


def extents_of_joins(
    observer: Observer,
    views: Iterable[ViewInput],
    spans: Mapping[str, Sequence[Span]],
    observed: Observed,
) -> dict[tuple[Span, str], Extents]:
    """Between which values columns lie by which a large table is joined with another one that rows only came
    to: perhaps it need not be read (:mod:`viewkeeper.algebra.empty_terms`)."""
    asked: dict[Span, set[str]] = defaultdict(set)
    for view in views:
        by_table = {span[0]: span for span in spans[view.name]}
        for join in joins_of(view.analysis.relation):
            for pair in plain_equalities(join):
                stored = [origin for column in pair if (origin := scan_origin(join, column)) is not None]
                sides = [(by_table[scan.table], column) for scan, column in stored if scan.table in by_table]
                if len(sides) == len(pair) and any(
                    _only_grew(one, observed) and _is_large(two[0], observed)
                    for (one, _), (two, _) in (sides, sides[::-1])
                ):
                    for span, column in sides:
                        asked[span].add(column)
    return observer.extents(asked)


def pruned_tables(observer: Observer, views: Iterable[ViewInput], observed: Observed) -> dict[Filter, int]:
    """Rows of large tables that conditions leave to be read: the files of a partition, say."""
    asked: dict[Filter, str] = {}
    for view in views:
        for join in joins_of(view.analysis.relation):
            for at in range(len(join.inputs)):
                alone = conditions_alone(join, at)
                if alone is None or not isinstance(alone.child, Scan):
                    continue
                table, version = alone.child.table, observed.versions.get(alone.child.table)
                if version is not None and _is_large(table, observed):
                    read = TableAt(table, version, alone.child.fields)
                    asked[alone] = print_relation(Filter(read, alone.predicate))
    found = zip(asked, observer.rows_read(list(asked.values())), strict=True)
    return {each: rows for each, rows in found if rows is not None}


def _only_grew(span: Span, observed: Observed) -> bool:
    change = observed.changes.get(span)
    return change is not None and change.deleted == 0


def _is_large(table: str, observed: Observed) -> bool:
    return (observed.rows.get(table) or 0) >= _LARGE_ROWS


def joins_of(relation: Relation | None) -> Iterator[Join]:
    """All joins within a relation."""
    if isinstance(relation, Join):
        yield relation
    for child in () if relation is None else children(relation):
        yield from joins_of(child)
