"""Reads the ledger for people. Each answer is one transaction, so that a page never contradicts itself."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from viewkeeper.algebra.lattice import ForeignKey
from viewkeeper.declaring import base_views_of
from viewkeeper.define.settings import Settings
from viewkeeper.define.sources import SOURCES, SourceDefinition
from viewkeeper.define.vdag import Vdag
from viewkeeper.errors import NotFoundError, ViewkeeperError
from viewkeeper.explain import told_steps
from viewkeeper.lagging import lags
from viewkeeper.lattices import ViewLattice, declared, lattice_of_views
from viewkeeper.ledger import Ledger, queries, schema, surveys
from viewkeeper.ledger.records import FailingView, FailureRecord, PastRefresh, SourceObservation
from viewkeeper.ledger.surveys import Pulse
from viewkeeper.library import KnownView, Library
from viewkeeper.overview import held_version, whats_behind
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.steps import EpochPlan, Extract, Strategy
from viewkeeper.redacting import redacted, shown_options
from viewkeeper.remote_views import declared_by_people, join_of
from viewkeeper.sources.lag import Lag
from viewkeeper.sql.quoting import parse_path
from viewkeeper.survey.values import (
    ColumnFacts,
    EpochFacts,
    EpochPage,
    Expected,
    Flow,
    LatticeFacts,
    Running,
    SourceFacts,
    Standing,
    StoredPlan,
    TableFacts,
    ViewFacts,
    ViewPage,
    Whole,
)

HISTORY = 300
"""Refreshes of a view that are looked back at."""
_NEWS = 600.0
"""Seconds for which an answer of a database is shown."""
_PLANS = 32
"""Plans that are kept in mind: reading one back takes a while."""


class Survey:
    """The warehouse as its ledger tells of it; threads may share one."""

    def __init__(self, ledger: Ledger, settings: Settings | None = None) -> None:
        self._ledger = ledger
        self._settings = settings
        self._known: dict[tuple[str, int], KnownView] = {}
        self._lattices: tuple[tuple[tuple[str, int], ...], ViewLattice] | None = None
        self._answers: Mapping[str, Lag | ViewkeeperError | None] = {}
        self._answered_at = 0.0
        self._lock = threading.Lock()
        self._plans: dict[int, EpochPlan | None] = {}

    def pulse(self) -> Pulse:
        """What tells whether anything happened since the last look."""
        with self._ledger.reading() as connection:
            return surveys.pulse(connection)

    def whole(self) -> Whole:
        """The warehouse at a glance."""
        with self._ledger.reading() as connection:
            library = self._library(connection)
            last = queries.last_refreshes(connection)
            newest = next(iter(surveys.epoch_page(connection, None, 1)), None)
            failure = next(iter(queries.failures(connection, 1)), None)
            seen = queries.observations(connection)
            failing = queries.failing(connection)
            kinds = self._kinds(connection)
            running = self._running(connection)
            flows = self._flows(connection, library, newest.id if newest else None, last)
        if failure is not None and newest is not None and failure.epoch < newest.id:
            failure = None
        views = _views(library, library.views, last, seen, failure, failing)
        tables = _tables(library)
        labels = labels_of(tables)
        behind = {table for view in views for table in view.behind}
        facts = tuple(self._table(table, labels[table], kinds, seen, table in behind) for table in tables)
        return Whole(views, facts, flows, newest, failure, running)

    def view(self, name: str) -> ViewPage:
        """One view; its name must be whole."""
        with self._ledger.reading() as connection:
            library = self._library(connection)
            if name not in library.views:
                raise NotFoundError(
                    f"there is no materialized view {name}",
                    code="VK-UNKNOWN-VIEW",
                    hint="The graph shows those that there are.",
                )
            history = surveys.history_of(connection, name, HISTORY)
            failure = next(iter(queries.failures(connection, 1)), None)
            seen = queries.observations(connection)
            failing = queries.failing(connection)
            moved = next(
                (each for each in history if each.refresh.strategy != Strategy.UNCHANGED.value), None
            )
            plan = None if moved is None else self._plan_at(connection, moved.epoch)
        known, state = library.views[name], library.states[name]
        latest = history[0] if history else None
        if failure is not None and latest is not None and failure.epoch < latest.epoch:
            failure = None
        (facts,) = _views(library, [name], {name: latest} if latest else {}, seen, failure, failing)
        return ViewPage(
            facts,
            known.definition,
            _columns(known),
            _stored_as(known),
            library.graph.children(name),
            dict(state.vector),
            _stored_plan(name, plan, moved),
            history,
            tuple(_expected(known, history)),
            failure if facts.standing == "failed" else None,
        )

    def epochs(self, before: int | None = None, limit: int = 50) -> EpochPage:
        """A part of the timeline, newest first: so many epochs and attempts that failed, taken together."""
        with self._ledger.reading() as connection:
            found = surveys.epoch_page(connection, before, limit + 1)
            failures = queries.failures(connection, limit + 1, before=before)
            count = surveys.epoch_count(connection)
        numbers = sorted([*(each.id for each in found), *(each.epoch for each in failures)], reverse=True)
        older = numbers[limit - 1] if len(numbers) > limit else None
        shown = older or 0
        return EpochPage(
            tuple(each for each in found if each.id >= shown),
            tuple(each for each in failures if each.epoch >= shown),
            count,
            older,
        )

    def epoch(self, number: int) -> EpochFacts:
        """One epoch, with all that it did."""
        with self._ledger.reading() as connection:
            queries.require_epoch(connection, number)
            (record,) = queries.epochs(connection, only=number)
            return EpochFacts(record, *surveys.neighbours(connection, number))

    def failure(self, number: int) -> FailureRecord | None:
        """The attempt of that number, if it failed."""
        with self._ledger.reading() as connection:
            return next(iter(queries.failures(connection, 1, first=number, before=number + 1)), None)

    def plans(self) -> list[StoredPlan]:
        """Of each view the plan that changed it last, without its steps, and as far as the newest plans tell:
        those of the last few epochs, not of all."""
        with self._ledger.reading() as connection:
            last = queries.last_refreshes(connection, moved=True)
            newest = sorted({each.epoch for each in last.values()}, reverse=True)[: _PLANS // 2]
            plans = {epoch: self._plan_at(connection, epoch) for epoch in newest}
        views = {epoch: {own.view: own for own in plan.views} for epoch, plan in plans.items() if plan}
        return [
            StoredPlan(past.epoch, views[past.epoch][name], (), past)
            for name, past in last.items()
            if name in views.get(past.epoch, ())
        ]

    def lattice(self) -> LatticeFacts:
        """Which view can be made from which."""
        with self._ledger.reading() as connection:
            keys = surveys.definition_keys(connection)
            library = self._library(connection)
            last = queries.last_refreshes(connection, moved=True)
        if self._lattices is None or self._lattices[0] != keys:
            self._lattices = (keys, lattice_of_views(library, self._foreign_keys(library)))
        grouped = {
            name: view.layout.groups.keys
            for name, view in library.views.items()
            if view.layout.groups is not None
        }
        used = {name: past.refresh.derived_from for name, past in last.items() if past.refresh.derived_from}
        return LatticeFacts(self._lattices[1], grouped, used, _labels(library))

    # Sources.

    def sources(self) -> list[SourceFacts]:
        """The declared sources, and the tables of the catalog that views read, as the ledger knows them; and
        what the sources said when they were last asked (:meth:`ask_sources`)."""
        with self._ledger.reading() as connection:
            library = self._library(connection)
            seen = queries.observations(connection)
            sources = self._declared(connection)
            held = {source.name: _held(source, library) for source in sources}
            wanted = [(name, version) for name, version in held.items() if version is not None]
            contents = surveys.source_contents(connection, wanted) if wanted else {}
        found = [
            self._source(
                source, library, held[source.name], seen, contents.get((source.name, held[source.name] or ""))
            )
            for source in sources
        ]
        own = {table for source in sources for table in (*source.all_tables, *source.remote_tables)}
        tables = [table for table in _tables(library) if table not in own and parse_path(table)[0] != SOURCES]
        return [*found, *(_catalog_table(table, library, seen) for table in tables)]

    def ask_sources(self) -> None:
        """Ask the databases how far they are ahead. Takes as long as the slowest of them, at most seconds."""
        with self._ledger.reading() as connection:
            library = self._library(connection)
            sources = self._declared(connection)
        answers = lags({source: _held(source, library) for source in sources}, self._ledger)
        self._answers, self._answered_at = answers, time.monotonic()

    @property
    def _waiting(self) -> Mapping[str, Lag | ViewkeeperError | None]:
        """What the databases answered, while that is news."""
        return self._answers if time.monotonic() - self._answered_at < _NEWS else {}

    def _declared(self, connection: Connection) -> list[SourceDefinition]:
        return declared_by_people(
            CODEC.decode(record.definition) for record in queries.sources(connection).values()
        )

    def _source(
        self,
        source: SourceDefinition,
        library: Library,
        version: str | None,
        seen: Mapping[str, SourceObservation],
        content: Mapping[str, Any] | None,
    ) -> SourceFacts:
        observed = seen.get(next(iter(source.all_tables), ""))
        lag = self._waiting.get(source.name)
        return SourceFacts(
            source.name,
            source.kind,
            shown_options({key: value for key, value in source.options if key != "capture"}),
            tuple(base_views_of(source.name, library).values()),
            version,
            None if observed is None else observed.version,
            None if observed is None else observed.observed_at,
            None if content is None else content.get("bad_rows"),
            dict(source.options).get("capture") or source.fact("capture"),
            lag.transactions if isinstance(lag, Lag) else None,
            lag.seconds if isinstance(lag, Lag) else None,
            redacted(lag.message) if isinstance(lag, ViewkeeperError) else None,
        )

    def _kinds(self, connection: Connection) -> dict[str, tuple[str, str | None]]:
        """Of each table of a declared source the kind, and what is wrong with it."""
        found: dict[str, tuple[str, str | None]] = {}
        for source in self._declared(connection):
            lag = self._waiting.get(source.name)
            problem = redacted(lag.message) if isinstance(lag, ViewkeeperError) else None
            found |= dict.fromkeys((*source.all_tables, *source.remote_tables), (source.kind, problem))
        return found

    @staticmethod
    def _table(
        table: str,
        label: str,
        kinds: Mapping[str, tuple[str, str | None]],
        seen: Mapping[str, SourceObservation],
        behind: bool,  # noqa: FBT001
    ) -> TableFacts:
        kind, problem = kinds.get(table, ("table", None))
        observed = seen.get(table)
        version, at = (None, None) if observed is None else (observed.version, observed.observed_at)
        return TableFacts(table, label, kind, version, at, behind, problem)

    # Views.

    def _library(self, connection: Connection) -> Library:
        """The views. A definition never changes, so each is read back once."""
        keys = surveys.definition_keys(connection)
        with self._lock:
            if any(key not in self._known for key in keys):
                for record in queries.views(connection, None):
                    key = (record.definition_id, record.defined_in)
                    if key not in self._known:
                        self._known[key] = KnownView.of(record)
            self._known = {key: self._known[key] for key in keys}
            views = [self._known[key] for key in keys]
        latest = queries.latest_epoch_id(connection)
        states = {} if latest is None else queries.states(connection, latest)
        return Library({view.name: view for view in views}, states)

    def _foreign_keys(self, library: Library) -> Sequence[ForeignKey]:
        return () if self._settings is None else declared(self._settings, library)

    def _running(self, connection: Connection) -> Running | None:
        under_way = surveys.running_since(connection)
        if under_way is None:
            return None
        return Running(*under_way, surveys.pulse(connection).holder or "")

    # Plans.

    def _plan_at(self, connection: Connection, epoch: int) -> EpochPlan | None:
        """The plan of an epoch. It never changes, so the last ones that were asked for are kept."""
        with self._lock:
            if epoch not in self._plans:
                table = schema.epochs
                stored = connection.scalar(select(table.c.plan).where(table.c.id == epoch))
                self._plans[epoch] = None if stored is None else CODEC.decode(stored)
                for oldest in list(self._plans)[:-_PLANS]:
                    del self._plans[oldest]
            return self._plans[epoch]

    def _flows(
        self, connection: Connection, library: Library, epoch: int | None, last: Mapping[str, PastRefresh]
    ) -> tuple[Flow, ...]:
        """Who reads what, with the rows that an epoch brought that way."""
        plan = None if epoch is None else self._plan_at(connection, epoch)
        extracts = {step.table: step for step in plan.steps if isinstance(step, Extract)} if plan else {}
        moved = {
            name
            for name, past in last.items()
            if past.epoch == epoch and past.refresh.strategy == Strategy.INCREMENTAL.value
        }
        taken = [
            table
            for name in moved
            if name in library.views
            for table in dict.fromkeys(_reads(library.views[name]))
        ]
        found = []
        for name, view in library.views.items():
            for table in dict.fromkeys(_reads(view)):
                shared = name in moved and taken.count(table) > 1
                if name in moved and table in extracts:
                    step = extracts[table]
                    found.append(Flow(table, name, step.inserted, step.deleted, shared))
                elif name in moved and table in moved:
                    rows = last[table].refresh
                    gone = (rows.deleted or 0) + (rows.updated or 0)
                    found.append(Flow(table, name, (rows.inserted or 0) + (rows.updated or 0), gone, shared))
                else:
                    found.append(Flow(table, name))
        return tuple(found)


def _views(
    library: Library,
    names: Iterable[str],
    last: Mapping[str, PastRefresh],
    seen: Mapping[str, SourceObservation],
    failure: FailureRecord | None,
    failing: Mapping[str, FailingView],
) -> tuple[ViewFacts, ...]:
    labels, behind = _labels(library), whats_behind(library.views, library.states, seen)
    said = (failure.error or "") if failure is not None else ""
    found = []
    for name in names:
        view, state = library.views[name], library.states[name]
        standing: Standing = (
            "failed"
            if name in failing or re.search(rf"(?<![\w.`]){re.escape(name)}(?![\w.`])", said)
            else "empty"
            if state.snapshot is None
            else "stale"
            if behind[name]
            else "fresh"
        )
        reason = view.analysis.reason
        found.append(
            ViewFacts(
                name,
                labels[name],
                standing,
                state.epoch,
                view.analysis.relation is not None,
                str(reason) if reason else None,
                _reads(view),
                behind[name],
                last.get(name),
                view.definition.comment,
                view.hidden,
                failing.get(name),
            )
        )
    return tuple(found)


def _labels(library: Library) -> dict[str, str]:
    """What views are called; a hidden one has a name that says nothing."""
    own = labels_of([name for name, view in library.views.items() if not view.hidden])
    return {
        name: own[name] if name in own else f"inner result {parse_path(name)[-1][-6:]}"
        for name in library.views
    }


def _reads(view: KnownView) -> tuple[str, ...]:
    """The tables and views that a view reads, as its query names them."""
    join = join_of(view)
    if join is None:
        return view.analysis.tables
    return tuple(dict.fromkeys(".".join(parse_path(each.table)[1:]) for each in join.relations))


def _held(source: SourceDefinition, library: Library) -> str | None:
    return held_version(source, base_views_of(source.name, library), library.states)


def labels_of(names: Sequence[str] | Mapping[str, Any]) -> dict[str, str]:
    """The names without the catalog and namespace, where all of them have the same.

    >>> labels_of(["lake.default.a", "lake.default.b"]), labels_of(["lake.x.a", "lake.y.a"])
    ({'lake.default.a': 'a', 'lake.default.b': 'b'}, {'lake.x.a': 'x.a', 'lake.y.a': 'y.a'})
    """
    paths = {name: parse_path(name) for name in names}
    least = min((len(path) for path in paths.values()), default=1)
    keep = next(
        (keep for keep in range(1, least + 1) if len({path[:-keep] for path in paths.values()}) <= 1),
        None,
    )
    return {name: ".".join(path[-keep:]) if keep else ".".join(path) for name, path in paths.items()}


def _tables(library: Library) -> tuple[str, ...]:
    graph = Vdag({name: _reads(view) for name, view in library.views.items()})
    return graph.sources(library.views)


def _catalog_table(table: str, library: Library, seen: Mapping[str, SourceObservation]) -> SourceFacts:
    """A table that needs no declaration; it is behind if a view that reads it is."""
    readers = tuple(name for name, view in library.views.items() if table in view.analysis.tables)
    held = {library.states[name].vector.get(table) for name in readers}
    observed = seen.get(table)
    version = None if observed is None else observed.version
    return SourceFacts(
        table,
        "table",
        {},
        readers,
        version if held <= {version} else next(iter(held - {version})),
        version,
        None if observed is None else observed.observed_at,
        declared=False,
    )


def _columns(view: KnownView) -> tuple[ColumnFacts, ...]:
    types = {field.stored: kind for field, kind in zip(view.layout.fields, view.layout.types, strict=True)}
    comments = {column.name: column.comment for column in view.definition.columns}
    return tuple(ColumnFacts(name, types.get(name), comments.get(name)) for name in view.layout.columns)


def _stored_as(view: KnownView) -> str:
    if view.layout.groups is not None and not view.layout.counted:
        parts = ", each perhaps in several parts" if view.layout.in_parts else ""
        return f"groups of {', '.join(view.layout.groups.keys) or 'all rows'}{parts}"
    return "rows, each once with a count" if view.layout.counted else "rows, every copy one"


def _stored_plan(name: str, plan: EpochPlan | None, past: PastRefresh | None) -> StoredPlan | None:
    if plan is None or past is None:
        return None
    own = next((each for each in plan.views if each.view == name), None)
    return None if own is None else StoredPlan(past.epoch, own, tuple(told_steps(plan, name)), past)


def _expected(view: KnownView, history: Sequence[PastRefresh]) -> list[Expected]:
    broken = [dict(each.refresh.estimates.get("violations", {})) for each in history]
    return [
        Expected(
            each,
            broken[0].get(each.name, 0) if broken else 0,
            sum(counts.get(each.name, 0) for counts in broken),
        )
        for each in view.definition.expectations
    ]
