"""What is due: examples, and a simulation in which no lag is ever missed."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.define.vdag import Vdag
from viewkeeper.service.schedule import Demand, decide


def lagging(view: str, lag: float, *reads: str, fresh_at: float = 0.0, seconds: float = 1.0) -> Demand:
    return Demand(view, reads or ("s",), fresh_at, seconds, lag)


def test_nothing_is_done_before_it_must_be():
    demands = [lagging("a", 100, seconds=10)]
    assert decide(demands, 0.0, overhead=5).look_at == 85
    assert decide(demands, 84.9, overhead=5).views == ()
    assert decide(demands, 85.0, overhead=5).views == ("a",)


def test_without_lag_or_schedule_nobody_needs_it():
    assert decide([Demand("a", ("s",), 0.0)], 1e9) == decide([], 1e9)
    assert decide([Demand("a", ("s",), 0.0)], 1e9).look_at == math.inf


def test_an_ancestor_goes_with_its_descendants_and_its_cost_is_counted():
    demands = [Demand("base", ("s",), 0.0, 20.0), lagging("top", 100, "base", seconds=10)]
    assert decide(demands, 0.0).look_at == 70
    assert decide(demands, 70.0).views == ("top",)


def test_those_that_share_a_source_go_together_if_they_would_need_an_epoch_before_the_next():
    often, seldom = lagging("often", 60), lagging("seldom", 600, fresh_at=-500)
    assert decide([often, seldom], 0.0).look_at == 58, "a second for each"
    assert decide([often, seldom], 58.0).views == ("often", "seldom"), "due at 100, the next is at 118"
    assert decide([often, seldom], 59.0).views == ("often",), "there is no time for more"
    seldom = replace(seldom, fresh_at=-400)
    assert decide([often, seldom], 58.0).views == (), "due at 200, and there is another before"
    assert decide([often, seldom], 59.0).views == ("often",)
    elsewhere = lagging("seldom", 600, "t", fresh_at=-500)
    assert decide([often, elsewhere], 59.0).views == ("often",), "nothing is shared"


def test_all_that_are_late_go_together():
    late, later = lagging("late", 60, fresh_at=-30), lagging("later", 60, "t", fresh_at=-60)
    assert decide([late, later, lagging("other", 600)], 100.0).views == ("late", "later")


def test_those_that_are_late_only_together_are_refreshed_all_the_same():
    demands = [lagging("a", 10, seconds=6), lagging("b", 10, seconds=6)]
    assert decide(demands, 0.0, overhead=1.0).views == ("a", "b")


def test_bottom_up():
    demands = [lagging("top", 60, "base"), lagging("base", 60)]
    assert decide(demands, 58.0).views == ("base", "top")


def test_a_schedule_is_kept_at_once_and_not_before():
    nightly = Demand("n", ("s",), 0.0, 1.0, due_at=100.0, due_again_at=200.0)
    assert decide([nightly], 50.0).look_at == 100
    assert decide([nightly], 50.0).views == ()
    assert decide([nightly], 100.0).views == ("n",)


def test_a_schedule_takes_along_what_would_be_late_after_it():
    nightly = Demand("n", ("s",), 0.0, 50.0, due_at=100.0, due_again_at=1e6)
    close, far = lagging("close", 40, "t", fresh_at=100), lagging("far", 400, "t", fresh_at=100)
    assert decide([nightly, close, far], 100.0).views == ("n", "close")


def test_a_view_that_failed_waits_with_its_descendants_and_is_then_tried_alone():
    broken = Demand("b", ("s",), 0.0, 1.0, 10.0, not_before=50.0, troubled=True)
    demands = [broken, lagging("reader", 10, "b"), lagging("other", 200, fresh_at=20.0)]
    assert decide(demands, 40.0).views == ()
    assert decide(demands, 40.0).look_at == 50
    assert set(decide(demands, 50.0).views) < {"b", "reader"}


def test_a_suspended_view_stops_no_other():
    broken = Demand("b", ("s",), 0.0, 1.0, 10.0, not_before=math.inf, troubled=True)
    demands = [broken, lagging("reader", 10, "b"), lagging("other", 10)]
    assert decide(demands, 40.0).views == ("other",)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Demand], float]:
    """Views whose lags are all at least twice the sum of what they cost each for itself."""
    names = [f"v{i}" for i in range(draw(st.integers(1, 6)))]
    overhead = draw(st.integers(0, 5))
    demands: list[Demand] = []
    for at, name in enumerate(names):
        reads = draw(st.sets(st.sampled_from(["s", "t", *names[:at]]), min_size=1, max_size=3))
        demands.append(Demand(name, tuple(sorted(reads)), 0.0, float(draw(st.integers(1, 9)))))
    timed = draw(st.sets(st.sampled_from(names), min_size=1))
    graph = Vdag({each.view: each.reads for each in demands})
    costs = {each.view: each.seconds for each in demands}
    alone = sum(overhead + sum(costs[view] for view in graph.closure([name])) for name in timed)
    slack = draw(st.lists(st.integers(0, 500), min_size=len(names), max_size=len(names)))
    return [
        replace(each, lag=2.0 * alone + more) if each.view in timed else each
        for each, more in zip(demands, slack, strict=True)
    ], float(overhead)


@settings(deadline=None)
@given(worlds(), st.data())
def test_no_lag_is_missed_when_refreshes_take_no_longer_than_expected(world, data):
    demands, overhead = world
    now = 0.0
    for _ in range(40):
        decision = decide(demands, now, overhead)
        if not decision.views:
            assert decision.look_at > now
            now = decision.look_at
            continue
        graph = Vdag({each.view: each.reads for each in demands})
        refreshed = graph.closure(decision.views)
        expected = overhead + sum(each.seconds for each in demands if each.view in refreshed)
        done = now + expected * data.draw(st.sampled_from([1.0, 0.5]))
        for each in demands:
            if each.lag is not None and each.view in refreshed:
                assert done <= each.deadline + 1e-6, f"{each.view} is late"
        demands = [replace(each, fresh_at=now) if each.view in refreshed else each for each in demands]
        now = done
    assert all(each.lag is None or now <= each.deadline + 1e-6 for each in demands)


@settings(deadline=None)
@given(worlds(), st.floats(0, 2000))
def test_there_is_something_to_do_or_a_time_to_wait_for(world, now):
    demands, overhead = world
    hurried = [replace(each, lag=each.lag / 10 if each.lag else None) for each in demands]
    for each in (demands, hurried):
        decision = decide(each, now, overhead)
        assert decision.views or decision.look_at > now


@settings(deadline=None)
@given(worlds())
def test_a_view_without_timing_is_refreshed_only_for_its_descendants(world):
    demands, overhead = world
    timed = {each.view for each in demands if each.lag is not None}
    assert set(decide(demands, 1e9, overhead).views) <= timed
