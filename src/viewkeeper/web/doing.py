"""What the console can do, when it may: refresh, verify, pause, and read rows. All of it needs Spark.

The console speaks to :class:`Actions`; ``viewkeeper serve`` gives it a :class:`WarehouseActions`, which
starts Spark when it is first needed, and ``viewkeeper run`` one that asks the service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Protocol

from viewkeeper.analyse.parsing import SqlText, tokenize
from viewkeeper.analyse.refusals import path_read, refuse
from viewkeeper.analyse.tables import Unsure, find_tables
from viewkeeper.errors import ViewkeeperError, words_of
from viewkeeper.redacting import redacted
from viewkeeper.results import Verification
from viewkeeper.session import time_limit
from viewkeeper.sql.quoting import parse_path, quote_path
from viewkeeper.warehouse import Warehouse
from viewkeeper.web.errors import WebError

_CELL = 200
"""Characters of a value that are shown."""
_REMEMBERED = 50


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows, as text. ``more``: there are others."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool


class Actions(Protocol):
    """What pages can ask for. Called in threads; whatever goes wrong is a ``ViewkeeperError``."""

    def refresh(self, views: Sequence[str], policy: str | None) -> str:
        """Refresh views (none: all of them); what came of it, as a sentence."""

    def verify(self, view: str) -> Verification:
        """Compare a view with its query."""

    def preview(self, view: str, limit: int) -> Rows:
        """Some rows of a view, as its latest epoch shows it."""

    def query(self, sql: str, limit: int, seconds: float) -> Rows:
        """The answer to one SELECT, with every view at the latest epoch."""


class Pausing(Protocol):
    """What a service adds: views that it leaves alone for a while."""

    def pause(self, view: str) -> None:
        """Leave a view alone from now on."""

    def resume(self, view: str) -> None:
        """Look after a view again."""

    def paused(self) -> Collection[str]:
        """The views that are left alone."""


class WarehouseActions:
    """Does it with a warehouse, opened when it is first needed."""

    def __init__(self, open_warehouse: Callable[[], Warehouse]) -> None:
        self._open = open_warehouse
        self._opened: Warehouse | None = None
        self._lock = threading.Lock()

    @property
    def _warehouse(self) -> Warehouse:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def refresh(self, views: Sequence[str], policy: str | None) -> str:
        epoch = self._warehouse.refresh(*views, policy=policy, on_error="skip")
        moved = [view for view in epoch.views if view.strategy != "unchanged"]
        if epoch.skipped:
            failed = "; ".join(f"{view}: {error}" for view, error in epoch.skipped.items())
            raise WebError(f"epoch {epoch.id} left out {failed}", code="VK-REFRESH")
        return f"epoch {epoch.id}: {len(moved)} views changed" if moved else "nothing had changed"

    def verify(self, view: str) -> Verification:
        (found,) = self._warehouse.verify(view)
        return found

    def preview(self, view: str, limit: int) -> Rows:
        return self._read(f"SELECT * FROM {quote_path(parse_path(view))}", limit, 60.0)

    def query(self, sql: str, limit: int, seconds: float) -> Rows:
        text = sql.strip().removesuffix(";")
        parsed = tokenize(text)
        refuse(parsed)
        self._refuse_files(parsed)
        return self._read(text, limit, seconds)

    def _refuse_files(self, text: SqlText) -> None:
        """Spark takes ``format.`path` `` for files, whatever class or file that is: only what is a namespace
        may stand there."""
        try:
            names = find_tables(text)
        except Unsure as unsure:
            raise WebError("it is not clear what the query reads", code="VK-WEB-QUERY") from unsure
        spark = self._warehouse.spark
        for name in names:
            if len(name.parts) == 2 and not spark.catalog.databaseExists(quote_path(name.parts[:1])):
                raise path_read(text, name.first, name.end - 1)

    def _read(self, sql: str, limit: int, seconds: float) -> Rows:
        with time_limit(self._warehouse.spark, seconds) as over:
            try:
                found = self._warehouse.sql(sql)
                rows = found.limit(limit + 1).collect()
            except ViewkeeperError:
                raise
            except Exception as error:  # Spark's own, of many classes
                if over.is_set():
                    raise WebError(
                        f"The query took longer than {seconds:.0f} s and was stopped",
                        code="VK-WEB-TIME",
                        hint="Ask for less, or run it in a notebook.",
                    ) from error
                said = next(iter(words_of(error).strip().splitlines()), type(error).__name__)
                raise WebError(said, code="VK-WEB-QUERY", hint="Nothing was changed.") from error
        shown = tuple(tuple(_cell(value) for value in row) for row in rows[:limit])
        return Rows(tuple(found.columns), shown, len(rows) > limit)

    def close(self) -> None:
        """Close the warehouse, if it was opened."""
        if self._opened is not None:
            self._opened.close()


def _cell(value: object) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


@dataclass(frozen=True, slots=True)
class Job:
    """Something that was asked for. ``said``: what came of it; ``failed``: whether that is an error."""

    id: int
    what: str
    view: str | None
    begun_at: datetime
    ended_at: datetime | None = None
    said: str = ""
    failed: bool = False


@dataclass
class Jobs:
    """One thing after the other; the last ones are remembered. ``changed`` is called when one ends."""

    changed: Callable[[], None]
    _jobs: dict[int, Job] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0

    def __post_init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "viewkeeper-console")

    def start(self, what: str, view: str | None, work: Callable[[], str]) -> None:
        """Do it when those before it are done; the same thing does not wait twice."""
        with self._lock:
            if any(
                job.ended_at is None and (job.what, job.view) == (what, view) for job in self._jobs.values()
            ):
                return
            self._count += 1
            job = Job(self._count, what, view, datetime.now(timezone.utc))
            self._jobs[job.id] = job
            for old in [key for key, each in self._jobs.items() if each.ended_at is not None][:-_REMEMBERED]:
                del self._jobs[old]
        self._worker.submit(self._run, job, work)

    def _run(self, job: Job, work: Callable[[], str]) -> None:
        failed = False
        try:
            said = work()
        except Exception as error:  # told on the page: nobody waits for the result here
            said, failed = redacted(words_of(error) or type(error).__name__), True
        ended = replace(job, ended_at=datetime.now(timezone.utc), said=said, failed=failed)
        with self._lock:
            self._jobs[job.id] = ended
        self.changed()

    def latest(self, view: str | None = None) -> list[Job]:
        """The jobs, newest first: all of them, or those of a view."""
        with self._lock:
            jobs = list(self._jobs.values())
        return [job for job in reversed(jobs) if view is None or job.view in (view, None)]

    def close(self) -> None:
        """Wait for nothing more."""
        self._worker.shutdown(wait=False, cancel_futures=True)
