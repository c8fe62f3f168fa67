"""What was counted corrects the next plan, and what was not counted yet is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewkeeper.algebra.relations import Field, Join, Project, Scan
from viewkeeper.algebra.scalars import Column, Named, Scalar, column
from viewkeeper.learning import held, lessons, paid_for, told
from viewkeeper.plan.methods import Method
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Counted, Situation
from viewkeeper.plan.steps import ComputeBag, Share

from .world import FakeChange, view

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

    known = {each["part"]: Counted(each["uncorrected"], each["actual"]) for each in parts}
    again = plan_epoch(replace(changed(), learned={NAME: known}))
    assert not [step for step in again.steps if isinstance(step, Share)]
    (propagation,) = again.views[0].propagations
    estimated = {propagation.name(mask): rows for mask, rows in propagation.rows}
    # As it was the last time, for the same change.
    assert estimated["small ⋈ middle"] == pytest.approx(500, rel=0.05)
    assert estimated["small ⋈ middle ⋈ large"] == pytest.approx(7, abs=1)
    assert any("500 when last counted" in line for line in propagation.lines())


def test_a_part_that_turned_out_large_is_avoided() -> None:
    large = {"small ⋈ middle": Counted(40, 3_000_000)}
    plan = plan_epoch(replace(changed(), learned={NAME: large}))
    (propagation,) = plan.views[0].propagations
    assert "small ⋈ middle" not in {propagation.name(mask) for mask, _ in propagation.rows}


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
