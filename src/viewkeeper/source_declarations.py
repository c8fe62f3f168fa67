"""Sources are declared and forgotten, with the base views that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from viewkeeper.analyse.statements import CreateSource
from viewkeeper.declaring import (
    base_view,
    base_views_of,
    declaration,
    declared_sources,
    unknown_source,
)
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.sources import SWEEP, SourceDefinition, checked_options
from viewkeeper.errors import DefinitionError
from viewkeeper.ledger.records import EpochRecord, Lease
from viewkeeper.library import KnownView, Library
from viewkeeper.remote_views import declared_by_people, refuse_lost
from viewkeeper.sql.quoting import parse_path
from viewkeeper.view_definitions import ViewDefinitions, refuse_read
from viewkeeper.workshop import Redefinition, Workshop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SourceDeclarations:
    """The declared sources of one warehouse."""

    def __init__(self, shop: Workshop, views: ViewDefinitions) -> None:
        self._shop = shop
        self._views = views

    def declare(self, statement: CreateSource) -> EpochRecord | None:
        """Declare a source and fill its base views, in one epoch; ``None`` when it is there already and IF
        NOT EXISTS was said."""
        source = declaration(statement)
        checked_options(source)
        with self._shop.lease() as lease:
            library = self._shop.library()
            known = declared_sources(self._shop.ledger)
            if source.name in known and statement.if_not_exists:
                return None
            if source.name in known and not statement.replace:
                raise DefinitionError(
                    f"there is a source {source.name} already",
                    code="VK-SOURCE-EXISTS",
                    hint="CREATE OR REPLACE SOURCE declares it anew.",
                )
            before = base_views_of(source.name, library)
            source = self._shop.engine.observer.open(source, self._shop.shelf(source.name)).pinned(source)
            refuse_lost(library, known.get(source.name), source)
            self._shop.know([*(each for each in known.values() if each.name != source.name), source])
            with self._shop.giving_up(source):
                record = self._declare(lease, library, source, before)
            if not source.all_tables:
                self._shop.declared(source.name).acknowledge({})
            return record

    def _declare(
        self,
        lease: Lease,
        library: Library,
        source: SourceDefinition,
        before: Mapping[str, str],
    ) -> EpochRecord:
        pins = self._shop.engine.current_pins()
        defined: dict[str, KnownView] = {}
        after = library
        for table in source.all_tables:
            name = self._base_name(source, table, pins, before)
            described = self._shop.engine.observer.source(table).describe(table)
            view = base_view(name, table, described, pins)
            after = after.with_views(view)
            followers = self._views.followers(after, [view.name]) if table in before else ()
            after = after.with_views(*followers)
            defined |= {each.name: each for each in (view, *followers)}
        dropped = tuple(view for table, view in before.items() if table not in source.all_tables)
        for view_name in dropped:
            refuse_read(after, view_name)
        change = Redefinition(tuple(defined.values()), drop=dropped, declare=(source,))
        return self._shop.redefine(lease, library, change)

    def _base_name(
        self, source: SourceDefinition, table: str, pins: SessionPins, before: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Of one table the source's own name; of several, each in a namespace of the source's name."""
        if table in before:
            return parse_path(before[table])
        name = (pins.catalog, *pins.namespace, source.name)
        if source.tables:
            name = (self._shop.engine.catalog_name, source.name, parse_path(table)[-1])
            self._shop.engine.create_namespace(name[:-1])
        self._views.require_free(ViewDefinition(name, "", pins))
        return name

    def forget(self, name: str, *, missing_ok: bool) -> EpochRecord | None:
        """Drop a source with its base views, which no other view may read."""
        with self._shop.lease() as lease:
            library = self._shop.library()
            source = declared_sources(self._shop.ledger).get(name)
            if source is None or source.kind == SWEEP:
                if missing_ok:
                    return None
                raise unknown_source(name, self._shop.ledger)
            refuse_lost(library, source, None)
            dropped = tuple(base_views_of(name, library).values())
            for view in dropped:
                refuse_read(library, view)
            self._shop.declared(name).release()
            return self._shop.redefine(lease, library, Redefinition(drop=dropped, forget=(name,)))

    def quarantine(self, name: str) -> DataFrame:
        """The rows of a source that are set aside."""
        source = declared_sources(self._shop.ledger).get(name)
        if source is None:
            raise unknown_source(name, self._shop.ledger)
        return self._shop.engine.quarantine(name)

    def check_sources(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Of each source, what is missing or dangerous."""
        known = declared_sources(self._shop.ledger)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise unknown_source(unknown[0], self._shop.ledger)
        self._shop.know(known.values())
        found = {}
        for name in names or [source.name for source in declared_by_people(known.values())]:
            found[name] = list(self._shop.declared(name).problems())
        return found
