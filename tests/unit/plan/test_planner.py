from __future__ import annotations

import json
from dataclasses import replace

import pytest

from viewkeeper.algebra.relations import Field, Join, Scan
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.errors import RefreshError
from viewkeeper.plan.choice import choose
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.hypothetical import as_if_all_changed
from viewkeeper.plan.methods import OF_GROUPS, Method
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.prices import BELIEVED, Operation, Rate
from viewkeeper.plan.steps import (
    ComputeBag,
    ComputeGroups,
    ComputeRows,
    ComputeVisible,
    Extract,
    Install,
    Installer,
    Publish,
    Share,
    Strategy,
    Work,
)
from viewkeeper.sql.printer import print_relation

from .world import SALES, STORES, FakeChange, by_store, large, sales, scan, situation, view

AT_ONE = {SALES: "1", STORES: "1"}


def printed(relation):
    return print_relation(relation).replace("`", "")


def kinds(plan):
    return [type(step).__name__ for step in plan.steps]


def test_nothing_changed_is_no_work_at_all():
    plan = plan_epoch(situation(view("g", by_store, (SALES,), vector=AT_ONE)))
    assert plan.changes_nothing
    assert plan.steps == ()
    assert plan.views[0].strategy is Strategy.UNCHANGED


def test_an_aggregate_is_kept_by_its_summary_delta():
    plan = plan_epoch(situation(view("g", by_store, (SALES,), vector=AT_ONE), sales=FakeChange()))
    assert kinds(plan) == ["Extract", "Share", "ComputeGroups", "Install", "Publish"]
    assert plan.views[0].strategy is Strategy.INCREMENTAL
    assert plan.views[0].installer is Installer.MERGE_GROUPS
    share = next(step for step in plan.steps if isinstance(step, Share))
    assert share.what == "summary-delta"
    assert "sum((amount) * _vk_w)" in print_relation(share.relation).replace(
        "amount * _vk_w", "(amount) * _vk_w"
    )


def test_a_join_has_one_term_per_changed_table():
    both = situation(
        view("j", large, (SALES, STORES), vector=AT_ONE), sales=FakeChange(), stores=FakeChange(1, 1)
    )
    plan = plan_epoch(both)
    compute = next(step for step in plan.steps if isinstance(step, ComputeBag))
    text = printed(compute.relation)
    assert text.count("UNION ALL") == 1
    # Sales come first, so the second term joins the delta of stores with the new sales.
    assert f"{SALES} VERSION AS OF 2" in text
    assert f"{STORES} VERSION AS OF 1" in text
    assert f"{SALES} VERSION AS OF 1" not in text

    only_stores = situation(view("j", large, (SALES, STORES), vector=AT_ONE), stores=FakeChange(1, 1))
    (extract,) = [step for step in plan_epoch(only_stores).steps if isinstance(step, Extract)]
    assert extract.table == STORES


def test_all_computing_comes_before_all_installing():
    views = (
        view("g", by_store, (SALES,), vector=AT_ONE),
        view("j", large, (SALES, STORES), vector=AT_ONE),
        view("full", None, (SALES, STORES), vector=AT_ONE),
    )
    plan = plan_epoch(situation(*views, sales=FakeChange(), stores=FakeChange(1, 1)))
    installs = [at for at, step in enumerate(plan.steps) if isinstance(step, Install)]
    computes = [
        at for at, step in enumerate(plan.steps) if isinstance(step, (ComputeBag, ComputeGroups, ComputeRows))
    ]
    assert max(computes) < min(installs)
    assert isinstance(plan.steps[-1], Publish)


def test_one_extraction_serves_all_views_with_all_their_columns():
    views = (
        view("g", by_store, (SALES,), vector=AT_ONE),
        view("j", large, (SALES, STORES), vector=AT_ONE),
    )
    plan = plan_epoch(situation(*views, sales=FakeChange()))
    (extract,) = [step for step in plan.steps if isinstance(step, Extract)]
    assert extract.columns == ("store", "amount")


def test_views_at_different_versions_have_deltas_of_their_own():
    lagging = view("old", by_store, (SALES,), vector={SALES: "0"})
    current = view("now", by_store, (SALES,), vector={SALES: "1"})
    world = situation(lagging, current, sales=FakeChange())
    world = replace(world, changes={**world.changes, (SALES, "0", "2"): FakeChange(20, 20)})
    spans = {(step.old, step.new) for step in plan_epoch(world).steps if isinstance(step, Extract)}
    assert spans == {("0", "2"), ("1", "2")}


def test_a_compaction_moves_the_version_and_installs_nothing():
    plan = plan_epoch(situation(view("g", by_store, (SALES,), vector=AT_ONE), sales=None))
    (planned,) = plan.views
    assert planned.strategy is Strategy.UNCHANGED
    assert planned.changed == (SALES,)
    assert kinds(plan) == ["Publish"]


def test_a_derived_view_reads_its_parents_delta_not_the_source():
    parent = view("g", by_store, (SALES,), vector=AT_ONE)
    child_query = scan(parent.name, "store", "n", "total")
    child = view("d", child_query, (parent.name,), vector={parent.name: "100"})
    plan = plan_epoch(situation(parent, child, sales=FakeChange()))
    visible = next(step for step in plan.steps if isinstance(step, ComputeVisible))
    assert visible.view == parent.name
    compute = next(step for step in plan.steps if isinstance(step, ComputeBag))
    text = printed(compute.relation)
    assert visible.name in text
    assert SALES not in text


def test_the_storage_of_a_view_is_read_once_though_others_ask_for_its_delta():
    parent = view("g", by_store, (SALES,), vector=AT_ONE)
    child = view("d", scan(parent.name, "store", "n"), (parent.name,), vector={parent.name: "100"})
    plan = plan_epoch(situation(parent, child, sales=FakeChange()))
    reading = [
        step for step in plan.steps if parent.storage in printed(getattr(step, "relation", child.stored))
    ]
    assert [type(step) for step in reading] == [ComputeGroups]
    assert reading[0].remembers


def test_an_unread_view_computes_no_visible_delta():
    plan = plan_epoch(situation(view("g", by_store, (SALES,), vector=AT_ONE), sales=FakeChange()))
    assert "ComputeVisible" not in kinds(plan)


def test_a_descendant_that_lags_takes_what_its_parent_went_through():
    parent = view("g", by_store, (SALES,), vector=AT_ONE)
    child = view("d", scan(parent.name, "store", "n"), (parent.name,), vector={parent.name: "90"})
    world = situation(parent, child)
    world = replace(world, changes={(parent.storage, "90", "100"): FakeChange()})
    plan = plan_epoch(world)
    (extract,) = [step for step in plan.steps if isinstance(step, Extract)]
    assert (extract.table, extract.old, extract.new) == (parent.storage, "90", "100")
    assert plan.view(parent.name).strategy is Strategy.UNCHANGED
    assert plan.view(child.name).strategy is Strategy.INCREMENTAL


def test_large_changes_are_recomputed_unless_the_policy_says_otherwise():
    one = replace(view("g", by_store, (SALES,), vector=AT_ONE), rows=5_000_000)
    rows = {SALES: 10_000_000, STORES: 100}
    few = plan_epoch(replace(situation(one, sales=FakeChange(1_000, 1_000)), rows=rows)).views[0]
    assert few.strategy is Strategy.INCREMENTAL
    many = replace(situation(one, sales=FakeChange(5_000_000, 5_000_000)), rows=rows)
    plan = plan_epoch(many).views[0]
    assert plan.strategy is Strategy.FULL
    assert "recomputing is cheaper: about" in (plan.reason or "")
    assert plan.prices[0].method is Method.FULLRECOMP
    assert {price.method for price in plan.prices} == {*OF_GROUPS, Method.FULLRECOMP}
    forced = plan_epoch(replace(many, policy="incremental"))
    assert forced.views[0].strategy is Strategy.INCREMENTAL


def test_prices_that_were_measured_here_are_doubted_less():
    one = view("g", by_store, (SALES,), vector=AT_ONE)
    tiny = situation(one, sales=FakeChange(1, 0))
    assert plan_epoch(tiny).views[0].strategy is Strategy.INCREMENTAL
    measured = {**BELIEVED, Operation.RECOMPUTE: Rate(0.2)}
    assert plan_epoch(replace(tiny, rates=measured)).views[0].strategy is Strategy.FULL


def test_where_sizes_are_not_known_the_share_of_changed_rows_decides():
    assert choose("v", "auto", None, Work(known=300, full=1_000), ()).strategy is Strategy.FULL
    assert choose("v", "auto", None, Work(known=100, full=1_000), ()).strategy is Strategy.INCREMENTAL
    assert choose("v", "auto", None, Work(), ()).strategy is Strategy.INCREMENTAL


def test_what_has_no_rule_is_recomputed_with_its_reason_or_refused_by_strict():
    other = view("f", None, (SALES,), vector=AT_ONE)
    plan = plan_epoch(situation(other, sales=FakeChange()))
    assert plan.views[0].strategy is Strategy.FULL
    assert "RECURSIVE_CTE" in (plan.views[0].reason or "")
    with pytest.raises(RefreshError) as refused:
        plan_epoch(replace(situation(other, sales=FakeChange()), policy="incremental strict"))
    assert refused.value.code == "VK-NOT-INCREMENTAL"


def test_a_strict_view_is_filled_once_unless_it_has_no_rule():
    empty = view(
        "g", by_store, (SALES,), vector={}, policy="incremental strict", needs_full="it has no rows yet"
    )
    assert plan_epoch(situation(empty)).views[0].strategy is Strategy.FULL
    other = view("f", None, (SALES,), vector={}, policy="incremental strict", needs_full="it has no rows yet")
    with pytest.raises(RefreshError, match="RECURSIVE_CTE"):
        plan_epoch(situation(other))


def test_the_calls_policy_goes_before_the_views():
    one = view("g", by_store, (SALES,), vector=AT_ONE, policy="full")
    world = situation(one, sales=FakeChange())
    assert plan_epoch(world).views[0].strategy is Strategy.FULL
    assert plan_epoch(replace(world, policy="incremental")).views[0].strategy is Strategy.INCREMENTAL


def test_lost_history_is_recomputed_with_the_sources_reason():
    one = view("g", by_store, (SALES,), vector=AT_ONE)
    world = replace(situation(one, sales=None), changes={}, lost={(SALES, "1", "2"): "snapshot 1 is expired"})
    plan = plan_epoch(world)
    assert plan.views[0].strategy is Strategy.FULL
    assert plan.views[0].reason == "snapshot 1 is expired"


def test_children_of_a_recomputed_view_are_recomputed_from_its_staged_rows():
    parent = view("f", None, (SALES,), vector=AT_ONE)
    child = view("d", scan(parent.name, "city", "amount"), (parent.name,), vector={parent.name: "100"})
    plan = plan_epoch(situation(parent, child, sales=FakeChange()))
    assert [each.strategy for each in plan.views] == [Strategy.FULL, Strategy.FULL]
    staged = next(step for step in plan.steps if isinstance(step, ComputeRows) and step.view == parent.name)
    assert staged.staged
    # Nobody asked for the difference of the parent's two states, so it is not computed.
    assert "ComputeVisible" not in kinds(plan)


def test_a_small_view_that_is_recomputed_does_not_make_a_large_join_be_recomputed():
    """The change of few rows is soon found by comparing them, and the join is large."""
    parent = replace(view("f", None, (STORES,), vector=AT_ONE), rows=100)
    cities = Scan(parent.name, (Field("city", "city"), Field("amount", "store_2")))
    relation = Join((sales, cities), (Scalar((Column("store"), " = ", Column("store_2"))),))
    vector = {**AT_ONE, parent.name: "100"}
    child = replace(view("d", relation, (SALES, parent.name), vector=vector), rows=50_000_000)
    world = replace(situation(parent, child, stores=FakeChange()), rows={SALES: 50_000_000, STORES: 100})
    plan = plan_epoch(world)
    assert plan.view(parent.name).strategy is Strategy.FULL
    assert plan.view(child.name).strategy is Strategy.INCREMENTAL
    assert "by recomputing" in (plan.view(child.name).because or "")
    assert "ComputeVisible" in kinds(plan)
    # The other way round, all of it would have to be compared.
    small = replace(world, rows={SALES: 10, STORES: 100}, views=(replace(parent, rows=50_000_000), child))
    plan = plan_epoch(small).view(child.name)
    assert (plan.strategy, plan.reason) == (Strategy.FULL, f"{parent.name} was recomputed")


def test_views_that_ask_for_its_change_make_recomputing_dearer():
    parent = replace(view("g", by_store, (SALES,), vector=AT_ONE), rows=5_000_000)
    reads = scan(parent.name, "store", "n")
    child = view("d", reads, (parent.name,), vector={parent.name: "100"})

    def tells(*views):
        plan = plan_epoch(situation(*views, sales=FakeChange())).view(parent.name)
        return {price.method for price in plan.prices if price.tell}

    assert tells(parent) == set()
    assert tells(parent, child) == {Method.FULLRECOMP}
    full = view("d", reads, (parent.name,), vector={parent.name: "100"}, policy="full")
    assert tells(parent, full) == set()


def test_the_choice_of_deltas_has_a_reason_too():
    one = replace(view("g", by_store, (SALES,), vector=AT_ONE), rows=5_000_000)
    rows = {SALES: 10_000_000, STORES: 100}
    plan = plan_epoch(replace(situation(one, sales=FakeChange(10, 10)), rows=rows)).views[0]
    assert (plan.strategy, plan.reason) == (Strategy.INCREMENTAL, None)
    assert (plan.because or "").endswith("by recomputing")
    close = plan_epoch(situation(view("g", by_store, (SALES,), vector=AT_ONE), sales=FakeChange())).views[0]
    assert (close.because or "").endswith("too close to tell")


def test_a_plan_survives_json():
    views = (
        view("g", by_store, (SALES,), vector=AT_ONE),
        view("j", large, (SALES, STORES), vector=AT_ONE),
        view("full", None, (SALES,), vector=AT_ONE),
    )
    plan = plan_epoch(situation(*views, sales=FakeChange(), stores=FakeChange(1, 1)))
    assert CODEC.decode(json.loads(json.dumps(CODEC.encode(plan)))) == plan


def test_a_hypothetical_situation_shows_every_term():
    plan = plan_epoch(as_if_all_changed(situation(view("j", large, (SALES, STORES), vector=AT_ONE))))
    assert {step.table for step in plan.steps if isinstance(step, Extract)} == {SALES, STORES}
