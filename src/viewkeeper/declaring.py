"""Declared sources, and the base views that the warehouse keeps of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.relations import Field, Project, Scan
from viewkeeper.algebra.scalars import keep
from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole
from viewkeeper.analyse.statements import CreateSource
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.sources import SOURCES, SourceDefinition
from viewkeeper.errors import NotFoundError
from viewkeeper.ledger import Ledger
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.layout import bag_layout
from viewkeeper.sources.contract import Description
from viewkeeper.sql.quoting import ident, parse_path, show_path


@dataclass(frozen=True, slots=True)
class LedgerShelf:
    """What a source remembers of its versions, in the ledger."""

    ledger: Ledger
    source: str

    def load(self, version: str) -> Mapping[str, Any] | None:
        return self.ledger.source_version(self.source, version)

    def save(self, version: str, content: Mapping[str, Any]) -> None:
        self.ledger.keep_source_version(self.source, version, dict(content))

    def forget_others(self, version: str) -> None:
        self.ledger.forget_source_versions(self.source, version)


def declared_sources(ledger: Ledger) -> dict[str, SourceDefinition]:
    """The sources that were declared, by name."""
    return {name: CODEC.decode(record.definition) for name, record in ledger.sources().items()}


def unknown_source(name: str, ledger: Ledger) -> NotFoundError:
    """An error that names the sources there are."""
    known = ", ".join(ledger.sources()) or "none"
    return NotFoundError(
        f"there is no source {name}", code="VK-UNKNOWN-SOURCE", hint=f"Declared are: {known}."
    )


def declaration(statement: CreateSource) -> SourceDefinition:
    """What a CREATE SOURCE declares; option names are folded, as Spark folds them."""
    folded = tuple((key.casefold(), value) for key, value in statement.options)
    return SourceDefinition(statement.name, statement.kind, folded)


def same_declaration(one: SourceDefinition, other: SourceDefinition) -> bool:
    """Whether two sources were declared alike, whatever was found out of them since."""
    return (one.name, one.kind, sorted(one.options)) == (other.name, other.kind, sorted(other.options))


def base_view(name: tuple[str, ...], table: str, described: Description, pins: SessionPins) -> KnownView:
    """The view that holds what a table of a source holds."""
    columns = [(column.name, column.type) for column in described.columns]
    names = tuple(column for column, _ in columns)
    select = f"SELECT {', '.join(ident(each) for each in names)} FROM "
    relation = Project(Scan(table, tuple(Field(each, each) for each in names)), keep(names))
    facts = {
        "identity": described.identity,
        "schema": "pinned",
        "columns": [[column.name, column.type, column.id] for column in described.columns],
        "key": list(described.key),
        "used": sorted(names),
    }
    definition = ViewDefinition(name, select + table, pins)
    analysis = Analysis(QueryText((select, TableHole(table, None))), relation, None)
    return KnownView(
        show_path(name),
        uuid.uuid4().hex,
        definition,
        analysis,
        bag_layout(columns, relation),
        {table: facts},
    )


def base_views_of(source: str, library: Library) -> dict[str, str]:
    """The tables of a source, and the view that holds each."""
    held = {source_of(view): name for name, view in library.views.items()}
    return {
        table: name for table, name in held.items() if table is not None and parse_path(table)[1] == source
    }


def siblings(library: Library, name: str) -> tuple[str, ...]:
    """The base views of the same source, which move together with this one; the view alone if it is none."""
    table = source_of(library.views[name])
    return (name,) if table is None else tuple(base_views_of(parse_path(table)[1], library).values())


def with_siblings(library: Library, names: Iterable[str]) -> tuple[str, ...]:
    """These views and all that they read, and of a source that has several tables all base views: a
    transaction is never shown in part."""
    together = (each for name in library.graph.closure(names) for each in siblings(library, name))
    return tuple(library.graph.closure(dict.fromkeys(together)))


def source_of(view: KnownView) -> str | None:
    """The table of the source that a base view holds; ``None`` for other views."""
    tables = view.analysis.tables
    return tables[0] if len(tables) == 1 and parse_path(tables[0])[0] == SOURCES else None
