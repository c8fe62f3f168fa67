"""Views that fail or are paused, and are defined anew for something else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from toy import Running

from viewkeeper.define.timing import TargetLag
from viewkeeper.epochs import Work
from viewkeeper.housekeeping import Housekeeping
from viewkeeper.ledger import EpochRecord, FailingView


def failing(running: Running, view: str) -> FailingView | None:
    return running.warehouse.ledger.failing().get(view)


def suspend(running: Running, view: str) -> None:
    ids = {each.name: each.definition_id for each in running.warehouse.ledger.views()}
    running.warehouse.ledger.note_failure(view, ids[view], "[VK-X] no", suspend_after=1)


def housekeeping(running: Running) -> Housekeeping:
    """That publishes what it is to define, and touches no storage."""

    def run(lease: object, work: Work) -> EpochRecord:
        return running.warehouse.publish(*(work.views[name] for name in work.define))

    parts = SimpleNamespace(run=run, see=lambda snapshots: None)
    return Housekeeping(running.warehouse.ledger, *cast("Any", (parts, parts, None, None)))


def test_a_view_that_is_paused_stays_so_whatever_lag_it_is_given(running):
    running.warehouse.define("v")
    suspend(running, "v")
    before = failing(running, "v")
    housekeeping(running).retime("v", TargetLag(60))
    after = failing(running, "v")
    assert before is not None
    assert after is not None
    assert (after.suspended, after.failed_at, after.reason) == (True, before.failed_at, before.reason)
    assert after.definition_id != before.definition_id


def test_what_failed_under_an_earlier_definition_does_not_come_back(running):
    running.warehouse.define("v")
    suspend(running, "v")
    running.warehouse.define("v")  # otherwise
    housekeeping(running).retime("v", TargetLag(60))
    assert failing(running, "v") is None
