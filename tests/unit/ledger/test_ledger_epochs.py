"""The epoch protocol: begin, intend, publish or abandon, chores, and what can be read afterwards."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from viewkeeper.errors import LeaseError, LedgerError
from viewkeeper.ledger import (
    Chore,
    ChoreKind,
    Lease,
    Ledger,
    NewEpoch,
    PastRefresh,
    SourceObservation,
    ViewRecord,
    ViewRefreshRecord,
    ViewState,
    queries,
    sqlite_url,
)

HOSTILE = (
    "a`;DROP TABLE vk_epoch;--",
    "'; DELETE FROM vk_state; --",
    'dot.ted "quoted" name',
    "with\nnewline\tand\\backslash %s :name ? {brace}",
    "ünïcødé 表 🐘 \u202e",
    "x" * 200,
    "",
    " ",
    "NULL",
)


def record(name: str, epoch: int, definition_id: str = "d1") -> ViewRecord:
    return ViewRecord(name, {"query": f"SELECT {name}"}, {"verdict": "incremental"}, definition_id, epoch)


def state(name: str, epoch: int, definition_id: str = "d1", snapshot: str | None = "s") -> ViewState:
    return ViewState(name, definition_id, f"storage_{name}", snapshot, {"lake.t": "1"}, epoch)


def refreshed(name: str, **values: Any) -> ViewRefreshRecord:
    return ViewRefreshRecord(name, "incremental", **values)


def created(epoch_id: int, *names: str) -> NewEpoch:
    return NewEpoch(
        epoch_id,
        {"lake.t": "1"},
        states=tuple(state(name, epoch_id) for name in names),
        refreshes=tuple(refreshed(name) for name in names),
        define=tuple(record(name, epoch_id) for name in names),
    )


def branch(epoch_id: int, table: str = "t") -> Chore:
    return Chore(None, ChoreKind.DROP_BRANCH, epoch_id, {"table": table})


@pytest.fixture
def lease(ledger: Ledger) -> Lease:
    return ledger.acquire("me")


def code_of(raised: pytest.ExceptionInfo[LedgerError]) -> str:
    return raised.value.code


def test_an_empty_ledger(ledger: Ledger) -> None:
    assert ledger.views() == ()
    assert ledger.view("v") is None
    assert ledger.latest() is None
    assert ledger.epochs() == ()
    assert ledger.states() == {}
    assert ledger.chores() == ()
    assert ledger.failures() == ()
    assert ledger.observations() == {}
    assert ledger.holder() is None


def test_a_view_learns_nothing_from_another_that_was_dropped_under_its_name(
    ledger: Ledger, lease: Lease
) -> None:
    def publish(*refreshes: ViewRefreshRecord, drop: tuple[str, ...] = ()) -> int:
        epoch_id = ledger.begin(lease)
        ledger.publish(lease, NewEpoch(epoch_id, {}, (), refreshes, drop=drop))
        return epoch_id

    def create(definition_id: str) -> int:
        epoch_id = ledger.begin(lease)
        defined = record("v", epoch_id, definition_id)
        ledger.publish(
            lease,
            NewEpoch(epoch_id, {}, (state("v", epoch_id, definition_id),), (refreshed("v"),), (defined,)),
        )
        return epoch_id

    def refresh() -> int:
        return publish(refreshed("v", estimates={"copies": True}))

    def told() -> list[int]:
        return [epoch for epoch, _, _ in ledger.estimates(["v"])]

    first, second = create("d1"), refresh()
    assert told() == [second, first]
    third = create("d2")
    assert told() == [third, second, first], "what is replaced goes on"
    publish(drop=("v",))
    fifth = create("d3")
    assert told() == [fifth]


def test_an_epoch_comes_back_as_it_was_published(ledger: Ledger, lease: Lease, clock: Any) -> None:
    epoch_id = ledger.begin(lease)
    refresh = ViewRefreshRecord(
        "v", "incremental", "merge", "smaller", 12, 3, 4, 5, 0.25, 1.5, {"work": {"full": 10, "delta": 0.1}}
    )
    new = NewEpoch(
        epoch_id,
        {"lake.t": "77", "lake.u": "78"},
        states=(state("v", epoch_id), state("w", epoch_id)),
        refreshes=(refresh, ViewRefreshRecord("w", "full")),
        define=(record("v", epoch_id), record("w", epoch_id)),
        plan=[{"step": 1}],
        seconds={"compute": 0.5},
    )
    published = ledger.publish(lease, new)
    assert published == ledger.latest() == ledger.epoch(epoch_id)
    assert ledger.epochs() == (published,)
    assert published.id == epoch_id
    assert published.published_at == clock.now
    assert published.published_at.tzinfo == timezone.utc
    assert published.holder == "me"
    assert published.source_versions == {"lake.t": "77", "lake.u": "78"}
    assert published.views == (refresh, ViewRefreshRecord("w", "full"))
    assert published.plan == [{"step": 1}]
    assert published.seconds == {"compute": 0.5}
    assert ledger.states() == {"v": state("v", epoch_id), "w": state("w", epoch_id)}
    assert ledger.views() == new.define
    assert ledger.view("w") == record("w", epoch_id)


def test_views_that_are_not_refreshed_carry_over(ledger: Ledger, lease: Lease) -> None:
    first = ledger.publish(lease, created(ledger.begin(lease), "v", "w")).id
    second = ledger.begin(lease)
    moved = state("v", second, snapshot="s2")
    ledger.publish(lease, NewEpoch(second, {}, (moved,), (refreshed("v"),)))
    assert ledger.states(first) == {"v": state("v", first), "w": state("w", first)}
    assert ledger.states(second) == {"v": moved, "w": state("w", first)}


def test_a_dropped_view_is_gone_and_still_there_in_the_past(ledger: Ledger, lease: Lease) -> None:
    first = ledger.publish(lease, created(ledger.begin(lease), "v", "w")).id
    second = ledger.begin(lease)
    ledger.publish(lease, NewEpoch(second, {}, (), (), drop=("v",)))
    assert set(ledger.states()) == {"w"}
    assert [view.name for view in ledger.views()] == ["w"]
    assert ledger.view("v") is None
    assert set(ledger.states(first)) == {"v", "w"}
    assert [view.name for view in ledger.views(first)] == ["v", "w"]


def test_a_name_used_again_does_not_inherit_the_old_state(ledger: Ledger, lease: Lease) -> None:
    ledger.publish(lease, created(ledger.begin(lease), "v", "w"))
    ledger.publish(lease, NewEpoch(ledger.begin(lease), {}, (), (), drop=("v",)))
    third = ledger.begin(lease)
    empty = state("v", third, "d2", snapshot=None)
    ledger.publish(lease, NewEpoch(third, {}, (empty,), (), define=(record("v", third, "d2"),)))
    assert ledger.states()["v"] == empty
    assert [view.name for view in ledger.views()] == ["w", "v"]


def test_a_replaced_view_keeps_its_place(ledger: Ledger, lease: Lease) -> None:
    first = ledger.publish(lease, created(ledger.begin(lease), "v", "w")).id
    second = ledger.begin(lease)
    changed = record("v", second, "d2")
    ledger.publish(lease, NewEpoch(second, {}, (state("v", second, "d2"),), (), define=(changed,)))
    assert ledger.views() == (changed, record("w", first))
    assert ledger.views(first) == (record("v", first), record("w", first))
    assert ledger.states(first)["v"].definition_id == "d1"


def test_dropping_and_defining_in_one_epoch_creates_anew(ledger: Ledger, lease: Lease) -> None:
    ledger.publish(lease, created(ledger.begin(lease), "v", "w"))
    second = ledger.begin(lease)
    again = NewEpoch(second, {}, (state("v", second),), (), define=(record("v", second),), drop=("v",))
    ledger.publish(lease, again)
    assert [view.name for view in ledger.views()] == ["w", "v"]


def test_epochs_newest_first_by_view_and_limited(ledger: Ledger, lease: Lease) -> None:
    first = ledger.publish(lease, created(ledger.begin(lease), "v", "w")).id
    second = ledger.begin(lease)
    ledger.publish(lease, NewEpoch(second, {}, (state("w", second),), (refreshed("w"), refreshed("x"))))
    assert [epoch.id for epoch in ledger.epochs()] == [second, first]
    assert [epoch.id for epoch in ledger.epochs(limit=1)] == [second]
    assert [epoch.id for epoch in ledger.epochs(view="v")] == [first]
    assert [refresh.view for refresh in ledger.epochs(view="x")[0].views] == ["w", "x"]
    assert ledger.epochs(limit=0) == ()
    assert ledger.epochs(view="nobody") == ()


def test_the_last_refresh_of_every_view_is_one_question(ledger: Ledger, lease: Lease, clock: Any) -> None:
    first = ledger.publish(lease, created(ledger.begin(lease), "v", "w", "x")).id
    began = clock.now
    clock.advance(60)
    second = ledger.begin(lease)
    ledger.publish(
        lease, NewEpoch(second, {}, (state("v", second),), (refreshed("v"),), plan={"a": 1}, drop=("x",))
    )
    clock.advance(60)
    third = ledger.begin(lease)
    ledger.publish(lease, NewEpoch(third, {}, (), (ViewRefreshRecord("v", "unchanged"),)))
    assert ledger.view_names() == ("v", "w")
    assert ledger.last_refreshes() == {
        "v": PastRefresh(third, clock.now, ViewRefreshRecord("v", "unchanged")),
        "w": PastRefresh(first, began, refreshed("w")),
    }
    planned = ledger.last_planned("v")
    assert planned == ledger.epoch(second) and planned.plan == {"a": 1}
    assert ledger.last_planned("w") is None, "its epoch kept no plan"
    assert [epoch.plan for epoch in ledger.epochs(plans=False)] == [None, None, None]


def test_an_unknown_epoch_names_the_range(ledger: Ledger, lease: Lease) -> None:
    with pytest.raises(LedgerError, match="no epoch is published yet") as raised:
        ledger.epoch(1)
    assert code_of(raised) == "VK-UNKNOWN-EPOCH"
    ledger.publish(lease, created(ledger.begin(lease), "v"))
    for ask in (ledger.epoch, ledger.states, ledger.views):
        with pytest.raises(LedgerError, match="the ledger has 1 to 1") as raised:
            ask(9)
        assert code_of(raised) == "VK-UNKNOWN-EPOCH"


def test_ids_are_never_used_twice(ledger: Ledger, lease: Lease) -> None:
    abandoned = ledger.begin(lease)
    ledger.abandon(lease, abandoned, "boom")
    forgotten = ledger.begin(lease)
    published = ledger.publish(lease, created(ledger.begin(lease), "v")).id
    assert abandoned < forgotten < published
    assert ledger.begin(lease) > published
    with pytest.raises(LedgerError, match="was not published"):
        ledger.states(abandoned)


def test_publishing_twice_is_a_no_op(ledger: Ledger, lease: Lease) -> None:
    new = replace(created(ledger.begin(lease), "v"), redo=(branch(1),))
    first = ledger.publish(lease, new)
    assert ledger.publish(lease, new) == first
    assert len(ledger.chores()) == 1
    ledger.release(lease)
    other = ledger.acquire("other")
    # The one who published may still ask; somebody else may not claim the epoch.
    assert ledger.publish(lease, new) == first
    with pytest.raises(LedgerError, match="already published, by me") as raised:
        ledger.publish(other, new)
    assert code_of(raised) == "VK-EPOCH-INVALID"


def test_what_cannot_be_published(ledger: Ledger, lease: Lease) -> None:
    ledger.publish(lease, created(ledger.begin(lease), "v"))
    passed_over, newer = ledger.begin(lease), ledger.begin(lease)
    ledger.publish(lease, NewEpoch(newer, {}, (), ()))
    given_up = ledger.begin(lease)
    ledger.abandon(lease, given_up, "boom")
    open_id = ledger.begin(lease)
    wrong = {
        "never begun": NewEpoch(99, {}, (), ()),
        "cannot follow epoch": NewEpoch(passed_over, {}, (), ()),
        "given up: boom": NewEpoch(given_up, {}, (), ()),
        "drops nobody": NewEpoch(open_id, {}, (), (), drop=("nobody",)),
        "no such view": NewEpoch(open_id, {}, (state("nobody", open_id),), ()),
        "by definition d9": NewEpoch(open_id, {}, (state("v", open_id, "d9"),), ()),
    }
    before = ledger.states(), ledger.views(), ledger.epochs()
    for message, new in wrong.items():
        with pytest.raises(LedgerError, match=message) as raised:
            ledger.publish(lease, new)
        assert code_of(raised) == "VK-EPOCH-INVALID"
    assert (ledger.states(), ledger.views(), ledger.epochs()) == before


def test_a_failure_late_in_the_commit_changes_nothing(ledger: Ledger, lease: Lease) -> None:
    epoch_id = ledger.begin(lease)
    ledger.intend(lease, epoch_id, [branch(epoch_id)])
    unstorable = replace(created(epoch_id, "v"), refreshes=(refreshed("v", reason="nul \0"),))
    with pytest.raises(LedgerError) as raised:
        ledger.publish(lease, unstorable)
    assert code_of(raised) == "VK-LEDGER-TEXT"
    assert (ledger.views(), ledger.states(), ledger.epochs()) == ((), {}, ())
    ledger.abandon(lease, epoch_id, "boom")
    assert [chore.payload for chore in ledger.chores()] == [{"table": "t"}]


def test_intents_are_shed_by_publishing_and_redo_chores_stay(ledger: Ledger, lease: Lease) -> None:
    epoch_id = ledger.begin(lease)
    ledger.intend(lease, epoch_id, [branch(epoch_id, "a")])
    ledger.intend(lease, epoch_id, [branch(epoch_id, "b")])
    ledger.intend(lease, epoch_id, [])
    forward = Chore(None, ChoreKind.FAST_FORWARD, epoch_id, {"table": "a"})
    view = Chore(None, ChoreKind.CREATE_VIEW, epoch_id, {"view": "v"})
    ledger.publish(lease, replace(created(epoch_id, "v"), redo=(forward, view)))
    # While the lease is held an intent that stayed behind would be hidden; after the release it would
    # come up as a chore, and drop a branch that is published.
    ledger.release(lease)
    left = ledger.chores()
    assert [replace(chore, id=None) for chore in left] == [forward, view]
    for chore in left:
        ledger.done(chore)
        ledger.done(chore)
    assert ledger.chores() == ()


def test_a_chore_that_another_has_done_is_not_taken_for_one_that_came_later(
    ledger: Ledger, lease: Lease
) -> None:
    """Though it may have the same number."""
    epoch_id = ledger.begin(lease)
    view = Chore(None, ChoreKind.CREATE_VIEW, epoch_id, {"view": "v"})
    ledger.publish(lease, replace(created(epoch_id, "v"), redo=(view,)))
    (known,) = ledger.chores()
    assert ledger.is_left(known)
    ledger.done(known)
    assert not ledger.is_left(known)
    epoch_id = ledger.begin(lease)
    view = Chore(None, ChoreKind.CREATE_VIEW, epoch_id, {"view": "w"})
    ledger.publish(lease, replace(created(epoch_id, "w"), redo=(view,)))
    assert not ledger.is_left(known)
    ledger.done(known)
    assert [replace(chore, id=None) for chore in ledger.chores()] == [view]


def test_intents_of_a_running_epoch_are_nobody_elses_chores(ledger: Ledger, lease: Lease, clock: Any) -> None:
    epoch_id = ledger.begin(lease)
    ledger.intend(lease, epoch_id, [branch(epoch_id)])
    assert ledger.chores() == ()
    # The holder stopped here. Expiry alone does not tell whether it is dead; a takeover settles it.
    clock.advance(3600)
    assert ledger.chores() == ()
    ledger.acquire("next")
    assert [replace(chore, id=None) for chore in ledger.chores()] == [branch(epoch_id)]


def test_intents_become_chores_by_release_and_by_abandoning(ledger: Ledger, lease: Lease) -> None:
    first = ledger.begin(lease)
    ledger.intend(lease, first, [branch(first, "a")])
    ledger.abandon(lease, first, "boom")
    assert [chore.epoch for chore in ledger.chores()] == [first]
    second = ledger.begin(lease)
    ledger.intend(lease, second, [branch(second, "b")])
    assert [chore.epoch for chore in ledger.chores()] == [first]
    ledger.release(lease)
    assert [chore.epoch for chore in ledger.chores()] == [first, second]


def test_what_cannot_be_intended_abandoned_or_done(ledger: Ledger, lease: Lease) -> None:
    published = ledger.publish(lease, created(ledger.begin(lease), "v")).id
    for wrong in (published, 99):
        with pytest.raises(LedgerError) as raised:
            ledger.intend(lease, wrong, [branch(wrong)])
        assert code_of(raised) == "VK-EPOCH-INVALID"
        with pytest.raises(LedgerError) as raised:
            ledger.abandon(lease, wrong, "boom")
        assert code_of(raised) == "VK-EPOCH-INVALID"
    with pytest.raises(ValueError, match="another epoch"):
        ledger.intend(lease, ledger.begin(lease), [branch(99)])
    with pytest.raises(ValueError, match="came from the ledger"):
        ledger.done(branch(published))
    assert ledger.failures() == ()


def test_failures_keep_their_reason(ledger: Ledger, lease: Lease, clock: Any) -> None:
    first = ledger.begin(lease)
    clock.advance(5)
    ledger.abandon(lease, first, "broke:\n\0 \ud800 at last")
    crashed = ledger.begin(lease)
    assert [failure.epoch for failure in ledger.failures()] == [first]
    ledger.release(lease)
    ledger.acquire("next")
    last, before = ledger.failures()
    assert (last.epoch, last.holder, last.failed_at, last.error) == (crashed, "me", None, None)
    assert (before.epoch, before.error) == (first, "broke:\n\ufffd \ufffd at last")
    assert before.failed_at == before.begun_at + timedelta(seconds=5)
    assert ledger.failures(limit=1) == (last,)


def test_no_step_without_the_lease(ledger: Ledger, lease: Lease, clock: Any) -> None:
    epoch_id = ledger.begin(lease)
    clock.advance(61)
    taker = ledger.acquire("taker")
    steps = (
        lambda: ledger.begin(lease),
        lambda: ledger.intend(lease, epoch_id, [branch(epoch_id)]),
        lambda: ledger.publish(lease, created(epoch_id, "v")),
        lambda: ledger.abandon(lease, epoch_id, "boom"),
        lambda: ledger.renew(lease),
    )
    for step in steps:
        with pytest.raises(LeaseError, match="taken over by taker") as raised:
            step()
        assert code_of(raised) == "VK-LEASE-LOST"
    assert (ledger.views(), ledger.states(), ledger.epochs(), ledger.chores()) == ((), {}, (), ())
    with pytest.raises(LedgerError, match="under another lease"):
        ledger.publish(taker, created(epoch_id, "v"))
    ledger.release(taker)
    with pytest.raises(LeaseError, match="was released"):
        ledger.begin(taker)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_comes_back_unchanged(ledger: Ledger, text: str) -> None:
    lease = ledger.acquire(text)
    failed = ledger.begin(lease)
    ledger.abandon(lease, failed, text)
    epoch_id = ledger.begin(lease)
    new = NewEpoch(
        epoch_id,
        {text: text},
        states=(ViewState(text, text, text, text, {text: text}, epoch_id),),
        refreshes=(ViewRefreshRecord(text, text, text, text, sys.maxsize, estimates={text: [text]}),),
        define=(ViewRecord(text, {text: text}, {text: text}, text, epoch_id),),
        redo=(Chore(None, ChoreKind.DROP_STORAGE, epoch_id, {text: text}),),
        plan={text: text},
        seconds={text: 1.0},
    )
    published = ledger.publish(lease, new)
    seen = SourceObservation(text, published.published_at, {text: text})
    ledger.observe({text: seen})
    assert (published.holder, published.source_versions, published.views) == (
        text,
        {text: text},
        new.refreshes,
    )
    assert (published.plan, published.seconds) == (new.plan, new.seconds)
    assert ledger.states() == {text: new.states[0]}
    assert ledger.view(text) == new.define[0]
    assert ledger.epochs(view=text) == (published,)
    assert [replace(chore, id=None) for chore in ledger.chores()] == list(new.redo)
    assert ledger.failures()[0].error == text
    assert ledger.observations() == {text: seen}
    ledger.publish(lease, NewEpoch(ledger.begin(lease), {}, (), (), drop=(text,)))
    assert ledger.views() == ()


@pytest.mark.parametrize("text", ["a\0b", "half \ud800"])
def test_text_that_no_database_can_hold_is_refused(ledger: Ledger, text: str) -> None:
    with pytest.raises(LedgerError) as raised:
        ledger.acquire(text)
    assert code_of(raised) == "VK-LEDGER-TEXT"
    assert ledger.holder() is None


def test_observations_keep_the_newest(ledger: Ledger, clock: Any) -> None:
    older = SourceObservation("1", clock.now, {"rows": 1})
    clock.advance(1)
    newer = SourceObservation(None, clock.now)
    ledger.observe({"t": newer, "u": older})
    ledger.observe({"t": older})
    assert ledger.observations() == {"t": newer, "u": older}
    elsewhere = newer.observed_at.astimezone(timezone(timedelta(hours=9)))
    ledger.observe({"t": SourceObservation("2", elsewhere)})
    assert ledger.observations()["t"] == SourceObservation("2", newer.observed_at)
    with pytest.raises(LedgerError, match="without a zone"):
        ledger.observe({"t": SourceObservation("3", clock.now.replace(tzinfo=None))})


def test_an_observation_that_lies_ahead_gives_way(ledger: Ledger, clock: Any) -> None:
    ahead = SourceObservation("1", clock.now + timedelta(hours=1))
    ledger.observe({"t": ahead})
    ledger.observe({"t": SourceObservation("2", clock.now)})
    assert ledger.observations()["t"].version == "2", "no clock that was right saw it then"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"states": (state("v", 1), state("v", 1))}, "states names a view twice"),
        ({"refreshes": (refreshed("v"), refreshed("v"))}, "refreshes names a view twice"),
        ({"drop": ("v", "v")}, "drop names a view twice"),
        ({"define": (record("v", 1),)}, "defined without a state"),
        ({"states": (state("v", 1),), "drop": ("v",)}, "dropped, yet with a state"),
        ({"states": (state("v", 2),)}, "another epoch"),
        ({"redo": (branch(2),)}, "another epoch"),
    ],
)
def test_an_epoch_that_makes_no_sense_cannot_be_built(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NewEpoch(1, {}, **{"states": (), "refreshes": (), **parts})


@pytest.mark.parametrize("moved", [False, True])
def test_the_last_refreshes_are_found_without_looking_at_all_there_ever_were(tmp_path: Path, moved: bool):
    asked: list[tuple[str, Any]] = []
    with Ledger.open(sqlite_url(tmp_path / "ledger.db")) as ledger, ledger.reading() as connection:
        event.listen(connection, "before_cursor_execute", lambda *told: asked.append((told[2], told[3])))
        assert queries.last_refreshes(connection, moved=moved) == {}
        (statement, values) = asked[0]
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert not [step for *_, step in plan if step.startswith("SCAN vk_refresh")], plan
