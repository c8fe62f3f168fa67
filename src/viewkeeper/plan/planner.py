"""Puts an epoch together: bottom-up over the views, what to do with each and the steps that do it.

All extractions and computations come before all installations: while deltas are computed, no view changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from viewkeeper.algebra.deltas import Delta, consolidate, deleted, inserted, plus
from viewkeeper.algebra.estimates import work_of_delta
from viewkeeper.algebra.relations import (
    Field,
    Filter,
    Nothing,
    Project,
    Relation,
    Scan,
    Staged,
    scans,
)
from viewkeeper.algebra.rules.affected_keys import restrict
from viewkeeper.algebra.rules.delta import delta, insert_only
from viewkeeper.algebra.rules.leaves import new
from viewkeeper.algebra.scalars import Named, column, compose, keep
from viewkeeper.algebra.summary_delta import (
    OPERATION,
    Groups,
    can_combine,
    is_self_maintainable,
    prepare_changes,
    recomputed,
    summary_delta,
    touched_by_recomputing,
    touched_by_summary_delta,
)
from viewkeeper.plan.choice import choose
from viewkeeper.plan.leaves import ParentOutcome, ViewLeaves, difference
from viewkeeper.plan.references import unstaged_where_read_once, without_unused
from viewkeeper.plan.sharing import SharedDelta, groups_touched, parents_first, sharing_between
from viewkeeper.plan.situation import Situation, Span, ViewInput
from viewkeeper.plan.steps import (
    Compute,
    ComputeBag,
    ComputeGroups,
    ComputeRows,
    ComputeVisible,
    EpochPlan,
    Extract,
    Install,
    Installer,
    Publish,
    Step,
    Strategy,
    ViewPlan,
    Work,
)
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import ident


def plan_epoch(situation: Situation) -> EpochPlan:
    """The plan of one epoch over the situation's views."""
    return _Planner(situation).plan()


def unfilled(situation: Situation) -> EpochPlan:
    """The plan of an epoch that only defines views: neither they nor what they read are computed."""
    return EpochPlan(
        tuple(
            ViewPlan(view.name, Strategy.UNCHANGED, None, "WITH NO DATA", Work(), (), ())
            for view in situation.views
        ),
        (),
        (),
    )


class _Planner:
    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._inputs = {view.name: view for view in (*situation.read_only, *situation.views)}
        self._children = _children(self._inputs.values())
        self._outcomes = {
            view.name: ParentOutcome(Strategy.UNCHANGED, None, None, 0) for view in situation.read_only
        }
        self._extracts: dict[Span, Extract] = {}
        self._computes: list[Step] = []
        self._installs: list[Install] = []
        self._names = 0
        sizes = {**situation.rows, **{view.name: view.rows for view in self._inputs.values()}}
        self._sharing = sharing_between(situation.views, sizes)
        self._derived_from: dict[str, tuple[str, int | None]] = {}

    def plan(self) -> EpochPlan:
        planned = {
            view.name: self._view(view) for view in parents_first(self._situation.views, self._sharing)
        }
        plans = tuple(planned[view.name] for view in self._situation.views)
        steps = unstaged_where_read_once(
            without_unused([*self._extracts.values(), *self._computes, *self._installs])
        )
        if any(plan.changed for plan in plans):
            steps.append(Publish(tuple(plan.view for plan in plans if plan.changed)))
        return EpochPlan(plans, tuple(steps), tuple(sorted(self._situation.versions.items())))

    # One view: has anything moved, what is to be done, and the steps.

    def _view(self, view: ViewInput) -> ViewPlan:
        changed = self._changed_tables(view)
        work = self._work(view, changed)
        vector = self._new_vector(view)
        if not changed and view.needs_full is None and self._policy(view) != "full":
            self._outcomes[view.name] = ParentOutcome(Strategy.UNCHANGED, None, None, 0)
            self._sharing.made[view.name] = SharedDelta(view, None, insert_only=True, rows=0)
            return ViewPlan(view.name, Strategy.UNCHANGED, None, "nothing changed", work, (), vector)

        choice = choose(
            view.name, self._policy(view), self._obstacle(view, changed), work, self._recomputed(view)
        )
        moved = changed or (view.name,)
        if choice.strategy is Strategy.FULL:
            installer = self._recompute(view)
            return ViewPlan(view.name, Strategy.FULL, installer, choice.reason, work, moved, vector)
        maintained = self._maintain(view, work)
        if maintained is None:
            # Versions moved, but no row that this view reads did: a compaction, say.
            self._outcomes[view.name] = ParentOutcome(Strategy.UNCHANGED, None, None, 0)
            reason = "no row that it reads changed"
            return ViewPlan(view.name, Strategy.UNCHANGED, None, reason, work, moved, vector)
        upper, cost = self._derived_from.get(view.name, (None, work.incremental))
        work = replace(work, incremental=cost)
        return ViewPlan(
            view.name, Strategy.INCREMENTAL, maintained, choice.reason, work, moved, vector, upper
        )

    def _policy(self, view: ViewInput) -> str:
        return self._situation.policy or view.definition.policy or "auto"

    def _changed_tables(self, view: ViewInput) -> tuple[str, ...]:
        """The tables that the view reads and that moved since its rows were computed."""
        return tuple(table for table in view.analysis.tables if self._has_moved(view, table))

    def _has_moved(self, view: ViewInput, table: str) -> bool:
        if table not in view.vector:
            return True
        parent = self._inputs.get(table)
        if parent is None:
            return self._situation.versions[table] != view.vector[table]
        return (
            parent.snapshot != view.vector[table] or self._outcomes[table].strategy is not Strategy.UNCHANGED
        )

    def _span(self, view: ViewInput, table: str) -> Span:
        parent = self._inputs.get(table)
        if parent is None:
            return table, view.vector[table], self._situation.versions[table]
        return parent.storage, view.vector[table], parent.snapshot

    def _obstacle(self, view: ViewInput, changed: Iterable[str]) -> str | None:
        """Why deltas cannot be used for this view now, if so."""
        if view.needs_full is not None:
            return view.needs_full
        if view.analysis.relation is None:
            return str(view.analysis.reason)
        for table in changed:
            lost = self._situation.lost.get(self._span(view, table))
            if lost is not None:
                return lost
        return None

    def _recomputed(self, view: ViewInput) -> tuple[str, ...]:
        return tuple(
            table
            for table in view.analysis.tables
            if table in self._outcomes and self._outcomes[table].strategy is Strategy.FULL
        )

    def _new_vector(self, view: ViewInput) -> tuple[tuple[str, str | None], ...]:
        """The versions that the view will stand at; those of parents are known only when installed."""
        return tuple(
            (table, self._situation.versions[table])
            for table in view.analysis.tables
            if table not in self._inputs
        )

    def _work(self, view: ViewInput, changed: Iterable[str]) -> Work:
        """Rows read: by deltas those of the expression's operands, by recomputing those of the tables."""
        full = 0
        for table in view.analysis.tables:
            parent = self._inputs.get(table)
            rows = self._situation.rows.get(table) if parent is None else parent.rows
            if rows is None:
                return Work()
            full += rows
        if view.needs_full is not None:
            return Work(full=full)
        moved = list(changed)
        known = sum(self._known_delta(view, table) for table in moved)
        changed_rows = sum(self._delta_estimate(view, table) for table in moved)
        relation = view.analysis.relation
        groups = view.layout.groups
        below = relation if groups is None else groups.child  # touched groups come from the storage
        read = None if below is None else work_of_delta(below, self._leaves(view))
        return Work(changed_rows, known, read, full)

    def _known_delta(self, view: ViewInput, table: str) -> int:
        change = self._situation.changes.get(self._span(view, table)) if table in view.vector else None
        return 0 if change is None else change.inserted + change.deleted

    def _delta_estimate(self, view: ViewInput, table: str) -> int:
        outcome = self._outcomes.get(table)
        return self._known_delta(view, table) + (0 if outcome is None else outcome.delta_estimate)

    # Recomputing.

    def _recompute(self, view: ViewInput) -> Installer:
        has_children = bool(self._children[view.name])
        columns = tuple(field.stored for field in view.layout.fields)
        query = self._full_query(view)
        step = ComputeRows(self._name("rows"), view.name, query, columns, staged=has_children)
        self._add(step)
        delta_name = None
        if has_children and view.snapshot is not None and view.needs_full is None:
            stored = view.layout.stored(view.storage, view.snapshot)
            visible = difference(view.layout.shown(_staged_rows(step.name, view)), view.layout.shown(stored))
            delta_name = self._visible(view, visible)
        rows_name = self._shown_rows(view, step) if has_children else None
        estimate = view.rows or 0
        self._outcomes[view.name] = ParentOutcome(Strategy.FULL, delta_name, rows_name, estimate)
        self._install(view, Installer.OVERWRITE, step)
        return Installer.OVERWRITE

    def _shown_rows(self, view: ViewInput, step: ComputeRows) -> str:
        """The staged name of the user's rows; the stored rows themselves where they are the same."""
        if view.layout.groups is None:
            return step.name
        name = self._name("shown")
        self._add(ComputeVisible(name, view.name, view.layout.shown(_staged_rows(step.name, view))))
        return name

    def _full_query(self, view: ViewInput) -> Relation | str:
        """A bag is recomputed by the user's own text; groups by the rows that are stored for them."""
        leaves = self._leaves(view)
        if view.layout.groups is None or view.layout.rows is None:
            relations = {table: self._relation_text(view, leaves, table) for table in view.analysis.tables}
            text = view.analysis.text.fill(relations)
            if not view.definition.columns:
                return text
            # The query's own names are not the view's; who reads the staged rows knows only those.
            names = ", ".join(ident(name) for name in view.layout.columns)
            return f"SELECT * FROM (\n{text}\n) AS _vk_t({names})"
        return _as_stored(view, new(view.layout.rows, leaves))

    def _relation_text(self, view: ViewInput, leaves: ViewLeaves, table: str) -> str:
        """What stands in FROM for a table, in its new state."""
        parent = self._inputs.get(table)
        if parent is None:
            version = self._situation.versions[table]
            if version is None:
                columns = self._situation.unwritten[table]
                nothing = Nothing(tuple(columns), tuple(columns.values()))
                return f"(\n{print_relation(nothing)}\n)"
            return f"{table} VERSION AS OF {version}"
        every_column = tuple(Field(name, name) for name in parent.layout.columns)
        return f"(\n{print_relation(leaves.new(Scan(table, every_column)))}\n)"

    # Maintaining by deltas.

    def _maintain(self, view: ViewInput, work: Work) -> Installer | None:
        relation = view.analysis.relation
        assert relation is not None
        leaves = self._leaves(view, work.changed)
        groups = view.layout.groups
        if groups is None:
            self._extract_for(view, scans(relation))
            return self._maintain_bag(view, relation, leaves, work)
        return self._maintain_groups(view, groups, leaves, work)

    def _maintain_bag(
        self, view: ViewInput, relation: Relation, leaves: ViewLeaves, work: Work
    ) -> Installer | None:
        change = delta(relation, leaves)
        if change is None:
            return None
        if not insert_only(relation, leaves):
            change = consolidate(change)
        stored = view.layout.stored(view.storage, view.snapshot)
        step = ComputeBag(
            self._name("delta"),
            view.name,
            change.relation,
            self._name("victims"),
            stored,
            view.layout.types,
        )
        self._add(step)
        self._outcomes[view.name] = ParentOutcome(Strategy.INCREMENTAL, step.name, None, work.changed or 0)
        self._install(view, Installer.APPLY_BAG, step)
        return Installer.APPLY_BAG

    def _maintain_groups(
        self, view: ViewInput, groups: Groups, leaves: ViewLeaves, work: Work
    ) -> Installer | None:
        stored = view.layout.identified(view.storage, view.snapshot)
        step = self._touched_groups(view, groups, stored, leaves, work)
        if step is None:
            return None
        self._add(step)
        delta_name = None
        if self._children[view.name]:
            delta_name = self._visible(view, _groups_delta(view, groups, stored, step))
        self._outcomes[view.name] = ParentOutcome(Strategy.INCREMENTAL, delta_name, None, work.changed or 0)
        self._install(view, Installer.MERGE_GROUPS, step)
        return Installer.MERGE_GROUPS

    def _touched_groups(
        self, view: ViewInput, groups: Groups, stored: Relation, leaves: ViewLeaves, work: Work
    ) -> ComputeGroups | None:
        """The step that computes the groups that the change touches; ``None`` when there is no change."""
        name = self._name("groups")
        if not can_combine(groups.kept):
            self._extract_for(view, scans(groups.child))
            change = delta(groups.child, leaves)
            if change is None:
                return None
            return ComputeGroups(name, view.name, touched_by_recomputing(groups, stored, change, leaves))
        prepared = self._prepared_changes(view, groups, leaves, work)
        if prepared is None:
            return None
        sd, only_insertions = self._summary_delta(view, groups, leaves, prepared, work)
        touched = touched_by_summary_delta(groups, stored, sd, insert_only=only_insertions)
        if is_self_maintainable(groups.kept, insert_only=only_insertions):
            return ComputeGroups(name, view.name, touched)
        draft = Staged(self._name("draft"), tuple(Field(each, each) for each in touched.columns), small=True)
        return ComputeGroups(name, view.name, touched, draft.name, recomputed(groups, draft, leaves))

    def _prepared_changes(
        self, view: ViewInput, groups: Groups, leaves: ViewLeaves, work: Work
    ) -> tuple[Relation, bool, str] | None:
        """prepare-changes, whether it holds insertions only, and what it is made of."""
        changed = self._changed_tables(view)
        best = self._sharing.best(view, groups, changed, work.incremental)
        if best is not None:
            cost, edge = best
            self._extract_for(view, [scan for scan in scans(groups.child) if scan.table in edge.joins])
            only = self._sharing.made[edge.upper].insert_only and not edge.joins & set(changed)
            self._derived_from[view.name] = (edge.upper, cost)
            source = f"summary-delta from that of {edge.upper}"
            return self._sharing.changes(edge, groups, leaves, insert_only=only), only, source
        self._extract_for(view, scans(groups.child))
        change = delta(groups.child, leaves)
        if change is None:
            return None
        only = insert_only(groups.child, leaves)
        return prepare_changes(groups, change, insert_only=only), only, "summary-delta"

    def _summary_delta(
        self,
        view: ViewInput,
        groups: Groups,
        leaves: ViewLeaves,
        prepared: tuple[Relation, bool, str],
        work: Work,
    ) -> tuple[Relation, bool]:
        """The summary-delta, staged for this view and for those that are derived from it."""
        changes, only_insertions, source = prepared
        sd = leaves.share(summary_delta(groups, changes, insert_only=only_insertions), source)
        rows = groups_touched(work.changed or 0, view.rows)
        self._sharing.made[view.name] = SharedDelta(view, sd, only_insertions, rows)
        return sd, only_insertions

    def _extract_for(self, view: ViewInput, tables: Iterable[Scan]) -> None:
        """Make sure that what the view's deltas begin with is extracted, with all the columns needed."""
        for scan in tables:
            parent = self._inputs.get(scan.table)
            span = self._span(view, scan.table)
            change = self._situation.changes.get(span)
            if change is None:
                continue
            fields = scan.fields if parent is None else parent.layout.fields
            columns = dict.fromkeys(field.stored for field in fields)
            known = self._extracts.get(span)
            if known is not None:
                columns = dict.fromkeys((*known.columns, *columns))
                if len(columns) == len(known.columns):
                    continue
            self._extracts[span] = Extract(
                name=self._name("extract") if known is None else known.name,
                table=span[0],
                old=span[1],
                new=span[2],
                columns=tuple(columns),
                sql=change.sql(tuple(columns)),
                method=change.method,
                reason=change.reason,
                inserted=change.inserted,
                deleted=change.deleted,
                table_rows=self._situation.rows.get(scan.table) if parent is None else parent.rows,
            )

    # Building blocks.

    def _visible(self, view: ViewInput, change: Delta) -> str:
        name = self._name("visible")
        self._add(ComputeVisible(name, view.name, change.relation))
        return name

    def _leaves(self, view: ViewInput, changed_rows: int | None = None) -> ViewLeaves:
        parents = {
            table: (self._inputs[table], self._outcomes[table])
            for table in view.analysis.tables
            if table in self._inputs
        }
        return ViewLeaves(view, self._situation, parents, self._extracts, self._add, self._name, changed_rows)

    def _install(self, view: ViewInput, installer: Installer, source: Compute) -> None:
        self._installs.append(Install(view.name, view.storage, view.snapshot, installer, view.layout, source))

    def _add(self, step: Step) -> None:
        self._computes.append(step)

    def _name(self, what: str) -> str:
        self._names += 1
        return f"global_temp.{self._situation.prefix}_{what}_{self._names}"


def _children(views: Iterable[ViewInput]) -> Mapping[str, list[str]]:
    children: dict[str, list[str]] = {view.name: [] for view in views}
    for view in views:
        for table in view.analysis.tables:
            if table in children:
                children[table].append(view.name)
    return children


def _as_stored(view: ViewInput, rows: Relation) -> Relation:
    """Rows under the algebra's names, as the storage table has them."""
    return Project(rows, tuple(Named(field.stored, column(field.name)) for field in view.layout.fields))


def _staged_rows(name: str, view: ViewInput) -> Staged:
    return Staged(name, view.layout.fields)


def _groups_delta(view: ViewInput, groups: Groups, stored: Relation, step: ComputeGroups) -> Delta:
    """−(the touched groups as they are shown now), +(as they will be shown)."""
    columns = (*groups.keys, *(kept.name for kept in groups.all_kept), OPERATION)
    touched = Staged(step.name, tuple(Field(name, name) for name in columns), small=True)
    remaining = Filter(touched, compose(column(OPERATION), " <> 'D'"))
    before: Relation = stored
    if groups.keys:
        before = restrict(stored, Project(touched, keep(groups.keys)))
    both = plus((inserted(view.layout.shown(remaining)), deleted(view.layout.shown(before))))
    assert both is not None
    return consolidate(both)
