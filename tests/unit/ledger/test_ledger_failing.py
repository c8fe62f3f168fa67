"""Views that fail again and again, on both databases."""

from __future__ import annotations

from viewkeeper.ledger import Ledger, NewEpoch, Trouble, ViewRecord, ViewState


def define(ledger: Ledger, *names: str, definition_id: str = "d1") -> None:
    lease = ledger.acquire("me")
    epoch = ledger.begin(lease)
    new = NewEpoch(
        epoch,
        {},
        tuple(ViewState(name, definition_id, f"storage_{name}", "s", {}, epoch) for name in names),
        (),
        tuple(ViewRecord(name, {}, {}, definition_id, epoch) for name in names),
    )
    ledger.publish(lease, new)
    ledger.release(lease)


def fail(ledger: Ledger, view: str = "v", suspend_after: int | None = 3, definition_id: str = "d1") -> bool:
    return ledger.note_failure(view, definition_id, "[VK-X] why", suspend_after=suspend_after).suspended


def test_so_many_failures_in_a_row_suspend_a_view_over_a_restart(ledger, url, clock):
    define(ledger, "v", "w")
    assert [fail(ledger), fail(ledger), fail(ledger, "w"), fail(ledger)] == [False, False, False, True]
    with Ledger.open(url, clock=clock) as again:
        found = again.failing()
        assert (found["v"].failures, found["v"].suspended, found["v"].reason) == (3, True, "[VK-X] why")
        assert found["v"].failed_at == clock.now
        assert (found["w"].failures, found["w"].suspended) == (1, False)
        again.forgive(["v"])
    assert list(ledger.failing()) == ["w"]
    assert fail(ledger) is False, "it begins anew"


def test_what_passes_by_itself_does_not_suspend_and_does_not_lift(ledger: Ledger):
    define(ledger, "v")
    assert not any(fail(ledger, suspend_after=None) for _ in range(10))
    assert fail(ledger, suspend_after=3)
    assert fail(ledger, suspend_after=None), "suspended it stays"


def test_what_was_told_is_remembered_and_what_came_since_is_found(ledger, url, clock):
    assert ledger.told() is None
    for name in ("u", "v", "w"):
        define(ledger, name)
    ledger.note_told(1)
    ledger.note_told(2)
    with Ledger.open(url, clock=clock) as again:
        assert again.told() == 2
        assert [epoch.id for epoch in again.epochs(after=1)] == [3, 2]
        assert [epoch.id for epoch in again.epochs(after=1, limit=1)] == [3]
        assert again.epochs(after=3) == ()


def test_a_new_definition_lifts_it(ledger: Ledger):
    define(ledger, "v")
    assert fail(ledger, suspend_after=1)
    define(ledger, "v", definition_id="d2")
    assert ledger.failing() == {}
    assert fail(ledger, definition_id="d2") is False
    assert ledger.failing()["v"].failures == 1


def test_a_dropped_view_fails_no_longer(ledger: Ledger):
    define(ledger, "v")
    fail(ledger)
    lease = ledger.acquire("me")
    ledger.publish(lease, NewEpoch(ledger.begin(lease), {}, (), (), drop=("v",)))
    assert ledger.failing() == {}


def test_a_reason_with_what_no_database_can_hold(ledger: Ledger):
    define(ledger, "v")
    ledger.note_failure("v", "d1", "nul \0 half \ud800", suspend_after=None)
    assert ledger.failing()["v"].reason == "nul \ufffd half \ufffd"


def test_what_somebody_was_told_of_is_remembered(ledger: Ledger, url: str):
    late, broken = Trouble("lag", "v"), Trouble("expectation", "v", "sold")
    ledger.note_troubles({late: "nul \0", broken: "3 rows"})
    with Ledger.open(url) as again:
        assert again.troubles() == {broken: "3 rows", late: "nul \ufffd"}
    ledger.note_troubles({})
    assert ledger.troubles() == {}
