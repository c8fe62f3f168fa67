"""What happens during a refresh, as data. The engine reports events; the command line and the web page
render them. Nothing here knows how."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Phase(Enum):
    """The phases of an epoch, in the order in which they come."""

    OBSERVE = "observe"
    EXTRACT = "extract"
    COMPUTE = "compute"
    INSTALL = "install"
    PUBLISH = "publish"
    FINISH = "finish"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class EpochStarted:
    """An epoch begins; these are the views that it may change, bottom-up."""

    epoch: int
    views: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step begins. ``view`` is ``None`` for what concerns the epoch as a whole."""

    view: str | None
    phase: Phase
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step is done. ``rows`` as far as they were counted."""

    view: str | None
    phase: Phase
    seconds: float
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class EpochPublished:
    """The commit point is passed: readers see the epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochAbandoned:
    """The epoch was given up; every view is as it was."""

    epoch: int
    error: str


@dataclass(frozen=True, slots=True)
class PointPassed:
    """The epoch protocol has something behind it that a crash from here on must not undo or repeat:
    an intent noted, a statement committed, a chore done. For logs, and for tests that crash there."""

    what: str


@dataclass(frozen=True, slots=True)
class RowsRead:
    """What was read since computing began, while it goes on. Said now and then, and not of short epochs."""

    rows: int
    bytes: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds


Event: TypeAlias = (
    EpochStarted | StepStarted | StepFinished | PointPassed | RowsRead | EpochPublished | EpochAbandoned
)
