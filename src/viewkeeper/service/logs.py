"""What the service says while it runs: a line of text for people, or an object of JSON for machines. Each
names the epoch and the view that it is about."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from typing import Literal, TextIO

from viewkeeper.events import (
    EpochAbandoned,
    EpochPublished,
    EpochStarted,
    Event,
    StepFinished,
)

logger = logging.getLogger("viewkeeper.service")

Style = Literal["text", "json"]
FACTS = ("epoch", "view", "phase", "seconds", "rows", "code", "strategy", "views")
"""What a record may say besides its message."""


class JsonLines(logging.Formatter):
    """One object per line: ``time``, ``level``, ``logger``, ``message``, and what it is about."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _facts(record)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """``12:30:05 epoch 7: published (2 views)``."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        facts = _facts(record)
        about = [f"{name} {facts[name]}" for name in ("epoch", "view") if name in facts]
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        head = f"{', '.join(about)}: " if about else ""
        line = f"{at} {level}{head}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _facts(record: logging.LogRecord) -> dict[str, object]:
    found = {name: getattr(record, name, None) for name in FACTS}
    return {name: value for name, value in found.items() if value is not None}


class EventLog(logging.Filter):
    """Writes an epoch's events to the log, and lets whatever else is said meanwhile name the epoch."""

    def __init__(self) -> None:
        super().__init__()
        self._epoch: int | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case EpochStarted():
                self._epoch = event.epoch
                logger.info("begins", extra={"views": list(event.views)})
            case EpochPublished():
                logger.info("published")
            case EpochAbandoned():
                logger.warning("given up: %s", event.error)
            case StepFinished():
                said = {"phase": str(event.phase), "seconds": round(event.seconds, 3), "rows": event.rows}
                if event.view is not None:
                    said["view"] = event.view
                logger.debug("%s took %.2f s", event.phase, event.seconds, extra=said)

    def over(self) -> None:
        """What is said from now on is of no epoch."""
        self._epoch = None

    def filter(self, record: logging.LogRecord) -> bool:
        if self._epoch is not None and getattr(record, "epoch", None) is None:
            record.epoch = self._epoch
        return True


def set_up(style: Style, events: EventLog, *, debug: bool = False, stream: TextIO | None = None) -> None:
    """Let everything that viewkeeper says go to standard error, in this style."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    handler.addFilter(events)
    ours = logging.getLogger("viewkeeper")
    ours.handlers[:] = [handler]
    ours.setLevel(logging.DEBUG if debug else logging.INFO)
    ours.propagate = False
