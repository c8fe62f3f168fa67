"""Reads of views, pinned to one epoch: every view is read at the snapshot that the epoch published."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.holes import holes
from viewkeeper.analyse.parsing import NotParsed, SqlText, tokenize
from viewkeeper.analyse.refusals import refuse_writes
from viewkeeper.analyse.tables import Unsure, find_tables
from viewkeeper.errors import DefinitionError
from viewkeeper.library import Library
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import parse_path, show_path


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


def refuse_unpinned(text: str, library: Library, default: tuple[str, ...]) -> None:
    """Raise if the statement does more than read, or reads a view as it is now: where a query cannot be
    followed, :func:`pinned` leaves the view to Spark."""
    try:
        words = tokenize(text)
        refuse_writes(words)
    except (NotParsed, DefinitionError) as error:
        raise DefinitionError(
            "a warehouse at a past epoch can only be read, by a query",
            code="VK-READ-ONLY",
            hint="Use the warehouse itself for statements that change it, or that tell of it.",
        ) from error
    left_out = _left_out(words, library, default)
    if left_out is not None:
        raise DefinitionError(
            f"it is not clear where the query reads view {left_out}, which would be read as it is now",
            code="VK-NOT-UNDERSTOOD",
            hint="Name every view plainly after FROM or JOIN, with an alias of its own; sample a subquery.",
        )


def _left_out(text: SqlText, library: Library, default: tuple[str, ...]) -> str | None:
    """A view that is named where nothing can be put in its place."""
    try:
        names = find_tables(text)
    except Unsure:
        called = {token.text.casefold() for token in text.tokens}
        return next((name for name in library.views if parse_path(name)[-1].casefold() in called), None)
    known = [(name, view) for name in names if (view := library.lookup(show_path(name.parts), default))]
    followed = pinned(text.sql, library, default)[1]
    return next((view for name, view in known if not followed or not name.plain), None)


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
