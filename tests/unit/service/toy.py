"""A service over a warehouse without Spark: its ledger is real, its tables are numbers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import cast

from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.timing import Timing
from viewkeeper.ledger import (
    EpochRecord,
    Ledger,
    NewEpoch,
    SourceObservation,
    ViewRefreshRecord,
    ViewState,
    sqlite_url,
)
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.layout import bag_layout
from viewkeeper.results import Epoch, epoch_of
from viewkeeper.service.errands import Errands
from viewkeeper.service.logs import EventLog
from viewkeeper.service.service import Service
from viewkeeper.service.state import ServiceState
from viewkeeper.warehouse import Warehouse


class ToyWarehouse:
    """What the service asks of a warehouse. Its views read the table ``s``, whose ``version`` a test sets, or
    ``t``, which stands still."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.version = 1
        self.closed = False
        self.applying: Callable[[], list[str]] = list
        self.looking: Callable[[], None] = lambda: None
        self.refreshing: Callable[[tuple[str, ...]], None] = lambda views: None
        self.violations: dict[str, int] = {}

    def define(
        self,
        name: str,
        timing: Timing | None = None,
        *,
        table: str = "s",
        time_zone: str = "UTC",
        filled: bool = True,
    ) -> EpochRecord:
        definition = ViewDefinition((name,), "SELECT 1", SessionPins("lake", (), time_zone), timing=timing)
        analysis = Analysis(QueryText((TableHole(table, None),)), None, None)
        view = KnownView(name, uuid.uuid4().hex, definition, analysis, bag_layout([("id", "int")], None), {})
        return self.publish(view, filled=filled)

    def publish(
        self, *views: KnownView | str, filled: bool = True, seconds: Mapping[str, float] | None = None
    ) -> EpochRecord:
        """An epoch that defines or refreshes views."""
        known = Library.of(*self.ledger.defined())
        lease = self.ledger.acquire("toy")
        epoch = self.ledger.begin(lease)
        moved = [known.views[view] if isinstance(view, str) else view for view in views]
        states = [
            ViewState(
                view.name,
                view.definition_id,
                f"storage_{view.name}",
                str(epoch) if filled else None,
                self._vector(view) if filled else {},
                epoch,
            )
            for view in moved
        ]
        told = {"violations": self.violations} if self.violations else {}
        refreshes = [
            ViewRefreshRecord(view.name, "full", "overwrite", None, 1, estimates=told) for view in moved
        ]
        record = self.ledger.publish(
            lease,
            NewEpoch(
                epoch,
                {"s": str(self.version)},
                tuple(states),
                tuple(refreshes) if filled else (),
                define=tuple(view.record(epoch) for view in views if isinstance(view, KnownView)),
                seconds=dict({"observe": 0.0} if seconds is None else seconds),
            ),
        )
        self.ledger.release(lease)
        return record

    def drop(self, view: str) -> None:
        lease = self.ledger.acquire("toy")
        self.ledger.publish(lease, NewEpoch(self.ledger.begin(lease), {}, (), (), drop=(view,)))
        self.ledger.release(lease)

    def _vector(self, view: KnownView) -> dict[str, str | None]:
        return {table: str(self.version) if table == "s" else "1" for table in view.analysis.tables}

    def views(self) -> list[str]:
        return list(self.ledger.view_names())

    def apply(self, project: object) -> list[str]:
        return self.applying()

    def look(self) -> None:
        self.looking()
        versions = {"s": str(self.version), "t": "1"}
        self.ledger.observe({table: SourceObservation(each, utc_now()) for table, each in versions.items()})

    def refresh(self, *views: str, on_error: str = "stop") -> Epoch:
        self.refreshing(views)
        library = Library.of(*self.ledger.defined())
        behind = [view for view in views if library.states[view].vector != self._vector(library.views[view])]
        if not behind:
            latest = self.ledger.latest()
            return Epoch(0 if latest is None else latest.id, {}, [])
        return epoch_of(self.publish(*behind))

    def close(self) -> None:
        self.closed = True
        self.ledger.close()


class Running:
    """A service, and what belongs to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = ToyWarehouse(self.open())
        self.state = ServiceState()
        self.stop = threading.Event()
        self.errands = Errands()

    def open(self, clock: Callable[[], datetime] = utc_now) -> Ledger:
        return Ledger.open(sqlite_url(self.folder / "ledger.db"), clock=clock)

    def service(self) -> Service:
        return Service(
            self.folder,
            lambda project, listener: cast("Warehouse", self.warehouse),
            self.state,
            EventLog(),
            self.stop,
            self.errands,
        )

    def restarted(self) -> Running:
        """The same, in a new process."""
        again = Running(self.folder)
        again.warehouse.version = self.warehouse.version
        return again
