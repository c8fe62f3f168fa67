"""KEYREPLACE in plans: when it is chosen, what is staged for it, and who is kept by a delta all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from viewkeeper.algebra.relations import Project
from viewkeeper.algebra.scalars import keep
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.methods import Method
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.prices import BELIEVED, Sizes, methods_for, prices
from viewkeeper.plan.situation import Joins, Options, Situation
from viewkeeper.plan.steps import ComputeBag, ComputeReplacement, EpochPlan, Install, Share

from .world import SALES, STORES, FakeChange, joined, situation, view

AT_ONE = {SALES: "1", STORES: "1"}
SHOWN = Project(joined, keep(("store", "amount", "city")))
TYPES: Mapping[str, Mapping[str, str]] = {
    SALES: {"store": "int", "amount": "bigint"},
    STORES: {"store": "int", "city": "string"},
}
REPLACE = Options(install=Method.KEYREPLACE)


def changed(options: Options = REPLACE) -> Situation:
    """Sales and stores changed, and so did the view of both."""
    both = view("shown", SHOWN, (SALES, STORES), vector=AT_ONE)
    found = situation(both, sales=FakeChange(), stores=FakeChange(1, 1))
    return replace(found, types=TYPES, options=options)


def computed(plan: EpochPlan) -> ComputeBag | ComputeReplacement:
    (step,) = (step for step in plan.steps if isinstance(step, (ComputeBag, ComputeReplacement)))
    return step


def test_keys_are_staged_for_what_is_made_anew_and_for_what_goes() -> None:
    plan = plan_epoch(changed())
    step = computed(plan)
    assert isinstance(step, ComputeReplacement)
    (keys,) = step.keys
    assert [(each.name, each.shown, each.nullable) for each in keys.columns] == [("store", "store", False)]
    (shared,) = (each for each in plan.steps if isinstance(each, Share))
    assert (shared.name, shared.staged) == (keys.keys.name, True)
    install = next(each for each in plan.steps if isinstance(each, Install))
    assert (install.source, install.method) == (step, Method.KEYREPLACE)
    assert CODEC.decode(CODEC.encode(plan)) == plan


@pytest.mark.parametrize(
    "situation",
    [
        pytest.param(replace(changed(), keeps_deltas=True), id="kept for later"),
        pytest.param(changed(options=Options(joins=Joins.N_TERM)), id="another expression asked for"),
        pytest.param(changed(options=Options(install=Method.GENINSTALL)), id="another method asked for"),
        pytest.param(replace(changed(), types={}), id="types unknown"),
    ],
)
def test_others_are_kept_by_their_delta(situation: Situation) -> None:
    assert isinstance(computed(plan_epoch(situation)), ComputeBag)


def test_it_is_chosen_where_the_best_expression_reads_more_than_every_table_once() -> None:
    methods = methods_for(groups=False, replaceable=True)
    few = Sizes(8e6, 4e8, 8e6, 4e8, 1e5, 6e6, 100, 5e4, 5e4, partners=5, replaced=5e4)
    for read, best in (
        (few, Method.GENINSTALL),
        (replace(few, work_rows=24e6, work_bytes=12e8), Method.KEYREPLACE),
    ):
        assert prices(read, BELIEVED, methods)[0].method is best
    assert Method.KEYREPLACE not in methods_for(groups=False)
