"""Copies of a view, of the views that it reads and of some rows of its tables, to be changed at will."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from viewkeeper.errors import NotFoundError
from viewkeeper.library import Library
from viewkeeper.sql.quoting import parse_path, quote_path, show_path
from viewkeeper.testing.cases import View
from viewkeeper.testing.tables import Table, literal_of, random_properties, values_of
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Copied:
    """Tables and views under names of their own, in whatever namespace they are made in."""

    catalog: str
    names: dict[str, Table]
    """By the full name of the original."""
    setup: tuple[str, ...]
    views: tuple[View, ...]

    @property
    def tables(self) -> list[Table]:
        return list(self.names.values())

    def chosen(self, names: Iterable[str]) -> list[Table]:
        """The copies of these tables, given by their full names or their last parts."""
        found: list[Table] = []
        for name in names:
            parts = parse_path(name)
            full = [each for each in self.names if parse_path(each)[-len(parts) :] == parts]
            if len(full) != 1:
                raise NotFoundError(
                    f"the view does not read a table {name}",
                    hint=f"It reads {', '.join(self.names)}.",
                )
            found.append(self.names[full[0]])
        return found


def copy_of(warehouse: Warehouse, view: str, random: Random, rows: int) -> Copied:
    """Copies of a view and all that it depends upon, the tables with at most so many rows."""
    library = warehouse._library()
    name = library.find(view, warehouse._where())
    needed = library.graph.closure([name])
    ordered = [each for each in library.graph.order() if each in needed]
    local = {each: f"v{at + 1}" for at, each in enumerate(ordered)}
    tables: dict[str, Table] = {}
    setup: list[str] = []
    for at, source in enumerate(library.graph.sources(ordered)):
        local[source] = f"t{at + 1}"
        tables[source], statements = _copied_table(warehouse.spark, source, local[source], random, rows)
        setup += statements
    views = tuple(_copied_view(library, each, local) for each in ordered)
    return Copied(parse_path(name)[0], tables, tuple(setup), views)


def _copied_view(library: Library, name: str, local: dict[str, str]) -> View:
    view = library.views[name]
    columns = tuple(column.name for column in view.definition.columns)
    query = view.analysis.text.fill({table: local[table] for table in view.analysis.tables})
    return View(local[name], query, columns, incremental=view.analysis.relation is not None)


def _copied_table(
    spark: SparkSession, source: str, name: str, random: Random, rows: int
) -> tuple[Table, list[str]]:
    frame = spark.table(quote_path(parse_path(source)))
    columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    required = frozenset(field.name for field in frame.schema.fields if not field.nullable)
    found = [tuple(row) for row in frame.limit(rows).collect()]
    values = values_of(found, columns)
    table = Table(name, columns, random_properties(random), values=values, required=required)
    lines = [_line(row, columns) for row in found]
    if not lines:
        return table, [table.sql]
    if any(line is None for line in lines):
        # A type without literals: the rows come from the table itself.
        original = show_path(parse_path(source))
        return table, [table.sql, f"INSERT INTO {name} SELECT * FROM {original} LIMIT {rows}"]
    listed = ",\n".join(line for line in lines if line is not None)
    return table, [table.sql, f"INSERT INTO {name} VALUES\n{listed}"]


def _line(row: tuple[object, ...], columns: tuple[tuple[str, str], ...]) -> str | None:
    """The row as it stands in VALUES, if all of its values can."""
    texts = [literal_of(value, kind) for value, (_, kind) in zip(row, columns, strict=True)]
    known = [text for text in texts if text is not None]
    return f"({', '.join(known)})" if len(known) == len(texts) else None
