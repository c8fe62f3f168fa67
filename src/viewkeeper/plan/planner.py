"""Puts an epoch together: bottom-up over the views, what to do with each and the steps that do it.

All extractions and computations come before all installations: while deltas are computed, no view changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from viewkeeper.algebra.estimates import known_sum, work_of_delta
from viewkeeper.algebra.relations import Relation
from viewkeeper.algebra.rules.delta import untouched
from viewkeeper.plan.choice import DOUBT, MEASURED_DOUBT, STRICT, choose
from viewkeeper.plan.common_deltas import CommonDeltas, Problem, choose_common
from viewkeeper.plan.draft import Draft
from viewkeeper.plan.leaves import ParentOutcome
from viewkeeper.plan.maintaining import Maintaining
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import BELIEVED
from viewkeeper.plan.pricing import expected_prices
from viewkeeper.plan.recomputing import Recomputing
from viewkeeper.plan.sharing import SharedDelta, parents_first
from viewkeeper.plan.situation import Joins, Situation, ViewInput
from viewkeeper.plan.steps import EpochPlan, Publish, Strategy, ViewPlan, Work

_UNTOUCHED = "no row that it reads changed"


def plan_epoch(situation: Situation) -> EpochPlan:
    """The plan of one epoch over the situation's views: each alone, then with what they have in common."""
    alone = _Planner(situation, CommonDeltas())
    plan = alone.plan()
    chosen = choose_common(alone.problems(plan)) if situation.options.joins is Joins.OPTIMAL else {}
    return _Planner(situation, CommonDeltas(chosen)).plan() if chosen else plan


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
    def __init__(self, situation: Situation, common: CommonDeltas) -> None:
        self._situation = situation
        self._draft = Draft(situation, common)

    def problems(self, plan: EpochPlan) -> list[Problem]:
        """The joins of this plan whose deltas are computed from the tables."""
        maintained = {view.view for view in plan.views if view.propagations}
        return [each for each in self._draft.common.problems.values() if each.view.name in maintained]

    def plan(self) -> EpochPlan:
        ordered = parents_first(self._situation.views, self._draft.sharing)
        planned = {view.name: self._view(view) for view in ordered}
        plans = tuple(planned[view.name] for view in self._situation.views)
        steps = self._draft.steps
        if any(plan.changed for plan in plans):
            steps.append(Publish(tuple(plan.view for plan in plans if plan.changed)))
        return EpochPlan(plans, tuple(steps), tuple(sorted(self._situation.versions.items())))

    # One view: has anything moved, what is to be done, and the steps.

    def _view(self, view: ViewInput) -> ViewPlan:
        changed = self._draft.changed_tables(view)
        work = self._work(view, changed)
        vector = self._new_vector(view)
        if not changed and view.needs_full is None and self._policy(view) != "full":
            self._draft.sharing.made[view.name] = SharedDelta(view, None, insert_only=True, rows=0)
            return self._unchanged(view, "nothing changed", work, (), vector)

        obstacle = self._obstacle(view, changed)
        moved = changed or (view.name,)
        if obstacle is None and self._policy(view) != "full" and self._is_untouched(view):
            # A compaction, say, or rows that its conditions leave out.
            return self._unchanged(view, _UNTOUCHED, work, moved, vector)
        prices = () if obstacle else tuple(expected_prices(self._draft, view, work, changed))
        choice = choose(
            view.name, self._policy(view), obstacle, work, self._recomputed(view), prices, self._doubt(view)
        )
        if choice.strategy is Strategy.FULL:
            installer, upper = Recomputing(self._draft, view).plan(work)
            return ViewPlan(
                view.name,
                Strategy.FULL,
                installer,
                choice.reason,
                work,
                moved,
                vector,
                upper,
                prices=prices,
                method=Method.FULLRECOMP,
            )
        expected = next((price.method for price in prices if price.method is not Method.FULLRECOMP), None)
        maintained = Maintaining(self._draft, view, work, expected).plan()
        if maintained is None:
            return self._unchanged(view, _UNTOUCHED, work, moved, vector)
        return ViewPlan(
            view.name,
            Strategy.INCREMENTAL,
            maintained.installer,
            choice.reason,
            replace(work, incremental=maintained.cost),
            moved,
            vector,
            maintained.derived_from,
            maintained.propagations,
            prices,
            self._draft.method(view) or expected,
            choice.because,
        )

    def _unchanged(
        self,
        view: ViewInput,
        reason: str,
        work: Work,
        moved: tuple[str, ...],
        vector: tuple[tuple[str, str | None], ...],
    ) -> ViewPlan:
        self._draft.outcomes[view.name] = ParentOutcome(Strategy.UNCHANGED, None, None, 0)
        return ViewPlan(view.name, Strategy.UNCHANGED, None, reason, work, moved, vector)

    def _doubt(self, view: ViewInput) -> float:
        if self._situation.rates == BELIEVED:
            return DOUBT
        return MEASURED_DOUBT if self._draft.has_children(view) else 0.0

    def _policy(self, view: ViewInput) -> str:
        policy = self._situation.policy or view.definition.policy or "auto"
        if policy == STRICT and view.snapshot is None and view.analysis.relation is not None:
            return "incremental"  # it has to be filled once; from then on deltas are insisted upon
        return policy

    def _obstacle(self, view: ViewInput, changed: Iterable[str]) -> str | None:
        """Why deltas cannot be used for this view now, if so."""
        no_rule = None if view.analysis.relation is not None else str(view.analysis.reason)
        if view.needs_full is not None:
            return (no_rule if self._policy(view) == STRICT else None) or view.needs_full
        if no_rule is not None:
            return no_rule
        for table in view.analysis.tables:
            outcome = self._draft.outcomes.get(table)
            if outcome is not None and outcome.rows is not None and outcome.delta is None:
                return f"{table} was built anew"
        for table in changed:
            lost = self._situation.lost.get(self._draft.span(view, table))
            if lost is not None:
                return lost
        return None

    def _recomputed(self, view: ViewInput) -> tuple[str, ...]:
        outcomes = self._draft.outcomes
        return tuple(
            table
            for table in view.analysis.tables
            if table in outcomes and outcomes[table].strategy is Strategy.FULL
        )

    def _new_vector(self, view: ViewInput) -> tuple[tuple[str, str | None], ...]:
        """The versions that the view will stand at; those of parents are known only when installed."""
        return tuple(
            (table, self._situation.versions[table])
            for table in view.analysis.tables
            if table not in self._draft.inputs
        )

    def _work(self, view: ViewInput, changed: Iterable[str]) -> Work:
        """Rows read: by deltas those of the expression's operands, by recomputing those of the tables."""
        full = known_sum(map(self._rows_of, view.analysis.tables))
        if view.needs_full is not None:
            return Work(full=full)
        moved = list(changed)
        known = sum(self._known_delta(view, table) for table in moved)
        changed_rows = known_sum(self._delta_estimate(view, table) for table in moved)
        below = self._below(view)
        read = None if below is None else work_of_delta(below, self._draft.leaves(view))
        return Work(changed_rows, known, read, full)

    def _rows_of(self, table: str) -> int | None:
        parent = self._draft.inputs.get(table)
        return self._situation.rows.get(table) if parent is None else parent.rows

    def _is_untouched(self, view: ViewInput) -> bool:
        below = self._below(view)
        return below is not None and untouched(below, self._draft.leaves(view))

    @staticmethod
    def _below(view: ViewInput) -> Relation | None:
        """What the change of a view is made of; touched groups come from the storage, and so do rows beyond a
        LIMIT."""
        layout = view.layout
        if layout.groups is not None:
            return layout.groups.child
        return view.analysis.relation if layout.reserve is None else layout.rows

    def _known_delta(self, view: ViewInput, table: str) -> int:
        change = self._draft.change(view, table)
        return 0 if change is None else change.inserted + change.deleted

    def _delta_estimate(self, view: ViewInput, table: str) -> int | None:
        outcome = self._draft.outcomes.get(table)
        return known_sum((self._known_delta(view, table), 0 if outcome is None else outcome.delta_estimate))
