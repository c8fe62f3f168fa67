"""The lattice of a warehouse's views, for people: which summary-delta can be made from which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.lattice import Edge, ForeignKey, Lattice, lattice_of
from viewkeeper.algebra.stars import Star, qualified
from viewkeeper.define.settings import Settings
from viewkeeper.library import Library
from viewkeeper.plan.sharing import star_of_view
from viewkeeper.sql.quoting import parse_path


@dataclass(frozen=True, slots=True)
class ViewLattice:
    """The views that are groups of one block, and the edges between them. ``str()`` draws it as a tree."""

    lattice: Lattice
    others: tuple[str, ...]
    """The views that have no place in it."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        edges = [
            {
                "upper": edge.upper,
                "lower": edge.lower,
                "joins": sorted(edge.joins),
                "needs": sorted(_told(fk) for fk in edge.needs),
            }
            for edge in self.lattice.shown
        ]
        return {"views": list(self.lattice.order), "edges": edges, "others": list(self.others)}

    def _lines(self) -> Iterator[str]:
        shown = self.lattice.shown
        lower = {edge.lower for edge in shown}
        for root in self.lattice.order:
            if root not in lower:
                yield _short(root)
                yield from _below(root, shown, "")
        if self.others:
            yield f"apart: {', '.join(_short(view) for view in self.others)}"


def _below(view: str, edges: Sequence[Edge], indent: str) -> Iterator[str]:
    own = [edge for edge in edges if edge.upper == view]
    for at, edge in enumerate(own, start=1):
        last = at == len(own)
        yield f"{indent}{'└─' if last else '├─'} {_short(edge.lower)}{_label(edge)}"
        yield from _below(edge.lower, edges, indent + ("   " if last else "│  "))


def _label(edge: Edge) -> str:
    notes = [f"joins {', '.join(_short(table) for table in sorted(edge.joins))}"] if edge.joins else []
    notes += [f"needs {_told(fk)}" for fk in edge.needs]
    return f"  ({'; '.join(notes)})" if notes else ""


def _told(fk: ForeignKey) -> str:
    columns = ", ".join(name.rpartition("\0")[2] for name in fk.columns)
    return f"{_short(fk.table)}({columns}) → {_short(fk.parent)}"


def _short(name: str) -> str:
    return parse_path(name)[-1]


def declared(settings: Settings, library: Library) -> list[ForeignKey]:
    """The foreign keys of a project between tables that its views read."""
    tables = {table for view in library.views.values() for table in view.analysis.tables}
    found: list[ForeignKey] = []
    for fk in settings.foreign_keys:
        referenced = settings.referenced(fk)
        for table in tables:
            for parent in tables:
                if is_named(table, fk.table) and is_named(parent, fk.references):
                    found.append(
                        ForeignKey(
                            tuple(qualified(table, column) for column in fk.columns),
                            tuple(qualified(parent, column) for column in referenced),
                        )
                    )
    return found


def is_named(table: str, name: str) -> bool:
    """Whether a project can mean this table by that name, which need not be complete."""
    path, asked = parse_path(table.casefold()), parse_path(name.casefold())
    return path[-len(asked) :] == asked


def lattice_of_views(library: Library, foreign_keys: Sequence[ForeignKey] = ()) -> ViewLattice:
    """The lattice as far as the definitions and these foreign keys tell."""
    stars: dict[str, Star] = {}
    others: list[str] = []
    for name, view in library.views.items():
        star = star_of_view(view.layout, view.definition)
        if star is None:
            others.append(name)
        else:
            stars[name] = star
    return ViewLattice(lattice_of(stars, foreign_keys), tuple(others))
