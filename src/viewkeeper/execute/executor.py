"""Runs the steps of a plan: extract and compute first, install when all is computed.

Steps run as soon as what they read is staged, a few at a time; installs run concurrently, in a session each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.aggregates import GROUP_COUNT
from viewkeeper.algebra.relations import Relation
from viewkeeper.algebra.rules.touched_rows import TouchedKeys
from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.algebra.sharpening import Profile, sharpened
from viewkeeper.algebra.summary_delta import OPERATION, rows_that_came
from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import RefreshError, words_of
from viewkeeper.events import Event, Phase, PointPassed, StepFinished, StepStarted
from viewkeeper.execute.crew import Crew, crew
from viewkeeper.execute.faults import may_be_broadcast
from viewkeeper.execute.installing import InstallContext, Installed, Installing
from viewkeeper.execute.own_time import SharedTime
from viewkeeper.execute.profiles import SearchedTables, profile
from viewkeeper.execute.sessions import Sessions
from viewkeeper.execute.staging import Staging
from viewkeeper.execute.tuning import METADATA, WITHOUT_HINTS, Tuning, tuning_for
from viewkeeper.install import bags, storage
from viewkeeper.install.counts import Counts
from viewkeeper.install.publish import Head, heads
from viewkeeper.plan.methods import Method
from viewkeeper.plan.references import staged_by
from viewkeeper.plan.steps import (
    CheckRows,
    ComputeBag,
    ComputeGroups,
    ComputeReplacement,
    ComputeRows,
    ComputeVisible,
    Computing,
    Extract,
    Install,
    Publish,
    Share,
    Step,
    Work,
)
from viewkeeper.session import setting
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.selects import BROADCAST

logger = logging.getLogger("viewkeeper")

CONCURRENT_STEPS = 4
FEW_KEYS = 10_000
"""Of a result that is expected to hold at most so many rows, the keys are looked at one by one."""


@dataclass(slots=True)
class Outcome:
    """What happened to one view."""

    counts: Counts = field(default_factory=Counts)
    installed: Installed | None = None
    compute_seconds: float = 0.0
    install_seconds: float = 0.0
    own_compute_seconds: float = 0.0
    """Its share of the time in which other steps ran, too; likewise:"""
    own_install_seconds: float = 0.0
    violations: dict[str, int] = field(default_factory=dict)
    """Rows that came and broke an expectation."""
    keeps_all: bool = False
    """Of a view with a LIMIT: whether what is kept beyond it is all there is."""

    @property
    def variant(self) -> str | None:
        """How it was installed; ``None`` when there was nothing to install."""
        return self.installed.variant if self.installed and self.installed.statements else None

    @property
    def method(self) -> Method | None:
        """By which method; ``None`` when there was nothing to install."""
        return self.installed.method if self.installed and self.installed.statements else None


@dataclass(frozen=True, slots=True)
class KeptDelta:
    """A delta that was computed before, in a table: what was counted in it, how long it took, how many rows
    broke an expectation, and the rows of the results that it was made of, where they are known."""

    table: str
    counts: Counts
    seconds: float
    violations: Mapping[str, int] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)


class Executor:
    """Runs one plan."""

    def __init__(
        self,
        sessions: Sessions,
        pins: Mapping[str, SessionPins],
        default_pins: SessionPins,
        sizes: Mapping[str, Work],
        emit: Callable[[Event], None],
    ) -> None:
        self._sessions = sessions
        self._pins = pins
        self._default_pins = default_pins
        self._sizes = sizes
        self._emit = emit
        self._staging = Staging()
        self._profiles: dict[str, Profile] = {}
        self._lock = threading.Lock()
        self._time = SharedTime()
        self.outcomes: dict[str, Outcome] = {}
        self.counted: dict[str, int] = {}
        """The rows of the results, by their names, where they were counted anyway."""
        self._extracting: tuple[float, float] | None = None
        self._hints = True
        """Whether Spark follows our broadcast hints."""
        self._hinted = False
        self.failed_view: str | None = None

    @property
    def extract_seconds(self) -> float:
        """From when the first extraction began until the last had ended."""
        return 0.0 if self._extracting is None else self._extracting[1] - self._extracting[0]

    def compute(self, steps: Sequence[Step], *, extract_first: bool = False) -> None:
        """Run every step that computes. Touches no view. ``extract_first``: and nothing before all that is
        extracted is there, so that its time can be told apart.

        What is broadcast in the middle of a join was only estimated. Where it turns out too large for that,
        all is computed once more, and Spark decides by what it sees.
        """
        try:
            self._compute_all(steps, extract_first=extract_first)
        except Exception as error:
            if not self._hinted or not may_be_broadcast(words_of(error)):
                raise
            logger.warning("a broadcast may have been too large; computing again without hints")
            self._emit(PointPassed("broadcast failed"))
            self._begin_anew()
            self._compute_all(steps, extract_first=extract_first)

    def _begin_anew(self) -> None:
        """Forget what was computed, and Spark is not to follow our hints from now on."""
        self.clear()
        self._profiles.clear()
        self.outcomes.clear()
        self._extracting = self.failed_view = None
        self._hints = False

    def _compute_all(self, steps: Sequence[Step], *, extract_first: bool) -> None:
        computing = [step for step in steps if not isinstance(step, (Install, Publish))]
        if extract_first:
            self._compute([step for step in computing if isinstance(step, Extract)])
            computing = [step for step in computing if not isinstance(step, Extract)]
        self._compute(computing)

    def _compute(self, computing: Sequence[Computing]) -> None:
        names = [step.name for step in computing]
        done: dict[str, Future[None]] = {}
        with self._crew() as threads:
            for step in computing:
                # Work begins in the order in which it is handed out, and a step comes after those it reads.
                before = [done[name] for name in staged_by(step, names) if name in done]
                done[step.name] = threads.begin(partial(self._after, before, step))

    def keep(self, installs: Sequence[Install], tables: Mapping[str, str]) -> None:
        """Write what was computed for these installs into tables of their own, to be installed later."""
        with self._crew() as threads:
            for step in installs:
                threads.begin(partial(self._keep, step, tables[step.view]))

    def _keep(self, step: Install, table: str) -> None:
        session = self._session(step.view)
        source = step.source
        if isinstance(source, ComputeRows) and not source.staged:
            rows = session.sql(source.sql).toDF(*source.columns)
        else:
            rows = session.table(source.name)
        rows.writeTo(storage.table_sql(table)).using("iceberg").create()
        self._emit(PointPassed(f"delta of {step.view} kept"))

    def load(self, installs: Sequence[Install], kept: Mapping[str, KeptDelta]) -> None:
        """Let these installs find what was computed and kept for them."""
        for step in installs:
            delta = kept[step.view]
            session = self._session(step.view)
            rows = session.table(storage.table_sql(delta.table))
            self._staging.name(session, step.source.name, rows)
            self.outcomes[step.view] = Outcome(
                delta.counts,
                compute_seconds=delta.seconds,
                own_compute_seconds=delta.seconds,
                violations=dict(delta.violations),
            )
            self.counted.update(delta.counted)

    def install(self, steps: Sequence[Step], context: InstallContext) -> dict[str, Head]:
        """Install what was computed, each view on the epoch's branch of its storage; where the branches that
        were written to stand then.

        Whether rows were deleted that were to stay is seen there, too, of all views by one query. Where that
        is so, what was tried is taken back, and the rows are looked up by value.
        """
        installs = [step for step in steps if isinstance(step, Install)]
        with self._crew() as threads:
            for step in installs:
                threads.begin(partial(self._install, step, context))
        found = self._heads(installs, context)
        mistaken = [step for step in installs if self._is_mistaken(step, found)]
        if mistaken:
            with self._crew() as threads:
                for step in mistaken:
                    threads.begin(partial(self._install, step, context, by_value=True))
            found |= self._heads(mistaken, context)
        for step in installs:
            if isinstance(step.source, ComputeReplacement) and step.storage in found:
                outcome = self.outcomes[step.view]
                outcome.counts = replace(outcome.counts, deleted=found[step.storage].removed)
        return found

    def _heads(self, installs: Sequence[Install], context: InstallContext) -> dict[str, Head]:
        written = [step.storage for step in installs if self.outcomes[step.view].variant]
        return heads(self._sessions.pinned(self._default_pins, METADATA), written, context.epoch)

    def _is_mistaken(self, step: Install, found: Mapping[str, Head]) -> bool:
        installed = self.outcomes[step.view].installed
        if installed is None or installed.tried is None or step.storage not in found:
            return False
        return found[step.storage].removed != installed.tried

    def clear(self) -> None:
        """Forget the staged results."""
        self._staging.clear()

    def _crew(self) -> AbstractContextManager[Crew]:
        # At the first failure, or at Ctrl-C, the rest stops at once: nothing of it will be published.
        return crew(CONCURRENT_STEPS, self._sessions.interrupt)

    def _after(self, before: Sequence[Future[None]], step: Step) -> None:
        for future in before:
            future.result()
        match step:
            case Extract():
                with self._time.running():
                    self._extract(step)
            case Share() | ComputeVisible():
                with self._time.running():
                    self._stage(step)
            case ComputeGroups():
                self._timed(step.view, Phase.COMPUTE, lambda: self._compute_groups(step))
            case ComputeBag():
                self._timed(step.view, Phase.COMPUTE, lambda: self._compute_bag(step))
            case ComputeReplacement():
                self._timed(step.view, Phase.COMPUTE, lambda: self._compute_replacement(step))
            case ComputeRows():
                self._timed(step.view, Phase.COMPUTE, lambda: self._compute_rows(step))
            case CheckRows():
                with self._time.running():
                    self._check(step)
            case Install() | Publish():
                raise AssertionError("installed apart")

    def _extract(self, step: Extract) -> None:
        started = time.monotonic()
        self._emit(StepStarted(None, Phase.EXTRACT, step.table))
        tuning = self._tuning(step.inserted + step.deleted, step.table_rows)
        session = self._sessions.pinned(self._default_pins, tuning)
        delta = reduce(DataFrame.unionAll, (session.sql(statement) for statement in step.statements))
        rows = None
        if step.staged:
            staged = self._staging.stage(session, step.name, delta, step.inserted + step.deleted)
            rows = self._profile(step, staged, step.inserted + step.deleted)
        else:
            self._staging.name(session, step.name, delta)
        seconds = time.monotonic() - started
        with self._lock:
            first, last = self._extracting or (started, started)
            self._extracting = min(first, started), max(last, started + seconds)
        self._emit(StepFinished(None, Phase.EXTRACT, seconds, rows))

    def _stage(self, step: Share | ComputeVisible) -> None:
        session = self._session(step.view)
        rows = self._rows(session, step.relation)
        if isinstance(step, ComputeVisible):
            self._staging.stage(session, step.name, rows)
        elif step.staged:
            self._share(session, step, rows)
        else:
            self._staging.name(session, step.name, rows)

    def _share(self, session: SparkSession, step: Share, rows: DataFrame) -> None:
        staged = self._staging.stage(session, step.name, rows, self._changed(step.view))
        if not step.looked_up and step.counts is None:
            return
        self._profile(step, staged, self._changed(step.view))

    def _profile(self, step: Extract | Share, staged: DataFrame, expected: int | None) -> int:
        """Compute what is staged, and let the steps that read it know of it; how many rows it has."""
        known = profile(staged, step.looked_up, few=expected is not None and expected <= FEW_KEYS)
        with self._lock:
            self._profiles[step.name] = known
            self.counted[step.name] = known.rows
        return known.rows

    def _rows(self, session: SparkSession, relation: Relation) -> DataFrame:
        with self._lock:
            profiles = dict(self._profiles)
        ansi = setting(session, "spark.sql.ansi.enabled") == "true"
        statement = sharpened(relation, profiles, SearchedTables(session), ansi=ansi)
        text = print_relation(statement.relation)
        self._hinted |= BROADCAST in text
        return session.sql(text, args=dict(statement.values)) if statement.values else session.sql(text)

    def _compute_groups(self, step: ComputeGroups) -> Counts:
        session = self._session(step.view)
        first = step.draft or step.name
        rows = self._rows(session, step.relation)
        touched = self._staging.stage(session, first, rows, self._changed(step.view))
        counted = touched.selectExpr(
            f"count_if({OPERATION} = 'I') AS inserted",
            f"count_if({OPERATION} = 'D') AS deleted",
            f"count_if({OPERATION} = 'U') AS updated",
            f"count_if({OPERATION} = 'R') AS recompute",
            f"coalesce(min({GROUP_COUNT}), 0) AS least",
            *([f"{rows_that_came(in_parts=step.in_parts)} AS came"] if step.counts else []),
        ).collect()[0]
        if counted["least"] < 0 and not step.in_parts:
            raise _negative(step.view, f"a group would hold {counted['least']} rows")
        if step.counts:
            self._count(step.name, int(counted["came"]))
        marked = int(counted["recompute"])
        if marked:
            assert step.recomputed is not None
            fresh = self._staging.stage(session, step.name, self._rows(session, step.recomputed))
            fresh.count()  # now, and not in the window, when it is first read
        elif step.draft is not None:
            self._staging.rename(step.draft, step.name)
        return Counts(counted["inserted"], counted["deleted"], counted["updated"] + marked, marked)

    def _compute_bag(self, step: ComputeBag) -> Counts:
        session = self._session(step.view)
        rows = self._rows(session, step.relation)
        counts = self._stage_bag(session, step, rows)
        if step.reserve is None:
            self._count(step.name, counts.total)
            return counts
        before = session.sql(bags.count_stored(step)).collect()[0][0]
        remaining = before + counts.inserted - counts.deleted
        keeps_all = step.refilled is None
        if step.refilled is not None and remaining < step.reserve.shown:
            counts = self._stage_bag(session, step, self._rows(session, step.refilled))
            remaining = before + counts.inserted - counts.deleted
            keeps_all = True
        # Of more rows than are kept the last ones were left out, or may have been.
        self._outcome(step.view).keeps_all = keeps_all and remaining < step.reserve.kept
        return counts

    def _stage_bag(self, session: SparkSession, step: ComputeBag, rows: DataFrame) -> Counts:
        delta = self._staging.stage(session, step.name, rows, self._changed(step.view))
        counted = delta.selectExpr(
            f"coalesce(sum(CASE WHEN {WEIGHT} > 0 THEN {WEIGHT} END), 0) AS inserted",
            f"coalesce(-sum(CASE WHEN {WEIGHT} < 0 THEN {WEIGHT} END), 0) AS deleted",
            f"{bags.null_keys(step)} AS null_keys",
        ).collect()[0]
        return Counts(counted["inserted"], counted["deleted"], null_keys=counted["null_keys"])

    def _compute_replacement(self, step: ComputeReplacement) -> Counts:
        """How many rows go is known when they have gone."""
        session = self._session(step.view)
        rows = self._rows(session, step.relation)
        return Counts(self._staging.stage(session, step.name, rows, self._changed(step.view)).count())

    def _compute_rows(self, step: ComputeRows) -> Counts:
        if step.staged:
            session = self._session(step.view)
            rows = session.sql(step.sql).toDF(*step.columns)
            self._staging.stage(session, step.name, rows)
        return Counts()

    def _check(self, step: CheckRows) -> None:
        counted = self._rows(self._session(step.view), step.relation).collect()[0]
        broken = {name: int(count) for name, count in zip(step.expectations, counted, strict=True) if count}
        self._outcome(step.view).violations.update(broken)
        for name in step.failing:
            if name in broken:
                self.failed_view = self.failed_view or step.view
                raise RefreshError(
                    f"view {step.view}: {broken[name]} of the rows that came break the expectation {name}",
                    code="VK-EXPECTATION",
                    hint="Mend the source, or let the view drop such rows or warn of them: ON VIOLATION.",
                    view=step.view,
                )

    def _install(self, step: Install, context: InstallContext, *, by_value: bool = False) -> None:
        self._timed(step.view, Phase.INSTALL, lambda: self._run_install(step, context, by_value=by_value))

    def _run_install(self, step: Install, context: InstallContext, *, by_value: bool) -> Counts:
        counts = self.outcomes[step.view].counts
        if isinstance(step.source, ComputeReplacement):
            step = replace(step, source=self._counted_keys(step.source))
        installing = Installing(step, counts, context, self._sessions, self._pins[step.view], self._emit)
        if by_value:
            installing.take_back()
        self.outcomes[step.view].installed = installing.run(
            lambda bag: self._find_victims(bag, counts.deleted), by_value=by_value
        )
        return counts

    def _counted_keys(self, source: ComputeReplacement) -> ComputeReplacement:
        """With as many keys as there turned out to be; rows are deleted by broadcasting them, or not."""
        with self._lock:
            known = {name: found.rows for name, found in self._profiles.items()}

        def counted(touched: TouchedKeys) -> TouchedKeys:
            keys = touched.keys
            return replace(touched, keys=replace(keys, rows=known.get(keys.name, keys.rows)))

        return replace(source, keys=tuple(map(counted, source.keys)))

    def _find_victims(self, step: ComputeBag, deleted: int) -> None:
        """Stage the identities of the rows to delete."""
        session = self._session(step.view)
        victims = session.sql(bags.victims_by_value(step, deleted))
        found = self._staging.stage(session, step.victims, victims).count()
        if found != deleted:
            raise _negative(step.view, f"{deleted} rows to delete, {found} of them stored")

    def _count(self, name: str, rows: int) -> None:
        with self._lock:
            self.counted[name] = rows

    def _outcome(self, view: str) -> Outcome:
        with self._lock:
            return self.outcomes.setdefault(view, Outcome())

    def _timed(self, view: str, phase: Phase, run: Callable[[], Counts]) -> None:
        self._emit(StepStarted(view, phase, ""))
        started = time.monotonic()
        try:
            with self._time.running() as own:
                counts = run()
        except Exception:
            self.failed_view = self.failed_view or view
            raise
        seconds = time.monotonic() - started
        outcome = self._outcome(view)
        with self._lock:
            outcome.counts = counts
            if phase is Phase.COMPUTE:
                outcome.compute_seconds += seconds
                outcome.own_compute_seconds += own.seconds
            else:
                outcome.install_seconds += seconds
                outcome.own_install_seconds += own.seconds
        self._emit(StepFinished(view, phase, seconds, counts.total))

    def _changed(self, view: str) -> int | None:
        return self._sizes.get(view, Work()).changed

    def _session(self, view: str) -> SparkSession:
        work = self._sizes.get(view, Work())
        return self._sessions.pinned(self._pins[view], self._tuning(work.changed, work.full))

    def _tuning(self, changed: int | None, read: int | None) -> Tuning:
        return tuning_for(changed, read) if self._hints else WITHOUT_HINTS


def _negative(view: str, what: str) -> RefreshError:
    return RefreshError(
        f"view {view}: {what}; a delta was wrong, nothing was changed",
        code="VK-NEGATIVE-MULTIPLICITY",
        hint=f"`viewkeeper repair {view}` rebuilds it from the recorded versions; please report this.",
        view=view,
    )
