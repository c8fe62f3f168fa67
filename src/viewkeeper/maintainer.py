"""The warehouse maintainer: what a warehouse does with Spark, under the lease.

Its methods come in the order of the flow: define, observe, plan, run; then verify and repair.
"""

from __future__ import annotations

import getpass
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viewkeeper.analyse.statements import CreateSource, CreateView
from viewkeeper.constraints import Constraint, checks
from viewkeeper.declaring import (
    LedgerShelf,
    base_view,
    base_views_of,
    declaration,
    declared_sources,
    source_of,
    unknown_source,
    with_siblings,
)
from viewkeeper.define.clock import is_clock
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.sources import SWEEP, SourceDefinition, checked_options
from viewkeeper.define.timing import Timing
from viewkeeper.defining import Resolver, refuse_reserved
from viewkeeper.distinct_values import count_missing, details, kept_values, with_distinct
from viewkeeper.epochs import EpochRunner, Work, held_lease
from viewkeeper.errors import DefinitionError, RefreshError, SourceError, ViewkeeperError
from viewkeeper.events import Event, Phase, StepFinished, StepStarted
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.observing import SourceAway
from viewkeeper.hidden_views import chosen, define_with_state, unread
from viewkeeper.housekeeping import Housekeeping
from viewkeeper.install.storage import new_storage_name
from viewkeeper.integrate.prices import RemotePrice
from viewkeeper.integrate.transport import SweptSource
from viewkeeper.kept_deltas import kept_deltas, plan_of
from viewkeeper.learning import experience, known_rates
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.ledger.records import EpochRecord, Lease, Propagation, SourceObservation
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.hidden_state import PROPERTY
from viewkeeper.plan.planner import plan_epoch, unfilled
from viewkeeper.plan.situation import USUAL, Situation
from viewkeeper.plan.steps import EpochPlan
from viewkeeper.plan.upkeep import Retention
from viewkeeper.reading import no_data, snapshots_of
from viewkeeper.remote_views import (
    declared_by_people,
    is_base_view,
    join_of,
    refuse_lost,
    refuse_members,
    source_behind,
)
from viewkeeper.results import ConstraintCheck, Upkept, Verification
from viewkeeper.situations import observe, stored_views
from viewkeeper.sources.contract import ExtractedSource
from viewkeeper.sql.quoting import parse_path, show_path
from viewkeeper.verifying import require_history, verified

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("viewkeeper")


@dataclass(frozen=True, slots=True)
class Redefinition:
    """Views to define or replace, and views to drop, in one epoch."""

    define: tuple[KnownView, ...] = ()
    drop: tuple[str, ...] = ()
    without_data: bool = False
    declare: tuple[SourceDefinition, ...] = ()
    forget: tuple[str, ...] = ()


class Maintainer:
    """Defines, refreshes and verifies the views of one warehouse."""

    def __init__(
        self, ledger: Ledger, engine: Engine, emit: Callable[[Event], None], lease_seconds: float
    ) -> None:
        self.ledger = ledger
        self.engine = engine
        self._emit = emit
        self._lease_seconds = lease_seconds
        self.options = USUAL
        self._runner = EpochRunner(ledger, engine, emit)
        self._recover()

    def library(self, epoch: int | None = None) -> Library:
        """The views as of an epoch (``None``: the latest)."""
        self._know(declared_sources(self.ledger).values())
        return Library.of(self.ledger.views(epoch), self.ledger.states(epoch))

    def _know(self, sources: Iterable[SourceDefinition]) -> None:
        self.engine.observer.declare(sources, self._shelf)

    def _shelf(self, source: str) -> LedgerShelf:
        return LedgerShelf(self.ledger, source)

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """The lease, with what earlier epochs left to do done first."""
        holder = f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()}"
        with held_lease(self.ledger, holder, self._lease_seconds) as lease:
            self._runner.finish_chores()
            try:
                yield lease
            finally:
                self.engine.observer.let_go()

    def _recover(self) -> None:
        """At the first use of Spark: finish what a published epoch left, unless somebody is at work."""
        if self.ledger.holder() is None and (self.ledger.chores() or self.ledger.failures(limit=1)):
            with self.lease():
                pass

    # Define.

    def definition(self, statement: CreateView) -> ViewDefinition:
        """The definition that a CREATE statement makes in the user's session as it is now."""
        pins = self.engine.current_pins()
        name = Resolver(self.engine, self.library(), pins).full_name(statement.name)
        return ViewDefinition(
            name=name,
            query=statement.query,
            session=pins,
            columns=statement.columns,
            comment=statement.comment,
            partitioned_by=statement.partitioned_by,
            cluster_by=statement.cluster_by,
            properties=statement.properties,
            policy=statement.policy,
            consistency=statement.consistency,
            expectations=statement.expectations,
            timing=statement.timing,
        )

    def create(self, *statements: CreateView) -> EpochRecord | None:
        """Define views and fill them, all in one epoch; ``None`` when they are all there already and IF NOT
        EXISTS was said."""
        definitions = [(statement, self.definition(statement)) for statement in statements]
        for _, definition in definitions:
            refuse_reserved(definition)
        with self.lease() as lease:
            before = library = self.library()
            if (retimed := _only_retimed(before, definitions)) is not None:
                return self._housekeeping(lease).retime(*retimed)
            defined: dict[str, KnownView] = {}
            for statement, definition in definitions:
                if not self._is_wanted(before, statement, definition):
                    continue
                made = define_with_state(self.engine, library, definition)
                library = library.with_views(*made)
                name = made[-1].name
                followers = self._followers(library, name) if name in before.views else ()
                defined.update({each.name: each for each in (*made, *followers)})
                library = library.with_views(*followers)
            if not defined:
                return None
            without_data = not all(statement.with_data for statement in statements)
            unused = unread(library)
            kept = None
            if not without_data and not unused:
                kept = self._housekeeping(lease).redefine(before, tuple(defined.values()))
            if kept is not None:
                return self._brought_up(lease, list(defined)) or kept
            views = tuple(view for name, view in defined.items() if name not in unused)
            change = Redefinition(views, drop=unused, without_data=without_data)
            return self._define_swept(lease, before, change)

    def _brought_up(self, lease: Lease, names: Sequence[str]) -> EpochRecord | None:
        """Refresh views that were defined anew with the rows they had. They are published: what fails now is
        told, and waits for the next refresh."""
        library = self.library()
        try:
            done = self._refresh(lease, library, list(with_siblings(library, names)), None)
        except (RefreshError, SourceError) as error:
            logger.warning("%s: defined anew, and not refreshed yet: %s", ", ".join(names), error)
            return None
        return None if isinstance(done, EpochPlan) else done

    def _define_swept(self, lease: Lease, before: Library, change: Redefinition) -> EpochRecord:
        """Views of remote tables have a source behind them, which comes and goes with the definition."""
        known = declared_sources(self.ledger)
        behind = {view.name: source_behind(view) for view in change.define}
        new = tuple(source for source in behind.values() if source is not None)
        gone = [name for name, source in behind.items() if name in known and source is None]
        opened = [self.engine.observer.declared(name) for name in gone]
        refuse_members(new, known)
        if new and change.without_data:
            raise DefinitionError(
                f"view {new[0].name} reads remote tables, whose changes are kept for it from now on",
                code="VK-SWEEP-UNSUITED",
                hint="Leave WITH NO DATA out: it is filled when it is created.",
            )
        self._know({**known, **{source.name: source for source in new}}.values())
        with ExitStack() as stack:
            for source in new:
                stack.enter_context(self._giving_up(source))
            record = self._redefine(lease, before, replace(change, declare=new, forget=tuple(gone)))
        for each in opened:
            assert each is not None
            each.release()
        return record

    @contextmanager
    def _giving_up(self, source: SourceDefinition) -> Iterator[None]:
        """Should declaring a source fail, it leaves nothing behind; what was published is declared."""
        opened = self._declared(source.name)
        try:
            yield
        except BaseException:
            with suppress(ViewkeeperError):  # the first error is the one to tell
                if declared_sources(self.ledger).get(source.name) != source:
                    opened.give_up()
            raise

    def _declared(self, name: str) -> ExtractedSource:
        source = self.engine.observer.declared(name)
        assert source is not None
        return source

    def _is_wanted(self, library: Library, statement: CreateView, definition: ViewDefinition) -> bool:
        """Whether the view is to be created; an error if its name is taken."""
        existing = library.lookup(show_path(definition.name), ())
        if existing is None:
            self._require_free(definition)
            return True
        if is_base_view(library.views[existing]):
            raise DefinitionError(
                f"{existing} is the name of a source",
                code="VK-NAME-TAKEN",
                hint="Choose another name, or DROP SOURCE.",
            )
        if not (statement.if_not_exists or statement.replace):
            raise DefinitionError(
                f"there is a materialized view {existing} already",
                code="VK-VIEW-EXISTS",
                hint="CREATE OR REPLACE MATERIALIZED VIEW replaces it.",
            )
        return not statement.if_not_exists

    def _require_free(self, definition: ViewDefinition) -> None:
        if self.engine.catalog.facts(definition.name) is not None:
            raise DefinitionError(
                f"{show_path(definition.name)} is the name of a table or view in the catalog",
                code="VK-NAME-TAKEN",
                hint="Choose another name, or drop what is there.",
            )

    def _followers(self, library: Library, name: str) -> tuple[KnownView, ...]:
        """The views that read a replaced one, analysed again: they are recomputed in the same epoch."""
        descendants = library.graph.descendants(name)
        followers: list[KnownView] = []
        redefined = {name}
        for other in library.graph.order():
            if other not in descendants or library.views[other].hidden:
                continue  # who reads a hidden view brings it along
            try:
                made = define_with_state(self.engine, library, library.views[other].definition, redefined)
            except DefinitionError as error:
                raise DefinitionError(
                    f"view {other} reads {name} and would break: {error.message}",
                    code="VK-BREAKS-READER",
                    hint=f"Drop or replace {other} first.",
                ) from error
            followers += made
            redefined |= {each.name for each in made}
            library = library.with_views(*made)
        return tuple(followers)

    def alter(self, name: str, properties: Mapping[str, str]) -> EpochRecord | None:
        """Set table properties of a view, and store it as they say; ``None`` if it has them all."""
        with self.lease() as lease:
            library = self.library()
            known = library.views[name]
            definition = replace(
                known.definition,
                properties=tuple({**dict(known.definition.properties), **properties}.items()),
            )
            if PROPERTY in properties and definition != known.definition:
                views = define_with_state(self.engine, library, definition)
                if views[-1].analysis.tables != known.analysis.tables:
                    return self._restate(lease, library, views)
            return self._housekeeping(lease).alter(name, properties)

    def _restate(self, lease: Lease, library: Library, views: Sequence[KnownView]) -> EpochRecord:
        """Keep a view with hidden state from now on, or without; it and those that read it are recomputed."""
        after = library.with_views(*views)
        followers = self._followers(after, views[-1].name)
        after = after.with_views(*followers)
        unused = unread(after)
        defined = {view.name: view for view in (*views, *followers) if view.name not in unused}
        return self._redefine(lease, library, Redefinition(tuple(defined.values()), drop=unused))

    def retime(self, name: str, timing: Timing | None) -> EpochRecord | None:
        """Say how fresh a view is to be; ``None`` if that was said before. Nothing is computed."""
        with self.lease() as lease:
            return self._housekeeping(lease).retime(name, timing)

    def drop(self, name: str) -> EpochRecord:
        """Drop a view that no other view reads."""
        with self.lease() as lease:
            library = self.library()
            source = source_of(library.views[name])
            if join_of(library.views[name]) is not None:
                _refuse_read(library, name)
                opened = self._declared(name)
                record = self._redefine(lease, library, Redefinition(drop=(name,), forget=(name,)))
                opened.release()  # a database that is away does not keep the view
                return record
            if source is not None:
                raise DefinitionError(
                    f"view {name} holds the source {parse_path(source)[1]}",
                    code="VK-VIEW-IN-USE",
                    hint=f"DROP SOURCE {parse_path(source)[1]} drops both.",
                )
            _refuse_read(library, name)
            return self._redefine(lease, library, Redefinition(drop=(name, *unread(library, [name]))))

    # Declare sources.

    def declare(self, statement: CreateSource) -> EpochRecord | None:
        """Declare a source and fill its base views, in one epoch; ``None`` when it is there already and IF
        NOT EXISTS was said."""
        source = declaration(statement)
        checked_options(source)
        with self.lease() as lease:
            library = self.library()
            known = declared_sources(self.ledger)
            if source.name in known and statement.if_not_exists:
                return None
            if source.name in known and not statement.replace:
                raise DefinitionError(
                    f"there is a source {source.name} already",
                    code="VK-SOURCE-EXISTS",
                    hint="CREATE OR REPLACE SOURCE declares it anew.",
                )
            before = base_views_of(source.name, library)
            source = self.engine.observer.open(source, self._shelf(source.name)).pinned(source)
            refuse_lost(library, known.get(source.name), source)
            self._know([*(each for each in known.values() if each.name != source.name), source])
            with self._giving_up(source):
                record = self._declare(lease, library, source, before)
            if not source.all_tables:
                self._declared(source.name).acknowledge({})
            return record

    def _declare(
        self,
        lease: Lease,
        library: Library,
        source: SourceDefinition,
        before: Mapping[str, str],
    ) -> EpochRecord:
        pins = self.engine.current_pins()
        defined: dict[str, KnownView] = {}
        after = library
        for table in source.all_tables:
            name = self._base_name(source, table, pins, before)
            described = self.engine.observer.source(table).describe(table)
            view = base_view(name, table, described, pins)
            after = after.with_views(view)
            followers = self._followers(after, view.name) if table in before else ()
            after = after.with_views(*followers)
            defined |= {each.name: each for each in (view, *followers)}
        dropped = tuple(view for table, view in before.items() if table not in source.all_tables)
        for view_name in dropped:
            _refuse_read(after, view_name)
        change = Redefinition(tuple(defined.values()), drop=dropped, declare=(source,))
        return self._redefine(lease, library, change)

    def _base_name(
        self, source: SourceDefinition, table: str, pins: SessionPins, before: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Of one table the source's own name; of several, each in a namespace of the source's name."""
        if table in before:
            return parse_path(before[table])
        name = (pins.catalog, *pins.namespace, source.name)
        if source.tables:
            name = (self.engine.catalog_name, source.name, parse_path(table)[-1])
            self.engine.create_namespace(name[:-1])
        self._require_free(ViewDefinition(name, "", pins))
        return name

    def forget(self, name: str, *, missing_ok: bool) -> EpochRecord | None:
        """Drop a source with its base views, which no other view may read."""
        with self.lease() as lease:
            library = self.library()
            source = declared_sources(self.ledger).get(name)
            if source is None or source.kind == SWEEP:
                if missing_ok:
                    return None
                raise unknown_source(name, self.ledger)
            refuse_lost(library, source, None)
            dropped = tuple(base_views_of(name, library).values())
            for view in dropped:
                _refuse_read(library, view)
            self._declared(name).release()
            return self._redefine(lease, library, Redefinition(drop=dropped, forget=(name,)))

    def quarantine(self, name: str) -> DataFrame:
        """The rows of a source that are set aside."""
        source = declared_sources(self.ledger).get(name)
        if source is None:
            raise unknown_source(name, self.ledger)
        return self.engine.quarantine(name)

    def check_sources(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Of each source, what is missing or dangerous."""
        known = declared_sources(self.ledger)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise unknown_source(unknown[0], self.ledger)
        self._know(known.values())
        found = {}
        for name in names or [source.name for source in declared_by_people(known.values())]:
            found[name] = list(self._declared(name).problems())
        return found

    def _redefine(self, lease: Lease, library: Library, change: Redefinition) -> EpochRecord:
        after = library.with_views(*change.define)
        storages = {view.name: new_storage_name(self.engine.catalog_name) for view in change.define}
        closure: Iterable[str] = with_siblings(after, storages)
        if change.without_data:
            closure = storages
        situation = self._observe(after, closure, None, storages, without_data=change.without_data)
        plan = unfilled(situation) if change.without_data else plan_epoch(situation)
        return self._run(lease, after, situation, plan, change)

    # Observe and plan.

    def _observe(
        self,
        library: Library,
        names: Iterable[str],
        policy: str | None,
        storages: Mapping[str, str] | None = None,
        *,
        without_data: bool = False,
    ) -> Situation:
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
        known = kept_values(self.ledger)
        if not without_data:
            known = count_missing(self.engine, situation, known)
            now = utc_now()
            self.ledger.observe(
                {
                    table: SourceObservation(version, now, details(known.get(table)))
                    for table, version in situation.versions.items()
                }
            )
        self._emit(StepFinished(None, Phase.OBSERVE, time.monotonic() - started))
        return with_distinct(situation, known)

    def look(self) -> dict[str, str | None]:
        """The present versions of the tables that are read in place, remembered as seen."""
        library, seen_at = self.library(), utc_now()
        tables = [
            table
            for table in library.graph.sources(library.views)
            if not is_clock(table) and self.engine.observer.extracted(table) is None
        ]
        versions = self.engine.observer.stand_each(tables)
        known = self.ledger.observations()
        self.ledger.observe(
            {
                table: SourceObservation(version, seen_at, known[table].details if table in known else {})
                for table, version in versions.items()
            }
        )
        return versions

    def plan(self, names: Sequence[str], policy: str | None) -> tuple[EpochPlan, Situation]:
        """What a refresh of these views would do now. Touches nothing."""
        library = self.library()
        closure = with_siblings(library, names)
        try:
            situation = observe(
                self.engine,
                library,
                closure,
                policy=policy,
                options=self.options,
                experience=experience(self.ledger, closure),
            )
        finally:
            self.engine.observer.let_go()
        situation = with_distinct(situation, kept_values(self.ledger))
        return plan_epoch(situation), situation

    def remote_prices(self, names: Iterable[str]) -> dict[str, RemotePrice]:
        """Of views over remote tables: what it takes to leave the tables there, and to copy them."""
        library = self.library()
        return {
            name: source.price()
            for name in names
            if join_of(library.views[name]) is not None
            and isinstance(source := self._declared(name), SweptSource)
        }

    # Refresh.

    def propagate(self, names: Sequence[str], policy: str | None) -> tuple[EpochPlan, Propagation | None]:
        """Compute now what a refresh of these views would install, and keep it (Mumick et al. 1997, 2.1).

        Propagating again begins anew from where the views stand: what was kept before is replaced."""
        with self.lease() as lease:
            library = self.library()
            situation = self._observe(library, with_siblings(library, names), policy)
            plan = plan_epoch(situation)
            if plan.changes_nothing:
                return plan, None
            return plan, self._runner.propagate(lease, self._work(library, situation, plan))

    def install_propagated(self) -> EpochRecord:
        """Install exactly what was kept; the sources are not looked at."""
        with self.lease() as lease:
            library = self.library()
            kept = self.ledger.propagation()
            plan = None if kept is None else _if_current(library, kept)
            if kept is None or plan is None:
                raise RefreshError(
                    "nothing that was propagated waits to be installed"
                    if kept is None
                    else "views were refreshed or defined anew since they were propagated",
                    code="VK-NOTHING-PROPAGATED",
                    hint="Run `viewkeeper propagate` first, or refresh without --propagated.",
                )
            return self._install_kept(lease, library, kept, plan)

    def _install_kept(
        self, lease: Lease, library: Library, kept: Propagation, plan: EpochPlan
    ) -> EpochRecord:
        inputs = stored_views(self.engine, library, [view.view for view in plan.views])
        situation = Situation(inputs, dict(plan.versions), {}, rates=known_rates(self.ledger))
        work = replace(self._work(library, situation, plan), kept=kept_deltas(kept))
        return self._finished(self._runner.run(lease, work), situation)

    def _take_in_propagated(self, lease: Lease, policy: str | None) -> None:
        """Before a refresh: what was propagated is installed, unless it is of no use any more. Views then
        stand where they were propagated to, and only what came since is left to do."""
        kept = self.ledger.propagation()
        if kept is None:
            return
        library = self.library()
        plan = None if policy == "full" else _if_current(library, kept)
        if plan is None:
            self._runner.forget(lease, kept)
        else:
            self._install_kept(lease, library, kept, plan)

    def refresh(
        self, names: Sequence[str], policy: str | None, *, skip_failing: bool = False
    ) -> tuple[EpochRecord | EpochPlan, dict[str, ViewkeeperError]]:
        """Refresh these views and their ancestors; the plan itself when there was nothing to do.
        ``skip_failing``: a view that fails, and those that read it, are left as they are, with the error."""
        skipped: dict[str, ViewkeeperError] = {}
        with self.lease() as lease, self.engine.observer.one_horizon():
            self._take_in_propagated(lease, policy)
            library = self.library()
            wanted = list(with_siblings(library, names))
            while True:
                try:
                    done = self._refresh(lease, library, wanted, policy)
                    more = self.engine.observer.has_more(library.graph.sources(wanted))
                    if not more or isinstance(done, EpochPlan):
                        return done, skipped
                    library = self.library()
                except (RefreshError, SourceAway) as error:
                    failing = self._failing(library, wanted, error, skip_failing=skip_failing)
                    if not failing or failing >= set(wanted):
                        raise
                    skipped.update({name: error for name in wanted if name in failing})
                    wanted = [name for name in wanted if name not in failing]

    @staticmethod
    def _failing(
        library: Library, wanted: Sequence[str], error: RefreshError | SourceAway, *, skip_failing: bool
    ) -> set[str]:
        """The views that cannot be refreshed now, if the others can be without them: those that read a source
        that is away, or one that fails, if that may be skipped."""
        if isinstance(error, SourceAway):
            first = [name for name in wanted if set(error.tables) & set(library.views[name].analysis.tables)]
        else:
            first = [name for name in wanted if skip_failing and name == error.view]
        return {name for each in first for name in (each, *library.graph.descendants(each))}

    def _refresh(
        self, lease: Lease, library: Library, names: Sequence[str], policy: str | None
    ) -> EpochRecord | EpochPlan:
        started = time.monotonic()
        situation = self._observe(library, names, policy)
        plan = plan_epoch(situation)
        if plan.changes_nothing:
            self.engine.observer.rest(situation.versions)
            return plan
        record = self._run(lease, library, situation, plan, seconds={"observe": time.monotonic() - started})
        self._housekeeping(lease).keep_up(record)
        return record

    def repair(self, name: str) -> EpochRecord:
        """Rebuild a view from the versions that the ledger recorded for it."""
        with self.lease() as lease:
            library = self.library()
            if library.states[name].snapshot is None:
                raise no_data(name)
            require_history(self.engine, library, name)
            parents = library.graph.parents(name)
            observed = self._observe(library, [*parents, name], "full")
            vector = library.states[name].vector
            by_name = {view.name: view for view in observed.views}
            situation = replace(
                observed,
                views=(replace(by_name[name], needs_full="repaired"),),
                # What has no history was read as it is now, not as it was.
                versions={
                    table: observed.versions[table]
                    if self.engine.observer.extracted(table) is not None
                    else vector.get(table)
                    for table in library.graph.sources([name])
                },
                read_only=tuple(replace(by_name[parent], snapshot=vector.get(parent)) for parent in parents),
            )
            return self._run(lease, library, situation, plan_epoch(situation))

    def _run(
        self,
        lease: Lease,
        library: Library,
        situation: Situation,
        plan: EpochPlan,
        change: Redefinition | None = None,
        seconds: dict[str, float] | None = None,
    ) -> EpochRecord:
        work = self._work(library, situation, plan, change, seconds)
        return self._finished(self._runner.run(lease, work), situation)

    def _work(
        self,
        library: Library,
        situation: Situation,
        plan: EpochPlan,
        change: Redefinition | None = None,
        seconds: dict[str, float] | None = None,
    ) -> Work:
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

    def _finished(self, record: EpochRecord, situation: Situation) -> EpochRecord:
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

    # Keep house.

    def maintain(self, names: Sequence[str], retention: Retention) -> list[Upkept]:
        """Rewrite what is stored of views where that pays, and forget what no epoch shows any more."""
        with self.lease() as lease:
            done = self._housekeeping(lease).maintain(names, retention)
            return [replace(each, hidden_state=self._stated(lease, each.view)) for each in done]

    def _stated(self, lease: Lease, name: str) -> str | None:
        """Keep the inner results of a view, or no longer, if its refreshes make that advisable."""
        library = self.library()
        try:
            change = chosen(self.engine, self.ledger, library, name) if name in library.views else None
            if change is None:
                return None
            wanted, views = change
            self._restate(lease, library, views)
        except (DefinitionError, RefreshError) as error:  # it goes on as it was
            logger.warning("%s: its inner results are left as they are: %s", name, error)
            return None
        return wanted.value

    def _housekeeping(self, lease: Lease) -> Housekeeping:
        return Housekeeping(self.ledger, self.engine, self._runner, self._emit, lease)

    # Verify.

    def verify(self, names: Sequence[str], *, only_possible: bool = False) -> list[Verification]:
        """Each view against its query, recomputed at the recorded versions. ``only_possible``: leaves out
        those whose source has moved on; otherwise they are an error."""
        try:
            return verified(self.engine, self.library(), names, only_possible=only_possible)
        finally:
            self.engine.observer.let_go()

    def check(self, constraints: Sequence[Constraint]) -> list[ConstraintCheck]:
        """Whether the tables, as they are now, are as declared."""
        if not constraints:
            return []
        rows = self.engine.ask(checks(constraints))
        found = {row["at"]: row for row in rows}
        return [
            ConstraintCheck(
                each.text, found[at]["violations"] == 0, found[at]["violations"], found[at]["example"]
            )
            for at, each in enumerate(constraints)
        ]


def _only_retimed(
    library: Library, definitions: Sequence[tuple[CreateView, ViewDefinition]]
) -> tuple[str, Timing | None] | None:
    """Name and timing of a view that is defined as before but for how fresh it is to be."""
    if len(definitions) != 1 or not definitions[0][0].replace:
        return None
    name = show_path(definitions[0][1].name)
    new, known = definitions[0][1], library.views.get(name)
    if known is None or new.timing == known.definition.timing:
        return None
    return (name, new.timing) if replace(new, timing=known.definition.timing) == known.definition else None


def _refuse_read(library: Library, name: str) -> None:
    readers = library.graph.children(name)
    if readers:
        raise DefinitionError(
            f"view {name} is read by {', '.join(readers)}",
            code="VK-VIEW-IN-USE",
            hint="Drop those first.",
        )


def _if_current(library: Library, kept: Propagation) -> EpochPlan | None:
    """The plan that installs what was kept, if all its views still stand where they stood."""
    plan = plan_of(kept)
    states = [library.states.get(view.view) for view in plan.views]
    return plan if all(state is not None and state.epoch < kept.id for state in states) else None
