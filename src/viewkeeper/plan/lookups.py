"""Which staged results large tables are searched for, and by which columns.

When such a result is there, the range of these columns is found, and becomes a condition on the table, by
which Iceberg skips files. For appended keys these are all the old ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from viewkeeper.algebra.join_sizes import equalities
from viewkeeper.algebra.provenance import equated, staged_origin
from viewkeeper.algebra.relations import Join, OuterJoin, Relation, SemiJoin, TableAt, children, leaves

_LARGE_ROWS = 10_000_000
"""Finding the range costs two small jobs, and as much as reading some million rows on two cores: with three
million rows it took more processor time than it spared, even where five of six files were skipped."""
_SOONER = 5
"""Stored groups are searched by the keys of a summary-delta, which is staged in any case: there it pays for
tables that are so many times smaller."""
_LARGER = 10
"""A table must have so many times the rows of what it is searched for."""


def all_lookups(relations: Iterable[Relation]) -> Mapping[str, set[str]]:
    """The stored columns of each staged result by which these relations search large tables."""
    found: dict[str, set[str]] = defaultdict(set)
    for relation in relations:
        for staged, stored in _lookups(relation):
            found[staged].add(stored)
    return found


def _lookups(relation: Relation) -> Iterator[tuple[str, str]]:
    match relation:
        case SemiJoin(child, keys, on, anti=False):
            for _, right in on:
                yield from _lookup(keys, right, child, _LARGE_ROWS // _SOONER)
        case OuterJoin(left, right, conjuncts, broadcast=True):
            for pair in equalities(conjuncts):
                for name in {*pair} & {*right.columns}:
                    yield from _lookup(right, name, left, _LARGE_ROWS)
        case Join():
            for (keys_at, column), (searched_at, _) in equated(relation):
                yield from _lookup(
                    relation.inputs[keys_at], column, relation.inputs[searched_at], _LARGE_ROWS
                )
    for child in children(relation):
        yield from _lookups(child)


def _lookup(keys: Relation, column: str, searched: Relation, large: int) -> Iterator[tuple[str, str]]:
    found = staged_origin(keys, column)
    if found is None:
        return
    staged, stored = found
    if staged.rows is not None and any(
        isinstance(leaf, TableAt) and leaf.rows is not None and leaf.rows >= max(large, _LARGER * staged.rows)
        for leaf in leaves(searched)
    ):
        yield staged.name, stored
