"""Whether views hold what their queries say, recomputed at the versions that they were computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.declaring import source_of
from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import RefreshError
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.verifying import Comparison
from viewkeeper.library import Library
from viewkeeper.reading import rows_of
from viewkeeper.results import Verification


def verified(
    engine: Engine, library: Library, names: Sequence[str], *, only_possible: bool
) -> list[Verification]:
    """Each view against its query, compared as bags, both ways; hidden views that it reads with it."""
    if only_possible:
        names = [name for name in names if _can_verify(engine, library, name)]
    else:
        for name in names:
            require_history(engine, library, name)
    concerned = {name: (*library.hidden_parents(name), name) for name in names}
    found = _compared(
        engine, library, list(dict.fromkeys(each for all_ in concerned.values() for each in all_))
    )
    result = []
    for name, each in concerned.items():
        missing, extra = (sum(found[one][side] for one in each) for side in (0, 1))
        result.append(Verification(name, missing == extra == 0, missing, extra, library.states[name].epoch))
    return result


def _compared(engine: Engine, library: Library, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Of each view, the rows that are missing and those that should not be there."""
    found: dict[str, tuple[int, int]] = {}
    by_pins: dict[SessionPins, list[str]] = {}
    for name in names:
        by_pins.setdefault(library.views[name].definition.session, []).append(name)
    for pins, alike in by_pins.items():
        compared = engine.compare([_comparison(engine, library, name) for name in alike], pins)
        found.update(zip(alike, compared, strict=True))
    return found


def _can_verify(engine: Engine, library: Library, name: str) -> bool:
    """Whether the rows that a view was computed from can still be read: a source without history may have
    moved on from what its base view holds."""
    table = source_of(library.views[name])
    source = None if table is None else engine.observer.extracted(table)
    version = None if table is None else library.states[name].vector[table]
    return table is None or source is None or (version is not None and source.holds(table, version))


def require_history(engine: Engine, library: Library, name: str) -> None:
    """Raise if the rows that a view was computed from cannot be read any more."""
    if not _can_verify(engine, library, name):
        raise RefreshError(
            f"view {name} cannot be worked out as it was: its source has moved on, and keeps no history",
            code="VK-NO-HISTORY",
            hint=f"REFRESH MATERIALIZED VIEW {name} FULL reads the source anew.",
        )


def _comparison(engine: Engine, library: Library, name: str) -> Comparison:
    view = library.views[name]
    stored = rows_of(library, name)
    relations = {table: _recorded(engine, library, name, table) for table in view.analysis.tables}
    columns = engine.catalog.schema(stored, view.definition.session)
    return Comparison(columns, view.analysis.text.fill(relations), stored)


def _recorded(engine: Engine, library: Library, name: str, table: str) -> str:
    """What stands in FROM for a table at the version that the view was computed from."""
    version = library.states[name].vector[table]
    parent = library.views.get(table)
    if parent is None:
        return engine.observer.source(table).rows(table, version)
    states = {**library.states, table: replace(library.states[table], snapshot=version)}
    if version is None:
        raise RefreshError(f"view {name} was computed from {table}, whose snapshot is not recorded")
    return f"(\n{rows_of(Library(library.views, states), table)}\n)"
