"""The lease: exclusive among threads and processes, fenced by its token, safe whatever the clocks say."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from viewkeeper.epochs import held_lease
from viewkeeper.errors import LeaseError, LedgerError
from viewkeeper.ledger import Chore, ChoreKind, Lease, Ledger, NewEpoch, SourceObservation

SPAWN = multiprocessing.get_context("spawn")


def test_a_second_refresher_is_told_who_holds_the_lease(ledger: Ledger, clock: Any) -> None:
    lease = ledger.acquire("host-1:4711", ttl_seconds=30)
    assert ledger.holder() == lease
    assert lease.expires_at - lease.acquired_at == timedelta(seconds=30)
    with pytest.raises(LeaseError) as raised:
        ledger.acquire("host-2:42")
    assert raised.value.code == "VK-LEASE-HELD"
    for part in ("host-1:4711", "2026-03-01 12:00:00 UTC", "2026-03-01 12:00:30 UTC"):
        assert part in raised.value.message
    assert raised.value.hint


def test_the_lease_is_not_reentrant(ledger: Ledger) -> None:
    ledger.acquire("me")
    with pytest.raises(LeaseError, match="me is refreshing"):
        ledger.acquire("me")


def test_a_released_lease_is_free_and_the_token_grows(ledger: Ledger) -> None:
    first = ledger.acquire("a")
    ledger.release(first)
    assert ledger.holder() is None
    second = ledger.acquire("b")
    assert second.token > first.token
    ledger.release(first)
    assert ledger.holder() == second


def test_an_expired_lease_is_taken_over(ledger: Ledger, clock: Any) -> None:
    first = ledger.acquire("a", ttl_seconds=10)
    clock.advance(9.9)
    with pytest.raises(LeaseError):
        ledger.acquire("b")
    clock.advance(0.1)
    assert ledger.holder() is None
    second = ledger.acquire("b")
    assert second.token > first.token
    with pytest.raises(LeaseError, match="taken over by b") as raised:
        ledger.renew(first)
    assert raised.value.code == "VK-LEASE-LOST"


def test_renewing_counts_from_now(ledger: Ledger, clock: Any) -> None:
    lease = ledger.acquire("a", ttl_seconds=10)
    clock.advance(8)
    renewed = ledger.renew(lease)
    assert renewed == Lease("a", lease.token, lease.acquired_at, clock.now + timedelta(seconds=10))
    assert ledger.holder() == renewed
    clock.advance(9)
    with pytest.raises(LeaseError):
        ledger.acquire("b")


def test_a_lease_that_expired_but_was_not_taken_is_still_good(ledger: Ledger, clock: Any) -> None:
    lease = ledger.acquire("a", ttl_seconds=10)
    clock.advance(100)
    epoch_id = ledger.begin(lease)
    assert ledger.publish(lease, NewEpoch(epoch_id, {}, (), ())).id == epoch_id
    assert ledger.renew(lease).expires_at > clock.now


def test_a_clock_that_goes_back_cannot_harm(ledger: Ledger, clock: Any) -> None:
    first = ledger.acquire("a", ttl_seconds=10)
    clock.advance(20)
    second = ledger.acquire("b")
    clock.advance(-1000)
    with pytest.raises(LeaseError):
        ledger.begin(first)
    assert ledger.begin(second) == 1


def _race(url: str, name: str, barrier: Barrier, results: Any) -> None:
    with Ledger.open(url) as ledger:
        barrier.wait(60)
        try:
            results.put(ledger.acquire(name).holder)
        except LeaseError as error:
            results.put(error.code)


def test_of_two_processes_one_wins(url: str) -> None:
    # Neither has opened the ledger before: they race for the migration, too.
    barrier, results = SPAWN.Barrier(2), SPAWN.Queue()
    racers = [SPAWN.Process(target=_race, args=(url, name, barrier, results)) for name in ("p", "q")]
    for racer in racers:
        racer.start()
    outcomes = sorted(results.get(timeout=60) for _ in racers)
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    results.close()
    results.join_thread()
    assert outcomes[0] == "VK-LEASE-HELD"
    assert outcomes[1] in ("p", "q")
    with Ledger.open(url) as ledger:
        held = ledger.holder()
        assert held is not None
        assert (held.holder, held.token) == (outcomes[1], 1)


def _die_before_publishing(url: str) -> None:
    ledger = Ledger.open(url)
    lease = ledger.acquire("doomed", ttl_seconds=0.001)
    epoch_id = ledger.begin(lease)
    ledger.intend(lease, epoch_id, [Chore(None, ChoreKind.DROP_BRANCH, epoch_id, {"table": "t"})])
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_its_intents(url: str) -> None:
    doomed = SPAWN.Process(target=_die_before_publishing, args=(url,))
    doomed.start()
    doomed.join(60)
    assert doomed.exitcode == -signal.SIGKILL
    with Ledger.open(url) as ledger:
        ledger.acquire("next")
        (chore,) = ledger.chores()
        assert (chore.kind, chore.payload) == (ChoreKind.DROP_BRANCH, {"table": "t"})
        assert ledger.latest() is None
        assert [failure.epoch for failure in ledger.failures()] == [chore.epoch]


def test_threads_share_a_ledger(url: str) -> None:
    wins = 0
    counting = threading.Lock()

    def work(number: int) -> None:
        nonlocal wins
        for _ in range(5):
            try:
                lease = ledger.acquire(f"thread {number}")
            except LeaseError:
                ledger.states()
                continue
            ledger.publish(lease, NewEpoch(ledger.begin(lease), {}, (), ()))
            ledger.observe({f"s{number}": SourceObservation("1", lease.acquired_at)})
            ledger.release(lease)
            with counting:
                wins += 1

    with Ledger.open(url) as ledger:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(ledger.epochs()) == wins > 0
        assert [epoch.id for epoch in ledger.epochs()] == list(range(wins, 0, -1))
        lease = ledger.acquire("last")
        assert lease.token == wins + 1


def test_a_ledger_that_is_away_for_a_moment_costs_no_lease(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([LedgerError("it restarts"), LedgerError("it restarts"), None])
    renewed, usual = threading.Event(), ledger.renew

    def renew(lease: Lease) -> Lease:
        answer = next(answers, None)
        if answer is not None:
            raise answer
        renewed.set()
        return usual(lease)

    monkeypatch.setattr(ledger, "renew", renew)
    with held_lease(ledger, "me", seconds=0.3):
        assert renewed.wait(10)
