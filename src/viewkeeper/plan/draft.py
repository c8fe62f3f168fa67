"""An epoch's plan while it grows: the steps so far, and the names that their results are staged under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import Join, Scan, Staged, scans
from viewkeeper.algebra.rules.delta import delta
from viewkeeper.algebra.rules.hanging import Tree, hanging
from viewkeeper.plan.common_deltas import CommonDeltas
from viewkeeper.plan.leaves import ParentOutcome, ViewLeaves
from viewkeeper.plan.methods import Method
from viewkeeper.plan.references import settled, without_unused
from viewkeeper.plan.sharing import sharing_between
from viewkeeper.plan.situation import Joins, Situation, Span, ViewInput
from viewkeeper.plan.source_change import SourceChange
from viewkeeper.plan.steps import Compute, ComputeVisible, Extract, Install, Installer, Step, Strategy


class Draft:
    """What is planned so far. Views are added parents first."""

    def __init__(self, situation: Situation, common: CommonDeltas | None = None) -> None:
        self.situation = situation
        self.common = CommonDeltas() if common is None else common
        self.inputs = {view.name: view for view in (*situation.read_only, *situation.views)}
        self.outcomes = {
            view.name: ParentOutcome(Strategy.UNCHANGED, None, None, 0) for view in situation.read_only
        }
        sizes = {**situation.rows, **{view.name: view.rows for view in self.inputs.values()}}
        self.sharing = sharing_between(situation.views, sizes, situation.options.aggregates)
        self._children = _children(self.inputs.values())
        self.extracts: dict[Span, Extract] = {}
        self._computes: list[Step] = []
        self._installs: list[Install] = []
        self._names = 0

    @property
    def steps(self) -> list[Step]:
        """Extractions and computations, then installations; nothing that nobody reads."""
        steps = without_unused([*self.extracts.values(), *self._computes, *self._installs])
        return settled(steps, stage_extracts=self.situation.options.stage_extracts)

    def has_children(self, view: ViewInput) -> bool:
        """Whether other views read this one."""
        return bool(self._children[view.name])

    def is_asked(self, view: ViewInput) -> bool:
        """Whether views that read this one may ask for its change: those that can be kept by deltas."""
        return any(self._takes_deltas(self.inputs[child]) for child in self._children[view.name])

    def _takes_deltas(self, view: ViewInput) -> bool:
        policy = self.situation.policy or view.definition.policy
        return policy != "full" and view.needs_full is None and view.analysis.relation is not None

    # Where a view stands.

    def changed_tables(self, view: ViewInput) -> tuple[str, ...]:
        """The tables that the view reads and that moved since its rows were computed."""
        return tuple(table for table in view.analysis.tables if self._has_moved(view, table))

    def _has_moved(self, view: ViewInput, table: str) -> bool:
        if table not in view.vector:
            return True
        parent = self.inputs.get(table)
        if parent is None:
            return self.situation.versions[table] != view.vector[table]
        return (
            parent.snapshot != view.vector[table] or self.outcomes[table].strategy is not Strategy.UNCHANGED
        )

    def span(self, view: ViewInput, table: str) -> Span:
        """What lies between the version of a table that the view knows and the one it moves to."""
        parent = self.inputs.get(table)
        if parent is None:
            return table, view.vector[table], self.situation.versions[table]
        return parent.storage, view.vector[table], parent.snapshot

    def change(self, view: ViewInput, table: str) -> SourceChange | None:
        """What is known of that from metadata; ``None`` if nothing is, as of what a parent goes through in
        this very epoch."""
        return self.situation.changes.get(self.span(view, table)) if table in view.vector else None

    def leaves(self, view: ViewInput, changed_rows: int | None = None) -> ViewLeaves:
        """What stands for tables in the rules, for this view."""
        return ViewLeaves(view, self, self._parents(view), changed_rows, self.common)

    def _parents(self, view: ViewInput) -> dict[str, tuple[ViewInput, ParentOutcome]]:
        tables = (table for table in view.analysis.tables if table in self.inputs)
        return {table: (self.inputs[table], self.outcomes[table]) for table in tables}

    def compute_common(
        self, view: ViewInput, relation: Join, what: str, rows: int, counts: str | None
    ) -> Staged:
        """Add the steps that compute the delta of a part that several views need."""
        self.extract_for(view, scans(relation))
        smaller = self.common.smaller(len(relation.inputs))
        # No view would be told what the parts of it held: they would be counted in every epoch.
        leaves = ViewLeaves(view, self, self._parents(view), rows, smaller, counts_parts=False)
        change = delta(relation, leaves)
        assert change is not None, "something changed"
        return leaves.share(change.relation, what, counts=counts)

    def applied(self, table: str) -> ViewInput | None:
        """The view of this name, if its new rows are nowhere but in its old ones and its change."""
        outcome = self.outcomes.get(table)
        if outcome is None or outcome.delta is None or outcome.rows is not None:
            return None
        return self.inputs[table]

    def compared(self, table: str) -> ViewInput | None:
        """The view of this name, if its change is found by comparing its old rows with its new ones."""
        outcome = self.outcomes.get(table)
        if outcome is None or outcome.delta is None or outcome.rows is None:
            return None
        return self.inputs[table]

    # Steps.

    def extract_for(self, view: ViewInput, tables: Iterable[Scan]) -> None:
        """Make sure that what the view's deltas begin with is extracted, with all the columns needed."""
        for scan in tables:
            parent = self.inputs.get(scan.table)
            span = self.span(view, scan.table)
            change = self.situation.changes.get(span)
            if change is None:
                continue
            fields = scan.fields if parent is None else parent.layout.fields
            columns = dict.fromkeys(field.stored for field in fields)
            known = self.extracts.get(span)
            if known is not None:
                columns = dict.fromkeys((*known.columns, *columns))
                if len(columns) == len(known.columns):
                    continue
            self.extracts[span] = Extract(
                name=self.name("extract") if known is None else known.name,
                table=span[0],
                old=span[1],
                new=span[2],
                columns=tuple(columns),
                statements=change.statements(tuple(columns)),
                method=change.method,
                reason=change.reason,
                inserted=change.inserted,
                deleted=change.deleted,
                table_rows=self.situation.rows.get(scan.table) if parent is None else parent.rows,
            )

    def visible(self, view: ViewInput, change: Delta) -> str:
        """Add the step that computes what the readers of a view see change; the name of its result."""
        name = self.name("visible")
        self.add(ComputeVisible(name, view.name, change.relation))
        return name

    def install(
        self, view: ViewInput, installer: Installer, source: Compute, expected: Method | None = None
    ) -> Installer:
        self._installs.append(
            Install(
                view.name,
                view.storage,
                view.snapshot,
                installer,
                view.layout,
                source,
                self.method(view),
                expected,
                view.has_copies,
            )
        )
        return installer

    def hanging(self, view: ViewInput) -> Tree | None:
        """How the view's join hangs on its largest table, if its touched rows can be replaced: nobody must
        want to know which rows come and go."""
        relation, layout = view.analysis.relation, view.layout
        told = self.has_children(view) or view.definition.looked_at or self.situation.keeps_deltas
        if told or relation is None or layout.groups is not None or layout.reserve is not None:
            return None
        options = self.situation.options
        if options.joins is not Joins.OPTIMAL and options.install is not Method.KEYREPLACE:
            return None  # another way is asked for
        if not view.vector.keys() >= set(view.analysis.tables):
            return None  # it has no rows yet
        return hanging(relation, self.leaves(view))

    def method(self, view: ViewInput) -> Method | None:
        """What the definition asks for, or the options, where it suits the view."""
        if view.layout.in_parts:
            return Method.SDAPPEND
        asked = view.method or self.situation.options.install
        if asked is Method.KEYINSTALL and not view.key:
            return None
        if asked is Method.KEYREPLACE and self.hanging(view) is None:
            return None
        return asked

    def add(self, step: Step) -> None:
        self._computes.append(step)

    def name(self, what: str) -> str:
        """A new name to stage something under."""
        self._names += 1
        return f"global_temp.{self.situation.prefix}_{what}_{self._names}"


def _children(views: Iterable[ViewInput]) -> Mapping[str, list[str]]:
    children: dict[str, list[str]] = {view.name: [] for view in views}
    for view in views:
        for table in view.analysis.tables:
            if table in children:
                children[table].append(view.name)
    return children
