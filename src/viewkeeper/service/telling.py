"""What the service makes known of the views: their condition, and what is wrong with them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone

from viewkeeper.define.timing import TargetLag, show_interval
from viewkeeper.errors import LedgerError
from viewkeeper.ledger import FailingView, Trouble
from viewkeeper.library import Library
from viewkeeper.results import Epoch
from viewkeeper.service.alerts import Alert, Troubles
from viewkeeper.service.backoff import code_of
from viewkeeper.service.outbox import Outbox
from viewkeeper.service.state import ServiceState, ViewCondition

logger = logging.getLogger("viewkeeper.service")

_EXPECTATION = "VK-EXPECTATION"


class Teller:
    """Tells the log, the metrics, and whoever is to be alerted."""

    def __init__(
        self,
        state: ServiceState,
        troubles: Troubles,
        messengers: Sequence[Outbox[Alert]],
        remember: Callable[[Mapping[Trouble, str], Collection[Trouble]], None],
    ) -> None:
        self._state = state
        self._troubles = troubles
        self._messengers = messengers
        self._remember = remember
        self._to_remember = False

    def begin(self) -> None:
        """Tell what could not be told before a restart."""
        self._send(self._troubles.still(datetime.now(timezone.utc)))

    def show(
        self,
        library: Library,
        failing: Mapping[str, FailingView],
        fresh_at: Mapping[str, datetime],
        awaited: Mapping[str, datetime],
    ) -> None:
        """How the views are now. ``awaited``: since when those without rows are to have some."""
        conditions = {}
        for name, view in library.views.items():
            if view.hidden:
                continue
            timing, failed = view.definition.timing, failing.get(name)
            conditions[name] = ViewCondition(
                fresh_at.get(name) if library.states[name].snapshot else None,
                timing.seconds if isinstance(timing, TargetLag) else None,
                failed.failures if failed else 0,
                failed is not None and failed.suspended,
                failed.reason if failed else None,
                awaited.get(name, self._state.started_at),
            )
        self._state.show(conditions)
        self.tell_who_is_late()
        suspended = {
            Trouble("suspended", name): f"{name} is suspended: {found.reason}"
            for name, found in conditions.items()
            if found.suspended
        }
        self._tell("suspended", suspended)
        broken = self._troubles.known("expectation")
        self._tell("expectation", {each: said for each, said in broken.items() if each.view in conditions})

    def tell_who_is_late(self) -> None:
        """By the clock and what is known of the views: while nothing can be asked, they grow late as well."""
        self._tell("lag", _late(self._state.views))

    def published(self, epoch: Epoch) -> None:
        """What an epoch did. An expectation is broken by rows that come, and mended when rows come that keep
        it."""
        self._state.metrics.refreshed(epoch)
        moved = {view.view: view for view in epoch.views if view.strategy != "unchanged"}
        broken = {
            trouble: said
            for trouble, said in self._troubles.known("expectation").items()
            if trouble.view not in moved
        }
        for view in moved.values():
            said = {"view": view.view, "epoch": epoch.id, "strategy": view.strategy, "rows": view.delta_rows}
            logger.info("%s, %d rows", view.strategy, view.delta_rows, extra=said)
            for name, rows in view.violations.items():
                why = f"{rows} rows of {view.view} break the expectation {name}"
                broken[Trouble("expectation", view.view, name)] = why
        self._tell("expectation", broken)

    def failed(self, view: str, reason: str) -> None:
        """A refresh failed. If it was for an expectation that lets no epoch pass, that is broken."""
        if code_of(reason) == _EXPECTATION:
            broken = self._troubles.known("expectation")
            self._tell("expectation", {**broken, Trouble("expectation", view): reason})

    def close(self) -> None:
        """Tell what waits to be told. What cannot be told before the end is told after a restart."""
        for messenger in self._messengers:
            left = messenger.close()
            self._troubles.take_back(left)
            self._to_remember |= bool(left)
        self._note()

    def _tell(self, kind: str, broken: Mapping[Trouble, str]) -> None:
        self._send(self._troubles.now(kind, broken, datetime.now(timezone.utc)))

    def _send(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            self._to_remember = True
            level = logging.WARNING if alert.state == "broken" else logging.INFO
            logger.log(level, "%s", alert.message, extra={"view": alert.view})
            for messenger in self._messengers:
                messenger.put(alert)
        self._note()

    def _note(self) -> None:
        """Remember what was told, so that a restart tells nobody twice. It comes last, and is tried again the
        next time if the ledger is away: to be told twice is better than not to be told."""
        if self._to_remember:
            with suppress(LedgerError):
                self._remember(self._troubles.known(), self._troubles.untold)
                self._to_remember = False


def _late(conditions: Mapping[str, ViewCondition]) -> dict[Trouble, str]:
    now = datetime.now(timezone.utc)
    return {
        Trouble("lag", name): _how_late(name, found, now)
        for name, found in conditions.items()
        if found.is_late(now)
    }


def _how_late(name: str, found: ViewCondition, now: datetime) -> str:
    behind, target = (show_interval(each or 0) for each in (found.lag_seconds(now), found.target_lag))
    how = f"is {behind} behind" if found.fresh_at else "has no rows yet"
    return f"{name} {how}; its target lag is {target}"
