"""The loop of the service, over a warehouse without Spark."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from viewkeeper.define.project import Project, load_project
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


def broken(running) -> list[str]:
    """The expectations that somebody was told of."""
    with running.open() as ledger:
        return [trouble.what for trouble in ledger.troubles() if trouble.kind == "expectation"]


def test_rows_that_break_an_expectation_are_told_of_whoever_let_them_in(running):
    wh = running.warehouse
    wh.define("v")
    asked = iter([lambda: None, lambda: wh.publish("v")])

    def look() -> None:  # the console, say, or another process
        next(asked, running.stop.set)()

    wh.looking = look
    wh.violations = {"sold": 3}
    running.service().run()
    assert broken(running) == ["sold"]
    assert 'violations_total{expectation="sold",view="v"} 3.0' in running.state.metrics.text().decode()


def test_definitions_that_are_applied_are_told_of(running):
    wh = running.warehouse
    wh.violations = {"sold": 3}
    wh.applying = lambda: [f"created v in epoch {wh.define('v').id}"]
    running.service().run(once=True)
    assert broken(running) == ["sold"]


def test_what_was_published_and_not_told_before_a_restart_is_told_after_it(running, caplog):
    running.warehouse.define("v")
    running.service().run(once=True)
    assert "full, 1 rows" not in caplog.text, "epochs of before the first start are no news"
    again = running.restarted()
    again.warehouse.violations = {"sold": 3}
    again.warehouse.publish("v")
    again.service().run(once=True)
    assert broken(running) == ["sold"]
    assert caplog.text.count("full, 1 rows") == 1
    running.restarted().service().run(once=True)
    assert caplog.text.count("full, 1 rows") == 1


def test_everything_is_closed_although_something_fails(running):
    service = running.service()

    def fail() -> None:
        raise OSError("no")

    running.errands.close = fail
    with pytest.raises(OSError, match="no"):
        service.run(once=True)
    assert running.warehouse.closed


def test_an_alert_that_the_end_cut_off_is_told_after_a_restart(running):
    settings = running.folder / "viewkeeper.yml"
    before = settings.read_text()
    settings.write_text(f"{before}  alerts: [{{command: [sleep, '60'], timeout: 1 second}}]\n")
    running.warehouse.define("v")
    running.warehouse.violations = {"sold": 3}
    running.warehouse.applying = lambda: [f"refreshed v in epoch {running.warehouse.publish('v').id}"]
    service = running.service()
    (messenger,) = service._teller._messengers
    messenger._deliver = lambda alert: time.sleep(10)  # longer than it may take
    service.run(once=True)

    settings.write_text(f"{before}  alerts: [{{command: [sh, -c, 'cat >> told']}}]\n")
    running.restarted().service().run(once=True)
    assert '"what": "sold"' in (running.folder / "told").read_text()
    (running.folder / "told").unlink()
    running.restarted().service().run(once=True)
    assert not (running.folder / "told").exists(), "once"


@pytest.mark.parametrize("at_start", [True, False], ids=["at the start", "later"])
def test_what_is_edited_while_it_is_read_is_applied_too(running, monkeypatch, at_start):
    view = running.folder / "transformations" / "orders_by_day.sql"
    text = view.read_text()
    editing = at_start

    def load(folder: Path) -> Project:
        nonlocal editing
        found = load_project(folder)
        if editing:
            editing = False
            view.write_text(f"{text}\n-- edited a moment later")
        return found

    def look() -> None:
        nonlocal editing
        if not at_start and view.read_text() == text:
            editing = True
            view.write_text(f"{text}\n-- edited")
        elif not editing:
            looked.append(1)
            if len(looked) == 3:
                running.stop.set()

    looked: list[int] = []
    applied: list[str] = []

    def apply(project: Project) -> list[str]:
        applied.append(project.statements[-1].sql)
        return []

    monkeypatch.setattr("viewkeeper.service.service.load_project", load)
    monkeypatch.setattr(running.warehouse, "apply", apply)
    running.warehouse.looking = look
    running.service().run()
    assert len(applied) == (2 if at_start else 3)
