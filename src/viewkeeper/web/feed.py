"""What happens, as it happens: events of a refresh in this process, and news of the ledger.

Browsers listen by server-sent events. Each listener has a queue of its own; one that does not keep up loses
the oldest. While somebody listens, the ledger is looked at every second: so a page is told of what other
processes publish, and of a ledger that is gone or back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from viewkeeper.errors import ViewkeeperError
from viewkeeper.events import (
    EpochAbandoned,
    EpochPublished,
    EpochStarted,
    Event,
    PointPassed,
    RowsRead,
    StepFinished,
    StepStarted,
)
from viewkeeper.ledger.surveys import Pulse
from viewkeeper.redacting import redacted
from viewkeeper.sql.quoting import parse_path
from viewkeeper.survey import Survey

_DOING = {
    "observe": "looking at the sources",
    "extract": "extracting deltas",
    "compute": "computing",
    "install": "installing",
    "publish": "publishing",
    "finish": "finishing",
}
_QUEUE = 200


@dataclass(frozen=True, slots=True)
class News:
    """Something that pages are told. ``kind``: progress, changed, trouble or recovered."""

    kind: str
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As it goes over the wire."""
        return f"event: {self.kind}\ndata: {json.dumps(self.content)}\n\n"


@dataclass(eq=False)
class _Listener:
    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[News]

    def tell(self, news: News) -> None:
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait(news)


class Feed:
    """``publish`` may be called from any thread; give it to a warehouse as ``on_event``."""

    def __init__(self, survey: Survey | None = None, every: float = 1.0) -> None:
        self.survey = survey
        self._every = every
        self._listeners: list[_Listener] = []
        self._lock = threading.Lock()
        self._latest: News | None = None
        self._watching: asyncio.Task[None] | None = None

    def publish(self, event: Event) -> None:
        """Tell all pages what happened in a refresh of this process."""
        for news in news_of(event):
            self._tell(news)

    def changed(self) -> None:
        """Tell all pages to look again."""
        self._tell(News("changed"))

    async def listen(self, heartbeat: float = 15.0) -> AsyncIterator[str]:
        """The news as text, until the listener goes away."""
        listener = _Listener(asyncio.get_running_loop(), asyncio.Queue(_QUEUE))
        with self._lock:
            self._listeners.append(listener)
            latest = self._latest
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        try:
            yield "retry: 2000\n\n"
            if latest is not None:
                yield latest.text
            while True:
                try:
                    news = await asyncio.wait_for(listener.queue.get(), heartbeat)
                except asyncio.TimeoutError:
                    yield ": still here\n\n"
                else:
                    yield news.text
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def _tell(self, news: News) -> None:
        with self._lock:
            if news.kind == "progress":
                self._latest = news if news.content.get("running") else None
            listeners = list(self._listeners)
        for listener in listeners:
            with contextlib.suppress(RuntimeError):  # its loop is closed: nobody listens there any more
                listener.loop.call_soon_threadsafe(listener.tell, news)

    async def _watch(self) -> None:
        """Look at the ledger as long as somebody listens."""
        before: Pulse | None = None
        in_trouble = False
        while self._listeners and self.survey is not None:
            try:
                pulse = await run_in_threadpool(self.survey.pulse)
            except ViewkeeperError as error:
                if not in_trouble:
                    self._tell(News("trouble", {"text": f"The ledger cannot be read now ({error.code})."}))
                in_trouble, before = True, None
            else:
                if in_trouble:
                    self._tell(News("recovered"))
                elif before is not None and pulse != before:
                    for news in _since(before, pulse):
                        self._tell(news)
                in_trouble, before = False, pulse
            await asyncio.sleep(self._every)


def _since(before: Pulse, now: Pulse) -> list[News]:
    """What a look at the ledger tells: an attempt was begun, something was published or failed."""
    news = [News("changed", {"epoch": now.epoch})]
    if now.attempt != before.attempt and now.attempt != now.epoch and not now.failed:
        news.append(_progress(f"epoch {now.attempt} was begun by {now.holder or 'somebody'}", running=True))
    if now.epoch != before.epoch:
        news.append(_progress(f"epoch {now.epoch} is published", running=False))
    if now.failed and (now.attempt != before.attempt or not before.failed):
        news.append(_progress(f"epoch {now.attempt} failed", running=False, failed=True))
    return news


def news_of(event: Event) -> list[News]:
    """An event of a refresh, for pages."""
    match event:
        case EpochStarted():
            many = f"{len(event.views)} view{'s' if len(event.views) != 1 else ''}"
            return [_progress(f"epoch {event.epoch} begins: {many}", running=True)]
        case StepStarted():
            what = "" if event.view is None else f" {parse_path(event.view)[-1]}"
            return [_progress(f"{_DOING[event.phase.value]}{what}", running=True, phase=event.phase.value)]
        case StepFinished(view=str() as view):
            rows = "" if event.rows is None else f", {event.rows:,} rows"
            text = f"{event.phase.value} of {parse_path(view)[-1]}: {event.seconds:.1f} s{rows}"
            return [_progress(text, running=True, phase=event.phase.value)]
        case RowsRead():
            return [
                _progress(f"{event.rows:,} rows read, {event.rows_per_second:,.0f} a second", running=True)
            ]
        case EpochPublished():
            done = _progress(f"epoch {event.epoch} is published", running=False)
            return [done, News("changed", {"epoch": event.epoch})]
        case EpochAbandoned():
            said = redacted(event.error).splitlines()[0] if event.error else "no reason was given"
            done = _progress(f"epoch {event.epoch} failed: {said}", running=False, failed=True)
            return [done, News("changed", {"epoch": event.epoch})]
        case StepFinished() | PointPassed():
            return []


def _progress(text: str, *, running: bool, phase: str | None = None, failed: bool = False) -> News:
    return News("progress", {"text": text, "running": running, "phase": phase, "failed": failed})
