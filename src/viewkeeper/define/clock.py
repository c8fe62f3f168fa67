"""The clock as a source: a table of one row, whose version is the time that it shows.

``current_date``, ``current_timestamp`` and ``localtimestamp`` give another answer each time, but within one
epoch they are pinned, and the ledger remembers to what: so a view over the last seven days is exact, and is
verified, like any other. There is one such table for each time zone that views were defined in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from types import MappingProxyType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from viewkeeper.sql.quoting import parse_path, show_path

CLOCK = "_clock"
"""Stands in the place of a catalog in the names of these tables."""
NOW = "now"
"""Their only column."""


@dataclass(frozen=True, slots=True)
class Hand:
    """What a clock can show: the type of it, the word before its literals, and how it is written."""

    name: str
    type: str
    keyword: str
    format: str


DATE = Hand("date", "date", "DATE", "%Y-%m-%d")
INSTANT = Hand("timestamp", "timestamp", "TIMESTAMP", "%Y-%m-%d %H:%M:%S.%f%z")
LOCAL = Hand("local", "timestamp_ntz", "TIMESTAMP_NTZ", "%Y-%m-%d %H:%M:%S.%f")

FUNCTIONS: Mapping[str, Hand] = MappingProxyType(
    {
        "current_date": DATE,
        "curdate": DATE,
        "current_timestamp": INSTANT,
        "now": INSTANT,
        "localtimestamp": LOCAL,
    }
)
"""Spark's functions that read the clock."""

_HANDS = {hand.name: hand for hand in (DATE, INSTANT, LOCAL)}
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


def clock_table(hand: Hand, zone: str) -> str:
    """The table that shows it.

    >>> clock_table(DATE, "UTC")
    '_clock.UTC.date'
    """
    return show_path((CLOCK, zone, hand.name))


def is_clock(table: str) -> bool:
    """Whether a table is a clock."""
    return parse_path(table)[0] == CLOCK


def hand_of(table: str) -> Hand:
    """What a clock's table shows."""
    return _HANDS[parse_path(table)[-1]]


def shown(table: str, instant: datetime) -> str:
    """The version of a clock's table at a point in time.

    >>> shown("_clock.`+05:30`.date", datetime(2026, 1, 31, 20, tzinfo=timezone.utc))
    '2026-02-01'
    >>> shown("_clock.UTC.timestamp", datetime(2026, 1, 31, 20, tzinfo=timezone.utc))
    '2026-01-31 20:00:00.000000+0000'
    """
    _, zone, _ = parse_path(table)
    there = zone_of(zone)
    assert there is not None, "looked up when the view was defined"
    hand = hand_of(table)
    # An hour that comes twice in a year is written once in UTC.
    return instant.astimezone(timezone.utc if hand is INSTANT else there).strftime(hand.format)


def has_turned(table: str, version: str | None) -> bool:
    """Whether it is another day than a version says. Of what changes all the time nobody expects that."""
    return hand_of(table) is DATE and version != shown(table, datetime.now(timezone.utc))


def literal(table: str, version: str) -> str:
    """A version as Spark writes such a value.

    >>> literal("_clock.UTC.timestamp", "2026-01-31 20:00:00.000000+0000")
    "TIMESTAMP '2026-01-31 20:00:00.000000+0000'"
    """
    return f"{hand_of(table).keyword} '{version}'"


def zone_of(name: str) -> tzinfo | None:
    """A time zone by the name that Spark knows it by; ``None`` if it is not known here.

    >>> zone_of("GMT+8"), zone_of("Nowhere/Else")
    (datetime.timezone(datetime.timedelta(seconds=28800)), None)
    >>> zone_of("+25:00"), zone_of("../etc"), zone_of("America")
    (None, None, None)
    """
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            sign, hours, minutes = offset.groups()
            distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
            return timezone(distance if sign == "+" else -distance)
        return timezone.utc if name.upper() in ("Z", "UTC", "GMT", "UT") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # more than a day; a folder of zones
        return None
