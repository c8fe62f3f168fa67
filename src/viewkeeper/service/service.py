"""The service: a loop that looks, decides, refreshes, and tells what came of it.

Everything it must not forget is in the ledger: which views fail, and since when; so a service that was killed
goes on where it was. One epoch runs at a time, in the thread that runs the loop; a signal that interrupts it
is the same to it as Ctrl-C.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from viewkeeper.define.project import Project
from viewkeeper.define.timing import show_interval
from viewkeeper.errors import (
    LeaseError,
    LedgerError,
    SetupError,
    ViewkeeperError,
    words_of,
)
from viewkeeper.events import Event
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.library import Library
from viewkeeper.results import Epoch, epoch_of
from viewkeeper.service.alerts import Troubles, messengers
from viewkeeper.service.backoff import code_of, pause_after, suspends
from viewkeeper.service.definitions import Definitions
from viewkeeper.service.errands import Errands
from viewkeeper.service.lineage import Lineage, sink
from viewkeeper.service.logs import EventLog
from viewkeeper.service.memory import Memory
from viewkeeper.service.schedule import Decision, decide
from viewkeeper.service.state import ServiceState
from viewkeeper.service.takeover import evict_the_dead
from viewkeeper.service.telling import Teller
from viewkeeper.warehouse import Warehouse

logger = logging.getLogger("viewkeeper.service")

OpenWarehouse = Callable[[Project, Callable[[Event], None]], Warehouse]

_SPARK_GONE = {
    "Py4JError",
    "Py4JNetworkError",
    "SparkConnectException",
    "SparkConnectGrpcException",
    "_InactiveRpcError",
    "_MultiThreadedRendezvous",
}
_BUSY_SECONDS = 2.0
_JUST_NOW = 1.0
_LISTENS_SECONDS = 0.2
_LEARNED = 20
_MANY_ERRORS = 10


@dataclass(frozen=True, slots=True)
class Ended:
    """How the service ended: whether all was well."""

    ok: bool


class Service:
    """Keeps the views of a project fresh until ``stop`` is set."""

    def __init__(
        self,
        folder: Path,
        open_warehouse: OpenWarehouse,
        state: ServiceState,
        log: EventLog,
        stop: threading.Event,
        errands: Errands,
        listener: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._definitions = Definitions(folder)
        project = self._definitions.project
        self._settings = project.settings.service
        self._state = state
        self._log = log
        self._stop = stop
        self._errands = errands
        self._memory = Memory()
        told = messengers(self._settings.alerts, project.folder, state.metrics.alert_lost)
        self._receivers: list[Callable[[Event], None]] = [log, listener, state.metrics]
        self._sink = None
        if self._settings.lineage is not None:
            self._sink = sink(self._settings.lineage, project.folder, state.metrics.lineage_lost)
            namespace = self._settings.lineage.namespace or project.name
            self._receivers.append(Lineage(namespace, lambda: self._library().views, self._sink.put))
        self.warehouse = open_warehouse(project, self._receive)
        troubles = Troubles(project.name, self._ledger.troubles(), self._ledger.untold())
        self._teller = Teller(state, troubles, told, self._ledger.note_troubles)
        self._told = 0
        """The last epoch of which it was told what it did."""
        self._looked_at = datetime.fromtimestamp(0, timezone.utc)
        self._looked = -math.inf
        """The same by a clock that nobody sets."""
        self._timeless: set[str] = set()
        self._failed_once = False
        self._busy = True
        self._soon = _JUST_NOW
        self._errors = 0

    @property
    def _ledger(self) -> Ledger:
        return self.warehouse.ledger

    # The loop.

    def run(self, *, once: bool = False, started: Callable[[], None] = lambda: None) -> Ended:
        """Work until told to stop, or with ``once`` until nothing more is due. ``started`` is called when
        Spark runs and the definitions are applied."""
        try:
            self._begin()
            started()
            while not self._stop.is_set():
                pause = self._guarded_cycle()
                if once and (self._errors or not (self._busy or self._definitions.wait)):
                    break
                self._wait(pause)
            return Ended(not once or self._is_well())
        except Exception as error:
            if not _is_spark_gone(error):
                raise
            raise SetupError(
                f"Spark does not answer any more: {_told(error)}",
                code="VK-SPARK-GONE",
                hint="Start the service again: it goes on where it was. Did something end its JVM, too? Let "
                "only the service get the signal to end (systemd: KillMode=mixed).",
            ) from error
        finally:
            self._state.ended()
            self._end()

    def _begin(self) -> None:
        """What has to be right at the start is an error if it is not; what may pass is tried again."""
        evict_the_dead(self._ledger, just_started=True)
        self._remember()
        self._apply(at_start=True)
        library = self._library()
        if not any(view.definition.timing for view in library.views.values()):
            logger.warning(
                "no view has a target lag or a schedule, so none is refreshed; write TARGET LAG '5 minutes' "
                "in its definition, or target_lag: 5 minutes in viewkeeper.yml"
            )
        self._state.ready()
        logger.info("keeps %d views fresh", len(self.warehouse.views()))

    def _remember(self) -> None:
        """What was known and told before a restart; at the very first start nobody is told of old epochs."""
        told = self._ledger.told()
        if told is None:
            told = next((epoch.id for epoch in self._ledger.epochs(limit=1, plans=False)), 0)
            self._ledger.note_told(told)
        self._told = told
        self._teller.begin()
        library = self._library()
        for name in library.views:
            epochs = self._ledger.epochs(view=name, limit=_LEARNED, plans=False)
            self._memory.learn([epoch for epoch in reversed(epochs) if epoch.id <= told])
        self._memory.looked(library, self._ledger.observations())

    def _end(self) -> None:
        with ExitStack() as ends:  # each of them, from the last to the first, whatever the others do
            ends.callback(self.warehouse.close)
            if self._sink is not None:
                ends.callback(self._sink.close)
            ends.callback(self._teller.close)
            ends.callback(self._errands.close)

    def _guarded_cycle(self) -> float:
        """One round; seconds to wait until the next. A ledger that is away is waited for."""
        try:
            pause = self._cycle()
        except LeaseError as error:
            logger.info("waits: %s", error.message)
            with suppress(LedgerError):
                evict_the_dead(self._ledger)
            return _BUSY_SECONDS
        except ViewkeeperError as error:
            self._errors += 1
            self._state.not_ready(error.code)  # anybody may ask; the message is in the log
            logger.error("%s", error.message, extra={"code": error.code})
            self._teller.tell_who_is_late()
            if self._errors >= _MANY_ERRORS and not isinstance(error, LedgerError):
                raise
            return pause_after(self._errors, self._settings.backoff)
        self._errors = 0
        self._state.ready()
        return pause

    def _wait(self, seconds: float) -> None:
        """Until it is time, somebody wants something, or it is to end."""
        until = time.monotonic() + seconds
        while not self._errands.waiting and (left := until - time.monotonic()) > 0:
            if self._stop.wait(min(left, _LISTENS_SECONDS)):
                return

    def _cycle(self) -> float:
        self._errands.run()
        if self._definitions.are_due():
            self._apply()
        self._hear()
        if time.monotonic() >= self._looked + self._settings.poll:
            self._look()
        decision = self._decide()
        if decision.views and time.monotonic() > self._looked + _JUST_NOW:
            self._look()  # what did not change need not be refreshed, and is not late
            decision = self._decide()
        self._show()
        spared = [view for view in decision.views if self._is_fresh(view)]
        self._memory.refreshed(spared, self._looked_at)
        self._forgive(spared)
        due = tuple(view for view in decision.views if view not in spared)
        self._busy = bool(due)
        if due:
            return 0.0 if self._refresh(due) else _JUST_NOW
        self._state.doing("waiting")
        if spared:
            return self._soon
        return max(_JUST_NOW / 10, min(decision.look_at - time.time(), self._settings.poll))

    def _hear(self) -> None:
        """Take in and tell what epochs did: those that were published since, by whomever and for whatever."""
        for epoch in reversed(self._ledger.epochs(after=self._told, plans=False)):
            self._memory.learn([epoch])
            self._teller.published(epoch_of(epoch))
            self._told = epoch.id
            self._ledger.note_told(epoch.id)

    def _look(self) -> None:
        self._state.doing("looking at the sources")
        self._looked_at, self._looked = utc_now(), time.monotonic()
        self.warehouse.look()

    def _decide(self) -> Decision:
        library, failing = self._library(), self._ledger.failing()
        self._memory.looked(library, self._ledger.observations())
        demands = self._memory.demands(library, failing, self._settings.backoff, self._state.started_at)
        self._tell_timeless()
        lags = [each.lag for each in demands if each.lag is not None]
        self._soon = min(self._settings.poll, max(_JUST_NOW, min(lags, default=math.inf) / 4))
        return decide(demands, time.time(), self._memory.overhead)

    def _tell_timeless(self) -> None:
        """Of views whose schedule cannot be followed: once, and that is not well."""
        for view in self._memory.timeless.keys() - self._timeless:
            self._failed_once = True
            self._state.metrics.failed(view, "VK-TIMING")
            said = {"view": view, "code": "VK-TIMING"}
            logger.error("its schedule is not followed: %s", self._memory.timeless[view], extra=said)
        self._timeless = set(self._memory.timeless)

    def _show(self) -> None:
        """How the views are, as far as is known."""
        library = self._library()
        empty = {name: state.epoch for name, state in library.states.items() if state.snapshot is None}
        published = self._ledger.publications(empty.values()) if empty else {}
        awaited = {name: published[epoch] for name, epoch in empty.items()}
        self._teller.show(library, self._ledger.failing(), self._memory.fresh_at, awaited)

    def _is_well(self) -> bool:
        """Whether nothing failed, and no view that is to be kept fresh is left alone, nor what it reads."""
        if self._failed_once or self._definitions.failed or self._errors:
            return False
        library = self._library()
        timed = [name for name, view in library.views.items() if view.definition.timing is not None]
        return library.graph.closure(timed).isdisjoint(self._ledger.failing())

    def _is_fresh(self, view: str) -> bool:
        """Whether it showed what its sources held when they were last looked at."""
        fresh_at = self._memory.fresh_at.get(view)
        return fresh_at is not None and fresh_at >= self._looked_at

    def _library(self) -> Library:
        return Library.of(*self._ledger.defined())

    def _receive(self, event: Event) -> None:
        for receiver in self._receivers:
            try:
                receiver(event)
            except Exception as error:  # who only listens does not disturb the epoch
                logger.warning("an event was not told to everybody: %s", error)

    # Definitions.

    def _apply(self, *, at_start: bool = False) -> None:
        self._state.doing("applying the definitions")
        try:
            changes = self._definitions.apply(self.warehouse, at_start=at_start)
        finally:
            self._log.over()
        for change in changes:
            logger.info("%s", change)

    # Epochs.

    def _refresh(self, views: tuple[str, ...]) -> bool:
        """Run an epoch; whether something was published."""
        self._state.doing(f"refreshing {', '.join(views)}")
        started = utc_now()
        try:
            epoch = self.warehouse.refresh(*views, on_error="skip")
        except LedgerError:
            raise
        except ViewkeeperError as error:
            self._hear()  # of those that it published before
            self._failed(views, error)
            return False
        else:
            self._took_in(views, started, epoch)
            return epoch.published_at is not None
        finally:
            self._log.over()

    def _forgive(self, views: Iterable[str]) -> None:
        """They are refreshed, so they fail no longer; those that somebody paused meanwhile stay so."""
        failing = self._ledger.failing()
        self._ledger.forgive([view for view in views if view in failing and not failing[view].suspended])

    def _failed(self, views: tuple[str, ...], error: ViewkeeperError) -> None:
        """Nothing was refreshed: the fault of one view, if it is known of which; else each is tried alone."""
        library = self._library()
        guilty = getattr(error, "view", None)
        if guilty in library.views:
            self._charge(library, [guilty], str(error))
        elif len(views) == 1:
            self._charge(library, views, str(error))
        else:
            logger.warning("refreshed one by one, since together they failed: %s", error.message)
            for view in views:
                if not self._stop.is_set():
                    self._refresh((view,))

    def _took_in(self, views: tuple[str, ...], started: datetime, epoch: Epoch) -> None:
        library = self._library()
        done = [name for name in library.graph.closure(views) if name not in epoch.skipped]
        self._memory.refreshed(done, started)
        self._forgive(done)
        self._hear()
        first = [
            view
            for view in epoch.skipped
            if not (library.graph.closure([view]) - {view}) & epoch.skipped.keys()
        ]
        for each in first:
            self._charge(library, [each], epoch.skipped[each])

    def _charge(self, library: Library, views: Iterable[str], reason: str) -> None:
        """These views failed for this reason; those that do so again and again are suspended."""
        self._failed_once = True
        code, backoff = code_of(reason), self._settings.backoff
        for view in _shown(library, views):
            definition, most = library.views[view].definition_id, suspends(reason, backoff)
            found = self._ledger.note_failure(view, definition, reason, suspend_after=most)
            self._state.metrics.failed(view, code)
            self._teller.failed(view, reason)
            then = f"tried again in {show_interval(pause_after(found.failures, backoff))}"
            if found.suspended:
                then = f"suspended; `viewkeeper resume {view}` lets it be tried again"
            logger.error(
                "failed %d times in a row, %s: %s",
                found.failures,
                then,
                reason,
                extra={"view": view, "code": code},
            )


def _shown(library: Library, views: Iterable[str]) -> list[str]:
    """These views, those that there still are; in the place of hidden ones, those that need them."""
    found: dict[str, None] = {}
    for view in views:
        if view not in library.views:
            continue
        if library.views[view].hidden:
            found |= dict.fromkeys(_shown(library, library.graph.children(view)))
        else:
            found[view] = None
    return list(found)


def _is_spark_gone(error: Exception) -> bool:
    """Whether it is the way to Spark that broke, and not what was asked of it; by the names of py4j's and
    Spark Connect's errors, which whoever works with the one need not have of the other."""
    return isinstance(error, ConnectionError) or type(error).__name__ in _SPARK_GONE


def _told(error: Exception) -> str:
    """The class of an error, and the first line of what it says."""
    said = words_of(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
