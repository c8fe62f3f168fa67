"""What the service remembers of the views: when each was last known to be fresh, and what refreshes take.

It is read from the ledger at the start, so that a restart knows nearly as much; what others refresh counts.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.define.service_settings import BackoffSettings
from viewkeeper.define.timing import Schedule, TargetLag, next_time
from viewkeeper.events import Phase
from viewkeeper.ledger import EpochRecord, FailingView, SourceObservation
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.library import Library
from viewkeeper.service.backoff import not_before
from viewkeeper.service.schedule import Demand

_LAST = 5
_UNKNOWN_SECONDS = 5.0
_NEVER = 0.0
_CAUTION = 1.5
"""Refreshes may take that much longer than the last ones did."""


class Memory:
    """Moments are aware and in UTC. One that lies ahead was told by a clock that was wrong, this one or that
    of another machine: it counts as now, for a view that is fresh in the future would never be due."""

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self._now = clock
        self.fresh_at: dict[str, datetime] = {}
        self._started: dict[str, datetime] = {}
        self._seconds: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_LAST))
        self._overheads: deque[float] = deque(maxlen=_LAST)
        self.timeless: dict[str, str] = {}
        """Views whose schedule cannot be followed here, and why: on this machine the time zone is not known.
        They are refreshed with the views that read them."""

    def learn(self, epochs: Sequence[EpochRecord]) -> None:
        """Take in published epochs, oldest first. Those that did not look at the sources say nothing: views
        were only timed, stored or rebuilt otherwise."""
        for epoch in epochs:
            if Phase.OBSERVE.value not in epoch.seconds:
                continue
            taken = sum(epoch.seconds.values())
            started = epoch.published_at - timedelta(seconds=taken)
            spent = 0.0
            for view in epoch.views:
                seconds = view.compute_seconds + view.install_seconds
                spent += seconds
                if view.strategy != "unchanged":
                    self._seconds[view.view].append(seconds)
                self.refreshed([view.view], started)
            self._overheads.append(max(0.0, taken - spent))

    def refreshed(self, views: Iterable[str], started: datetime) -> None:
        """These views show their sources as they were then, or later."""
        began = min(started, self._now())
        for view in views:
            self._started[view] = max(began, self._started.get(view, began))
            self.fresh_at[view] = max(began, self.fresh_at.get(view, began))

    def looked(self, library: Library, observations: Mapping[str, SourceObservation]) -> None:
        """The sources were looked at: views that hold what was found are fresh as of then."""
        fresh: dict[str, datetime] = {}
        for view in library.graph.order():
            state = library.states[view]
            moments = []
            for table, held in state.vector.items():
                if table in library.views:
                    in_step = table in fresh and library.states[table].snapshot == held
                    moments.append(fresh[table] if in_step else None)
                else:
                    seen = observations.get(table)
                    moments.append(seen.observed_at if seen is not None and seen.version == held else None)
            told = [moment for moment in moments if moment is not None]
            if state.snapshot is not None and told and len(told) == len(moments):
                fresh[view] = min(told)
        for view, moment in fresh.items():
            self.fresh_at[view] = max(moment, self.fresh_at.get(view, moment))
        for view in self.fresh_at.keys() - library.views.keys():
            del self.fresh_at[view]
        now = self._now()
        for known in (self.fresh_at, self._started):
            known.update({view: min(moment, now) for view, moment in known.items()})

    @property
    def overhead(self) -> float:
        """Seconds of an epoch besides its views."""
        return _expected(self._overheads)

    def expected_seconds(self, view: str) -> float:
        """Of a view's part of a refresh."""
        return _expected(self._seconds[view])

    def demands(
        self,
        library: Library,
        failing: Mapping[str, FailingView],
        backoff: BackoffSettings,
        began: datetime,
    ) -> list[Demand]:
        """The views as the schedule sees them; ``began``: when the service did, for views that were never
        refreshed and have nothing to be compared with."""
        found, now = [], self._now()
        self.timeless = {}
        for name, view in library.views.items():
            try:
                lag, due, again = _timing(view.definition, self._started.get(name, began))
            except ValueError as error:
                lag, due, again = None, None, None
                self.timeless[name] = str(error)
            failed = failing.get(name)
            empty = library.states[name].snapshot is None
            found.append(
                Demand(
                    name,
                    view.analysis.tables,
                    _NEVER if empty else self.fresh_at.get(name, began).timestamp(),
                    self.expected_seconds(name),
                    lag,
                    due,
                    again,
                    float("-inf") if failed is None else not_before(failed, backoff, now),
                    failed is not None,
                )
            )
        return found


def _expected(last: Sequence[float]) -> float:
    """The longest of the last ones, but for one that stands out: the first is often slow.

    >>> _expected([9.0, 2.0, 1.0]), _expected([2.0]), _expected([])
    (3.0, 3.0, 5.0)
    """
    if not last:
        return _UNKNOWN_SECONDS
    return _CAUTION * sorted(last)[-2 if len(last) > 2 else -1]


def _timing(definition: ViewDefinition, started: datetime) -> tuple[float | None, float | None, float | None]:
    match definition.timing:
        case TargetLag(seconds):
            return float(seconds), None, None
        case Schedule() as schedule:
            due = next_time(schedule, started, definition.session.time_zone)
            again = next_time(schedule, due, definition.session.time_zone)
            return None, due.timestamp(), again.timestamp()
        case None:
            return None, None, None
