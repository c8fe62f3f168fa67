"""The console of a running service: it asks the service, which does it between its epochs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from viewkeeper.ledger import Ledger
from viewkeeper.results import Verification
from viewkeeper.service.errands import Errands
from viewkeeper.warehouse import Warehouse
from viewkeeper.web.doing import Rows, WarehouseActions

PAUSED = "paused in the console"
PATIENCE = 30.0
"""Seconds that a page waits for rows."""


class ServiceActions:
    """What pages ask for, done by the service with its own warehouse."""

    def __init__(self, errands: Errands, warehouse: Callable[[], Warehouse]) -> None:
        self._errands = errands
        self._actions = WarehouseActions(warehouse)

    def refresh(self, views: Sequence[str], policy: str | None) -> str:
        return self._errands.ask(lambda: self._actions.refresh(views, policy))

    def verify(self, view: str) -> Verification:
        return self._errands.ask(lambda: self._actions.verify(view))

    def preview(self, view: str, limit: int) -> Rows:
        return self._errands.ask(lambda: self._actions.preview(view, limit), PATIENCE)

    def query(self, sql: str, limit: int, seconds: float) -> Rows:
        return self._errands.ask(lambda: self._actions.query(sql, limit, seconds), PATIENCE + seconds)


class LedgerPausing:
    """Views that the service leaves alone: the ledger remembers them, as it does those that fail."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def pause(self, view: str) -> None:
        ids = {record.name: record.definition_id for record in self._ledger.views()}
        self._ledger.note_failure(view, ids[view], PAUSED, suspend_after=1)

    def resume(self, view: str) -> None:
        self._ledger.forgive([view])

    def paused(self) -> Collection[str]:
        return [name for name, found in self._ledger.failing().items() if found.suspended]
