from __future__ import annotations

from datetime import datetime, timedelta, timezone

from prometheus_client.parser import text_string_to_metric_families

from viewkeeper.events import EpochAbandoned, EpochPublished, Phase, StepFinished
from viewkeeper.results import Epoch, ViewRefresh
from viewkeeper.service.metrics import Metrics
from viewkeeper.service.state import ServiceState, ViewCondition


def values(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """By name and labels, that of the view first."""
    found = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            labels = sorted(sample.labels.items(), key=lambda each: each[0] != "view")
            found[(sample.name, *(value for _, value in labels))] = sample.value
    return found


def test_what_epochs_did_is_counted():
    metrics = Metrics()
    view = ViewRefresh("v", "incremental", "merge", None, 6, 3, 2, 1, 2.0, 1.0, method="m", prices={"m": 2.0},
                       violations={"sold": 4})  # fmt: skip
    metrics.refreshed(Epoch(1, {}, [view, ViewRefresh("w", "unchanged", None, None, 0, 0, 0, 0, 0.0, 0.0)]))
    metrics(StepFinished(None, Phase.COMPUTE, 2.0))
    metrics(StepFinished("v", Phase.COMPUTE, 2.0))
    metrics(EpochPublished(1))
    metrics(EpochAbandoned(2, "no"))
    metrics.failed("v", "VK-REFRESH")
    metrics.lineage_lost()
    found = values(metrics)
    assert found["viewkeeper_epochs_total",] == 1
    assert found["viewkeeper_epochs_abandoned_total",] == 1
    assert found["viewkeeper_phase_seconds_count", "compute"] == 1
    assert [
        found["viewkeeper_view_rows_total", "v", kind] for kind in ("inserted", "deleted", "updated")
    ] == [3, 2, 1]
    assert found["viewkeeper_view_seconds_total", "v", "install"] == 1
    assert found["viewkeeper_estimation_error_ratio", "v"] == 1.5
    assert found["viewkeeper_expectation_violations_total", "v", "sold"] == 4
    assert found["viewkeeper_view_refreshes_total", "w", "unchanged"] == 1
    assert found["viewkeeper_errors_total", "v", "VK-REFRESH"] == 1
    assert found["viewkeeper_lineage_lost_total",] == 1


def test_how_the_views_are_now():
    state = ServiceState()
    then = datetime.now(timezone.utc) - timedelta(minutes=1)
    state.show(
        {
            'a"b\n': ViewCondition(then, 30),
            "broken": ViewCondition(None, None, failures=5, suspended=True, reason="no"),
        }
    )
    found = values(state.metrics)
    assert 60 <= found["viewkeeper_view_lag_seconds", 'a"b\n'] < 90
    assert found["viewkeeper_view_target_lag_seconds", 'a"b\n'] == 30
    assert ("viewkeeper_view_lag_seconds", "broken") not in found
    assert found["viewkeeper_view_suspended", "broken"] == 1
    assert state.views['a"b\n'].is_late(datetime.now(timezone.utc))
    assert not state.views["broken"].is_late(datetime.now(timezone.utc))
    state.show({})
    assert ("viewkeeper_view_suspended", "broken") not in values(state.metrics), "it was dropped"
