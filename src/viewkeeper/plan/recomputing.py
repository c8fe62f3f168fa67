"""The steps that recompute a view: from its query, or from another view that is recomputed in the same epoch.

v₂ ⪯ v₁ in the lattice of views (Mumick et al. 1997, Section 5):  v₂ = γ_{keys₂}(σ(v₁ ⋈ D))
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.first_rows import first
from viewkeeper.algebra.relations import Field, Nothing, Relation, Scan, Staged
from viewkeeper.algebra.rules.leaves import new
from viewkeeper.define.clock import NOW, is_clock
from viewkeeper.plan.draft import Draft
from viewkeeper.plan.expectations import check_dropped, check_rows
from viewkeeper.plan.leaves import ParentOutcome, ViewLeaves, difference
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.steps import ComputeRows, ComputeVisible, Installer, Strategy, Work
from viewkeeper.sql.printer import at_version, print_relation
from viewkeeper.sql.quoting import ident


@dataclass(frozen=True, slots=True)
class Recomputing:
    """One view's recomputation."""

    draft: Draft
    view: ViewInput

    def plan(self, work: Work) -> tuple[Installer, str | None]:
        """Add the steps; the installer, and the view that this one is made from, if it is."""
        draft, view = self.draft, self.view
        has_children = draft.has_children(view)
        columns = tuple(field.stored for field in view.layout.fields)
        query, upper = self._query(work)
        apart = not draft.situation.read_apart.isdisjoint(view.analysis.tables)
        step = ComputeRows(draft.name("rows"), view.name, query, columns, staged=True, apart=apart)
        draft.add(step)
        rows = Staged(step.name, view.layout.fields)
        draft.sharing.recomputed[view.name] = (view, rows)
        delta_name = None
        if has_children and view.snapshot is not None and view.needs_full is None:
            stored = view.stored
            delta_name = draft.visible(view, difference(view.layout, rows, view.layout.whole(stored)))
        expected = view.definition.looked_at
        rows_name = self._shown_rows(rows) if has_children or expected else None
        if expected and rows_name is not None:
            shown = tuple(Field(name, name) for name in view.layout.columns)
            check_rows(draft, view, Staged(rows_name, shown))
        check_dropped(draft, view, None)
        draft.outcomes[view.name] = ParentOutcome(Strategy.FULL, delta_name, rows_name, view.rows or None)
        return draft.install(view, Installer.OVERWRITE, step), upper

    def _shown_rows(self, rows: Staged) -> str:
        """The staged name of the user's rows; the stored rows themselves where they are the same."""
        if self.view.layout.groups is None and self.view.layout.top is None:
            return rows.name
        name = self.draft.name("shown")
        self.draft.add(ComputeVisible(name, self.view.name, self.view.layout.shown(rows)))
        return name

    def _query(self, work: Work) -> tuple[Relation | str, str | None]:
        """A bag is recomputed by the user's own text; groups by the rows that are stored for them, and so is
        what is kept beyond a LIMIT."""
        view, leaves = self.view, self.draft.leaves(self.view)
        groups, reserve = view.layout.groups, view.layout.reserve
        if reserve is not None and view.layout.rows is not None:
            rows = first(new(view.layout.rows, leaves), reserve.order, reserve.kept)
            return view.layout.as_stored(rows), None
        if groups is None or view.layout.rows is None:
            return self._text(leaves), None
        edge = self.draft.sharing.best_rows(view, groups, work.full)
        if edge is None:
            return view.layout.as_stored(new(view.layout.rows, leaves)), None
        return view.layout.as_stored(self.draft.sharing.rows(edge, groups, leaves)), edge.upper

    def _text(self, leaves: ViewLeaves) -> str:
        view = self.view
        relations = {table: self._relation_text(leaves, table) for table in view.analysis.tables}
        text = view.analysis.text.fill(relations)
        if not view.definition.columns:
            return text
        # The query's own names are not the view's; who reads the staged rows knows only those.
        names = ", ".join(ident(name) for name in view.layout.columns)
        return f"SELECT * FROM (\n{text}\n) AS _vk_t({names})"

    def _relation_text(self, leaves: ViewLeaves, table: str) -> str:
        """What stands in FROM for a table, in its new state."""
        parent = self.draft.inputs.get(table)
        if parent is None:
            version = self.draft.situation.versions[table]
            if is_clock(table):
                return f"({print_relation(leaves.new(Scan(table, (Field(NOW, NOW),))))})"
            if table in self.draft.situation.relations:
                return self.draft.situation.relations[table]
            if version is None:
                columns = self.draft.situation.unwritten[table]
                nothing = Nothing(tuple(columns), tuple(columns.values()))
                return f"(\n{print_relation(nothing)}\n)"
            return table + at_version(version, self.draft.situation.read_options.get(table, ()))
        every_column = tuple(Field(name, name) for name in parent.layout.columns)
        return f"(\n{print_relation(leaves.new(Scan(table, every_column)))}\n)"
