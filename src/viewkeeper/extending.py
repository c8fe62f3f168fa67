"""Lattice-friendly views (Mumick et al. 1997, Section 5.2): columns that, added to one view, let others be
derived from it without another join.

A column may be added to the keys of a view without changing its groups if the keys determine it: the key of a
dimension determines all its columns (a key that the project declares, or Iceberg's identifier fields), and a
project may declare more (city → region).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.lattice import ForeignKey, derives
from viewkeeper.algebra.scalars import column
from viewkeeper.algebra.stars import Star, qualified, table_of
from viewkeeper.analyse.widening import widened
from viewkeeper.define.settings import Settings
from viewkeeper.lattices import declared, is_named
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.sharing import star_of_view


@dataclass(frozen=True, slots=True)
class Extension:
    """Columns to add to a view, which views could be derived from it then, and its query with them."""

    view: str
    columns: tuple[str, ...]
    lets_derive: tuple[str, ...]
    query: str

    def __str__(self) -> str:
        below = ", ".join(self.lets_derive)
        return f"{self.view}: add {', '.join(self.columns)}, and {below} can be derived from it\n{self.query}"


def extensions(library: Library, settings: Settings) -> list[Extension]:
    """What would make the lattice richer, as far as dependencies are declared."""
    stars = {
        name: star
        for name, view in library.views.items()
        if (star := star_of_view(view.layout, view.definition)) is not None
    }
    foreign_keys = declared(settings, library)
    found: list[Extension] = []
    for upper, star in stars.items():
        determined = _determined(star, library.views[upper], settings)
        columns: dict[str, None] = {}
        derived: list[str] = []
        for lower, other in stars.items():
            if lower == upper or derives((lower, other), (upper, star), foreign_keys) is not None:
                continue
            lacking = _lacking(other, star, determined)
            if lacking and _would_derive(other, star, lacking, foreign_keys):
                columns.update(dict.fromkeys(determined[name] for name in lacking))
                derived.append(lower)
        query = widened(library.views[upper].definition.query, list(columns)) if columns else None
        if query is not None:
            found.append(Extension(upper, tuple(columns), tuple(derived), query))
    return found


def _determined(star: Star, view: KnownView, settings: Settings) -> Mapping[str, str]:
    """The columns that the view's keys determine, by their common name: how the query can name them."""
    known = {name for key in star.keys.values() if key.is_column for name in key.columns}
    columns = {
        qualified(table, str(name)): str(name)
        for table in star.tables
        for name, *_ in view.sources.get(table, {}).get("columns", ())
    }
    plain = [name.casefold() for name in columns.values()]
    closure = set(known)
    while True:
        more = {name for name in columns if name not in closure and _follows(name, closure, view, settings)}
        if not more:
            break
        closure |= more
    # A name that two tables have would have to be qualified, and by what the text does not tell.
    return {
        name: columns[name]
        for name in sorted(closure - known)
        if name in columns and plain.count(columns[name].casefold()) == 1
    }


def _follows(name: str, known: set[str], view: KnownView, settings: Settings) -> bool:
    table = table_of(name)
    rules: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [
        (key, None) for of, key in settings.keys.items() if is_named(table, of)
    ]
    own = tuple(view.sources.get(table, {}).get("key", ()))
    rules += [(own, None)] if own else []
    rules += [(each.columns, each.determine) for each in settings.dependencies if is_named(table, each.table)]
    return any(
        all(qualified(table, by) in known for by in left)
        and (right is None or name in {qualified(table, each) for each in right})
        for left, right in rules
    )


def _lacking(lower: Star, upper: Star, determined: Mapping[str, str]) -> list[str]:
    """The lower view's columns that the upper one could have among its keys, and has not."""
    wanted = {name for key in lower.keys.values() for name in key.columns}
    return sorted(name for name in wanted if name in determined and upper.key_of(column(name)) is None)


def _would_derive(lower: Star, upper: Star, more: list[str], foreign_keys: list[ForeignKey]) -> bool:
    extended = replace(upper, keys={**upper.keys, **{name: column(name) for name in more}})
    edge = derives(("lower", lower), ("upper", extended), foreign_keys)
    return edge is not None and not edge.needs
