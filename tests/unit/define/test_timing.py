"""Intervals, schedules and time zones, as people write them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.analyse.statements import CreateView, RetimeView, parse_statement
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.timing import (
    Schedule,
    TargetLag,
    next_time,
    read_interval,
    read_schedule,
    read_zone,
    show_interval,
)
from viewkeeper.defining import refuse_timeless
from viewkeeper.errors import DefinitionError
from viewkeeper.housekeeping import Housekeeping
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.testing.ledgers import PaperWarehouse


@given(st.integers(1, 366 * 86400))
def test_what_is_shown_can_be_read(seconds):
    assert read_interval(show_interval(seconds)) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "5", "minutes", "five minutes", "5 min", "-5 minutes", "5 minutes and", "5 minutes 3 minutes",
     "0 seconds", "400 days", "5minutes", "1.5 hours", "5 minutes3 seconds", "٥ fortnights"],
)  # fmt: skip
def test_what_is_no_interval_is_refused(text):
    with pytest.raises(ValueError, match=r"interval|unit|twice"):
        read_interval(text)


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("0 6 * * *", "UTC", "2026-03-01T06:00:00", "2026-03-02T06:00:00"),
        ("0 6 * * *", "Asia/Tokyo", "2026-03-01T00:00:00", "2026-03-01T21:00:00"),
        ("0 6 * * *", "+02:00", "2026-03-01T00:00:00", "2026-03-01T04:00:00"),
        # The clock is moved on: what would have been at half past two is made up for.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00", "2026-03-29T01:00:00"),
    ],
)
def test_when_a_schedule_comes_round(cron, zone, after, expected):
    moment = datetime.fromisoformat(after).replace(tzinfo=timezone.utc)
    found = next_time(read_schedule(cron, zone), moment)
    assert found.isoformat() == f"{expected}+00:00"


def test_a_schedule_without_a_zone_has_that_of_the_session():
    midnight = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert next_time(read_schedule("0 6 * * *"), midnight, "+03:00").hour == 3


@pytest.mark.parametrize(
    "cron", ["", "* * * *", "0 0 6 * * *", "61 * * * *", "0 6 30 2 *", "@daily", "a b c d"]
)
def test_what_is_no_schedule_is_refused(cron):
    with pytest.raises(ValueError, match="no schedule"):
        read_schedule(cron)


@pytest.mark.parametrize("zone", ["Mars", "../../etc/passwd", "+25:00", "", "/etc/localtime"])
def test_what_is_no_time_zone_is_refused(zone):
    with pytest.raises(ValueError, match="no time zone"):
        read_zone(zone)


@pytest.mark.parametrize(
    ("clause", "timing"),
    [
        ("TARGET LAG '5 minutes' COMMENT 'c'", TargetLag(300)),
        ("COMMENT 'c' target lag '1 hour 30 minutes'", TargetLag(5400)),
        ("SCHEDULE CRON '0 6 * * *' COMMENT 'c'", Schedule("0 6 * * *")),
        ("COMMENT 'c' SCHEDULE CRON '0  6 * * *' AT TIME ZONE 'UTC'", Schedule("0 6 * * *", "UTC")),
    ],
)  # fmt: skip
def test_clauses_in_any_order(clause, timing):
    view = parse_statement(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT 1")
    assert isinstance(view, CreateView)
    assert (view.timing, view.comment, view.query) == (timing, "c", "SELECT 1")


@pytest.mark.parametrize(
    ("clauses", "at", "words"),
    [
        ("TARGET LAG '5 min'", "'5 min'", "no unit 'min'"),
        ("TARGET LAG 5", "5 AS", "an interval in quotes"),
        ("SCHEDULE '0 6 * * *'", "'0 6", "CRON"),
        ("SCHEDULE CRON '0 66 * * *'", "'0 66", "bad hour"),
        ("SCHEDULE CRON '0 6 * * *' AT TIME ZONE 'Mars'", "'Mars'", "no time zone"),
        ("TARGET LAG '5 minutes' SCHEDULE CRON '0 6 * * *'", "SCHEDULE", "only once"),
        ("TARGET LAG '5 minutes' TARGET LAG '6 minutes'", "TARGET LAG '6", "only once"),
    ],
)
def test_mistakes_are_told_with_their_place(clauses, at, words):
    text = f"CREATE MATERIALIZED VIEW v {clauses} AS SELECT 1"
    with pytest.raises(DefinitionError, match=words) as raised:
        parse_statement(text)
    assert raised.value.position is not None
    assert raised.value.position.start == text.index(at)


def test_a_lag_that_is_none_has_a_code():
    with pytest.raises(DefinitionError) as raised:
        parse_statement("CREATE MATERIALIZED VIEW v TARGET LAG '5 min' AS SELECT 1")
    assert raised.value.code == "VK-TIMING"


def test_altering_how_fresh_a_view_is():
    assert parse_statement("ALTER MATERIALIZED VIEW a.v SET TARGET LAG '1 minute'") == RetimeView(
        ("a", "v"), TargetLag(60)
    )
    assert parse_statement("ALTER MATERIALIZED VIEW v UNSET SCHEDULE") == RetimeView(("v",), None)
    with pytest.raises(DefinitionError, match="TBLPROPERTIES, TARGET LAG or SCHEDULE CRON"):
        parse_statement("ALTER MATERIALIZED VIEW v SET LAG '1 minute'")


def test_a_schedule_goes_by_a_clock_that_is_known():
    def scheduled(zone: str | None, session: str) -> ViewDefinition:
        schedule = Schedule("0 6 * * *", zone)
        return ViewDefinition(("v",), "", SessionPins("lake", (), session), timing=schedule)

    refuse_timeless(scheduled(None, "Europe/Berlin"))
    refuse_timeless(scheduled("Europe/Berlin", "JST"))
    with pytest.raises(DefinitionError, match="no time zone 'JST'") as raised:
        refuse_timeless(scheduled(None, "JST"))
    assert raised.value.code == "VK-TIMING"


def test_a_schedule_that_is_set_later_does_so_too(tmp_path):
    with Ledger.open(sqlite_url(tmp_path / "ledger.db")) as ledger:
        paper = PaperWarehouse(ledger)
        paper.define()
        house = Housekeeping(ledger, *cast("Any", (None, None, None, None)))
        (name, *_) = ledger.view_names()
        with pytest.raises(DefinitionError, match="no time zone 'JST'"):
            house.retime(name, Schedule("0 6 * * *", "JST"))
