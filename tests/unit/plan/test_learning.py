"""What was counted corrects the next plan, and what was not counted yet is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Field,
    Join,
    OuterJoin,
    Project,
    Relation,
    Scan,
    UnionAll,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column
from viewkeeper.learning import held, lessons, paid_for, told
from viewkeeper.plan.maintaining import is_but_a_join
from viewkeeper.plan.methods import Method
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Counted, Situation
from viewkeeper.plan.steps import ComputeBag, ComputeGroups, EpochPlan, Extract, Share

from .world import SALES, STORES, FakeChange, joined, large, rows, situation, view

TABLES = ("lake.default.small", "lake.default.middle", "lake.default.large")
inputs = [Scan(table, (Field("k", f"k{at}"), Field("n", f"n{at}"))) for at, table in enumerate(TABLES)]
links = [Scalar((Column(f"n{at}"), " = ", Column(f"k{at + 1}"))) for at in range(2)]
chain = Project(Join(tuple(inputs), tuple(links)), (Named("k", column("k0")),))
NAME = "lake.default.chain"


def changed() -> Situation:
    return Situation(
        (view("chain", chain, TABLES, vector=dict.fromkeys(TABLES, "1")),),
        dict.fromkeys(TABLES, "2"),
        {(table, "1", "2"): FakeChange(10, 10) for table in TABLES},
        rows=dict(zip(TABLES, (1_000, 2_000, 1_000_000), strict=True)),
        policy="incremental",
    )


def test_a_part_is_counted_until_it_is_known() -> None:
    plan = plan_epoch(changed())
    (counting,) = [step for step in plan.steps if isinstance(step, Share)]
    assert counting.counts == "small ⋈ middle"
    assert counting.staged
    (whole,) = [step for step in plan.steps if isinstance(step, ComputeBag)]
    parts = told(plan.views[0], {counting.name: 500, whole.name: 7})
    assert [(each["part"], each["actual"]) for each in parts] == [
        ("small ⋈ middle ⋈ large", 7),
        ("small ⋈ middle", 500),
    ]
    (propagation,) = plan.views[0].propagations
    (actual,) = held(plan.views[0], {"parts": parts})
    assert actual == {0b111: 7, 0b011: 500}
    drawn = list(propagation.lines(actual))
    assert drawn[1].startswith("Δ(small ⋈ middle ⋈ large)") and drawn[1].endswith(" rows, 7 in that epoch")
    assert drawn[2].startswith("├─ Δ(small ⋈ middle)") and drawn[2].endswith(" rows, 500 in that epoch")
    assert not any("in that epoch" in line for line in (*drawn[3:], *propagation.lines()))

    known = {each["part"]: Counted(each["uncorrected"], each["actual"]) for each in parts}
    again = plan_epoch(replace(changed(), learned={NAME: known}))
    assert not [step for step in again.steps if isinstance(step, Share)]
    (propagation,) = again.views[0].propagations
    estimated = {propagation.name(mask): rows for mask, rows in propagation.rows}
    # As it was the last time, for the same change.
    assert estimated["small ⋈ middle"] == pytest.approx(500, rel=0.05)
    assert estimated["small ⋈ middle ⋈ large"] == pytest.approx(7, abs=1)
    assert any("500 when last counted" in line for line in propagation.lines())
    assert any("480 in that epoch" in line for line in propagation.lines({0b011: 480}))


def test_a_part_that_turned_out_large_is_avoided() -> None:
    large = {"small ⋈ middle": Counted(40, 3_000_000)}
    plan = plan_epoch(replace(changed(), learned={NAME: large}))
    (propagation,) = plan.views[0].propagations
    assert "small ⋈ middle" not in {propagation.name(mask) for mask, _ in propagation.rows}


def counting(plan: EpochPlan, at: int = 0) -> dict[str, type]:
    """What the sets of a view's only join are counted by: by name, the kind of step."""
    (propagation,) = plan.views[at].propagations
    steps = {step.name: type(step) for step in plan.steps if hasattr(step, "name")}
    return {propagation.name(mask): steps[name] for mask, name in propagation.counting}


def maintained(relation: Relation, deleted: int = 1) -> EpochPlan:
    kept = view("kept", relation, (SALES, STORES), vector={SALES: "1", STORES: "1"})
    changed = situation(kept, sales=FakeChange(5, deleted), stores=FakeChange(1, deleted))
    return plan_epoch(replace(changed, policy="incremental"))


def test_what_a_view_held_is_what_its_join_held_only_if_nothing_stands_above_it() -> None:
    assert counting(maintained(rows)) == {"sales": Extract, "stores": Extract, "sales ⋈ stores": ComputeBag}
    outer = OuterJoin(
        joined, Scan(STORES, (Field("city", "home"),)), (Scalar((Column("city"), " = ", Column("home"))),)
    )
    for above in (large, UnionAll((rows, rows)), outer):
        assert not is_but_a_join(above)
        plan = maintained(above)
        (whole,) = [step for step in plan.steps if isinstance(step, ComputeBag)]
        propagations = plan.views[0].propagations
        assert propagations
        assert whole.name not in {name for each in propagations for _, name in each.counting}, above


def test_groups_tell_what_the_join_below_them_held_if_rows_only_came() -> None:
    total = Aggregate(joined, ("city",), (AggregateCall("total", "sum", (column("amount"),)),))
    only_inserted = maintained(total, deleted=0)
    assert counting(only_inserted)["sales ⋈ stores"] is ComputeGroups
    (step,) = [step for step in only_inserted.steps if isinstance(step, ComputeGroups)]
    assert step.counts
    deleted_too = maintained(total)
    assert "sales ⋈ stores" not in counting(deleted_too)
    (step,) = [step for step in deleted_too.steps if isinstance(step, ComputeGroups)]
    assert not step.counts
    above = maintained(Aggregate(large, ("city",), (AggregateCall("n", "count"),)), deleted=0)
    assert "sales ⋈ stores" not in counting(above)


def test_a_table_is_not_counted_where_only_some_of_its_changes_are_joined() -> None:
    some = Scalar((Column("amount"), " > 10"))
    plan = maintained(Project(Join(joined.inputs, (*joined.conjuncts, some)), rows.items))
    assert counting(plan) == {"stores": Extract, "sales ⋈ stores": ComputeBag}


def test_the_parts_of_a_self_join_are_told_apart() -> None:
    again = Scan(SALES, (Field("store", "store_3"), Field("amount", "more")))
    both = (*joined.conjuncts, Scalar((Column("store"), " = ", Column("store_3"))))
    three = Project(Join((*joined.inputs, again), both), (Named("more", column("more")),))
    (propagation,) = maintained(three).views[0].propagations
    assert propagation.inputs == ("sales", "stores", "sales #2")
    names = [propagation.name(mask) for mask, _ in propagation.rows]
    assert len(set(names)) == len(names)


def test_what_an_older_ledger_told_is_found_by_name() -> None:
    plan = plan_epoch(changed())
    older = {"parts": [part("small ⋈ middle", 5, 80), part("of another plan", 1, 1)]}
    assert held(plan.views[0], older) == [{0b011: 80}]
    assert held(plan.views[0], {}) == [{}]


def test_the_delta_of_a_single_table_teaches_nothing() -> None:
    alone = {**part("small", 1_000, 1), "join": 0, "relations": 0b001}
    joined_ = {**part("small ⋈ middle", 5, 6), "join": 0, "relations": 0b011}
    before = (1, NAME, {"parts": [part("middle ⋈ large", 2, 3)]})
    assert lessons([(2, NAME, {"parts": [joined_, alone]}), before]) == {
        NAME: {"small ⋈ middle": Counted(5, 6), "middle ⋈ large": Counted(2, 3)}
    }


def part(name: str, estimated: int, actual: int, uncorrected: int | None = None) -> dict[str, object]:
    uncorrected = estimated if uncorrected is None else uncorrected
    return {"part": name, "estimated": estimated, "uncorrected": uncorrected, "actual": actual}


def test_after_a_surprise_parts_are_counted_again() -> None:
    first = (1, NAME, {"parts": [part("a ⋈ b ⋈ c", 10, 900), part("a ⋈ b", 5, 80)]})
    as_expected = (2, NAME, {"parts": [part("a ⋈ b ⋈ c", 910, 1000, 11)]})
    surprise = (3, NAME, {"parts": [part("a ⋈ b ⋈ c", 950, 10, 12)]})
    elsewhere = (3, "lake.default.other", {"parts": [part("x ⋈ y", 1, 2)]})
    assert lessons([first]) == {NAME: {"a ⋈ b ⋈ c": Counted(10, 900), "a ⋈ b": Counted(5, 80)}}
    assert lessons([as_expected, first]) == {NAME: {"a ⋈ b ⋈ c": Counted(11, 1000), "a ⋈ b": Counted(5, 80)}}
    assert lessons([surprise, elsewhere, as_expected, first]) == {
        NAME: {"a ⋈ b ⋈ c": Counted(12, 10)},
        "lake.default.other": {"x ⋈ y": Counted(1, 2)},
    }


def told_payment(method: str, price: float, paid: float, corrected: float = 1.0) -> dict[str, object]:
    prices = {method: price, "fullrecomp": 9.0}
    return {"method": method, "paid": paid, "prices": prices, "corrected": {method: corrected}}


def test_what_it_takes_to_find_that_nothing_changed_is_paid_too() -> None:
    told_ = told_payment("sdbatch", 1.0, 3.0)
    nothing = {**told_, "method": None, "paid": None, "for_nothing": {"method": "sdbatch", "paid": 3.0}}
    assert paid_for([(at, "v", nothing) for at in range(3)]) == {"v": {Method.SDBATCH: 3.0}}


def test_prices_are_corrected_by_what_was_paid() -> None:
    twice = [(at, "v", told_payment("sdbatch", 1.0, 2.0)) for at in range(3)]
    assert paid_for(twice)["v"] == {Method.SDBATCH: pytest.approx(2.0)}
    once = paid_for(twice[:1])["v"][Method.SDBATCH]
    assert 1.0 < once < 2.0, "one payment says little"
    again = [(at, "v", told_payment("sdbatch", 2.0, 2.0, corrected=2.0)) for at in range(3)]
    assert paid_for(again) == paid_for(twice), "a corrected price that was paid stays corrected"
    odd = [(9, "v", told_payment("sdbatch", 1.0, 500.0)), *again]
    assert paid_for(odd)["v"][Method.SDBATCH] == pytest.approx(2.0), "one that was odd makes no difference"
    far = [(at, "v", told_payment("sdbatch", 1.0, 500.0)) for at in range(3)]
    assert paid_for(far)["v"][Method.SDBATCH] == pytest.approx(8.0), "there is a limit"
    assert paid_for([(1, "v", {"work_full": 3}), (2, "v", {"method": "sdbatch", "paid": 1.0})]) == {}


def test_what_was_paid_twice_in_a_row_goes_before_what_was_paid_earlier() -> None:
    cheap = [(at, "v", told_payment("sdbatch", 1.0, 0.5)) for at in range(4)]
    dear = [(at, "v", told_payment("sdbatch", 1.0, 2.0)) for at in range(8, 10)]
    assert paid_for([*dear[:1], *cheap])["v"][Method.SDBATCH] == pytest.approx(0.5), "once may be chance"
    assert paid_for([*dear, *cheap])["v"][Method.SDBATCH] == pytest.approx(2.0 ** (2 / 3))
    assert paid_for([*cheap[:2], *dear, *dear])["v"][Method.SDBATCH] == pytest.approx(0.5 ** (2 / 3))


def test_a_method_that_was_paid_for_once_is_judged_by_the_others_too() -> None:
    dear = [(at, "v", told_payment("sdbatch", 1.0, 4.0)) for at in range(3)]
    once = [(9, "v", told_payment("fullrecomp", 9.0, 9.0))]
    paid = paid_for([*once, *dear])["v"]
    assert paid[Method.SDBATCH] == pytest.approx(4.0)
    assert paid[Method.FULLRECOMP] == pytest.approx(2.0 ** (2 / 3)), "halfway to the others"


@pytest.mark.parametrize(
    ("estimated", "actual"),
    [(0, 0), (-1, 5), (5, -1), (10**400, 0), (0, 10**400), (float("nan"), float("nan"))],
)
def test_a_factor_is_a_number_above_zero_whatever_was_noted(estimated: int, actual: int) -> None:
    factor = Counted(estimated, actual).factor
    assert math.isfinite(factor)
    assert factor > 0
