"""From a definition to a view that can be kept: analysed, laid out, and checked against the catalog."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType

from viewkeeper.algebra.relations import Relation, Scan
from viewkeeper.algebra.rules.hanging import is_joined
from viewkeeper.algebra.summary_delta import adds_up
from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole, TableInfo
from viewkeeper.analyse.holes import holes, query_text
from viewkeeper.analyse.parsing import tokenize
from viewkeeper.analyse.qualify import without_qualify
from viewkeeper.analyse.reading import Referee, analyse
from viewkeeper.define.clock import CLOCK, FUNCTIONS, NOW, clock_table
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.sources import SOURCES
from viewkeeper.define.timing import Schedule, read_zone
from viewkeeper.errors import DefinitionError
from viewkeeper.execute.engine import Engine
from viewkeeper.expecting import with_expectations
from viewkeeper.install.storage import NAMESPACE
from viewkeeper.library import KnownView, Library
from viewkeeper.plan import hidden_state, methods, representation, upkeep
from viewkeeper.plan.exact_moments import with_exact_moments
from viewkeeper.plan.exactness import obstacle
from viewkeeper.plan.hidden_state import reading
from viewkeeper.plan.layout import Layout, Types, bag_layout, counted_layout, layout_of
from viewkeeper.plan.methods import Method
from viewkeeper.plan.representation import Representation
from viewkeeper.plan.union_types import with_union_types
from viewkeeper.plan.zones import reads_in_a_time_zone
from viewkeeper.remote_views import swept_join
from viewkeeper.situations import source_facts
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import nulls, parse_path, quote, show_path

Columns = tuple[tuple[str, str], ...]
"""Names and types."""


@dataclass(frozen=True)
class Resolver:
    """Finds the tables that a query names, as Spark would."""

    engine: Engine
    library: Library
    pins: SessionPins
    elsewhere: Mapping[str, Columns] = field(default_factory=dict)
    """The columns of tables that are not in Spark's catalogs: those of remote databases, and clocks."""

    @cached_property
    def catalogs(self) -> frozenset[str]:
        """The catalogs there are. Spark takes its time to list its settings, and queries name many tables."""
        return self.engine.catalog.catalogs()

    def __call__(self, parts: tuple[str, ...]) -> TableInfo | None:
        remote = self.table_elsewhere(parts)
        if remote is not None:
            return TableInfo(remote, self.elsewhere[remote])
        full = self.full_name(parts)
        view = self.library.views.get(show_path(full))
        if view is not None:
            schema = self.engine.catalog.schema(_no_rows(view.layout), view.definition.session)
            kinds = [kind for _, kind in schema]
            return TableInfo(view.name, tuple(zip(view.layout.columns, kinds, strict=True)))
        columns = self.engine.catalog.columns(full)
        return None if columns is None else TableInfo(show_path(full), columns)

    def full_name(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The name with catalog and namespace, completed from the definition's session."""
        if len(parts) > 1 and parts[0] in self.catalogs:
            return parts
        if len(parts) == 1:
            return (self.pins.catalog, *self.pins.namespace, *parts)
        return (self.pins.catalog, *parts)

    def table_elsewhere(self, parts: tuple[str, ...]) -> str | None:
        """The remote table of that name, if there is one: source and table, as base views are named."""
        if not self.elsewhere:
            return None
        if parts[0] == CLOCK:
            return show_path(parts) if show_path(parts) in self.elsewhere else None
        full = parts if parts[0] == SOURCES else self.full_name(parts)
        name = show_path((SOURCES, *full[1:]))
        return name if name in self.elsewhere and full[0] in (SOURCES, self.engine.catalog_name) else None

    def near(self) -> Iterator[str]:
        """The names that could have been meant by one that is not there."""
        yield from self.engine.catalog.names_in((self.pins.catalog, *self.pins.namespace))
        yield from (parse_path(name)[-1] for name in self.library.views)


def define(
    engine: Engine,
    library: Library,
    definition: ViewDefinition,
    redefined: Collection[str] = (),
    kept: Mapping[Relation, Scan] = MappingProxyType({}),
) -> KnownView:
    """Analyse a definition and lay its storage out; every problem is an error before anything changes.

    ``redefined`` are views that change in the same epoch: the catalog still has them as they were. ``kept``
    are inner results of the query that hidden views hold.
    """
    name = show_path(definition.name)
    remote = engine.observer.remote_tables()
    elsewhere: dict[str, Columns] = {
        table: tuple((column, spark) for column, _, spark, _ in each.columns)
        for table, each in remote.items()
    }
    elsewhere |= _clocks(definition.session)
    resolver = Resolver(engine, library, definition.session, elsewhere)
    resolve, pins = cache(resolver), definition.session

    @cache  # a query that names a table ten times has ten questions about it
    def referee(sql: str) -> list[tuple[str, str]]:
        return engine.catalog.schema(_as_redefined(sql, resolver, redefined), pins)

    def explained(sql: str) -> str:
        return engine.catalog.explained(_as_redefined(sql, resolver, redefined), pins)

    def read(query: str, listed: Sequence[str] = ()) -> Analysis:
        return analyse(
            query,
            session=pins,
            resolve=resolve,
            referee=referee,
            columns=listed,
            candidates=resolver.near,
            explained=explained,
        )

    analysis = read(definition.query, [column.name for column in definition.columns])
    if definition.expectations:
        analysis = with_expectations(definition, analysis, read)
    columns = _named(definition, referee(without_qualify(tokenize(definition.query)).sql))
    if analysis.relation is not None:
        types = _types(referee)
        typed = with_union_types(analysis.relation, types)
        relation, text = reading(with_exact_moments(typed, types), kept), analysis.text
        if relation != typed:
            text = query_text(tokenize(print_relation(relation)), resolve)
        analysis = replace(analysis, relation=relation, text=text)
    swept = None
    if any(table in remote for table in analysis.tables):
        swept = swept_join(name, analysis, remote)
        elsewhere[swept.table] = tuple((column, spark) for column, _, spark in swept.join.types)
        analysis = swept.analysis
    elif definition.consistency is not None:
        raise DefinitionError(
            f"view {name} reads no remote tables: CONSISTENCY is for those",
            code="VK-CONSISTENCY",
            hint="Every view shows a state that its tables had; leave it out.",
        )
    by_columns = bool(definition.partitioned_by or definition.cluster_by)
    analysis, layout = _laid_out(referee, analysis, columns, as_shown=by_columns)
    asked = dict(definition.properties)
    is_bag = layout.is_plain_bag
    representation.refuse_unsuitable(name, asked, is_bag=is_bag, columns=dict(columns))
    if representation.pinned(asked) is Representation.CNT:
        layout = counted(referee, analysis, columns)
    view = KnownView(name, uuid.uuid4().hex, definition, analysis, layout, {})
    if swept is not None:
        view = replace(view, sources={swept.table: swept.facts})
    else:
        view = _with_columns_listed(replace(view, sources=source_facts(engine, view, library.views)))
    with_it = library.with_views(view)
    with_it.graph.order()  # raises when it closes a circle
    _refuse_policies(view, keyed=bool(with_it.keys()[name]))
    return replace(view, layout=_in_parts(layout, definition))


def _clocks(pins: SessionPins) -> dict[str, Columns]:
    """The clocks of a view's time zone."""
    return {clock_table(hand, pins.time_zone): ((NOW, hand.type),) for hand in FUNCTIONS.values()}


def _as_redefined(sql: str, resolver: Resolver, redefined: Collection[str]) -> str:
    """The query with the views that are being redefined replaced by what they will look like, and remote
    tables, which Spark does not know, by what they do."""

    def resolve(parts: tuple[str, ...]) -> TableInfo | None:
        remote = resolver.table_elsewhere(parts)
        if remote is not None:
            return TableInfo(remote, ())
        name = show_path(resolver.full_name(parts))
        return TableInfo(name, ()) if name in redefined else None

    def looks(name: str) -> str:
        if name not in resolver.elsewhere:
            return _no_rows(resolver.library.views[name].layout)
        return nulls(resolver.elsewhere[name])

    found = holes(sql, resolve) if redefined or resolver.elsewhere else None
    return sql if found is None else found.fill({name: f"({looks(name)})" for name in found.tables})


def _no_rows(layout: Layout) -> str:
    """A SELECT with the columns and types of a view, wherever its rows are."""
    stored = nulls((field.stored, kind) for field, kind in zip(layout.fields, layout.types, strict=True))
    shown = print_relation(layout.shown(layout.stored("stored", None)))
    return f"WITH stored AS ({stored})\n{shown}"


def relaid(
    engine: Engine,
    library: Library,
    known: KnownView,
    definition: ViewDefinition,
    wanted: Representation | None = None,
) -> KnownView:
    """A view with other table properties, its copies stored as these say, or as wanted; its query means what
    it meant."""

    elsewhere: dict[str, Columns] = {
        table: tuple((str(column), str(kind)) for column, kind, _ in facts["columns"])
        for table, facts in known.sources.items()
        if parse_path(table)[0] == SOURCES
    }
    elsewhere |= _clocks(definition.session)
    resolver = Resolver(engine, library, definition.session, elsewhere)

    def referee(sql: str) -> list[tuple[str, str]]:
        return engine.catalog.schema(_as_redefined(sql, resolver, ()), definition.session)

    layout, asked = known.layout, dict(definition.properties)
    kinds = [kind for _, kind in referee(_no_rows(layout))]
    columns = list(zip(layout.columns, kinds, strict=True))
    is_bag = layout.is_plain_bag or layout.counted
    representation.refuse_unsuitable(known.name, asked, is_bag=is_bag, columns=dict(columns))
    form = wanted or representation.pinned(asked) or known.representation
    if is_bag and layout.counted is not (form is Representation.CNT):
        if form is Representation.CNT:
            layout = counted(referee, known.analysis, columns)
        else:
            layout = bag_layout(columns, known.analysis.relation)
    altered = replace(known, definition_id=uuid.uuid4().hex, definition=definition, layout=layout)
    _refuse_policies(altered, keyed=bool(library.keys()[known.name]))
    return replace(altered, layout=_in_parts(layout, definition))


def _refuse_policies(view: KnownView, *, keyed: bool) -> None:
    """Raise if a table property asks for what cannot be had."""
    groups, relation = view.layout.groups, view.analysis.relation
    asked = dict(view.definition.properties)
    upkeep.refuse_unknown(view.name, asked)
    hidden_state.refuse_unknown(view.name, asked)
    methods.refuse_unsuitable(
        view.name,
        asked,
        groups=groups is not None,
        keyed=keyed,
        adds_up=groups is not None
        and not view.layout.counted
        and view.layout.top is None
        and adds_up(groups),
        joined=relation is not None and is_joined(relation),
    )


def _in_parts(layout: Layout, definition: ViewDefinition) -> Layout:
    """Groups are stored in parts if SDAPPEND is asked for."""
    return replace(layout, in_parts=methods.pinned(dict(definition.properties)) is Method.SDAPPEND)


def counted(referee: Referee, analysis: Analysis, columns: list[tuple[str, str]]) -> Layout:
    """A bag, stored as CNT."""
    assert analysis.relation is not None
    return counted_layout(analysis.relation, columns, _types(referee))


def _types(referee: Referee) -> Types:
    def types(relation: Relation) -> Mapping[str, str]:
        kinds = [kind for _, kind in referee(print_relation(relation))]
        return dict(zip(relation.columns, kinds, strict=True))

    return types


def _laid_out(
    referee: Referee, analysis: Analysis, columns: list[tuple[str, str]], *, as_shown: bool
) -> tuple[Analysis, Layout]:
    if analysis.relation is None:
        return analysis, bag_layout(columns, None)

    types = _types(referee)
    reason, layout = obstacle(analysis.relation, types), None
    if reason is None:
        layout = layout_of(analysis.relation, columns, types, as_shown=as_shown)
    if layout is not None and (not layout.can_be_stored or reads_in_a_time_zone(layout, dict(columns))):
        # What is shown is stored instead of what it is made of.
        reason = obstacle(analysis.relation, types, as_rows=True)
        layout = bag_layout(columns, analysis.relation)
    if layout is None or reason is not None:
        return replace(analysis, relation=None, reason=reason), bag_layout(columns, None)
    return analysis, layout


def _with_columns_listed(view: KnownView) -> KnownView:
    """Names, ``*`` and NATURAL JOIN mean the columns that the tables have today, whatever is added later: an
    added column could take the place of one around a subquery, or of one to the left in the select list. (All
    of them are used where the query tells columns by their place.)"""
    words = {token.text.casefold() for token in tokenize(view.definition.query).tokens}
    listed: dict[str, str] = {}
    for table, facts in view.sources.items():
        wanted = words | {name.casefold() for name in facts["used"]}
        columns = [name for name, _, _ in facts["columns"] if name.casefold() in wanted]
        listed[table] = ", ".join(quote(name) for name in columns) or "1"
    parts: list[str | TableHole] = []
    for part in view.analysis.text.parts:
        if isinstance(part, TableHole) and part.table in listed:
            alias = f" AS {part.alias}" if part.alias else ""
            parts += [f"(SELECT {listed[part.table]} FROM ", TableHole(part.table, None), f"){alias}"]
        else:
            parts.append(part)
    return replace(view, analysis=replace(view.analysis, text=QueryText(tuple(parts))))


def _named(definition: ViewDefinition, schema: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The view's columns: the query's, or those that the DDL lists."""
    names = [column.name for column in definition.columns] or [name for name, _ in schema]
    return [(name, kind) for name, (_, kind) in zip(names, schema, strict=True)]


def refuse_reserved(definition: ViewDefinition) -> None:
    """Raise if the view's name would get in the way of what is ours."""
    *namespace, view = definition.name
    if NAMESPACE in (part.casefold() for part in namespace) or view.casefold().startswith("_vk_"):
        raise DefinitionError(
            f"{show_path(definition.name)}: namespace {NAMESPACE} and names that begin with _vk_ are "
            "viewkeeper's own",
            code="VK-RESERVED-NAME",
            hint="Choose another name for the view.",
        )


def refuse_timeless(definition: ViewDefinition) -> None:
    """Raise if nobody can say when the view's schedule comes round: it goes by the clock of a session whose
    time zone is known to Spark alone."""
    timing = definition.timing
    if not isinstance(timing, Schedule):
        return
    try:
        read_zone(timing.time_zone or definition.session.time_zone)
    except ValueError as error:
        raise DefinitionError(
            f"the schedule of {show_path(definition.name)}: {error}",
            code="VK-TIMING",
            hint="Write AT TIME ZONE 'Europe/Berlin' behind the schedule, or set spark.sql.session.timeZone.",
        ) from error
