"""A join's tables before and after their changes: what grows most comes last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewkeeper.algebra.expressions import Node
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.relations import Field, Join, Scan
from viewkeeper.algebra.scalars import column, compose
from viewkeeper.plan import leaves
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.propagation import propagation
from viewkeeper.plan.situation import Situation
from viewkeeper.plan.steps import EpochPlan

from .world import SALES, STORES, FakeChange, rows, scan, situation, view

AT_ONE = {SALES: "1", STORES: "1"}


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[JoinSizes]:
    """The sizes that the planner gives to the search, each time that it asks."""
    given: list[JoinSizes] = []

    def watched(sizes: JoinSizes, *rest):  # type: ignore[no-untyped-def]
        given.append(sizes)
        return propagation(sizes, *rest)

    monkeypatch.setattr(leaves, "propagation", watched)
    return given


def planned(changed: Situation) -> EpochPlan:
    return plan_epoch(replace(changed, policy="incremental"))


joined_rows = view("rows", rows, (SALES, STORES), vector=AT_ONE)


def test_rows_before_are_those_now_without_what_came_and_with_what_went(searched: list[JoinSizes]) -> None:
    planned(situation(joined_rows, sales=FakeChange(2_000, 500), stores=FakeChange(0, 7)))
    (sizes,) = searched
    assert sizes.new == (10_000, 100)
    assert sizes.old == (8_500, 107)
    assert sizes.delta(0b01) == 2_500


def test_never_fewer_than_none_and_the_same_where_nothing_is_known(searched: list[JoinSizes]) -> None:
    # What came is told as an upper bound by some sources.
    much = situation(joined_rows, sales=FakeChange(20_000, 0))
    planned(much)
    assert searched[-1].old == (0, 100)
    planned(replace(much, rows={}))
    assert searched[-1].old == searched[-1].new


@pytest.mark.parametrize(
    ("sales", "stores", "order"),
    [
        (FakeChange(9_000, 0), FakeChange(0, 90), (1, 0)),
        (FakeChange(0, 9_000), FakeChange(90, 0), (0, 1)),
    ],
)
def test_what_grows_most_comes_last(sales: FakeChange, stores: FakeChange, order: tuple[int, int]) -> None:
    """Each term reads the parts before its own as they are now, and those behind it as they were."""
    plan = planned(situation(joined_rows, sales=sales, stores=stores))
    (told,) = plan.views[0].propagations
    assert told.expression == Node(order)


def test_of_a_parent_what_it_went_through_before_this_epoch_is_known(searched: list[JoinSizes]) -> None:
    parent = view("parent", rows, (SALES, STORES), vector=AT_ONE)
    shown = scan(parent.name, "city", "amount")
    again = Scan(parent.name, (Field("city", "city_2"),))
    pairs = Join((shown, again), (compose(column("city"), " = ", column("city_2")),))
    child = view("child", pairs, (parent.name,), vector={parent.name: "90"})
    missed = {(parent.storage, "90", "100"): FakeChange(300, 100)}
    planned(replace(situation(parent, child), changes=missed))
    (sizes,) = searched
    assert sizes.new == (1_000, 1_000)
    assert sizes.old == (800, 800)
