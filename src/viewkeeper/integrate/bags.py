"""Rows with signed multiplicities, as plain values.

An insert is +row, a delete −row, and relations, deltas and partial results are all added and joined alike:

    (R + ΔR) ⋈ S = R ⋈ S + ΔR ⋈ S                                             (Agrawal et al. 1997, Section 3)

Columns that are set equal have one name, so every join is a natural join, and −1 times −1 is +1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

Row: TypeAlias = tuple[Hashable, ...]
Rows: TypeAlias = Mapping[Row, int]
Pick: TypeAlias = Callable[[Row], Row]


@dataclass(frozen=True, slots=True)
class Bag:
    """Rows and how often each is there: below zero for a row that goes, never zero."""

    columns: tuple[str, ...]
    rows: Rows

    def join(self, other: Bag, *, nulls_match: bool = False) -> Bag:
        """⋈ on all columns of the same name. As in SQL, NULL equals nothing, unless it is said to.

        >>> one = Bag(("a", "b"), {(1, 3): 1, (2, 3): -1})
        >>> two = Bag(("b", "c"), {(3, 5): -2, (4, 6): 1})
        >>> one.join(two)
        Bag(columns=('a', 'b', 'c'), rows={(1, 3, 5): -2, (2, 3, 5): 2})
        """
        matching = match(self.columns, other.columns)
        index: dict[Row, list[tuple[Row, int]]] = {}
        for row, count in other.rows.items():
            index.setdefault(matching.right_key(row), []).append((matching.extra(row), count))
        found: dict[Row, int] = {}
        for row, count in self.rows.items():
            key = matching.left_key(row)
            if key in index and (nulls_match or None not in key):
                # Neither the row nor what is added to it comes twice, so no sum is needed.
                for extra, times in index[key]:
                    found[row + extra] = count * times
        return Bag(matching.columns, found)

    def plus(self, other: Bag) -> Bag:
        """+ of two bags with the same columns, in whatever order.

        >>> Bag(("a",), {(1,): 1, (2,): 2}).plus(Bag(("a",), {(1,): -1, (2,): 1}))
        Bag(columns=('a',), rows={(2,): 3})
        """
        return self._added(other, 1)

    def minus(self, other: Bag) -> Bag:
        """The other with every sign turned round, added."""
        return self._added(other, -1)

    def _added(self, other: Bag, sign: int) -> Bag:
        if not other.rows:
            return self
        rows = dict(self.rows)
        add_to(rows, other.arranged(self.columns).rows, sign)
        return Bag(self.columns, rows)

    def times(self, factor: int) -> Bag:
        """Every multiplicity times ±1."""
        return self if factor == 1 else Bag(self.columns, {row: factor * n for row, n in self.rows.items()})

    def arranged(self, columns: tuple[str, ...]) -> Bag:
        """The same rows, with their columns in this order."""
        return self if columns == self.columns else self.project(columns)

    def stripped(self) -> Bag:
        """Every row once, whatever its sign and multiplicity."""
        return Bag(self.columns, dict.fromkeys(self.rows, 1))

    def project(self, columns: tuple[str, ...]) -> Bag:
        """π, without removal of duplicates: they are counted."""
        pick = picker(self.columns, columns)
        rows: dict[Row, int] = {}
        for row, count in self.rows.items():
            short = pick(row)
            rows[short] = rows.get(short, 0) + count
        return Bag(columns, {row: count for row, count in rows.items() if count})

    def where(self, column: str, accepts: Callable[[Hashable], bool]) -> Bag:
        """σ: the rows whose value in this column is accepted."""
        at = self.columns.index(column)
        return Bag(self.columns, {row: count for row, count in self.rows.items() if accepts(row[at])})


def bag(columns: Iterable[str], *rows: Row) -> Bag:
    """The rows, each as often as it is given.

    >>> bag("ab", (1, 2), (1, 2))
    Bag(columns=('a', 'b'), rows={(1, 2): 2})
    """
    counted: dict[Row, int] = {}
    for row in rows:
        counted[row] = counted.get(row, 0) + 1
    return Bag(tuple(columns), counted)


def add_to(rows: dict[Row, int], more: Rows, sign: int = 1) -> None:
    """Add to rows in place; what comes to zero is gone."""
    for row, count in more.items():
        total = rows.get(row, 0) + sign * count
        if total:
            rows[row] = total
        else:
            rows.pop(row, None)


@dataclass(frozen=True, slots=True)
class Matching:
    """How rows of two bags are put together: what must be equal, and what the right one adds."""

    left_key: Pick
    right_key: Pick
    extra: Pick
    shared: tuple[str, ...]
    columns: tuple[str, ...]


@lru_cache(maxsize=8192)
def match(left: tuple[str, ...], right: tuple[str, ...]) -> Matching:
    """Kept, for a sweep joins the same columns again and again."""
    shared = tuple(column for column in right if column in left)
    added = tuple(column for column in right if column not in shared)
    return Matching(picker(left, shared), picker(right, shared), picker(right, added), shared, left + added)


@lru_cache(maxsize=8192)
def picker(columns: tuple[str, ...], wanted: tuple[str, ...]) -> Pick:
    """Picks these columns of a row; always gives a tuple, which ``itemgetter`` does from two columns on only.

    >>> picker(("a", "b", "c"), ("c", "a"))((1, 2, 3))
    (3, 1)
    """
    places = [columns.index(column) for column in wanted]
    if not places:
        return lambda row: ()
    if len(places) == 1:
        at = places[0]
        return lambda row: (row[at],)
    return itemgetter(*places)
