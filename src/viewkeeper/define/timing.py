"""How fresh a view is to be: within a target lag, or by a schedule.

::

    TARGET LAG '5 minutes'                                  it may lag behind its sources by so much
    SCHEDULE CRON '0 6 * * 1-5' [AT TIME ZONE 'Asia/Tokyo'] it is refreshed at these times, and not between
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TypeAlias

from viewkeeper.define.clock import zone_of
from viewkeeper.errors import SetupError

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_PART = re.compile(r"(\d{1,9})\s+([A-Za-z]+)")
_LONGEST = 366 * 86400


@dataclass(frozen=True, slots=True)
class TargetLag:
    """A view may show its sources as they were so many seconds ago, and no older."""

    seconds: int

    def __str__(self) -> str:
        return show_interval(self.seconds)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A view is refreshed when a cron expression says so, by the clock of a time zone: of the session in
    which it was defined, unless it names one."""

    cron: str
    time_zone: str | None = None

    def __str__(self) -> str:
        return f"cron {self.cron}" + (f" ({self.time_zone})" if self.time_zone else "")


Timing: TypeAlias = TargetLag | Schedule


def read_interval(text: str) -> int:
    """The seconds of an interval; a ``ValueError`` that says what is wrong.

    >>> read_interval("5 minutes"), read_interval("1 hour 30 minutes")
    (300, 5400)
    >>> read_interval("5 min")
    Traceback (most recent call last):
    ValueError: there is no unit 'min': write seconds, minutes, hours, days or weeks
    """
    at, found = 0, dict[str, int]()
    said = text.strip()
    while at < len(said):
        part = _PART.match(said, at)
        if part is None:
            raise ValueError(f"{text!r} is no interval: write numbers and units, such as '1 hour 30 minutes'")
        count, word = int(part[1]), part[2].lower()
        unit = word.removesuffix("s")
        if unit not in _SECONDS:
            raise ValueError(f"there is no unit {word!r}: write seconds, minutes, hours, days or weeks")
        if unit in found:
            raise ValueError(f"{text!r} names {unit}s twice")
        found[unit] = count
        at = part.end()
        rest = said[at:]
        if rest and not rest[0].isspace():
            raise ValueError(f"{text!r} is no interval: {rest!r} is not understood")
        at += len(rest) - len(rest.lstrip())
    seconds = sum(count * _SECONDS[unit] for unit, count in found.items())
    if not 1 <= seconds <= _LONGEST:
        raise ValueError(f"{text!r} is no interval from a second to a year, such as '5 minutes'")
    return seconds


def show_interval(seconds: float) -> str:
    """An interval as people write it.

    >>> show_interval(5400), show_interval(60), show_interval(1)
    ('1 hour 30 minutes', '1 minute', '1 second')
    """
    left, parts = round(seconds), list[str]()
    for unit in ("day", "hour", "minute", "second"):
        count, left = divmod(left, _SECONDS[unit])
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(parts) or "0 seconds"


def read_schedule(cron: str, time_zone: str | None = None) -> Schedule:
    """A schedule that can be followed; a ``ValueError`` that says what is wrong with it."""
    if len(cron.split()) != 5:
        raise ValueError(
            f"{cron!r} is no schedule: cron has five fields, minute, hour, day, month and day of the week"
        )
    schedule = Schedule(" ".join(cron.split()), time_zone)
    next_time(schedule, datetime(2026, 1, 1, tzinfo=timezone.utc))
    return schedule


def next_time(schedule: Schedule, after: datetime, session_time_zone: str = "UTC") -> datetime:
    """When a schedule comes round next."""
    try:
        from cronsim import CronSim, CronSimError  # an extra: only who has a schedule needs it
    except ImportError as error:
        raise SetupError(
            "SCHEDULE CRON needs the package cronsim",
            code="VK-SETUP-EXTRA",
            hint="pip install 'viewkeeper[service]'",
        ) from error
    zone = read_zone(schedule.time_zone or session_time_zone)
    try:
        found: datetime = next(CronSim(schedule.cron, after.astimezone(zone)))
    except CronSimError as error:
        said = str(error) or "not understood"
        raise ValueError(f"{schedule.cron!r} is no schedule: {said[0].lower() + said[1:]}") from error
    except StopIteration:
        raise ValueError(f"{schedule.cron!r} never comes round") from None
    return found.astimezone(timezone.utc)


def read_zone(name: str) -> tzinfo:
    """A time zone as Spark names them; a ``ValueError`` if there is none.

    >>> read_zone("+02:00").utcoffset(None)
    datetime.timedelta(seconds=7200)
    """
    try:
        zone = zone_of(name) if name else None
    except (ValueError, OSError):  # an offset of days, a path
        zone = None
    if zone is None:
        raise ValueError(f"there is no time zone {name!r}: write one such as 'Europe/Berlin' or '+02:00'")
    return zone
