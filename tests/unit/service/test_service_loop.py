"""The loop of the service, over a warehouse without Spark."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from toy import ToyWarehouse

from viewkeeper.define.project import Project, load_project
from viewkeeper.define.timing import Schedule, TargetLag
from viewkeeper.errors import LedgerError, RefreshError, SetupError
from viewkeeper.ledger import SourceObservation
from viewkeeper.ledger.ledger import utc_now


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

    monkeypatch.setattr("viewkeeper.service.definitions.load_project", load)
    monkeypatch.setattr(running.warehouse, "apply", apply)
    running.warehouse.looking = look
    running.service().run()
    assert len(applied) == (2 if at_start else 3)


@contextmanager
def earlier(running, hours: float) -> Iterator[ToyWarehouse]:
    """The warehouse, as long ago."""
    then = utc_now() - timedelta(hours=hours)
    with running.open(lambda: then) as ledger:
        yield ToyWarehouse(ledger)


def test_after_a_restart_a_view_is_as_fresh_as_its_sources_were_last_seen(running, caplog):
    with earlier(running, hours=1) as wh:
        wh.define("v", TargetLag(1800))
    seen_at = utc_now() - timedelta(seconds=60)
    running.warehouse.ledger.observe({"s": SourceObservation("1", seen_at)})
    running.warehouse.version = 2
    running.service().run(once=True)
    assert "behind" not in caplog.text
    assert running.state.views["v"].fresh_at == seen_at


def test_a_view_whose_source_stood_still_is_not_late_after_a_long_epoch(running, caplog):
    wh = running.warehouse
    wh.define("slow", TargetLag(1))
    wh.define("other", TargetLag(2), table="t")
    epochs: list[tuple[str, ...]] = []

    def look() -> None:
        wh.version = 2
        if epochs:
            running.stop.set()

    def refresh(views: tuple[str, ...]) -> None:
        epochs.append(views)
        time.sleep(2.5)

    wh.looking, wh.refreshing = look, refresh
    running.service().run()
    assert epochs == [("slow",)]
    assert "other is" not in caplog.text


def test_a_view_that_waits_for_its_first_rows_is_late_over_a_restart(running, caplog):
    with earlier(running, hours=1) as wh:
        wh.define("v", TargetLag(60), filled=False)

    def refresh(views: tuple[str, ...]) -> None:
        raise RefreshError("no", view="v")

    running.warehouse.refreshing = refresh
    assert not running.service().run(once=True).ok
    assert "v has no rows yet" in caplog.text
    again = running.restarted()
    again.warehouse.refreshing = refresh
    again.service().run(once=True)
    assert "mended" not in caplog.text
    assert re.search(r'lag_seconds{view="v"} 36\d\d\.', again.state.metrics.text().decode())


@pytest.mark.parametrize(("timed", "ok"), [("reader", False), (None, True)])
def test_once_is_not_well_while_a_view_that_somebody_waits_for_is_left_alone(running, timed, ok):
    wh = running.warehouse
    wh.define("read")
    wh.define("reader", TargetLag(3600) if timed else None, table="read")
    (definition_id,) = [view.definition_id for view in wh.ledger.views() if view.name == "read"]
    wh.ledger.note_failure("read", definition_id, "[VK-X] no", suspend_after=1)
    assert running.service().run(once=True).ok is ok


def test_what_nobody_foresaw_is_told_as_what_it_is(running):
    def look() -> None:
        raise ZeroDivisionError("a mistake of ours")

    running.warehouse.looking = look
    with pytest.raises(ZeroDivisionError):
        running.service().run()


def test_a_spark_that_is_gone_is_told_as_that(running):
    def look() -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    running.warehouse.looking = look
    with pytest.raises(SetupError) as gone:
        running.service().run()
    assert gone.value.code == "VK-SPARK-GONE"


def test_a_schedule_that_cannot_be_followed_here_stops_no_other_view(running, caplog):
    running.warehouse.define("v", Schedule("0 6 * * *"), time_zone="JST")
    running.warehouse.define("w", TargetLag(60))
    assert not running.service().run(once=True).ok
    assert caplog.text.count("its schedule is not followed: there is no time zone 'JST'") == 1
    assert running.state.views["w"].fresh_at is not None


def test_a_view_that_is_dropped_breaks_no_expectation_any_more(running, caplog):
    wh = running.warehouse
    wh.violations = {"sold": 3}
    wh.applying = lambda: [f"created v in epoch {wh.define('v').id}"]
    running.service().run(once=True)
    assert broken(running) == ["sold"]
    again = running.restarted()
    again.warehouse.drop("v")
    again.service().run(once=True)
    assert broken(running) == []
    assert "mended: 3 rows of v break the expectation sold" in caplog.text
