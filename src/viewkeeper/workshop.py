"""The workshop of a warehouse: its library, the lease, and an epoch from the sources to what is published.

Whatever is done with a warehouse is done here under the lease: definitions, declarations, refreshes.
"""

from __future__ import annotations

import getpass
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from viewkeeper import text_widths
from viewkeeper.algebra.empty_terms import KeyReference
from viewkeeper.declaring import LedgerShelf, declared_sources, with_siblings
from viewkeeper.define.settings import ForeignKey
from viewkeeper.define.sources import SourceDefinition
from viewkeeper.distinct_values import count_missing, details, kept_values, with_distinct
from viewkeeper.epochs import EpochRunner, StorageRewritten, Work, held_lease
from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.events import Event, Phase, StepFinished, StepStarted
from viewkeeper.execute.engine import Engine
from viewkeeper.foreign_keys import Holding, Holdings, SparkChecker, checked, details_of, kept_holdings
from viewkeeper.housekeeping import Housekeeping
from viewkeeper.install.storage import new_storage_name
from viewkeeper.learning import experience
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.ledger.records import EpochRecord, Lease, SourceObservation
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.planner import plan_epoch, unfilled
from viewkeeper.plan.situation import USUAL, Situation
from viewkeeper.plan.steps import EpochPlan
from viewkeeper.reading import snapshots_of
from viewkeeper.situations import observe
from viewkeeper.sources.contract import ExtractedSource
from viewkeeper.text_widths import kept_widths, measure_missing, with_widths

logger = logging.getLogger("viewkeeper")

Done = TypeVar("Done")

_ATTEMPTS = 3
"""So often an epoch is begun while others compact what it is to write to."""


@dataclass(frozen=True, slots=True)
class Redefinition:
    """Views to define or replace, and views to drop, in one epoch."""

    define: tuple[KnownView, ...] = ()
    drop: tuple[str, ...] = ()
    without_data: bool = False
    declare: tuple[SourceDefinition, ...] = ()
    forget: tuple[str, ...] = ()


class Workshop:
    """One warehouse, and what is needed to work on it."""

    def __init__(
        self, ledger: Ledger, engine: Engine, emit: Callable[[Event], None], lease_seconds: float
    ) -> None:
        self.ledger = ledger
        self.engine = engine
        self._emit = emit
        self._lease_seconds = lease_seconds
        self.options = USUAL
        self.foreign_keys: Sequence[ForeignKey] = ()
        self.runner = EpochRunner(ledger, engine, emit)
        self._recover()

    def library(self, epoch: int | None = None) -> Library:
        """The views as of an epoch (``None``: the latest)."""
        self.know(declared_sources(self.ledger).values())
        return Library.of(*self.ledger.defined(epoch))

    def know(self, sources: Iterable[SourceDefinition]) -> None:
        """From now on these are the declared sources."""
        self.engine.observer.declare(sources, self.shelf)

    def shelf(self, source: str) -> LedgerShelf:
        """Where a source keeps its versions."""
        return LedgerShelf(self.ledger, source)

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """The lease, with what earlier epochs left to do done first."""
        holder = f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()}"
        with held_lease(self.ledger, holder, self._lease_seconds) as lease:
            self.runner.finish_chores()
            try:
                yield lease
            finally:
                self.engine.observer.let_go()

    def _recover(self) -> None:
        """At the first use of Spark: finish what a published epoch left, unless somebody is at work."""
        if self.ledger.holder() is None and (self.ledger.chores() or self.ledger.failures(limit=1)):
            with self.lease():
                pass

    def declared(self, name: str) -> ExtractedSource:
        """The source of that name, which is declared."""
        source = self.engine.observer.declared(name)
        assert source is not None
        return source

    @contextmanager
    def giving_up(self, source: SourceDefinition) -> Iterator[None]:
        """Should declaring a source fail, it leaves nothing behind; what was published is declared."""
        opened = self.declared(source.name)
        try:
            yield
        except BaseException:
            with suppress(ViewkeeperError):  # the first error is the one to tell
                if declared_sources(self.ledger).get(source.name) != source:
                    opened.give_up()
            raise

    # An epoch.

    def observe(
        self,
        library: Library,
        names: Iterable[str],
        policy: str | None,
        storages: Mapping[str, str] | None = None,
        *,
        without_data: bool = False,
    ) -> Situation:
        """What the sources and the stored views are now, remembered as seen."""
        self._emit(StepStarted(None, Phase.OBSERVE, ""))
        started = time.monotonic()
        concerned = list(names)
        situation = observe(
            self.engine,
            library,
            concerned,
            policy=policy,
            options=self.options,
            storages=storages,
            experience=experience(self.ledger, concerned),
            prefix=f"vk_{uuid.uuid4().hex[:8]}",
        )
        seen = self.ledger.observations()
        known, widths = kept_values(seen), kept_widths(seen)
        if not without_data:
            known = count_missing(self.engine, situation, known)
            widths = measure_missing(self.engine, situation, widths)
            situation, holdings = self._checked(situation, kept_holdings(seen), may_look=True)
            now = utc_now()
            self.ledger.observe(
                {
                    table: SourceObservation(
                        version,
                        now,
                        {
                            **details(known.get(table)),
                            **text_widths.details(widths.get(table)),
                            **details_of(table, holdings),
                        },
                    )
                    for table, version in situation.versions.items()
                }
            )
        self._emit(StepFinished(None, Phase.OBSERVE, time.monotonic() - started))
        return with_widths(with_distinct(situation, known), widths)

    def recalled(self, situation: Situation) -> Situation:
        """The situation, with what the ledger knows of its sources; no whole table is looked at for it."""
        seen = self.ledger.observations()
        situation, _ = self._checked(situation, kept_holdings(seen), may_look=False)
        return with_widths(with_distinct(situation, kept_values(seen)), kept_widths(seen))

    def _checked(
        self, situation: Situation, known: Holdings, *, may_look: bool
    ) -> tuple[Situation, dict[KeyReference, Holding]]:
        """The situation, with what the foreign keys that are declared tell of it."""
        checker = SparkChecker(self.engine, situation)
        return checked(checker, situation, self.foreign_keys, known, may_look=may_look)

    def refresh(
        self, lease: Lease, library: Library, names: Sequence[str], policy: str | None
    ) -> EpochRecord | EpochPlan:
        """One epoch for these views; the plan itself when there was nothing to do."""
        return _undisturbed(lambda: self._refresh(lease, library, names, policy))

    def _refresh(
        self, lease: Lease, library: Library, names: Sequence[str], policy: str | None
    ) -> EpochRecord | EpochPlan:
        started = time.monotonic()
        situation = self.observe(library, names, policy)
        plan = plan_epoch(situation)
        if plan.changes_nothing:
            self.engine.observer.rest(situation.versions)
            return plan
        record = self.run(lease, library, situation, plan, seconds=_looked_since(started))
        self.housekeeping(lease).keep_up(record)
        return record

    def redefine(self, lease: Lease, library: Library, change: Redefinition) -> EpochRecord:
        """One epoch in which views and sources come, change and go."""
        return _undisturbed(lambda: self._redefine(lease, library, change))

    def _redefine(self, lease: Lease, library: Library, change: Redefinition) -> EpochRecord:
        after = library.with_views(*change.define)
        storages = {view.name: new_storage_name(self.engine.catalog_name) for view in change.define}
        closure: Iterable[str] = with_siblings(after, storages)
        if change.without_data:
            closure = storages
        started = time.monotonic()
        situation = self.observe(after, closure, None, storages, without_data=change.without_data)
        plan = unfilled(situation) if change.without_data else plan_epoch(situation)
        return self.run(lease, after, situation, plan, change, _looked_since(started))

    def run(
        self,
        lease: Lease,
        library: Library,
        situation: Situation,
        plan: EpochPlan,
        change: Redefinition | None = None,
        seconds: dict[str, float] | None = None,
    ) -> EpochRecord:
        """Carry out a plan."""
        work = self.work(library, situation, plan, change, seconds)
        return self.finished(self.runner.run(lease, work), situation)

    def work(
        self,
        library: Library,
        situation: Situation,
        plan: EpochPlan,
        change: Redefinition | None = None,
        seconds: dict[str, float] | None = None,
    ) -> Work:
        """A plan, and all that has to be known to carry it out."""
        redefinition = change or Redefinition()
        defined = [view.name for view in redefinition.define]
        return Work(
            plan=plan,
            inputs={view.name: view for view in (*situation.read_only, *situation.views)},
            views=library.views,
            define=defined,
            without_data=defined if redefinition.without_data else (),
            drop=redefinition.drop,
            drop_storages=self._storages_of(redefinition.drop),
            declare=redefinition.declare,
            forget=redefinition.forget,
            confirm=lambda: self.engine.observer.confirm(situation.versions),
            seconds=dict(seconds or {}),
            rates=situation.rates,
            extract_first=situation.options.stage_extracts,
        )

    def finished(self, record: EpochRecord, situation: Situation) -> EpochRecord:
        """What is to be done once an epoch is published."""
        self.engine.see(snapshots_of(self.library(), [view.view for view in record.views]))
        self._acknowledge(situation)
        return record

    def _acknowledge(self, situation: Situation) -> None:
        try:
            self.engine.observer.acknowledge(situation.versions)
        except SourceError as error:  # it is published; with the next epoch the source is told again
            logger.warning("a source could not be told that its changes are taken in: %s", error.message)

    def _storages_of(self, names: Sequence[str]) -> list[str]:
        """Every storage table that these views ever had."""
        storages: dict[str, None] = {}
        for name in names:
            for epoch in self.ledger.epochs(view=name):
                state = self.ledger.states(epoch.id).get(name)
                if state is not None:
                    storages[state.storage] = None
            state = self.ledger.states().get(name)
            if state is not None:
                storages[state.storage] = None
        return list(storages)

    def housekeeping(self, lease: Lease) -> Housekeeping:
        """What is done with stored views apart from refreshing them."""
        return Housekeeping(self.ledger, self.engine, self.runner, self._emit, lease)


def _undisturbed(attempt: Callable[[], Done]) -> Done:
    """An epoch, begun anew if somebody compacts storage tables while it is under way."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except StorageRewritten as error:
            logger.info("%s; the epoch is begun anew", error.message)
    return attempt()


def _looked_since(started: float) -> dict[str, float]:
    """What an epoch took so far, which looked at the sources: its views show them as they were then."""
    return {Phase.OBSERVE.value: time.monotonic() - started}
