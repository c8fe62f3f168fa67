"""What the service is doing, for whoever asks from another thread: probes, metrics and the console."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from viewkeeper.service.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ViewCondition:
    """How fresh a view was when it was last looked at, and how fresh it is to be."""

    fresh_at: datetime | None
    target_lag: int | None
    failures: int = 0
    suspended: bool = False
    reason: str | None = None
    awaited_since: datetime | None = None
    """Since when it waits for its first rows."""

    def lag_seconds(self, now: datetime) -> float | None:
        """How far it may be behind; before it has rows, how long it has waited for them."""
        since = self.fresh_at or self.awaited_since
        return None if since is None else max(0.0, (now - since).total_seconds())

    def is_late(self, now: datetime) -> bool:
        """Whether it is further behind than it may be."""
        return self.target_lag is not None and (self.lag_seconds(now) or 0.0) > self.target_lag


@dataclass
class ServiceState:
    """Set by the service's thread, read by any."""

    metrics: Metrics = field(default_factory=Metrics)
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _not_ready: str | None = "it is starting"
    _doing: str = "starting"
    _beat: float = field(default_factory=time.monotonic)
    _ended: bool = False
    _views: Mapping[str, ViewCondition] = field(default_factory=dict)

    def ready(self) -> None:
        """The views are defined, and the ledger and Spark answer."""
        with self._lock:
            self._not_ready = None

    def not_ready(self, why: str) -> None:
        with self._lock:
            self._not_ready = why

    def doing(self, what: str) -> None:
        """A sign of life, and what is done now."""
        with self._lock:
            self._doing, self._beat = what, time.monotonic()

    def ended(self) -> None:
        with self._lock:
            self._ended, self._not_ready = True, "it has ended"

    def show(self, views: Mapping[str, ViewCondition]) -> None:
        """How the views are now."""
        with self._lock:
            self._views = dict(views)
        self.metrics.show(views)

    @property
    def why_not_ready(self) -> str | None:
        with self._lock:
            return self._not_ready

    @property
    def views(self) -> Mapping[str, ViewCondition]:
        with self._lock:
            return self._views

    def health(self) -> dict[str, object]:
        """For people: whether it lives, what it does, and for how long it has."""
        with self._lock:
            return {
                "status": "ended" if self._ended else "ok",
                "doing": self._doing,
                "for_seconds": round(time.monotonic() - self._beat, 1),
                "started_at": self.started_at.isoformat(timespec="seconds"),
            }
