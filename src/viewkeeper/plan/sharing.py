"""What is made from other views in the same epoch (Mumick et al. 1997, Section 5): summary-deltas from those
of other views, and rows from those of other views that are recomputed.

Which view can be derived from which is found from the definitions alone; in an epoch a parent must also stand
at the same versions, and have a summary-delta, or be recomputed. Of those, the one that reads least is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from viewkeeper.algebra.derived_changes import Joined, Upper, can_derive, derived_changes, derived_rows
from viewkeeper.algebra.estimates import known_sum
from viewkeeper.algebra.lattice import Edge, lattice_of
from viewkeeper.algebra.reading_costs import SMALL_ROWS
from viewkeeper.algebra.relations import Relation, Scan, Staged, scans
from viewkeeper.algebra.stars import Star, qualified, star_of
from viewkeeper.algebra.summary_delta import Groups, can_combine, groups_after
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.leaves import ViewLeaves
from viewkeeper.plan.situation import Aggregates, ViewInput


@dataclass(frozen=True, slots=True)
class SharedDelta:
    """The staged summary-delta of a view that is already planned, and the groups it touches, as they will be;
    ``None`` when nothing of it changed."""

    view: ViewInput
    staged: Staged | None
    insert_only: bool
    rows: int
    touched: Staged | None = None

    @property
    def after(self) -> Relation:
        """The rows of the view as they will be."""
        groups = self.view.layout.groups
        if self.touched is None:
            return self.view.stored
        assert groups is not None
        return groups_after(groups, self.view.identified, self.touched)


@dataclass(slots=True)
class Sharing:
    """The lattice of an epoch's views, and the summary-deltas that there are so far."""

    edges: Mapping[str, Sequence[Edge]]
    sizes: Mapping[str, int | None]
    made: dict[str, SharedDelta] = field(default_factory=dict)
    recomputed: dict[str, tuple[ViewInput, Staged]] = field(default_factory=dict)

    def best(
        self, view: ViewInput, groups: Groups, changed: Sequence[str], otherwise: int | None
    ) -> tuple[int, Edge] | None:
        """The edge to derive the view's summary-delta along, and the rows that reads; ``None``: from its own
        changes, which would read ``otherwise`` many."""
        costs = [
            (cost, edge)
            for edge in self.edges.get(view.name, ())
            if self._fits(edge, view, groups, changed)
            and (cost := self._cost(edge, changed)) is not None
            and (otherwise is None or cost < otherwise)
        ]
        return min(costs, key=lambda each: each[0], default=None)

    def _fits(self, edge: Edge, view: ViewInput, groups: Groups, changed: Sequence[str]) -> bool:
        upper = self.made.get(edge.upper)
        if upper is None or edge.needs:
            return False  # a foreign key may be declared and not hold: nothing relies on it here
        shared = set(view.analysis.tables) - edge.joins
        if any(upper.view.vector[table] != view.vector[table] for table in shared):
            return False
        return can_derive(edge, groups, joins_changed=_joins_changed(edge, changed))

    def _cost(self, edge: Edge, changed: Sequence[str]) -> int | None:
        """Rows read: the summary-delta above and the tables joined; when one of these changed, what is stored
        above, too."""
        upper = self.made[edge.upper]
        read = [upper.rows, *(self.sizes.get(table) for table in edge.joins)]
        if _joins_changed(edge, changed):
            read.append(upper.view.rows)
        return known_sum(read)

    def changes(self, edge: Edge, groups: Groups, leaves: ViewLeaves, *, insert_only: bool) -> Relation:
        """prepare-changes of the view, from the summary-delta above."""
        shared = self.made[edge.upper]
        upper = Upper(shared.staged, shared.insert_only, shared.view.stored, _worth_reading(shared))
        tables = joined_tables(edge, groups, leaves)
        return derived_changes(edge, groups, upper, tables, insert_only=insert_only)

    def best_rows(self, view: ViewInput, groups: Groups, otherwise: int | None) -> Edge | None:
        """The edge to recompute the view along; ``None``: from its tables, with ``otherwise`` many rows."""
        if not groups.keys:
            return None  # an empty table has one group all the same, which no group above would tell
        return self._cheapest(
            view, {name: above.rows for name, (above, _) in self.recomputed.items()}, otherwise
        )

    def rows(self, edge: Edge, groups: Groups, leaves: ViewLeaves) -> Relation:
        """The rows of the view, from those of the recomputed one above."""
        return derived_rows(edge, groups, self.recomputed[edge.upper][1], _tables_after(edge, groups, leaves))

    def best_after(self, view: ViewInput, otherwise: int | None) -> Edge | None:
        """The edge to recompute some groups of the view along, when the view above is maintained."""
        return self._cheapest(view, {name: shared.view.rows for name, shared in self.made.items()}, otherwise)

    def groups_after(self, edge: Edge, groups: Groups, leaves: ViewLeaves, keys: Relation | None) -> Relation:
        """The groups of these keys as they will be, from the view above as it will be."""
        tables = _tables_after(edge, groups, leaves)
        return derived_rows(edge, groups, self.made[edge.upper].after, tables, keys)

    def _cheapest(
        self, view: ViewInput, rows: Mapping[str, int | None], otherwise: int | None
    ) -> Edge | None:
        """The edge from one of these views, with so many rows, that reads least, and less than otherwise."""
        costs = [
            (cost, edge)
            for edge in self.edges.get(view.name, ())
            if edge.upper in rows
            and not edge.needs
            and (cost := self._cost_of_rows(edge, rows[edge.upper], otherwise)) is not None
            and (otherwise is None or cost < otherwise)
        ]
        return min(costs, key=lambda each: each[0], default=(0, None))[1]

    def _cost_of_rows(self, edge: Edge, above: int | None, otherwise: int | None) -> int | None:
        if not above and otherwise is not None:
            above = otherwise // 2  # not filled yet; an aggregate has fewer rows than what it aggregates
        return known_sum([above, *(self.sizes.get(table) for table in edge.joins)])


def _worth_reading(shared: SharedDelta) -> Staged | None:
    """The touched groups above, if it is better to wait for them than to compute groups below from a view
    above that is not small."""
    return shared.touched if (shared.view.rows or 0) > SMALL_ROWS else None


def joined_tables(edge: Edge, groups: Groups, leaves: ViewLeaves) -> list[Joined]:
    """The tables that an edge joins, in the states that this epoch has of them."""
    return [_joined(scan, leaves) for scan in scans(groups.child) if scan.table in edge.joins]


def _tables_after(edge: Edge, groups: Groups, leaves: ViewLeaves) -> list[Joined]:
    """The tables that an edge joins, only as they will be: a view that is filled for the first time knows no
    state before that."""
    joined = [scan for scan in scans(groups.child) if scan.table in edge.joins]
    return [Joined(now := leaves.new(scan), now, None, _common_names(scan)) for scan in joined]


def _joined(scan: Scan, leaves: ViewLeaves) -> Joined:
    change = leaves.delta(scan)
    delta = None if change is None else change.relation
    return Joined(leaves.new(scan), leaves.old(scan), delta, _common_names(scan))


def _common_names(scan: Scan) -> dict[str, str]:
    return {qualified(scan.table, field.stored): field.name for field in scan.fields}


def sharing_between(
    views: Iterable[ViewInput],
    sizes: Mapping[str, int | None],
    aggregates: Aggregates = Aggregates.LATTICE,
) -> Sharing:
    """What can be shared between these views, as far as their definitions tell."""
    if aggregates is not Aggregates.LATTICE:
        return Sharing({}, sizes)
    stars: dict[str, Star] = {}
    for view in views:
        star = star_of_view(view.layout, view.definition)
        if star is not None and can_combine([kept for kept, _ in star.kept.values()]):
            stars[view.name] = star
    edges: dict[str, list[Edge]] = {}
    for edge in lattice_of(stars).edges:
        edges.setdefault(edge.lower, []).append(edge)
    return Sharing(edges, sizes)


def star_of_view(layout: Layout, definition: ViewDefinition) -> Star | None:
    """A view as a star, if it is stored as the groups of one block."""
    if layout.groups is None or layout.counted or layout.in_parts:
        return None
    # Tables are named in full: where unqualified names lead makes no difference.
    return star_of(layout.groups, replace(definition.session, catalog="", namespace=()))


def _joins_changed(edge: Edge, changed: Sequence[str]) -> bool:
    return any(table in edge.joins for table in changed)


def parents_first(views: Sequence[ViewInput], sharing: Sharing) -> list[ViewInput]:
    """The views in an order in which whatever one may be derived from, or reads, goes before it."""
    by_name = {view.name: view for view in views}
    placed: dict[str, ViewInput] = {}

    def place(name: str) -> None:
        if name in placed or name not in by_name:
            return
        for edge in sharing.edges.get(name, ()):
            place(edge.upper)
        for table in by_name[name].analysis.tables:
            place(table)
        placed[name] = by_name[name]

    for view in views:
        place(view.name)
    return list(placed.values())


def groups_touched(changed: int, groups: int | None) -> int:
    """About how many of a view's groups so many changed rows fall into (Cardenas' formula), new ones apart.

    >>> groups_touched(10_000, 100_000), groups_touched(10_000, 10)
    (9517, 10)
    """
    if not groups:
        return changed
    return (
        min(changed, math.ceil(groups * -math.expm1(changed * math.log1p(-1 / groups)))) if groups > 1 else 1
    )
