"""Reads of views, pinned to one epoch: every view is read at the snapshot that the epoch published."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.holes import holes
from viewkeeper.errors import DefinitionError
from viewkeeper.library import Library
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import show_path


def pinned(text: str, library: Library, default: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The query with every view that it names replaced by its rows at the library's epoch, and the names
    of those views; a statement that names none comes back as it is."""

    def resolve(parts: tuple[str, ...]) -> TableInfo | None:
        name = library.lookup(show_path(parts), default)
        if name is None:
            return None
        return TableInfo(name, tuple((column, "") for column in library.views[name].layout.columns))

    found = holes(text, resolve)
    if found is None or not found.tables:
        return text, ()
    return found.fill({name: f"({rows_of(library, name)})" for name in found.tables}), found.tables


def snapshots_of(library: Library, names: Iterable[str]) -> dict[str, str]:
    """The storage tables of views and their snapshots at the library's epoch."""
    states = (library.states[name] for name in names if name in library.states)
    return {state.storage: state.snapshot for state in states if state.snapshot is not None}


def rows_of(library: Library, name: str) -> str:
    """A SELECT of the view's rows at the library's epoch."""
    view, state = library.views[name], library.states[name]
    if state.snapshot is None:
        raise no_data(name)
    return print_relation(view.layout.shown(view.layout.stored(state.storage, state.snapshot)))


def no_data(name: str) -> DefinitionError:
    """The view was created WITH NO DATA and not refreshed since."""
    return DefinitionError(
        f"view {name} has no data yet",
        code="VK-NO-DATA",
        hint=f"REFRESH MATERIALIZED VIEW {name} fills it.",
    )
