"""What Prometheus is told by ``/metrics``. ``docs/service.md`` lists it; names do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from viewkeeper.events import EpochAbandoned, EpochPublished, Event, StepFinished
from viewkeeper.results import Epoch

if TYPE_CHECKING:
    from viewkeeper.service.state import ViewCondition

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class _Conditions(Collector):
    """What is true of each view now; lags are counted when somebody asks."""

    def __init__(self) -> None:
        self.views: Mapping[str, ViewCondition] = {}

    def collect(self) -> Iterable[GaugeMetricFamily]:
        lag = _per_view("view_lag_seconds", "How far a view may be behind its sources.")
        target = _per_view("view_target_lag_seconds", "How far a view is allowed to be behind.")
        failures = _per_view("view_failures", "How many refreshes of a view failed in a row.")
        suspended = _per_view("view_suspended", "1 if a view is left alone until it is resumed.")
        now = datetime.now(timezone.utc)
        for name, view in self.views.items():
            if (behind := view.lag_seconds(now)) is not None:
                lag.add_metric([name], behind)
            if view.target_lag is not None:
                target.add_metric([name], view.target_lag)
            failures.add_metric([name], view.failures)
            suspended.add_metric([name], float(view.suspended))
        return [lag, target, failures, suspended]


def _per_view(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"viewkeeper_{name}", help_text, labels=["view"])


class Metrics:
    """All of them; safe to use from any thread."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._conditions = _Conditions()
        registry.register(self._conditions)

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"viewkeeper_{name}", help_text, labels, registry=registry)

        self._epochs = counter("epochs", "Epochs that were published.")
        self._abandoned = counter("epochs_abandoned", "Epochs that were given up.")
        self._phases = Histogram(
            "viewkeeper_phase_seconds",
            "What the phases of epochs took.",
            ["phase"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._refreshes = counter("view_refreshes", "Refreshes of a view.", "view", "strategy")
        self._rows = counter("view_rows", "Rows that refreshes changed in a view.", "view", "change")
        self._seconds = counter("view_seconds", "What refreshes of a view took.", "view", "part")
        self._violations = counter(
            "expectation_violations", "Rows that broke an expectation.", "view", "expectation"
        )
        self._estimation = Gauge(
            "viewkeeper_estimation_error_ratio",
            "What the last refresh of a view took, as a multiple of what was expected.",
            ["view"],
            registry=registry,
        )
        self._errors = counter("errors", "Refreshes that failed, by view and error.", "view", "code")
        self._lineage_lost = counter("lineage_lost", "Lineage events that could not be delivered.")
        self._alerts_lost = counter("alerts_lost", "Alerts that could not be delivered.")
        self._last = Gauge(
            "viewkeeper_last_epoch", "The id of the epoch that was published last.", registry=registry
        )

    def __call__(self, event: Event) -> None:
        """Take in an event of an epoch."""
        match event:
            case EpochPublished():
                self._epochs.inc()
                self._last.set(event.epoch)
            case EpochAbandoned():
                self._abandoned.inc()
            case StepFinished(view=None):
                self._phases.labels(str(event.phase)).observe(event.seconds)

    def refreshed(self, epoch: Epoch) -> None:
        """Take in what an epoch did to its views."""
        for view in epoch.views:
            self._refreshes.labels(view.view, view.strategy).inc()
            if view.strategy == "unchanged":
                continue
            for change in ("inserted", "deleted", "updated"):
                self._rows.labels(view.view, change).inc(getattr(view, change))
            self._seconds.labels(view.view, "compute").inc(view.compute_seconds)
            self._seconds.labels(view.view, "install").inc(view.install_seconds)
            for expectation, rows in view.violations.items():
                self._violations.labels(view.view, expectation).inc(rows)
            if view.expected_seconds:
                taken = view.compute_seconds + view.install_seconds
                self._estimation.labels(view.view).set(taken / view.expected_seconds)

    def failed(self, view: str, code: str) -> None:
        self._errors.labels(view, code).inc()

    def lineage_lost(self) -> None:
        self._lineage_lost.inc()

    def alert_lost(self) -> None:
        self._alerts_lost.inc()

    def show(self, views: Mapping[str, ViewCondition]) -> None:
        """How the views are now."""
        self._conditions.views = dict(views)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)
