"""The loop of the service, over a warehouse without Spark."""

from __future__ import annotations

import logging

import pytest

from viewkeeper.define.timing import TargetLag
from viewkeeper.errors import LedgerError


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "viewkeeper")
    return caplog


def test_a_view_grows_late_while_the_ledger_is_away(running, caplog):
    running.warehouse.define("v", TargetLag(1))
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            running.stop.set()
        if looks > 1:
            raise LedgerError("the ledger is away")

    running.warehouse.looking = look
    running.service().run()
    assert "v is 1 second behind" in caplog.text
