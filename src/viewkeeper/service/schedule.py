"""Which views to refresh now, and when to look again. Pure: no clock, and nothing is asked or done.

A view with a target lag has to be refreshed by ``fresh_at + lag``; a view with a schedule when that comes
round, and before it does again. One epoch runs at a time, and what it refreshes is published at its end. So
the views are taken by their deadlines d₁ ≤ d₂ ≤ …, in batches that are epochs, and

    latest(i) = max over k ≥ i of  min(dᵢ, latest(k + 1)) − cost(i … k)

is the latest moment at which to begin with the i-th for all of them to be in time. ``cost`` counts what views
share once: their ancestors, and the epoch itself. Until that moment nothing is done, since a delta that is
taken later holds more changes for little more work. If every lag is at least twice the sum of what the views
cost each for itself, then none is missed.

A view that shares something with those whose time has come goes with them if none of them comes round again
before it is due itself: it would need an epoch of its own. Views without lag or schedule are ancestors, or
nobody needs them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from viewkeeper.define.vdag import Vdag


@dataclass(frozen=True, slots=True)
class Demand:
    """A view as the schedule sees it. Moments are seconds since some beginning."""

    view: str
    reads: tuple[str, ...]
    fresh_at: float
    """The last moment at which it showed its sources as they were."""
    seconds: float = 1.0
    """What its part of a refresh takes, as far as is known."""
    lag: float | None = None
    due_at: float | None = None
    """By its schedule."""
    due_again_at: float | None = None
    """The time after that."""
    not_before: float = -math.inf
    """It failed, and is left alone until then; for ever, if it is suspended."""
    troubled: bool = False
    """Whether its last refresh failed: it is tried alone."""

    @property
    def timed(self) -> bool:
        return self.lag is not None or self.due_at is not None

    @property
    def deadline(self) -> float:
        """By when its next refresh is to be published."""
        if self.lag is not None:
            return self.fresh_at + self.lag
        return math.inf if self.due_again_at is None else self.due_again_at

    def deadline_after(self, now: float) -> float:
        """The same, once it was refreshed now."""
        return now + self.lag if self.lag is not None else self.deadline


@dataclass(frozen=True, slots=True)
class Decision:
    """The views to refresh now, bottom-up; none: wait until ``look_at``."""

    views: tuple[str, ...]
    look_at: float


def decide(demands: Sequence[Demand], now: float, overhead: float = 0.0) -> Decision:
    """What is to be done now. ``overhead``: seconds that an epoch takes besides its views."""
    return _Deciding({each.view: each for each in demands}, now, overhead).decision()


@dataclass
class _Deciding:
    demands: dict[str, Demand]
    now: float
    overhead: float
    _closures: dict[str, frozenset[str]] = field(default_factory=dict)

    def decision(self) -> Decision:
        prompt = [each for each in self.jobs if each.due_at is not None and each.due_at <= self.now]
        steady = [each for each in self.jobs if each.lag is not None]
        if prompt:
            return self._run(self._with_violated(prompt, steady))
        if self.retries:
            guilty = [each for each in self.retries if each.troubled] or self.retries
            return self._run([min(guilty, key=lambda each: each.not_before)])
        begin, batch = self._joined(*self._latest(steady), steady)
        begin -= self._reserve
        if self._is_late(batch):
            batch = [each for each in steady if each in batch or self._is_late([each])]
        return self._run(batch) if begin <= self.now else Decision((), min([begin, *self._wakings()]))

    def _run(self, batch: Sequence[Demand]) -> Decision:
        chosen = {each.view for each in batch}
        return Decision(tuple(view for view in self.graph.order() if view in chosen), self.now)

    # What there is.

    @cached_property
    def graph(self) -> Vdag:
        return Vdag({view: each.reads for view, each in self.demands.items()})

    @cached_property
    def held(self) -> frozenset[str]:
        """What cannot be refreshed now: it failed a short while ago, or reads something that did."""
        failed = [view for view, each in self.demands.items() if each.not_before > self.now]
        return frozenset(name for view in failed for name in (view, *self.graph.descendants(view)))

    @cached_property
    def free(self) -> list[Demand]:
        return [each for view, each in self.demands.items() if each.timed and view not in self.held]

    @cached_property
    def jobs(self) -> list[Demand]:
        """By their deadlines."""
        well = [each for each in self.free if not self._is_troubled(each)]
        return sorted(well, key=lambda each: (each.deadline, each.view))

    @cached_property
    def retries(self) -> list[Demand]:
        return [each for each in self.free if self._is_troubled(each)]

    def _is_troubled(self, job: Demand) -> bool:
        return any(self.demands[view].troubled for view in self.closure(job.view))

    def closure(self, view: str) -> frozenset[str]:
        if view not in self._closures:
            self._closures[view] = self.graph.closure([view])
        return self._closures[view]

    def cost(self, views: Iterable[str]) -> float:
        return self.overhead + sum(self.demands[view].seconds for view in views)

    @cached_property
    def _reserve(self) -> float:
        """What may come in between: schedules that come round, and failed views that are tried again."""
        others = [each for each in self.demands.values() if each.timed]
        between = [each for each in others if each.lag is None or self._is_troubled(each)]
        return sum(self.cost(self.closure(each.view)) for each in between if each.not_before < math.inf)

    def _wakings(self) -> list[float]:
        coming = [each.due_at for each in self.jobs if each.due_at is not None and each.due_at > self.now]
        again = [each.not_before for each in self.demands.values() if each.not_before > self.now]
        return [*coming, *again]

    # When to begin, and with what.

    def _latest(self, jobs: Sequence[Demand]) -> tuple[float, list[Demand]]:
        """The latest moment to begin for all of these, sorted by their deadlines, to be in time; and the
        first epoch that makes it possible."""
        latest = [math.inf] * (len(jobs) + 1)
        first = list(range(1, len(jobs) + 2))
        for i in reversed(range(len(jobs))):
            together: set[str] = set()
            latest[i] = -math.inf
            for k in range(i, len(jobs)):
                together |= self.closure(jobs[k].view)
                begin = min(jobs[i].deadline, latest[k + 1]) - self.cost(together)
                if begin > latest[i]:
                    latest[i], first[i] = begin, k + 1
        return latest[0], list(jobs[: first[0]])

    def _is_late(self, batch: Sequence[Demand]) -> bool:
        """Whether one of these misses its deadline even if they are begun now. When some do, all that do go
        together: nobody is served by making the last of them wait for the first."""
        done = self.now + self.cost(self._together(batch))
        return any(done > each.deadline for each in batch)

    def _with_violated(self, batch: list[Demand], others: Sequence[Demand]) -> list[Demand]:
        """The batch, and those that would be late if they waited until it is done."""
        waiting = [each for each in others if each not in batch]
        while waiting and self._latest(waiting)[0] < self.now + self.cost(self._together(batch)):
            batch = [*batch, waiting.pop(0)]
        return batch

    def _joined(
        self, begin: float, batch: list[Demand], jobs: Sequence[Demand]
    ) -> tuple[float, list[Demand]]:
        """The batch with those that would need an epoch of their own before one of it comes round again, as
        far as there is time for them; and when to begin for all of them to be in time."""
        for each in jobs:
            if each in batch:
                continue
            partners = [other for other in batch if self._share(each, other)]
            if not partners or min(other.deadline_after(begin) for other in partners) <= each.deadline:
                continue
            wider = [*batch, each]
            rest = [other for other in jobs if other not in wider]
            done_by = min(self._latest(rest)[0], *(other.deadline for other in wider))
            earlier = done_by - self.cost(self._together(wider))
            if earlier >= self.now:
                begin, batch = earlier, wider
        return begin, batch

    def _together(self, batch: Iterable[Demand]) -> set[str]:
        return {view for each in batch for view in self.closure(each.view)}

    def _share(self, one: Demand, other: Demand) -> bool:
        """Whether they have an ancestor or a source in common, and with it a delta."""
        return bool(self._inputs(one) & self._inputs(other))

    def _inputs(self, job: Demand) -> set[str]:
        views = self.closure(job.view)
        return {*views, *(table for view in views for table in self.demands[view].reads)}
