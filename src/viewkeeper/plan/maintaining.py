"""The steps that maintain a view by deltas: bags by the delta of the query, groups by a summary-delta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.algebra.deltas import Delta, apply, change_between, consolidate
from viewkeeper.algebra.derived_changes import Upper, derived_changes
from viewkeeper.algebra.first_rows import first, up_to_last
from viewkeeper.algebra.lattice import Edge
from viewkeeper.algebra.preaggregation import preaggregation
from viewkeeper.algebra.reading_costs import SMALL_ROWS
from viewkeeper.algebra.relations import (
    Field,
    Filter,
    Join,
    Project,
    Relation,
    SemiJoin,
    Staged,
    UnionAll,
    scans,
)
from viewkeeper.algebra.rules.delta import delta, insert_only
from viewkeeper.algebra.rules.hanging import Tree
from viewkeeper.algebra.rules.leaves import new
from viewkeeper.algebra.rules.restrict import restrict
from viewkeeper.algebra.rules.touched_rows import replacement
from viewkeeper.algebra.scalars import WEIGHT, column, compose, keep
from viewkeeper.algebra.summary_delta import (
    OPERATION,
    Groups,
    as_parts,
    can_combine,
    folded,
    groups_before,
    groups_from_rows,
    is_self_maintainable,
    marked_keys,
    prepare_changes,
    recomputed,
    summary_delta,
    touched_by_recomputing,
    touched_by_summary_delta,
)
from viewkeeper.plan.draft import Draft
from viewkeeper.plan.expectations import check_dropped, check_rows
from viewkeeper.plan.layout import Reserve
from viewkeeper.plan.leaves import ParentOutcome, ViewLeaves, difference
from viewkeeper.plan.methods import Method
from viewkeeper.plan.propagation import Propagation
from viewkeeper.plan.sharing import SharedDelta, groups_touched, joined_tables
from viewkeeper.plan.situation import Aggregates, ViewInput
from viewkeeper.plan.steps import (
    ComputeBag,
    ComputeGroups,
    ComputeReplacement,
    ComputeRows,
    Installer,
    Strategy,
    Work,
)

_FEWER = 2
"""Aggregating first is a pass of its own; it must leave less than half of the rows."""
_FOLD_AT = 2
"""Parts are folded when there are so many for a group: then a reader takes twice as long."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """How a view is maintained: the installer, the view that it is derived from, the rows that are read."""

    installer: Installer
    derived_from: str | None
    cost: int | None
    propagations: tuple[Propagation, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedChanges:
    """prepare-changes of a view, whether it holds insertions only, and what it is made of."""

    relation: Relation
    insert_only: bool
    source: str
    parts: tuple[str, ...]
    derived_from: str | None
    cost: int | None

    def tells_rows(self, groups: Groups) -> bool:
        """Whether the groups, which count their rows, tell how many came out of the join below them."""
        return self.insert_only and self.derived_from is None and is_but_a_join(groups.child)


@dataclass(frozen=True, slots=True)
class Maintaining:
    """One view's maintenance."""

    draft: Draft
    view: ViewInput
    work: Work
    expected: Method | None = None
    """How it will be installed, it seems."""

    def plan(self) -> Maintained | None:
        """Add the steps; ``None`` when no row that the view reads changed."""
        relation, groups = self.view.analysis.relation, self.view.layout.groups
        assert relation is not None
        leaves = self.draft.leaves(self.view, self.work.changed)
        if self.view.layout.reserve is not None:
            planned = self._first_rows(self.view.layout.reserve, leaves)
        elif groups is None:
            self.draft.extract_for(self.view, scans(relation))
            planned = self._bag(relation, leaves)
        else:
            planned = self._groups(groups, leaves)
        if planned is not None and self.view.analysis.dropped:
            check_dropped(self.draft, self.view, leaves)
        return planned

    def _bag(self, relation: Relation, leaves: ViewLeaves) -> Maintained | None:
        draft, view = self.draft, self.view
        wanted = draft.method(view) or self.expected
        tree = draft.hanging(view) if wanted is Method.KEYREPLACE else None
        if tree is not None:
            return self._replaced(relation, tree, leaves)
        change = delta(relation, leaves)
        if change is None:
            return None
        if not insert_only(relation, leaves):
            change = consolidate(change)
        stored = view.stored
        step = ComputeBag(
            draft.name("delta"),
            view.name,
            change.relation,
            draft.name("victims"),
            stored,
            view.layout.types,
            view.key,
        )
        draft.add(step)
        self._check(step.name, change)
        self._outcome(step.name)
        installer = draft.install(view, Installer.APPLY_BAG, step, self.expected)
        whole = step.name if is_but_a_join(relation) else None
        return Maintained(installer, None, self.work.incremental, leaves.propagations(whole))

    def _replaced(self, relation: Relation, tree: Tree, leaves: ViewLeaves) -> Maintained | None:
        """KEYREPLACE: no delta is computed (:mod:`viewkeeper.algebra.rules.touched_rows`)."""
        draft, view = self.draft, self.view
        found = replacement(relation, tree, leaves)
        if found is None:
            return None
        name = draft.name("rows")
        step = ComputeReplacement(name, view.name, found.rows, found.keys, view.layout.types)
        draft.add(step)
        self._outcome(None)
        installer = draft.install(view, Installer.REPLACE_ROWS, step, self.expected)
        return Maintained(installer, None, self.work.incremental, leaves.propagations())

    def _first_rows(self, reserve: Reserve, leaves: ViewLeaves) -> Maintained | None:
        """LIMIT: the rows that are kept beyond it tell which come next, as long as enough of them are left
        (:mod:`viewkeeper.algebra.first_rows`)."""
        draft, view, rows = self.draft, self.view, self.view.layout.rows
        assert rows is not None
        draft.extract_for(view, scans(rows))
        change = delta(rows, leaves)
        if change is None:
            return None
        stored, order = view.stored, reserve.order
        refilled = None
        if not view.keeps_all:
            change = up_to_last(change, stored, order)
            refilled = change_between(stored, first(new(rows, leaves), order, reserve.kept)).relation
        kept = first(apply(stored, change), order, reserve.kept)
        step = ComputeBag(
            draft.name("delta"),
            view.name,
            change_between(stored, kept).relation,
            draft.name("victims"),
            stored,
            view.layout.types,
            reserve=reserve,
            refilled=refilled,
        )
        draft.add(step)
        visible = None
        if self._is_seen:
            made = Delta(Staged(step.name, tuple(Field(each, each) for each in (*stored.columns, WEIGHT))))
            shown = difference(view.layout, apply(stored, made), stored)
            visible = draft.visible(view, shown)
            self._check(visible, shown)
        self._outcome(visible)
        installer = draft.install(view, Installer.APPLY_BAG, step, self.expected)
        return Maintained(installer, None, self.work.incremental, leaves.propagations())

    def _parts_of_groups(self, groups: Groups, leaves: ViewLeaves) -> Maintained | None:
        """SDAPPEND: the summary-delta itself is appended, and no stored group is read, until there are so
        many parts that they are folded."""
        draft, view = self.draft, self.view
        prepared = self._prepared_changes(groups, leaves)
        if prepared is None:
            return None
        sd = leaves.share(
            summary_delta(groups, prepared.relation, insert_only=True), prepared.source, prepared.parts
        )
        parts = as_parts(groups, sd)
        counts = prepared.tells_rows(groups)
        step = ComputeGroups(draft.name("parts"), view.name, parts, in_parts=True, counts=counts)
        draft.add(step)
        came = Staged(step.name, tuple(Field(each, each) for each in parts.columns), sd.rows)
        visible = None
        if draft.has_children(view) or view.definition.looked_at:
            touched: Relation = view.stored
            if groups.keys:
                touched = restrict(touched, Project(came, keep(groups.keys)))
            after = folded(groups, _both(touched, came))
            change = difference(view.layout, after, folded(groups, touched))
            visible = draft.visible(view, change)
            self._check(visible, change)
        self._outcome(visible)
        if self._is_to_fold:
            columns = tuple(field.stored for field in view.layout.fields)
            whole = view.layout.as_stored(folded(groups, _both(view.stored, came)))
            rows = ComputeRows(draft.name("rows"), view.name, whole, columns, staged=False)
            draft.add(rows)
            installer = draft.install(view, Installer.OVERWRITE, rows, Method.SDAPPEND)
        else:
            installer = draft.install(view, Installer.MERGE_GROUPS, step, self.expected)
        told = leaves.propagations(step.name if counts else None)
        return Maintained(installer, prepared.derived_from, prepared.cost, told)

    @property
    def _is_to_fold(self) -> bool:
        whole, rows = self.view.groups_when_whole, self.view.rows
        return whole is not None and rows is not None and rows > _FOLD_AT * max(1, whole)

    def _groups(self, groups: Groups, leaves: ViewLeaves) -> Maintained | None:
        if self.view.layout.in_parts:
            return self._parts_of_groups(groups, leaves)
        draft, view = self.draft, self.view
        stored = view.identified
        derived_from, cost = None, self.work.incremental
        if self._by_summary_delta(groups):
            prepared = self._prepared_changes(groups, leaves)
            if prepared is None:
                return None
            step = self._touched_by_summary_delta(groups, stored, leaves, prepared)
            derived_from, cost = prepared.derived_from, prepared.cost
        else:
            draft.extract_for(view, scans(groups.child))
            change = delta(groups.child, leaves)
            if change is None:
                return None
            touched = touched_by_recomputing(groups, stored, change, leaves)
            step = ComputeGroups(draft.name("groups"), view.name, touched)
        draft.add(step)
        visible = None
        if self._is_seen:
            change = self._visible_delta(groups, stored, step)
            visible = draft.visible(view, change)
            self._check(visible, change)
        self._outcome(visible)
        installer = draft.install(view, Installer.MERGE_GROUPS, step, self.expected)
        told = leaves.propagations(step.name if step.counts else None)
        return Maintained(installer, derived_from, cost, told)

    def _by_summary_delta(self, groups: Groups) -> bool:
        return can_combine(groups.kept) and self.draft.situation.options.aggregates is not Aggregates.COUNTING

    def _prepared_changes(self, groups: Groups, leaves: ViewLeaves) -> PreparedChanges | None:
        """From the summary-delta of another view where that reads less, else from the tables' changes."""
        draft, view, sharing = self.draft, self.view, self.draft.sharing
        changed = draft.changed_tables(view)
        best = sharing.best(view, groups, changed, self.work.incremental)
        if best is not None:
            cost, edge = best
            draft.extract_for(view, [scan for scan in scans(groups.child) if scan.table in edge.joins])
            only = sharing.made[edge.upper].insert_only and not edge.joins & set(changed)
            changes = sharing.changes(edge, groups, leaves, insert_only=only)
            source = f"summary-delta from that of {edge.upper}"
            return PreparedChanges(changes, only, source, _parts_of(edge, changed), edge.upper, cost)
        draft.extract_for(view, scans(groups.child))
        change = delta(groups.child, leaves)
        if change is None:
            return None
        first = self._preaggregated(groups, leaves, changed)
        if first is not None:
            return first
        only = insert_only(groups.child, leaves)
        changes = prepare_changes(groups, change, insert_only=only)
        return PreparedChanges(
            changes, only, "summary-delta", self._parts(changed), None, self.work.incremental
        )

    def _preaggregated(
        self, groups: Groups, leaves: ViewLeaves, changed: Sequence[str]
    ) -> PreparedChanges | None:
        """The changes of the only table that changed, aggregated before they are joined, where that makes
        them fewer by far: a group of the view has at most as many parts as the joined tables have rows."""
        found = preaggregation(groups, changed[0]) if len(changed) == 1 else None
        if found is None or not self.work.changed:
            return None
        sizes = [self.draft.sharing.sizes.get(table) for table in found.edge.joins]
        parts = math.prod(size for size in sizes if size is not None) * max(1, self.view.rows or 0)
        change = delta(found.upper.child, leaves)
        if None in sizes or _FEWER * parts > self.work.changed or change is None:
            return None
        only = insert_only(found.upper.child, leaves)
        sd = summary_delta(
            found.upper, prepare_changes(found.upper, change, insert_only=only), insert_only=only
        )
        tables = joined_tables(found.edge, groups, leaves)
        changes = derived_changes(found.edge, groups, Upper(sd, only, sd), tables, insert_only=only)
        joins = ", ".join(sorted(found.edge.joins))
        told = (*self._parts(changed), f"pre-aggregated before the join with {joins}")
        return PreparedChanges(changes, only, "summary-delta", told, None, self.work.incremental)

    def _parts(self, changed: Sequence[str]) -> tuple[str, ...]:
        """The steps of Section 4.1, in the paper's words; here one pass over signed rows makes them all."""
        parts: list[str] = []
        for table in changed:
            change = self.draft.change(self.view, table)
            if change is None:
                parts.append(f"prepare-changes: what changed in {table}")
                continue
            if change.inserted:
                parts.append(f"prepare-insertions: up to {change.inserted:,} rows of {table}")
            if change.deleted:
                parts.append(f"prepare-deletions: up to {change.deleted:,} rows of {table}")
        return (*parts, "prepare-changes: all of these, signed, in one pass")

    def _touched_by_summary_delta(
        self, groups: Groups, stored: Relation, leaves: ViewLeaves, prepared: PreparedChanges
    ) -> ComputeGroups:
        """The step that computes the touched groups; the summary-delta is staged for it, and for the views
        that are derived from this one."""
        draft, view, only = self.draft, self.view, prepared.insert_only
        name = draft.name("groups")
        sd = leaves.share(
            summary_delta(groups, prepared.relation, insert_only=only), prepared.source, prepared.parts
        )
        rows = groups_touched(self.work.changed or 0, view.rows)
        few = view.rows is not None and view.rows <= SMALL_ROWS
        remembered, counts = self._is_remembered(groups, insert_only=only), prepared.tells_rows(groups)
        touched = touched_by_summary_delta(
            groups, stored, sd, insert_only=only, few=few, remembered=remembered, counts=counts
        )
        columns = tuple(Field(each, each) for each in touched.columns)
        after = Staged(name, columns, sd.rows)
        draft.sharing.made[view.name] = SharedDelta(view, sd, only, rows, after)
        if is_self_maintainable(groups.kept, insert_only=only):
            return ComputeGroups(name, view.name, touched, remembers=remembered, counts=counts)
        rough = Staged(draft.name("draft"), columns, sd.rows)
        fresh, source = self._fresh(groups, marked_keys(groups, rough), leaves)
        return ComputeGroups(
            name, view.name, touched, rough.name, recomputed(groups, rough, fresh), recomputed_from=source
        )

    def _fresh(
        self, groups: Groups, keys: Relation | None, leaves: ViewLeaves
    ) -> tuple[Relation, str | None]:
        """The groups of these keys as they will be: from the view above that has fewest rows, and its name;
        or from the rows of the tables."""
        edge = self.draft.sharing.best_after(self.view, self.work.full)
        if edge is None:
            return groups_from_rows(groups, keys, leaves), None
        return self.draft.sharing.groups_after(edge, groups, leaves, keys), edge.upper

    @property
    def _is_seen(self) -> bool:
        """Whether somebody asks what the view's own delta is."""
        return self.draft.has_children(self.view) or bool(self.view.definition.looked_at)

    def _is_remembered(self, groups: Groups, *, insert_only: bool) -> bool:
        """Whether the touched groups tell what they were, so that the storage is not read a second time.
        Groups that are computed anew from their rows do not."""
        whole = is_self_maintainable(groups.kept, insert_only=insert_only)
        return self._is_seen and whole and bool(groups.keys) and self.view.layout.top is None

    def _visible_delta(self, groups: Groups, stored: Relation, step: ComputeGroups) -> Delta:
        """−(the touched groups as they are shown now), +(as they will be shown)."""
        columns = step.relation.columns
        touched = Staged(step.name, tuple(Field(name, name) for name in columns), self.work.changed)
        remaining: Relation = Filter(touched, compose(column(OPERATION), " <> 'D'"))
        keys = Project(touched, keep(groups.keys))
        if self.view.layout.top is not None:
            before: Relation = self.view.stored
            if groups.keys:
                others = SemiJoin(before, keys, tuple((key, key) for key in groups.keys), anti=True)
                remaining = UnionAll((others, Project(remaining, keep(before.columns))))
        elif step.remembers:
            before = groups_before(groups, touched)
        else:
            before = restrict(stored, keys) if groups.keys else stored
        return difference(self.view.layout, remaining, before)

    def _check(self, name: str, change: Delta) -> None:
        """Look at what is expected of the rows that come, in the staged change of the view."""
        columns = tuple(Field(each, each) for each in change.relation.columns)
        check_rows(self.draft, self.view, Staged(name, columns, self.work.changed))

    def _outcome(self, delta_name: str | None) -> None:
        self.draft.outcomes[self.view.name] = ParentOutcome(
            Strategy.INCREMENTAL, delta_name, None, self.work.changed
        )


def is_but_a_join(relation: Relation) -> bool:
    """Whether as many rows come and go as of a join: a condition above it would let fewer pass, a UNION ALL
    brings others, and one side of an outer join brings rows that find no partner."""
    while isinstance(relation, Project):
        relation = relation.child
    return isinstance(relation, Join)


def _both(stored: Relation, came: Relation) -> Relation:
    """Stored parts of groups, and those that came."""
    return UnionAll((stored, Project(came, keep(stored.columns))))


def _parts_of(edge: Edge, changed: Sequence[str]) -> tuple[str, ...]:
    """The steps of Section 5.3 along an edge of the lattice."""
    joined = f" joined with {', '.join(sorted(edge.joins))}" if edge.joins else ""
    parts = [f"prepare-changes: the summary-delta of {edge.upper}{joined}"]
    parts += [
        f"prepare-changes: what {edge.upper} held, joined with what changed in {table}"
        for table in sorted(edge.joins & set(changed))
    ]
    return tuple(parts)
