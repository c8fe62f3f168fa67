"""Hidden views: inner results of queries, kept as views of the graph and shared by all that contain them.

A hidden view is defined by the SQL that the printer makes of the inner result, and named after it, so that
two views with the same inner result read the same one. It lives in the namespace of storage tables, comes
with the first view that reads it, and goes with the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from statistics import median

from viewkeeper.algebra.relations import Field, Relation, Scan
from viewkeeper.algebra.renaming import canonical
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.defining import define
from viewkeeper.execute.engine import Engine
from viewkeeper.install.storage import NAMESPACE
from viewkeeper.ledger import Ledger
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.hidden_state import HiddenState, Trial, advisable, inner_results, pinned
from viewkeeper.plan.steps import Strategy
from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.drift import compare_schemas
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import show_path

_LAST = 5
"""Refreshes that are looked back at."""


def define_with_state(
    engine: Engine,
    library: Library,
    definition: ViewDefinition,
    redefined: Collection[str] = (),
    *,
    keep: bool | None = None,
) -> tuple[KnownView, ...]:
    """A view, and before it the hidden views that have to be made for it. ``keep``: whether inner results are
    kept; ``None``: as the definition asks, and if it does not, as it is with the view that is there."""
    name = show_path(definition.name)
    before = library.views.get(name)
    learned = before.trial if before is not None and before.definition.query == definition.query else None
    view = replace(define(engine, library, definition, redefined), trial=learned)
    if keep is None:
        asked = pinned(dict(definition.properties))
        kept_now = before is not None and bool(library.hidden_parents(name))
        keep = kept_now if asked is None else asked is HiddenState.KEEP
    if not keep or view.analysis.relation is None or view.analysis.dropped or _is_remote(engine, view):
        return (view,)
    made: list[KnownView] = []
    new = set(redefined)
    kept: dict[Relation, Scan] = {}
    for inner in inner_results(view.analysis.relation):
        relation, names = canonical(inner)
        hidden = _definition(engine, definition, relation)
        path = show_path(hidden.name)
        known = library.views.get(path)
        if known is None or not _is_current(engine, library, known, new):
            own = define_with_state(engine, library, hidden, new, keep=True)
            known = own[-1]
            if known.analysis.relation is None:
                continue
            made += own
            new |= {each.name for each in own}
            library = library.with_views(*own)
        kept[inner] = Scan(path, tuple(Field(names[name], name) for name in inner.columns))
    if not kept:
        return (view,)
    return (*made, replace(define(engine, library, definition, new, kept), trial=learned))


def _is_current(engine: Engine, library: Library, known: KnownView, redefined: Collection[str]) -> bool:
    """Whether a hidden view still means what it meant: it reads nothing that is defined anew, and its tables
    have the columns that they had."""
    if set(known.analysis.tables) & set(redefined):
        return False
    for table, facts in known.sources.items():
        now = engine.observer.source(table).describe(table)
        recorded = [SourceColumn(*column) for column in facts["columns"]]
        if now.identity != facts["identity"] or compare_schemas(recorded, now.columns, set(facts["used"])):
            return False
    parents = (library.views[parent] for parent in library.graph.parents(known.name))
    return all(_is_current(engine, library, parent, redefined) for parent in parents if parent.hidden)


def _definition(engine: Engine, reader: ViewDefinition, relation: Relation) -> ViewDefinition:
    query, session = print_relation(relation), reader.session
    meaning = repr((query, session.time_zone, session.ansi, session.case_sensitive))
    name = f"h_{hashlib.sha256(meaning.encode()).hexdigest()[:16]}"
    comment = "An inner result that views share; viewkeeper keeps and removes it."
    return ViewDefinition((engine.catalog_name, NAMESPACE, name), query, session, comment=comment)


def _is_remote(engine: Engine, view: KnownView) -> bool:
    return any(engine.observer.extracted(table) is not None for table in view.analysis.tables)


def unread(library: Library, dropped: Iterable[str] = ()) -> tuple[str, ...]:
    """The hidden views that nobody reads any more once these are dropped, readers first."""
    gone = dict.fromkeys(dropped)
    found: list[str] = []
    for name in reversed(library.graph.order()):
        if library.views[name].hidden and all(child in gone for child in library.graph.children(name)):
            gone[name] = None
            found.append(name)
    return tuple(found)


def chosen(
    engine: Engine, ledger: Ledger, library: Library, name: str
) -> tuple[HiddenState, tuple[KnownView, ...]] | None:
    """Whether a view is to be kept otherwise from now on, after what its refreshes took: the views to define
    for it. ``None``: it is well as it is, or pinned."""
    view = library.views[name]
    if view.hidden or pinned(dict(view.definition.properties)) is not None:
        return None
    parents = library.hidden_parents(name)
    seconds = _seconds(ledger, library, view, parents)
    wanted = advisable(seconds, view.trial, has_state=bool(parents))
    relation = view.analysis.relation
    if wanted is None or relation is None or not (parents or inner_results(relation)):
        return None
    *made, last = define_with_state(engine, library, view.definition, keep=wanted is HiddenState.KEEP)
    if wanted is HiddenState.NONE:
        trial = replace(view.trial or Trial(0.0), given_up=True)
    elif library.with_views(*made, last).hidden_parents(name):
        trial = Trial(median(seconds))
    else:
        return None
    return wanted, (*made, replace(last, trial=trial))


def _seconds(ledger: Ledger, library: Library, view: KnownView, parents: Sequence[str]) -> list[float]:
    """What its last refreshes took under this definition, with its part of what hidden views did."""
    defined = next(each.defined_in for each in ledger.views() if each.name == view.name)
    shares = {parent: max(1, len(library.graph.children(parent))) for parent in parents}
    found = []
    for epoch in ledger.epochs(view=view.name, limit=_LAST, plans=False):
        taken = {each.view: each for each in epoch.views if each.strategy != Strategy.UNCHANGED.value}
        if epoch.id > defined and view.name in taken:
            paid = {name: each.compute_seconds + each.install_seconds for name, each in taken.items()}
            found.append(paid[view.name] + sum(paid.get(name, 0.0) / of for name, of in shares.items()))
    return found
