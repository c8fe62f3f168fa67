"""How long the window will be in which views change: as long as installing them took before.

Deltas are computed outside of the window, while readers and writers work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from viewkeeper.ledger import Ledger
from viewkeeper.ledger.records import EpochRecord
from viewkeeper.plan.steps import EpochPlan, ViewPlan

_EPOCHS = 5


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds that are expected, and from how many earlier installations; ``None`` if there were none."""

    seconds: float | None
    installations: int

    def __str__(self) -> str:
        if self.seconds is None:
            return "not known yet: nothing was installed in this way before"
        times = "installation" if self.installations == 1 else f"{self.installations} installations"
        return f"about {self.seconds:.1f} s, as in the last {times}"


def expected_window(ledger: Ledger, plan: EpochPlan, views: Sequence[str]) -> Window | None:
    """The window for these views; ``None`` when none of them will change. Views are installed beside each
    other, so the slowest decides."""
    installed = [view for view in plan.views if view.view in views and view.installer is not None]
    if not installed:
        return None
    windows = [
        _window(view, ledger.epochs(view=view.view, limit=4 * _EPOCHS, plans=False)) for view in installed
    ]
    known = [window for window in windows if window.seconds is not None]
    if len(known) < len(windows):
        return Window(None, 0)
    return max(known, key=lambda window: window.seconds or 0.0)


def _window(plan: ViewPlan, epochs: Sequence[EpochRecord]) -> Window:
    alike = [
        done.install_seconds + epoch.seconds.get("publish", 0.0)
        for epoch in epochs
        for done in epoch.views
        if done.view == plan.view and done.strategy == plan.strategy.value and done.install
    ][:_EPOCHS]
    return Window(median(alike) if alike else None, len(alike))
