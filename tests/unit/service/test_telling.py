"""What is told of the views, and to whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, timezone
from typing import cast

import pytest

from viewkeeper.errors import LedgerError
from viewkeeper.ledger import Trouble
from viewkeeper.results import Epoch, ViewRefresh
from viewkeeper.service.alerts import Alert, Troubles
from viewkeeper.service.outbox import Outbox
from viewkeeper.service.state import ServiceState, ViewCondition
from viewkeeper.service.telling import Teller


class Recorder:
    """Takes alerts as an outbox does."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def put(self, alert: Alert) -> None:
        self.told.append((alert.state, alert.view, alert.what))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def teller(recorder: Recorder) -> Teller:
    return made(recorder, {})


def made(recorder: Recorder, remembered: dict[Trouble, str]) -> Teller:
    """A teller that begins with what is remembered, and remembers there."""

    def remember(known: Mapping[Trouble, str], untold: Collection[Trouble]) -> None:
        remembered.clear()
        remembered.update(known)

    troubles = Troubles("shop", remembered)
    return Teller(ServiceState(), troubles, [cast("Outbox[Alert]", recorder)], remember)


def epoch(view: str, strategy: str = "incremental", **violations: int) -> Epoch:
    refresh = ViewRefresh(view, strategy, None, None, 1, 1, 0, 0, 1.0, 1.0, violations=violations)
    return Epoch(1, {}, [refresh])


def test_an_expectation_is_broken_by_rows_that_come_and_mended_by_rows_that_keep_it(teller, recorder):
    teller.published(epoch("v", sold=3))
    teller.published(epoch("v", sold=1))
    teller.published(epoch("v", "unchanged"))
    teller.published(epoch("w"))
    assert recorder.told == [("broken", "v", "sold")]
    teller.published(epoch("v"))
    assert recorder.told[1:] == [("mended", "v", "sold")]


def test_an_expectation_that_lets_no_epoch_pass_is_told_of_too(teller, recorder):
    teller.failed("v", "[VK-REFRESH] division by zero")
    teller.failed("v", "[VK-EXPECTATION] 3 rows of v break sold")
    teller.failed("v", "[VK-EXPECTATION] 3 rows of v break sold")
    assert recorder.told == [("broken", "v", "")]
    teller.published(epoch("v"))
    assert recorder.told[1:] == [("mended", "v", "")]


def test_who_was_told_before_a_restart_is_not_told_again_but_of_the_end(recorder):
    remembered: dict[Trouble, str] = {}
    made(recorder, remembered).published(epoch("v", sold=3))
    assert list(remembered) == [Trouble("expectation", "v", "sold")]
    again = made(recorder, remembered)
    again.published(epoch("v", sold=1))
    assert recorder.told == [("broken", "v", "sold")]
    again.published(epoch("v"))
    assert recorder.told[1:] == [("mended", "v", "sold")]
    assert remembered == {}


def test_a_view_that_never_got_rows_is_late_too():
    now = datetime.now(timezone.utc)
    waiting = ViewCondition(None, 30, awaited_since=now - timedelta(seconds=20))
    assert not waiting.is_late(now)
    assert waiting.is_late(now + timedelta(seconds=20))
    assert not ViewCondition(None, None, awaited_since=now - timedelta(days=1)).is_late(now)


def test_who_is_told_is_told_although_the_ledger_cannot_remember_it(recorder):
    remembered: dict[Trouble, str] = {}
    away = True

    def remember(known: Mapping[Trouble, str], untold: Collection[Trouble]) -> None:
        if away:
            raise LedgerError("the ledger is away")
        remembered.update(known)

    teller = Teller(ServiceState(), Troubles("shop"), [cast("Outbox[Alert]", recorder)], remember)
    teller.published(epoch("v", sold=3))
    assert recorder.told == [("broken", "v", "sold")]
    away = False
    teller.published(epoch("v", sold=1))
    assert recorder.told == [("broken", "v", "sold")]
    assert list(remembered) == [Trouble("expectation", "v", "sold")], "the next time"
