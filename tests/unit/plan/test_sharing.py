"""Which summary-deltas an epoch shares between its views."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Relation, TableAt, children
from viewkeeper.algebra.scalars import column
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.references import staged_in
from viewkeeper.plan.situation import Aggregates, Options
from viewkeeper.plan.steps import ComputeGroups, ComputeRows, EpochPlan, Extract, Install, Share

from .world import SALES, STORES, FakeChange, by_store, joined, situation, view

total = Aggregate(by_store.child, (), (AggregateCall("total", "sum", (column("amount"),)),))
by_city = Aggregate(joined, ("city",), (AggregateCall("total", "sum", (column("amount"),)),))
AT_ONE = {SALES: "1", STORES: "1"}


def derived(plan: EpochPlan) -> dict[str, str | None]:
    return {
        each.view.rsplit(".", 1)[-1]: each.derived_from and each.derived_from.rsplit(".", 1)[-1]
        for each in plan.views
    }


def test_a_coarser_view_is_made_from_a_finer_one_whatever_their_order() -> None:
    views = (
        view("total", total, (SALES,), vector={SALES: "1"}),
        view("by_city", by_city, (SALES, STORES), vector=AT_ONE),
        view("by_store", by_store, (SALES,), vector={SALES: "1"}),
    )
    plan = plan_epoch(situation(*views, sales=FakeChange(500, 500)))
    assert derived(plan) == {"total": "by_store", "by_city": "by_store", "by_store": None}
    assert [each.view for each in plan.views] == [each.name for each in views]
    assert sum(isinstance(step, Extract) for step in plan.steps) == 1
    whats = [step.what for step in plan.steps if isinstance(step, Share)]
    assert whats[0] == "summary-delta"


def test_when_only_the_dimension_changed_the_stored_groups_stand_for_the_facts() -> None:
    views = (
        view("by_store", by_store, (SALES,), vector={SALES: "1"}),
        view("by_city", by_city, (SALES, STORES), vector=AT_ONE),
    )
    plan = plan_epoch(situation(*views, stores=FakeChange(1, 1)))
    assert derived(plan) == {"by_store": None, "by_city": "by_store"}
    # 1,000 stored groups and 100 stores, in the place of 10,000 sales.
    assert plan.views[1].work.incremental == 1_100


def test_groups_that_lost_their_extremum_are_recomputed_from_the_view_above() -> None:
    least = Aggregate(joined, ("city",), (AggregateCall("least", "min", (column("store"),)),))
    views = (
        view("by_store", by_store, (SALES,), vector={SALES: "1"}),
        view("by_city", least, (SALES, STORES), vector=AT_ONE),
    )
    changed = situation(*views, sales=FakeChange(500, 500))
    plan = plan_epoch(changed)
    above, below = (step for step in plan.steps if isinstance(step, ComputeGroups))
    assert below.recomputed_from == views[0].name
    assert below.recomputed is not None
    # The stored groups of the view above, with those that this epoch touches in their place.
    assert above.name in staged_in(below.recomputed)
    assert {table.table for table in tables_in(below.recomputed)} == {views[0].storage, STORES}

    alone = plan_epoch(replace(changed, options=Options(Aggregates.ALONE)))
    assert [step.recomputed_from for step in alone.steps if isinstance(step, ComputeGroups)] == [None, None]


def tables_in(relation: Relation) -> list[TableAt]:
    here = [relation] if isinstance(relation, TableAt) else []
    return here + [table for child in children(relation) for table in tables_in(child)]


def test_views_of_another_time_zone_or_at_other_versions_are_left_alone() -> None:
    fine = view("by_store", by_store, (SALES,), vector={SALES: "1"})
    coarse = view("total", total, (SALES,), vector={SALES: "1"})
    elsewhere = replace(coarse.definition, session=replace(coarse.definition.session, time_zone="Asia/Tokyo"))
    plan = plan_epoch(situation(fine, replace(coarse, definition=elsewhere), sales=FakeChange()))
    assert derived(plan) == {"by_store": None, "total": None}


def test_recomputed_views_are_made_from_each_other() -> None:
    views = (
        view("by_city", by_city, (SALES, STORES), vector=AT_ONE),
        view("by_store", by_store, (SALES,), vector={SALES: "1"}),
        view("total", total, (SALES,), vector={SALES: "1"}),
    )
    plan = plan_epoch(replace(situation(*views, sales=FakeChange()), policy="full"))
    # The grand total has no keys: over an empty table it is one row, which no group above would tell.
    assert derived(plan) == {"by_city": "by_store", "by_store": None, "total": None}
    staged = {step.view: step.staged for step in plan.steps if isinstance(step, ComputeRows)}
    assert [name.rsplit(".", 1)[-1] for name, kept in staged.items() if kept] == ["by_store"]
    for step in plan.steps:
        if isinstance(step, Install):
            assert isinstance(step.source, ComputeRows)
            assert step.source.staged == staged[step.view]


def test_views_that_are_filled_for_the_first_time_are_made_from_each_other() -> None:
    filled = (
        view("by_store", by_store, (SALES,), vector={SALES: "1"}),
        view("by_city", by_city, (SALES, STORES), vector=AT_ONE),
    )
    views = [
        replace(each, vector={}, snapshot=None, needs_full="it has no rows yet", rows=0) for each in filled
    ]
    plan = plan_epoch(situation(*views))
    assert derived(plan) == {"by_store": None, "by_city": "by_store"}


def test_other_ways_can_be_chosen_to_compare() -> None:
    views = (
        view("by_store", by_store, (SALES,), vector={SALES: "1"}),
        view("by_city", by_city, (SALES, STORES), vector=AT_ONE),
    )
    seen = situation(*views, sales=FakeChange(500, 500))
    alone = plan_epoch(replace(seen, options=Options(Aggregates.ALONE)))
    counting = plan_epoch(replace(seen, options=Options(Aggregates.COUNTING)))
    full = plan_epoch(replace(seen, options=Options(Aggregates.ALONE), policy="full"))
    nobody = {"by_store": None, "by_city": None}
    assert derived(alone) == derived(counting) == derived(full) == nobody
    whats = [[step.what for step in plan.steps if isinstance(step, Share)] for plan in (alone, counting)]
    assert whats == [["summary-delta"] * 2, ["affected groups"] * 2]


def test_an_extract_that_is_read_once_is_not_staged() -> None:
    fine = view("by_store", by_store, (SALES,), vector={SALES: "1"})
    other = view("also_by_store", by_store, (SALES,), vector={SALES: "1"})
    change = FakeChange(500, 500)
    once = plan_epoch(situation(fine, sales=change))
    twice = plan_epoch(replace(situation(fine, other, sales=change), options=Options(Aggregates.ALONE)))
    apart = plan_epoch(replace(situation(fine, sales=change), options=Options(stage_extracts=True)))
    plans = (once, twice, apart)
    staged = [[step.staged for step in plan.steps if isinstance(step, Extract)] for plan in plans]
    assert staged == [[False], [True], [True]]


def test_many_changes_are_aggregated_before_they_are_joined() -> None:
    few_groups = replace(view("by_city", by_city, (SALES, STORES), vector=AT_ONE), rows=2)
    for change, first in ((FakeChange(600, 400), True), (FakeChange(60, 40), False)):
        plan = plan_epoch(replace(situation(few_groups, sales=change), policy="incremental"))
        (sd,) = [step for step in plan.steps if isinstance(step, Share)]
        assert any("pre-aggregated" in part for part in sd.parts) == first
        inner = [each for each in aggregates_in(sd.relation) if each is not sd.relation]
        assert bool(inner) == first


def aggregates_in(relation: Relation) -> list[Relation]:
    below = [each for child in children(relation) for each in aggregates_in(child)]
    return [relation, *below] if isinstance(relation, Aggregate) else below
