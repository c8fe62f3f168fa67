"""The lattice of views (Mumick et al. 1997, Section 5): which view can be derived from which, and how.

v₂ ⪯ v₁ when v₂ is one block over v₁, joined with tables D that v₁ has not (5.1):

    v₂ = γ_{keys₂}(σ(v₁ ⋈ D))        and so        sd_v₂ = γ_{keys₂}(σ(sd_v₁ ⋈ D))        (Theorem 5.1)

as long as D does not change; where d ∈ D does, both must be counted:

    sd_v₂ = γ(sd_v₁ ⋈ d_new) ⊎ γ(v₁_old ⋈ Δd)

A join with D is on keys of v₁, so it multiplies whole groups, and the formulas hold whether the columns of D
are unique or not. Dropping a table that v₁ has joined is another matter: then v₁ must not have lost a row by
that join, nor doubled one. A foreign key says so; an edge that needs one names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.aggregates import Combine, Kept
from viewkeeper.algebra.scalars import Scalar, column
from viewkeeper.algebra.stars import Star, equalities, table_of, tables_of


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Every row of the table has exactly one partner: these columns, and the key that they refer to.

    Columns are named by their tables (see :mod:`viewkeeper.algebra.stars`).
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def table(self) -> str:
        return table_of(self.columns[0])

    @property
    def parent(self) -> str:
        return table_of(self.key[0])


@dataclass(frozen=True, slots=True)
class Edge:
    """v₂ ⪯ v₁: how the lower view is made of the upper one.

    ``keys`` and the arguments of ``sources`` are over columns of the upper view and of the joined tables,
    the latter named by their tables.
    """

    upper: str
    lower: str
    joins: frozenset[str]
    on: tuple[Scalar, ...]
    where: tuple[Scalar, ...]
    keys: Mapping[str, Scalar]
    sources: Mapping[str, Source]
    needs: frozenset[ForeignKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a kept column of the lower view comes from: a kept column of the upper one, or an expression over
    its keys and the tables joined (Section 5.1: SUM(A) becomes SUM(A·Y))."""

    kept: str | None
    argument: Scalar | None = None


def derives(
    lower: tuple[str, Star], upper: tuple[str, Star], foreign_keys: Sequence[ForeignKey] = ()
) -> Edge | None:
    """The edge from the upper to the lower view, if the lower can be derived."""
    low, up = lower[1], upper[1]
    if low.meaning != up.meaning:
        return None
    joins = low.tables - up.tables
    needs = _droppable(up, up.tables - low.tables, foreign_keys)
    if needs is None:
        return None
    inherited = up.conditions - {condition for fk in needs for condition in _joining(up, fk)}
    if not inherited <= low.conditions:
        return None
    over = _Over(up, joins)
    conditions = [over.rewritten(condition) for condition in low.conditions - inherited]
    keys = {name: over.rewritten(key) for name, key in low.keys.items()}
    sources = {name: over.source(kept, arguments) for name, (kept, arguments) in low.kept.items()}
    if any(found is None for found in (*conditions, *keys.values(), *sources.values())):
        return None
    # A table that is joined on nothing would be a product with every group.
    if any(not _is_joined(table, low.conditions - inherited) for table in joins):
        return None
    rest = [condition for condition in conditions if condition is not None]
    on = tuple(each for each in rest if _reads_any(each, joins))
    where = tuple(each for each in rest if not _reads_any(each, joins))
    return Edge(
        upper[0],
        lower[0],
        joins,
        on,
        where,
        {name: key for name, key in keys.items() if key is not None},
        {name: source for name, source in sources.items() if source is not None},
        needs,
    )


def lacking_aggregates(lower: Star, upper: Star) -> dict[str, tuple[Kept, tuple[Scalar, ...]]]:
    """What the lower view keeps and the upper one has no source for."""
    over = _Over(upper, lower.tables - upper.tables)
    return {name: kept for name, kept in lower.kept.items() if over.source(*kept) is None}


def _droppable(
    up: Star, tables: frozenset[str], foreign_keys: Sequence[ForeignKey]
) -> frozenset[ForeignKey] | None:
    """The foreign keys along which the upper view joined these tables and nothing else; ``None``: it did more
    with one of them."""
    needs: set[ForeignKey] = set()
    for table in tables:
        for fk in foreign_keys:
            if fk.parent != table or fk.table not in up.tables - tables:
                continue
            about = {condition for condition in up.conditions if _reads_any(condition, {table})}
            if about == set(_joining(up, fk)) and len(about) == len(fk.columns):
                needs.add(fk)
                break
        else:
            return None
    return frozenset(needs)


def _joining(star: Star, fk: ForeignKey) -> list[Scalar]:
    pairs = {frozenset(pair) for pair in zip(fk.columns, fk.key, strict=True)}
    return [
        condition for one, other, condition in equalities(star.conditions) if frozenset((one, other)) in pairs
    ]


def _is_joined(table: str, conditions: Iterable[Scalar]) -> bool:
    return any(table in tables and len(tables) > 1 for tables in map(tables_of, conditions))


def _reads_any(scalar: Scalar, tables: Iterable[str]) -> bool:
    return not tables_of(scalar).isdisjoint(tables)


@dataclass(frozen=True, slots=True)
class _Over:
    """Rewrites expressions over the upper view and the tables that are joined to it."""

    up: Star
    joins: frozenset[str]

    def rewritten(self, scalar: Scalar) -> Scalar | None:
        """The same value over the upper view's keys and the joined tables, if they have it."""
        known = self.up.key_of(scalar)
        if known is not None:
            return column(known)
        by: dict[str, Scalar] = {}
        for name in scalar.columns:
            if table_of(name) in self.joins:
                continue
            key = self.up.key_of(column(name))
            if key is None:
                return None
            by[name] = column(key)
        return scalar.substitute(by)

    def source(self, kept: Kept, arguments: tuple[Scalar, ...]) -> Source | None:
        for name, (theirs, other) in self.up.kept.items():
            same = (kept.call.function, kept.combine, arguments) == (
                theirs.call.function,
                theirs.combine,
                other,
            )
            if same and kept.combine is not Combine.RECOMPUTE:
                return Source(name)
        if kept.combine is Combine.RECOMPUTE or len(arguments) != 1:
            return None
        argument = self.rewritten(arguments[0])
        return None if argument is None else Source(None, argument)


# Which parent.


@dataclass(frozen=True, slots=True)
class Lattice:
    """All the edges between some views. Views with the same groups are parents of each other; of two such,
    the one that comes first in ``order`` goes first."""

    order: tuple[str, ...]
    edges: tuple[Edge, ...]

    def above(self, view: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.lower == view]

    @property
    def shown(self) -> list[Edge]:
        """The edges that a drawing needs: none that leads over a third view with the same joins left out
        (Figure 9 draws the transitive reduction)."""
        below: dict[str, set[str]] = {view: set() for view in self.order}
        above: dict[str, set[str]] = {view: set() for view in self.order}
        for edge in self.edges:
            below[edge.upper].add(edge.lower)
            above[edge.lower].add(edge.upper)
        return [edge for edge in self.edges if below[edge.upper].isdisjoint(above[edge.lower])]


def lattice_of(stars: Mapping[str, Star], foreign_keys: Sequence[ForeignKey] = ()) -> Lattice:
    """The V-lattice, which is the D-lattice too (Theorem 5.1)."""
    order = tuple(stars)
    edges: list[Edge] = []
    for lower in order:
        for upper in order:
            if lower == upper:
                continue
            edge = derives((lower, stars[lower]), (upper, stars[upper]), foreign_keys)
            if edge is None:
                continue
            back = derives((upper, stars[upper]), (lower, stars[lower]), foreign_keys)
            if back is None or order.index(upper) < order.index(lower):
                edges.append(edge)
    return Lattice(order, tuple(edges))


def cheapest(lattice: Lattice, base: int, sizes: Mapping[str, int]) -> dict[str, Edge]:
    """For each view the parent that costs least to read, where that is less than reading the base (5.5).

    ``sizes`` are the rows of each view (to recompute it) or of its summary-delta (to maintain it); what is
    read of the tables joined is free in the paper's metric, so fewer joins only decide between equals.
    """
    chosen: dict[str, Edge] = {}
    for view in lattice.order:
        best = min(
            lattice.above(view),
            key=lambda edge: (sizes[edge.upper], len(edge.joins), edge.upper),
            default=None,
        )
        if best is not None and sizes[best.upper] < base:
            chosen[view] = best
    return chosen
