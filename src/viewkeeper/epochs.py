"""Runs one epoch: stage on branches, publish in one ledger transaction, finish.

begin ─► intend ─► compute ─► install on branches ─► publish ─► fast-forward
                 a crash here: the intents clean up  ▲ commit point   ▲ a crash here: chores are redone
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.define.sources import SourceDefinition
from viewkeeper.errors import LeaseError, LedgerError, RefreshError, ViewkeeperError, words_of
from viewkeeper.events import (
    EpochAbandoned,
    EpochPublished,
    EpochStarted,
    Event,
    Phase,
    PointPassed,
    StepFinished,
    StepStarted,
)
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.executor import Executor, KeptDelta, Outcome
from viewkeeper.execute.installing import InstallContext
from viewkeeper.install import storage
from viewkeeper.install.bags import BY_VALUE
from viewkeeper.install.publish import EPOCH_PROPERTY, Head
from viewkeeper.kept_deltas import drop_kept, drop_tables, install_only, record
from viewkeeper.learning import told
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.records import (
    Chore,
    ChoreKind,
    EpochRecord,
    Lease,
    NewEpoch,
    NewPropagation,
    Propagation,
    SourceRecord,
    ViewRefreshRecord,
    ViewState,
)
from viewkeeper.library import KnownView
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import BELIEVED, Rates
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.steps import EpochPlan, Install, Installer, Strategy, ViewPlan
from viewkeeper.situations import foreign_write

logger = logging.getLogger("viewkeeper")

LEASE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Work:
    """What an epoch is to do: the plan, and what it defines and drops on the way."""

    plan: EpochPlan
    inputs: Mapping[str, ViewInput]
    views: Mapping[str, KnownView]
    define: Sequence[str] = ()
    without_data: Sequence[str] = ()
    drop: Sequence[str] = ()
    drop_storages: Sequence[str] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    kept: Mapping[str, KeptDelta] | None = None
    """What was propagated before, and is only to be installed."""
    declare: Sequence[SourceDefinition] = ()
    forget: Sequence[str] = ()
    confirm: Callable[[], None] = lambda: None
    """Asks the sources, before anything is published, whether what was read is what they hold."""
    rates: Rates = field(default_factory=lambda: BELIEVED)
    """What operations take, to choose how to install by."""
    extract_first: bool = False
    """Whether computing waits for all that is extracted."""
    in_place: bool = False
    """Whether what is defined keeps its storage table."""
    readers: Sequence[ViewState] = ()
    """Views that have seen the rows of what is defined already."""

    @property
    def installs(self) -> list[Install]:
        return [step for step in self.plan.steps if isinstance(step, Install)]


@contextmanager
def held_lease(ledger: Ledger, holder: str, seconds: float = LEASE_SECONDS) -> Iterator[Lease]:
    """The lease, renewed in the background for as long as the block runs."""
    lease = ledger.acquire(holder, seconds)
    stop = threading.Event()

    def renew() -> None:
        pause = seconds / 3
        while not stop.wait(pause):
            pause = seconds / 3
            try:
                ledger.renew(lease)
            except LeaseError:
                return  # lost: publishing will find out and refuse, which is what matters
            except LedgerError:
                pause = seconds / 12  # unreachable for a moment, perhaps

    thread = threading.Thread(target=renew, name="viewkeeper-lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        stop.set()
        thread.join()
        ledger.release(lease)


class StorageRewritten(RefreshError):
    """Somebody compacted the storage of a view while an epoch was under way. It has the same rows, in other
    files than those that the epoch looked into; begun anew, it looks into these."""

    code = "VK-STORAGE-REWRITTEN"

    def __init__(self, step: Install) -> None:
        super().__init__(
            f"somebody compacted the storage table {step.storage} of view {step.view} meanwhile",
            hint="Nothing was changed, and no row of it is another. Do it again.",
        )


class EpochRunner:
    """Runs epochs under a lease."""

    def __init__(self, ledger: Ledger, engine: Engine, emit: Callable[[Event], None]) -> None:
        self._ledger = ledger
        self._engine = engine
        self._emit = emit

    def finish_chores(self) -> None:
        """Finish what published epochs left to do, and clean up after those that died. Needs the lease."""
        chores = self._ledger.chores()
        if chores:
            self._engine.run_chores(chores, self._ledger.is_left, self._chore_done)

    def run(self, lease: Lease, work: Work) -> EpochRecord:
        """Run and publish one epoch; on any failure every view stays as it was."""
        with self._attempt(lease, work, lambda epoch: self._intents(epoch, work)) as (epoch, executor):
            record = self._stage_and_publish(lease, epoch, work, executor)
        self._emit(EpochPublished(epoch))
        with self._phase(Phase.FINISH, record.seconds):
            self.finish_chores()
        return record

    def propagate(self, lease: Lease, work: Work) -> Propagation:
        """Compute what a refresh would install, and keep it. Touches no view."""
        installs = work.installs
        tables = {step.view: storage.new_delta_name(self._engine.catalog_name) for step in installs}
        before = self._ledger.propagation()
        with self._attempt(lease, work, lambda epoch: drop_tables(epoch, tables.values())) as attempt:
            epoch, executor = attempt
            with self._phase(Phase.COMPUTE, work.seconds):
                executor.compute(work.plan.steps)
                executor.keep(installs, tables)
                work.confirm()
            new = NewPropagation(
                epoch,
                CODEC.encode(install_only(work.plan)),  # type: ignore[arg-type]  # a tagged object
                {
                    view: record(table, executor.outcomes[view], executor.counted)
                    for view, table in tables.items()
                },
            )
            self._ledger.keep(lease, new, [] if before is None else drop_kept(before))
        self.finish_chores()
        kept = self._ledger.propagation()
        assert kept is not None
        return kept

    def forget(self, lease: Lease, propagation: Propagation) -> None:
        """Give up what was propagated: the views have moved on without it."""
        self._ledger.forget(lease, drop_kept(propagation))
        self.finish_chores()

    @contextmanager
    def _attempt(
        self, lease: Lease, work: Work, intents: Callable[[int], list[Chore]]
    ) -> Iterator[tuple[int, Executor]]:
        """An epoch begun, with what to clean up noted; whatever goes wrong inside, it is given up."""
        epoch = self._ledger.begin(lease)
        self._emit(EpochStarted(epoch, tuple(view.view for view in work.plan.views)))
        executor = self._engine.executor(work.views, work.plan, self._emit)
        staged = intents(epoch)
        try:
            self._ledger.intend(lease, epoch, staged)
            self._emit(PointPassed("intents noted"))
            yield epoch, executor
        except BaseException as error:
            self._give_up(lease, epoch, staged, error)
            if isinstance(error, Exception) and not isinstance(error, ViewkeeperError):
                self._blame_rewriting(work.installs, error)
                view = work.inputs.get(executor.failed_view or "")
                raise self._engine.explain_failure(error, view, dict(work.plan.versions)) from error
            raise
        finally:
            executor.clear()

    def _stage_and_publish(self, lease: Lease, epoch: int, work: Work, executor: Executor) -> EpochRecord:
        branch = storage.branch_name(epoch)
        installs = work.installs
        for name in () if work.in_place else work.define:
            view = work.views[name]
            self._engine.create_storage(work.inputs[name].storage, view.layout, view.definition)
            self._emit(PointPassed(f"storage of {name} made"))
        with self._engine.metering(self._emit):
            with self._phase(Phase.COMPUTE, work.seconds):
                if work.kept is None:
                    executor.compute(work.plan.steps, extract_first=work.extract_first)
                else:
                    executor.load(installs, work.kept)
            with self._phase(Phase.INSTALL, work.seconds):
                heads = executor.install(work.plan.steps, self._install_context(epoch, branch, work))
        work.seconds["extract"] = executor.extract_seconds
        with self._phase(Phase.PUBLISH, work.seconds):
            written = [step.storage for step in installs if executor.outcomes[step.view].variant]
            self._require_all(written, heads)
            self._require_own_base(lease, installs, heads)
            work.confirm()
            new = self._new_epoch(epoch, branch, work, executor, heads)
            record = self._ledger.publish(lease, new)
        record.seconds[Phase.PUBLISH.value] = work.seconds[Phase.PUBLISH.value]
        return record

    @staticmethod
    def _require_all(written: Sequence[str], heads: Mapping[str, Head]) -> None:
        missing = [table for table in written if table not in heads]
        if missing:
            raise RefreshError(
                f"what was written to {', '.join(missing)} is not on the epoch's branch",
                hint="Did somebody drop the branch? Refresh again.",
            )

    def _require_own_base(self, lease: Lease, installs: Sequence[Install], heads: Mapping[str, Head]) -> None:
        """A change was computed against the recorded snapshot, but the branch begins where main stood when
        it was first written to: somebody may have written in between."""
        for step in installs:
            head = heads.get(step.storage)
            if head is None or step.installer is Installer.OVERWRITE or head.base == step.snapshot:
                continue
            self._ledger.renew(lease)  # or was it another refresher, who took our lease over?
            if self._is_rewritten(step, head.base):
                raise StorageRewritten(step)
            raise foreign_write(step.view, step.storage)

    def _blame_rewriting(self, installs: Sequence[Install], error: Exception) -> None:
        """Spark fails, too, if files are rewritten between the reading and the writing of one statement."""
        for step in installs:
            facts = self._engine.catalog.facts_of(step.storage)
            if facts is not None and self._is_rewritten(step, facts.snapshot):
                raise StorageRewritten(step) from error

    def _is_rewritten(self, step: Install, now: str | None) -> bool:
        """Whether the storage has the rows that it had, in other files."""
        before = step.snapshot
        if before is None or now == before:
            return False
        return self._engine.observer.only_rewritten(step.storage, before, now)

    @staticmethod
    def _intents(epoch: int, work: Work) -> list[Chore]:
        """What to clean up should we die before publishing."""
        branch = storage.branch_name(epoch)
        branches = [
            Chore(None, ChoreKind.DROP_BRANCH, epoch, {"storage": step.storage, "branch": branch})
            for step in work.installs
            if step.view not in work.define
        ]
        made = () if work.in_place else work.define
        return [*branches, *drop_tables(epoch, [work.inputs[name].storage for name in made])]

    @staticmethod
    def _install_context(epoch: int, branch: str, work: Work) -> InstallContext:
        """The identity of the batch and the versions behind it go into every snapshot's summary, where
        other engines can read them (the shape of Iceberg's materialized-view proposal)."""
        properties = {}
        for plan in work.plan.views:
            refresh_state = {"source-states": [{"table": t, "version": v} for t, v in plan.vector]}
            properties[plan.view] = {
                EPOCH_PROPERTY: str(epoch),
                "viewkeeper.view": plan.view,
                "refresh-state": json.dumps(refresh_state),
            }
        rows = {name: view.rows for name, view in work.inputs.items()}
        corrected = {
            plan.view: {price.method: price.corrected for price in plan.prices} for plan in work.plan.views
        }
        return InstallContext(epoch, branch, properties, rows, work.rates, corrected)

    def _new_epoch(
        self,
        epoch: int,
        branch: str,
        work: Work,
        executor: Executor,
        heads: Mapping[str, Head],
    ) -> NewEpoch:
        outcomes = executor.outcomes
        snapshots = {
            name: heads[view.storage].snapshot if view.storage in heads else view.snapshot
            for name, view in work.inputs.items()
        }
        states = []
        for plan in work.plan.views:
            if not plan.changed and plan.view not in work.define:
                continue
            view = work.inputs[plan.view]
            parents = {table: snapshots[table] for table in view.analysis.tables if table in work.inputs}
            empty = plan.view in work.without_data
            vector = {} if empty else {**dict(plan.vector), **parents}
            states.append(
                ViewState(
                    plan.view,
                    work.views[plan.view].definition_id,
                    view.storage,
                    None if empty else snapshots[plan.view],
                    vector,
                    epoch,
                )
            )
        for reader in work.readers:
            seen = {name: snapshots[name] for name in work.define if name in reader.vector}
            states.append(replace(reader, vector={**reader.vector, **seen}, epoch=epoch))
        return NewEpoch(
            id=epoch,
            source_versions={table: version or "" for table, version in work.plan.versions},
            states=tuple(states),
            refreshes=tuple(
                _refresh(plan, outcomes.get(plan.view), executor.counted, heads, work.inputs[plan.view])
                for plan in work.plan.views
                if plan.view not in work.without_data
            ),
            define=tuple(work.views[name].record(epoch) for name in work.define),
            drop=tuple(work.drop),
            declare=tuple(
                SourceRecord(source.name, CODEC.encode(source), epoch)  # type: ignore[arg-type]  # tagged
                for source in work.declare
            ),
            forget=tuple(work.forget),
            redo=tuple(self._redo(epoch, branch, work, heads)),
            plan=CODEC.encode(work.plan),  # type: ignore[arg-type]  # a tagged object is a JSON object
            seconds=dict(work.seconds),
            installs_propagation=work.kept is not None,
        )

    @staticmethod
    def _redo(epoch: int, branch: str, work: Work, heads: Mapping[str, Head]) -> Iterator[Chore]:
        """What remains to be done once it is published; each can be done again."""
        for table, head in heads.items():
            where = {"storage": table, "branch": branch, "snapshot": head.snapshot}
            yield Chore(None, ChoreKind.FAST_FORWARD, epoch, {**where, "base": head.base or ""})
        for name in work.define:
            view = work.views[name]
            sql = storage.create_view(view.definition, view.layout, work.inputs[name].storage)
            yield Chore(None, ChoreKind.CREATE_VIEW, epoch, {"view": name, "sql": sql})
        for name in work.drop:
            yield Chore(None, ChoreKind.DROP_VIEW, epoch, {"view": name})
        kept = [delta.table for delta in (work.kept or {}).values()]
        yield from drop_tables(epoch, [*work.drop_storages, *kept])

    def _give_up(self, lease: Lease, epoch: int, staged: Sequence[Chore], error: BaseException) -> None:
        """Publish nothing, and clean up what was staged; what cannot be cleaned now is cleaned next time."""
        said = words_of(error) or type(error).__name__
        try:
            if self._is_published(epoch):
                return  # interrupted just after the commit point: published is published, the chores wait
            self._emit(EpochAbandoned(epoch, said))
            self._ledger.abandon(lease, epoch, said)
            self.finish_chores()
        except LeaseError:
            # Whoever took over cleaned up what was there; what we staged since then is ours to remove.
            self._engine.clean_up(staged)
        except Exception as second:
            # The first error is the one to tell; the intents stay in the ledger for the next refresh.
            logger.warning("epoch %s: cleaning up is left to the next refresh: %s", epoch, second)

    def _is_published(self, epoch: int) -> bool:
        try:
            self._ledger.epoch(epoch)
        except LedgerError as error:
            if error.code != "VK-UNKNOWN-EPOCH":
                raise
            return False
        return True

    def _chore_done(self, chore: Chore) -> None:
        self._emit(PointPassed(f"{chore.kind.value} done"))
        self._ledger.done(chore)
        self._emit(PointPassed(f"{chore.kind.value} struck off"))

    @contextmanager
    def _phase(self, phase: Phase, seconds: dict[str, float]) -> Iterator[None]:
        self._emit(StepStarted(None, phase, ""))
        started = time.monotonic()
        yield
        seconds[phase.value] = time.monotonic() - started
        self._emit(StepFinished(None, phase, seconds[phase.value], None))


def _refresh(
    plan: ViewPlan,
    outcome: Outcome | None,
    counted: Mapping[str, int],
    heads: Mapping[str, Head],
    view: ViewInput,
) -> ViewRefreshRecord:
    estimates: dict[str, Any] = {"work_incremental": plan.work.incremental, "work_full": plan.work.full}
    if plan.prices:
        estimates["prices"] = {price.method.value: round(price.total, 3) for price in plan.prices}
        estimates["corrected"] = {price.method.value: round(price.corrected, 3) for price in plan.prices}
    if plan.because is not None:
        estimates["because"] = plan.because
    if outcome is not None and outcome.method is not None:
        estimates["method"] = outcome.method.value
        own = outcome.own_compute_seconds + outcome.own_install_seconds
        estimates["paid"] = round(own + _told_readers(plan, outcome.method), 3)
    elif outcome is not None and plan.strategy is Strategy.INCREMENTAL:
        estimates["for_nothing"] = _for_nothing(plan, outcome)
    if outcome is not None and outcome.violations:
        estimates["violations"] = outcome.violations
    is_bag = plan.installer is Installer.APPLY_BAG
    if is_bag and outcome is not None and outcome.counts.deleted and not view.has_copies:
        estimates["copies"] = (
            outcome.variant == BY_VALUE
        )  # not if it was known: now and then it is tried anew
    head = heads.get(view.storage)
    if _keeps_all(plan, outcome, head, view):
        estimates["keeps_all"] = view.snapshot if head is None else head.snapshot
    if view.layout.in_parts:
        is_whole = plan.installer is Installer.OVERWRITE and head is not None
        estimates["groups"] = head.added if is_whole and head is not None else view.groups_when_whole
    if outcome is None:
        return ViewRefreshRecord(plan.view, plan.strategy.value, None, plan.reason, estimates=estimates)
    counts = outcome.counts
    installed = outcome.variant
    if plan.strategy is Strategy.FULL:
        rows = head.added if head is not None else 0
        return ViewRefreshRecord(
            plan.view, plan.strategy.value, installed, plan.reason, rows, rows, None, None,
            outcome.compute_seconds, outcome.install_seconds, estimates, derived_from=plan.derived_from,
        )  # fmt: skip
    estimates["parts"] = told(plan, counted)
    return ViewRefreshRecord(
        plan.view, plan.strategy.value, installed, plan.reason, counts.total, counts.inserted,
        counts.deleted, counts.updated, outcome.compute_seconds, outcome.install_seconds, estimates,
        counts.recomputed, plan.derived_from,
    )  # fmt: skip


def _keeps_all(plan: ViewPlan, outcome: Outcome | None, head: Head | None, view: ViewInput) -> bool:
    """Whether what is kept of a view with a LIMIT is all there is."""
    reserve = view.layout.reserve
    if reserve is None or outcome is None:
        return False
    if plan.strategy is Strategy.FULL:
        return (0 if head is None else head.added) < reserve.kept
    return outcome.keeps_all


def _told_readers(plan: ViewPlan, method: Method) -> float:
    """What it took to tell its readers what changed is part of what they took: here it counts as priced."""
    return next((price.tell for price in plan.prices if price.method is method), 0.0)


def _for_nothing(plan: ViewPlan, outcome: Outcome) -> dict[str, Any] | None:
    """What it took to find that there is nothing to install, as if that had been done as expected: computing
    is most of the price, and not to know it would let deltas look cheap that are not."""
    priced = [price for price in plan.prices if price.method is not Method.FULLRECOMP]
    if not priced:
        return None
    price = min(priced, key=lambda each: each.total)
    return {
        "method": price.method.value,
        "paid": round(outcome.own_compute_seconds + price.install + price.tell, 3),
    }
