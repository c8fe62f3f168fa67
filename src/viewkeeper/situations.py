"""Looks at the world before an epoch is planned: where views and sources stand, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from viewkeeper.algebra.relations import scans
from viewkeeper.analyse.positions import reads_by_position
from viewkeeper.define.clock import is_clock
from viewkeeper.errors import RefreshError, SourceError
from viewkeeper.excluded_changes import excluded_changes
from viewkeeper.execute.catalog import TableFacts
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.observing import Observed
from viewkeeper.join_metadata import extents_of_joins, pruned_tables
from viewkeeper.learning import NO_EXPERIENCE, Experience
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.situation import USUAL, Options, Situation, Span, ViewInput
from viewkeeper.reading import rows_of
from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.drift import compare_schemas
from viewkeeper.sql.printer import at_version
from viewkeeper.sql.quoting import parse_path, quote_path

_LAST_QUESTIONS = 3
"""What is asked once it is known what changed; none of it waits for another."""


def observe(
    engine: Engine,
    library: Library,
    names: Iterable[str],
    *,
    policy: str | None = None,
    options: Options = USUAL,
    storages: Mapping[str, str] | None = None,
    experience: Experience = NO_EXPERIENCE,
    prefix: str = "vk",
) -> Situation:
    """The situation for refreshing these views. ``storages`` gives views that are (re)defined in this very
    epoch their new storage tables; they have nothing stored to build upon."""
    fresh = storages or {}
    ordered, stored = _stored(library, names, fresh)
    whole = _show_base_views(engine, library, ordered, fresh, policy)
    observed = engine.observer.stand(library.graph.sources(ordered), stored)
    keys = library.keys()
    views = tuple(
        replace(
            view,
            read_options=engine.observer.read_options,
            key=() if view.layout.reserve is not None else keys[view.name],
            method=library.views[view.name].method,
            has_copies=view.name in experience.with_copies,
            groups_when_whole=experience.groups_when_whole.get(view.name),
            keeps_all=view.snapshot is not None and experience.keeps_all.get(view.name) == view.snapshot,
        )
        for view in (_view_input(engine, library, name, fresh, observed.storages, policy) for name in ordered)
    )
    by_name = {view.name: view for view in views}
    span_of = {view.name: tuple(_spans(view, by_name, observed.versions)) for view in views}
    spans = [span for each in span_of.values() for span in each if span[0] not in whole]
    engine.observer.look_into(observed, spans, _identities(library))
    _refuse_drift(engine, [library.views[name] for name in ordered], observed, spans)
    with ThreadPoolExecutor(_LAST_QUESTIONS, "viewkeeper") as pool:
        extents = pool.submit(extents_of_joins, engine.observer, views, span_of, observed)
        pruned = pool.submit(pruned_tables, engine.observer, views, observed)
        excluded = pool.submit(excluded_changes, engine, views, span_of, observed)
    return Situation(
        views=views,
        versions=observed.versions,
        changes=observed.changes,
        lost=observed.lost,
        rows=observed.rows,
        read_options={table: engine.observer.source(table).read_options for table in observed.versions},
        relations=_relations(engine, whole, observed),
        read_apart=frozenset(
            table for table in observed.versions if engine.observer.source(table).capabilities.read_apart
        ),
        unwritten=_unwritten(engine, views, observed),
        types=_types(library),
        extents=extents.result(),
        pruned=pruned.result(),
        excluded=excluded.result(),
        learned=experience.joins,
        rates=experience.rates,
        paid=experience.paid,
        policy=policy,
        options=options,
        prefix=prefix,
    )


def stored_views(engine: Engine, library: Library, names: Iterable[str]) -> tuple[ViewInput, ...]:
    """These views as they are stored, without a look at their sources."""
    ordered, stored = _stored(library, names, {})
    observed = engine.observer.stand((), stored)
    return tuple(_view_input(engine, library, name, {}, observed.storages, None) for name in ordered)


def _stored(library: Library, names: Iterable[str], fresh: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """These views, parents first, and the storage tables of those that have rows."""
    wanted = set(names)
    ordered = [name for name in library.graph.order() if name in wanted]
    return ordered, [library.states[name].storage for name in ordered if _has_data(library, name, fresh)]


def _show_base_views(
    engine: Engine, library: Library, names: Iterable[str], fresh: Mapping[str, str], policy: str | None
) -> set[str]:
    """Let sources without history know what was seen of them; those of their tables that are to be read
    whole."""
    whole = set()
    for name in names:
        view = library.views[name]
        for table in view.analysis.tables:
            source = engine.observer.extracted(table)
            if source is None:
                continue
            if not _has_data(library, name, fresh) or "full" in (policy, view.definition.policy):
                source.show(table, None, None)
                whole.add(table)
            else:
                source.show(table, rows_of(library, name), library.states[name].vector[table])
    return whole


def _relations(engine: Engine, whole: set[str], observed: Observed) -> dict[str, str]:
    """What stands for the tables of sources without history that are to be read whole."""
    lost = {table for table, _, _ in observed.lost if engine.observer.extracted(table) is not None}
    return {
        table: engine.observer.source(table).rows(table, observed.versions[table])
        for table in sorted(whole | lost)
    }


def _unwritten(engine: Engine, views: Iterable[ViewInput], observed: Observed) -> dict[str, dict[str, str]]:
    """The columns of the sources that are, or were for some view, without a version."""
    tables = {table for table, version in observed.versions.items() if version is None}
    tables |= {
        table
        for view in views
        for table, version in view.vector.items()
        if version is None and table in observed.versions
    }
    return {
        table: {column.name: column.type for column in engine.observer.source(table).columns(table)}
        for table in sorted(tables)
    }


def _has_data(library: Library, name: str, fresh: Mapping[str, str]) -> bool:
    state = library.states.get(name)
    return name not in fresh and state is not None and state.snapshot is not None


def _view_input(
    engine: Engine,
    library: Library,
    name: str,
    fresh: Mapping[str, str],
    facts: Mapping[str, TableFacts | None],
    policy: str | None,
) -> ViewInput:
    view = library.views[name]
    if not _has_data(library, name, fresh):
        storage = fresh[name] if name in fresh else library.states[name].storage
        return ViewInput(
            name, view.definition, view.analysis, view.layout, storage, None, {}, "it has no rows yet", 0
        )
    state = library.states[name]
    fact = facts.get(state.storage)
    needs_full = None
    if fact is None:
        raise RefreshError(
            f"the storage table {state.storage} of view {name} is gone",
            code="VK-STORAGE-MISSING",
            hint="Drop the view and create it again.",
        )
    assert state.snapshot is not None
    if fact.snapshot != state.snapshot and not engine.observer.only_rewritten(
        state.storage, state.snapshot, fact.snapshot
    ):
        if policy != "full" and view.definition.policy != "full":
            raise foreign_write(name, state.storage)
        needs_full = "its storage was written by somebody else"
    return ViewInput(
        name,
        view.definition,
        view.analysis,
        view.layout,
        state.storage,
        fact.snapshot if needs_full is None else state.snapshot,  # the same rows, if somebody compacted them
        state.vector,
        needs_full,
        fact.rows,
    )


def foreign_write(view: str, storage: str) -> RefreshError:
    """Nothing can be built upon rows that we did not write."""
    return RefreshError(
        f"somebody else wrote to the storage table {storage} of view {view}",
        code="VK-FOREIGN-WRITE",
        hint=f"Reads through viewkeeper are not affected. REFRESH MATERIALIZED VIEW {view} FULL "
        f"or `viewkeeper repair {view}` puts it right.",
    )


def _spans(
    view: ViewInput, views: Mapping[str, ViewInput], versions: Mapping[str, str | None]
) -> Iterable[Span]:
    """What lies between the versions that a view was computed from and those there are."""
    if view.needs_full is not None:
        return
    for table in view.analysis.tables:
        if table not in view.vector:
            continue
        parent = views.get(table)
        if parent is None:
            now, where = versions[table], table
        else:
            now, where = parent.snapshot, parent.storage
        if view.vector[table] != now:
            yield where, view.vector[table], now


def _identities(library: Library) -> dict[str, str | None]:
    return {
        table: facts.get("identity")
        for view in library.views.values()
        for table, facts in view.sources.items()
    }


def _types(library: Library) -> dict[str, dict[str, str]]:
    """The types of the sources' columns, as the views that read them were defined with."""
    return {
        table: {name: kind for name, kind, _ in facts["columns"]}
        for view in library.views.values()
        for table, facts in view.sources.items()
    }


def _refuse_drift(
    engine: Engine, views: Sequence[KnownView], observed: Observed, spans: Sequence[Span]
) -> None:
    """A source column that a view uses may have gone, or become another: then the view's query no longer
    means what it meant, and refreshing it would be wrong in silence."""
    moved = {table for table, _, _ in spans}
    # A table that was recreated counts its schemas anew, so their ids say nothing.
    followed = moved - {table for table, _, _ in observed.lost}
    schemas: dict[str, Sequence[SourceColumn]] = {}
    for view in views:
        for table, facts in view.sources.items():
            if table not in moved:
                continue
            source = engine.observer.source(table)
            if table in followed:
                schema_version = source.schema_version(table, observed.versions[table])
                if schema_version is not None and schema_version == facts.get("schema"):
                    continue
            if table not in schemas:
                schemas[table] = source.schema(table)
            recorded = [SourceColumn(*column) for column in facts["columns"]]
            drift = compare_schemas(recorded, schemas[table], set(facts["used"]))
            if drift is not None:
                raise SourceError(
                    f"view {view.name} can no longer be refreshed: {drift.message}",
                    code="VK-SOURCE-CHANGED",
                    hint="Replace the view with CREATE OR REPLACE MATERIALIZED VIEW.",
                )


def source_facts(engine: Engine, view: KnownView, views: Iterable[str]) -> dict[str, dict[str, object]]:
    """What to remember of each source of a view: its identity, its columns, and which of them are used."""
    known = set(views)
    tables = [table for table in view.analysis.tables if table not in known]
    return engine.observer.ask_each(tables, lambda table: _facts_of(engine, view, table))


def _facts_of(engine: Engine, view: KnownView, table: str) -> dict[str, object]:
    found = None if is_clock(table) else engine.catalog.facts_of(table)
    if found is not None and found.is_view:
        raise SourceError(
            f"{table} is a view of the catalog, whose changes cannot be told",
            code="VK-SOURCE-KIND",
            hint="Read its tables instead, or make it a materialized view.",
        )
    source = engine.observer.source(table)
    version = source.current()[table]  # refuses what is no table of this kind
    described = source.describe(table)
    used = _used_columns(view, table, [column.name for column in described.columns])
    if version is not None and not is_clock(table):
        _refuse_unwritten(engine, view, table, version, used, described.unwritten)
    return {
        "identity": described.identity,
        "schema": source.schema_version(table, version),
        "columns": [[column.name, column.type, column.id] for column in described.columns],
        "key": list(described.key),
        "used": sorted(used),
    }


def _refuse_unwritten(
    engine: Engine, view: KnownView, table: str, version: str, used: set[str], unwritten: Iterable[str]
) -> None:
    """A column that was added since the last commit is in the table, but in no version of it; there may have
    been another one of its name (``unwritten`` as far as the source can tell)."""
    there = engine.catalog.schema(
        f"SELECT * FROM {quote_path(parse_path(table))}{at_version(version)}", view.definition.session
    )
    lacking = {name.casefold(): name for name in used}
    new = {name.casefold() for name in unwritten}
    for name, _ in there:
        if name.casefold() not in new:
            lacking.pop(name.casefold(), None)
    if lacking:
        raise SourceError(
            f"column {min(lacking.values())} was added to {table}, but nothing was written since",
            code="VK-SOURCE-UNWRITTEN",
            hint="Write to the table first: its versions do not have the column yet.",
        )


def _used_columns(view: KnownView, table: str, columns: Sequence[str]) -> set[str]:
    if view.analysis.relation is None or reads_by_position(view.definition.query):
        return set(columns)
    return {
        field.stored for scan in scans(view.analysis.relation) if scan.table == table for field in scan.fields
    }
