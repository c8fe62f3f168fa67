"""A channel between a source and the warehouse: every message takes its time, and none overtakes another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from viewkeeper.integrate.simulate.faults import Mishap


class Channel:
    """One direction. ``mishaps``: what happens to the n-th message."""

    def __init__(
        self, random: Random, fastest: float, slowest: float, mishaps: Mapping[int, Mishap] | None = None
    ) -> None:
        self._random = random
        self._fastest = fastest
        self._slowest = slowest
        self._mishaps = mishaps or {}
        self._sent = 0
        self._last = 0.0

    def arrivals(self, now: float) -> Sequence[float]:
        """When a message that is sent now arrives: once, unless something happens to it."""
        self._sent += 1
        arrival = now + self._fastest + (self._slowest - self._fastest) * self._random.random()
        mishap = self._mishaps.get(self._sent)
        if mishap is Mishap.LOST:
            return ()
        if mishap is Mishap.REORDERED:
            return (arrival + 2 * self._slowest,)  # those behind it do not know of it, and may overtake
        self._last = max(self._last, arrival)
        return (self._last, self._last) if mishap is Mishap.DOUBLED else (self._last,)
