"""Looks at the sources and the storage tables: where they stand, and what changed since.

Versions cost no job; a change's metadata is read only where a version moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.define.clock import is_clock
from viewkeeper.define.sources import SOURCES, SWEEP, SourceDefinition
from viewkeeper.errors import SourceError
from viewkeeper.execute.catalog import Catalog, TableFacts
from viewkeeper.execute.tuning import reading_files
from viewkeeper.integrate.members import remote_tables, sources_of_join
from viewkeeper.integrate.politeness import AWAY
from viewkeeper.integrate.transport import SweptSource
from viewkeeper.plan.situation import Span
from viewkeeper.session import cores, rows_read
from viewkeeper.sources.clock import Clock, ClockSource
from viewkeeper.sources.contract import Change, ExtractedSource, Shelf, Source
from viewkeeper.sources.delta_lake import DeltaSource
from viewkeeper.sources.horizons import Horizons
from viewkeeper.sources.iceberg import IcebergSource
from viewkeeper.sources.iceberg_catalog import is_iceberg_catalog
from viewkeeper.sources.kinds import open_source
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sql.quoting import parse_path

_REBUILD = frozenset({"VK-SOURCE-EXPIRED", "VK-SOURCE-DIVERGED", "VK-SOURCE-RECREATED"})
"""What a source can no longer tell: the view is recomputed, or told to be by its policy."""

_QUESTIONS_AT_ONCE = 8

Answer = TypeVar("Answer")


class SourceAway(SourceError):
    """A source cannot be asked now; views that do not read it go on. ``tables``: those that are meant."""

    def __init__(self, error: SourceError, tables: Iterable[str]) -> None:
        super().__init__(error.message, code=error.code, hint=error.hint)
        self.tables = tuple(tables)


@dataclass(slots=True)
class Observed:
    """Where everything stands now."""

    versions: dict[str, str | None]
    rows: dict[str, int | None]
    """Of each source at its version, as far as its metadata tells."""
    storages: dict[str, TableFacts | None]
    changes: dict[Span, Change | None] = field(default_factory=dict)
    lost: dict[Span, str] = field(default_factory=dict)


class Observer:
    """Asks sources and storage tables, several at a time."""

    def __init__(self, session: SparkSession, catalog: Catalog, catalog_name: str) -> None:
        self._session = session
        self._catalog_name = catalog_name
        self._catalog = catalog
        self._sources: dict[str, Source] = {}
        self._declared: dict[str, tuple[SourceDefinition, ExtractedSource]] = {}
        """By name."""
        self._horizons = Horizons()
        self.clock = Clock()
        self.read_options = reading_files(cores(session))

    def source(self, table: str) -> Source:
        """The source that a table belongs to."""
        declared = self.extracted(table)
        if declared is not None:
            return declared
        if table not in self._sources:
            in_place = (
                ClockSource(table, self.clock) if is_clock(table) else self._in_place(parse_path(table))
            )
            self._sources[table] = in_place
        return self._sources[table]

    def _in_place(self, table: tuple[str, ...]) -> Source:
        """A table of the catalog, by its format."""
        if not is_iceberg_catalog(self._session, table[0]):
            facts = self._catalog.facts(table)
            if facts is not None and facts.provider == "delta":
                return DeltaSource(self._session, table)
        return IcebergSource(self._session, table, self.read_options)

    def extracted(self, table: str) -> ExtractedSource | None:
        """The source behind a base view; ``None`` for a table that is read in place."""
        catalog, *rest = parse_path(table)
        return self.declared(rest[0]) if catalog == SOURCES else None

    def declared(self, name: str) -> ExtractedSource | None:
        """A source by its name, if it is declared."""
        return self._declared[name][1] if name in self._declared else None

    def declare(self, definitions: Iterable[SourceDefinition], shelf_of: Callable[[str], Shelf]) -> None:
        """Know these sources, and no others."""
        before, now = self._declared, dict[str, tuple[SourceDefinition, ExtractedSource]]()
        moved: set[str] = set()
        for definition in sorted(definitions, key=lambda each: each.kind == SWEEP):  # they need the others
            known = before.get(definition.name)
            needs = set(sources_of_join(definition)) if definition.kind == SWEEP else set[str]()
            if known is None or known[0] != definition or needs & moved:
                known = definition, self._opened(definition, shelf_of(definition.name), now)
                known[1].watch(self._horizons)
                moved.add(definition.name)
            now[definition.name] = known
        self._declared = now  # at once: another thread may be asking for one of them

    def open(self, definition: SourceDefinition, shelf: Shelf) -> ExtractedSource:
        """A source by its declaration."""
        return self._opened(definition, shelf, self._declared)

    def _opened(
        self,
        definition: SourceDefinition,
        shelf: Shelf,
        beside: Mapping[str, tuple[SourceDefinition, ExtractedSource]],
    ) -> ExtractedSource:
        if definition.kind == SWEEP:
            declared = {name: known for name, (known, _) in beside.items()}
            return SweptSource(self._session, definition, shelf, declared)
        return open_source(self._session, definition, shelf, self._catalog_name)

    def remote_tables(self) -> dict[str, PinnedTable]:
        """The tables of declared sources that are not copied."""
        found: dict[str, PinnedTable] = {}
        for definition, _ in self._declared.values():
            found |= remote_tables(definition)
        return found

    def one_horizon(self) -> AbstractContextManager[None]:
        """All epochs within look at databases no further than the first of them."""
        return self._horizons.held()

    def has_more(self, tables: Iterable[str]) -> bool:
        """Whether a source of these tables holds something back that another epoch is to show."""
        sources = {self.extracted(table) for table in tables}
        return any(isinstance(source, SweptSource) and source.has_more for source in sources)

    def confirm(self, versions: Mapping[str, str | None]) -> None:
        """Ask each source whether these are what was read."""
        for source, its_versions in self._by_source(versions).items():
            source.confirm(its_versions)

    def let_go(self) -> None:
        """Nothing more is read of what was found."""
        for _, source in self._declared.values():
            source.let_go()

    def rest(self, versions: Mapping[str, str | None]) -> None:
        """Let sources without history know that nothing changed."""
        for source in dict.fromkeys(self.extracted(table) for table in versions):
            if source is not None:
                source.rest()

    def acknowledge(self, versions: Mapping[str, str | None]) -> None:
        """Let each source know that these are published."""
        for source, its_versions in self._by_source(versions).items():
            source.acknowledge(its_versions)

    def _by_source(self, versions: Mapping[str, str | None]) -> dict[Source, dict[str, str | None]]:
        found: dict[Source, dict[str, str | None]] = {}
        for table, version in versions.items():
            found.setdefault(self.source(table), {})[table] = version
        return found

    def stand(self, tables: Iterable[str], storages: Iterable[str]) -> Observed:
        """Where sources and storage tables stand; a source that is gone is an error."""
        wanted, stored = list(tables), list(storages)
        self._horizons.renew()
        self.clock.renew()
        systems = self._by_source(dict.fromkeys(wanted))
        with _asking() as pool:
            standing = pool.map(lambda each: _standing(*each), systems.items())  # those of one move together
            facts = pool.map(self._catalog.facts_of, stored)
            versions = {table: version for each in standing for table, version in each.items()}
            return Observed(
                {table: versions[table] for table in wanted}, {}, dict(zip(stored, facts, strict=True))
            )

    def stand_each(self, tables: Iterable[str]) -> dict[str, str | None]:
        """Where each of these tables stands; those that do not answer are left out."""

        def standing(each: tuple[Source, Iterable[str]]) -> Mapping[str, str | None]:
            try:
                return _standing(*each)
            except SourceError:
                return {}

        with _asking() as pool:
            found = pool.map(standing, self._by_source(dict.fromkeys(tables)).items())
            return {table: version for each in found for table, version in each.items()}

    def ask_each(self, tables: Iterable[str], question: Callable[[str], Answer]) -> dict[str, Answer]:
        """What is asked about each of these tables; those of one source one after the other."""
        wanted = list(dict.fromkeys(tables))

        def ask(lot: Iterable[str]) -> dict[str, Answer]:
            return {table: question(table) for table in lot}

        with _asking() as pool:
            lots = pool.map(ask, self._by_source(dict.fromkeys(wanted)).values())
            answers = {table: answer for lot in lots for table, answer in lot.items()}
        return {table: answers[table] for table in wanted}

    def look_into(
        self, observed: Observed, spans: Sequence[Span], identities: Mapping[str, str | None]
    ) -> None:
        """Find out what lies within the spans whose two versions differ, and how large the tables are."""

        def change(span: Span) -> Change | str | None:
            table, old, new = span
            try:
                return self.source(table).change(table, old, new, identity=identities.get(table))
            except SourceError as error:
                if error.code in AWAY:
                    raise SourceAway(error, [table]) from error
                if error.code not in _REBUILD:
                    raise
                return str(error.message)

        asked = list(dict.fromkeys(spans))
        with _asking() as pool:
            for span, found in zip(asked, pool.map(change, asked), strict=True):
                if isinstance(found, str):
                    observed.lost[span] = found
                else:
                    observed.changes[span] = found
        for table, version in observed.versions.items():
            observed.rows[table] = self.source(table).row_count(table, version)

    def rows_read(self, queries: Sequence[str]) -> list[int | None]:
        """About how many rows each of these queries reads from files that it cannot skip; from metadata
        alone. ``None`` where Spark does not tell."""
        with _asking() as pool:
            return list(pool.map(partial(rows_read, self._session), queries))

    def extents(self, questions: Mapping[Span, set[str]]) -> dict[tuple[Span, str], Extents]:
        """Between which values these columns lie, as far as it is known without reading rows."""

        def answer(span: Span) -> Mapping[str, Extents]:
            return self.source(span[0]).extents(*span, sorted(questions[span]))

        with _asking() as pool:
            answers = zip(questions, pool.map(answer, questions), strict=True)
            return {(span, column): found for span, all_ in answers for column, found in all_.items()}

    def only_rewritten(self, storage: str, old: str, new: str | None) -> bool:
        """Whether nothing lies between two snapshots of a storage table but a rewriting of its files, such as
        a compaction: then its rows are the same."""
        try:
            return new is not None and self.source(storage).change(storage, old, new) is None
        except SourceError:
            return False


def _standing(source: Source, tables: Iterable[str]) -> Mapping[str, str | None]:
    try:
        return source.current()
    except SourceError as error:
        if error.code in AWAY:
            raise SourceAway(error, tables) from error
        raise


def _asking() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "viewkeeper")
