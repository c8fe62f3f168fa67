from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.define.service_settings import BackoffSettings
from viewkeeper.ledger import FailingView
from viewkeeper.service.backoff import code_of, pause_after, suspends, try_again_at

SETTINGS = BackoffSettings(first="30 seconds", longest="30 minutes")
NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@given(st.integers(1, 10_000))
def test_pauses_grow_up_to_the_longest(failures):
    assert pause_after(failures, SETTINGS) <= pause_after(failures + 1, SETTINGS) <= 1800


def test_when_it_is_tried_again():
    failing = FailingView("v", "d", 3, NOON, "why", suspended=False)
    assert try_again_at(failing, SETTINGS) == NOON + timedelta(minutes=2)
    assert try_again_at(FailingView("v", "d", 5, NOON, "why", suspended=True), SETTINGS) is None


def test_what_passes_by_itself_suspends_nothing():
    assert suspends("[VK-REFRESH] view v: division by zero", SETTINGS) == 5
    assert suspends("[VK-SOURCE-UNREACHABLE] source crm does not answer", SETTINGS) is None
    assert code_of("something else [VK-REFRESH]") == "VK-INTERNAL"
