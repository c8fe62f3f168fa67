"""How long a view that failed is left alone, and when it is given up. Pure."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from viewkeeper.define.service_settings import BackoffSettings
from viewkeeper.ledger import FailingView

PASSING = frozenset(
    {
        "VK-SOURCE-UNREACHABLE",
        "VK-SOURCE-LIMIT",
        "VK-SOURCE-RESTING",
        "VK-DISK-FULL",
        "VK-OUT-OF-MEMORY",
        "VK-EXECUTOR-LOST",
    }
)
"""What passes by itself: nothing is wrong with the view. It is tried again and again, and not suspended."""

_CODE = re.compile(r"\[(VK-[A-Z0-9-]+)\]")


def pause_after(failures: int, settings: BackoffSettings) -> float:
    """Seconds to wait after so many failures in a row: twice as long each time, up to the longest.

    >>> [pause_after(n, BackoffSettings(first="30 seconds", longest="2 minutes")) for n in (1, 2, 3, 4)]
    [30.0, 60.0, 120.0, 120.0]
    """
    return min(float(settings.longest), settings.first * 2.0 ** min(failures - 1, 40))


def try_again_at(failing: FailingView, settings: BackoffSettings) -> datetime | None:
    """When a view is tried again; ``None``: when somebody resumes it."""
    if failing.suspended:
        return None
    return failing.failed_at + timedelta(seconds=pause_after(failing.failures, settings))


def not_before(failing: FailingView, settings: BackoffSettings, now: datetime) -> float:
    """The same as a moment of the schedule; at once, if it failed by a clock that was ahead."""
    moment = try_again_at(failing, settings)
    if moment is None:
        return math.inf
    return -math.inf if failing.failed_at > now else moment.timestamp()


def code_of(reason: str) -> str:
    """The code of an error, of its text."""
    found = _CODE.match(reason)
    return found[1] if found else "VK-INTERNAL"


def suspends(reason: str, settings: BackoffSettings) -> int | None:
    """After how many failures for this reason a view is suspended; ``None``: never."""
    return None if code_of(reason) in PASSING else settings.suspend_after
