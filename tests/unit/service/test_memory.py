"""When views were last fresh, and what refreshes are expected to take."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.service_settings import BackoffSettings
from viewkeeper.define.timing import Schedule, TargetLag, Timing
from viewkeeper.ledger import EpochRecord, FailingView, SourceObservation, ViewRefreshRecord, ViewState
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.layout import bag_layout
from viewkeeper.service.memory import Memory

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def library(*views: tuple[str, dict[str, str | None], str | None, Timing | None]) -> Library:
    """Of views, each with what it holds of its inputs, its snapshot, and its timing."""
    known, states = {}, {}
    for name, vector, snapshot, timing in views:
        definition = ViewDefinition((name,), "", SessionPins("lake", (), "+02:00"), timing=timing)
        text = QueryText(tuple(TableHole(table, None) for table in vector))
        layout = bag_layout([("id", "int")], None)
        known[name] = KnownView(name, "d", definition, Analysis(text, None, None), layout, {})
        states[name] = ViewState(name, "d", f"storage_{name}", snapshot, vector, 1)
    return Library(known, states)


def seen(**versions: tuple[str, float]) -> dict[str, SourceObservation]:
    return {table: SourceObservation(version, at(when)) for table, (version, when) in versions.items()}


def demands(memory: Memory, of: Library, **failing: FailingView) -> dict[str, Any]:
    found = memory.demands(of, failing, BackoffSettings(), at(0))
    return {each.view: each for each in found}


def test_a_view_is_fresh_while_its_sources_stand_where_it_stands():
    memory = Memory()
    views = library(("a", {"s": "1"}, "x", TargetLag(60)), ("b", {"a": "x", "t": "5"}, "y", None))
    memory.looked(views, seen(s=("1", 3), t=("5", 2)))
    assert memory.fresh_at == {"a": at(3), "b": at(2)}
    memory.looked(views, seen(s=("2", 4), t=("5", 4)))
    assert memory.fresh_at == {"a": at(3), "b": at(2)}, "they were then, and are no more"


def test_a_view_whose_parent_moved_on_is_not_fresh():
    memory = Memory()
    views = library(("a", {"s": "1"}, "new", None), ("b", {"a": "old"}, "y", None))
    memory.looked(views, seen(s=("1", 3)))
    assert memory.fresh_at == {"a": at(3)}


def test_a_view_without_rows_is_due_at_once():
    views = library(("a", {"s": None}, None, TargetLag(60)))
    memory = Memory()
    memory.looked(views, seen(s=("1", 3)))
    assert demands(memory, views)["a"].deadline < at(0).timestamp()


def epoch(minute: float, *views: tuple[str, str, float], publish: float = 1.0) -> EpochRecord:
    refreshes = tuple(ViewRefreshRecord(view, how, compute_seconds=s) for view, how, s in views)
    seconds = {"observe": 0.0, "compute": sum(s for *_, s in views), "publish": publish}
    return EpochRecord(1, at(minute), "me", {}, refreshes, None, seconds)


def test_what_refreshes_took_is_learned_and_what_stands_out_forgotten():
    memory = Memory()
    memory.learn([epoch(1, ("a", "full", 59.0))])
    assert memory.fresh_at["a"] == at(0), "when the epoch began"
    assert memory.expected_seconds("a") == 59 * 1.5
    memory.learn([epoch(2, ("a", "incremental", 4.0)), epoch(3, ("a", "incremental", 2.0))])
    memory.learn([epoch(4, ("a", "unchanged", 0.0))])
    assert memory.expected_seconds("a") == 4 * 1.5
    assert memory.overhead == 1.5


@pytest.mark.parametrize(
    ("strategy", "seconds"),
    [
        ("unchanged", {"maintain": 90.0}),
        ("unchanged", {"compute": 0.0, "install": 0.0, "publish": 0.1}),
        ("full", {"compute": 5.0, "install": 1.0, "publish": 0.1}),
    ],
    ids=["compacted", "retimed", "repaired"],
)
def test_an_epoch_that_did_not_look_at_the_sources_freshens_nothing(strategy, seconds):
    memory = Memory()
    memory.learn([epoch(1, ("a", "full", 4.0))])
    before = memory.fresh_at["a"], memory.expected_seconds("a"), memory.overhead
    views = (ViewRefreshRecord("a", strategy, compute_seconds=5.0),)
    memory.learn([EpochRecord(2, at(30), "me", {}, views, None, seconds)])
    assert (memory.fresh_at["a"], memory.expected_seconds("a"), memory.overhead) == before


def test_a_schedule_counts_from_the_last_refresh_by_the_clock_of_the_definition():
    views = library(("a", {"s": "1"}, "x", Schedule("0 18 * * *")))
    memory = Memory()
    memory.refreshed(["a"], NOON)
    found = demands(memory, views)["a"]
    assert datetime.fromtimestamp(found.due_at, timezone.utc) == NOON + timedelta(hours=4)
    assert found.due_again_at - found.due_at == 86400


def test_a_moment_that_lies_ahead_counts_as_now():
    views = library(("a", {"s": "1"}, "x", TargetLag(60)), ("b", {"t": "1"}, "y", Schedule("0 18 * * *")))
    now = [at(60)]
    memory = Memory(lambda: now[0])
    memory.refreshed(["a", "b"], at(600))
    memory.looked(views, seen(s=("1", 600)))
    assert memory.fresh_at == {"a": at(60), "b": at(60)}
    now[0] = at(0)  # the clock was ahead, and was set
    memory.looked(views, {})
    assert memory.fresh_at == {"a": at(0), "b": at(0)}
    assert demands(memory, views)["b"].due_at == (NOON + timedelta(hours=4)).timestamp()


def test_who_failed_by_a_clock_that_was_ahead_is_tried_at_once():
    views = library(("a", {"s": "1"}, "x", TargetLag(60)))
    memory = Memory(lambda: at(0))
    failed = FailingView("a", "d", 2, at(600), "why", suspended=False)
    assert demands(memory, views, a=failed)["a"].not_before == -math.inf
    suspended = FailingView("a", "d", 5, at(600), "why", suspended=True)
    assert demands(memory, views, a=suspended)["a"].not_before == math.inf


def test_who_failed_waits():
    views = library(("a", {"s": "1"}, "x", TargetLag(60)))
    failed = FailingView("a", "d", 2, at(1), "why", suspended=False)
    found = demands(Memory(), views, a=failed)["a"]
    assert (found.not_before, found.troubled) == (at(2).timestamp(), True)
