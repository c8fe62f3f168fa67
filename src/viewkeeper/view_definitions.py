"""Views are created, replaced, altered and dropped, each time with all that hangs on them, in one epoch."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from viewkeeper.altering import still_failing
from viewkeeper.analyse.statements import CreateView
from viewkeeper.declaring import declared_sources, source_of, with_siblings
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.define.timing import Timing
from viewkeeper.defining import Resolver, refuse_reserved, refuse_timeless
from viewkeeper.errors import DefinitionError, RefreshError, SourceError
from viewkeeper.hidden_views import define_with_state, unread
from viewkeeper.ledger.records import EpochRecord, Lease
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.hidden_state import PROPERTY
from viewkeeper.plan.steps import EpochPlan
from viewkeeper.remote_views import (
    is_base_view,
    join_of,
    refuse_members,
    source_behind,
)
from viewkeeper.sql.quoting import parse_path, show_path
from viewkeeper.workshop import Redefinition, Workshop

logger = logging.getLogger("viewkeeper")


class ViewDefinitions:
    """The definitions of the views of one warehouse."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def definition(self, statement: CreateView) -> ViewDefinition:
        """The definition that a CREATE statement makes in the user's session as it is now."""
        pins = self._shop.engine.current_pins()
        name = Resolver(self._shop.engine, self._shop.library(), pins).full_name(statement.name)
        return ViewDefinition(
            name=name,
            query=statement.query,
            session=pins,
            columns=statement.columns,
            comment=statement.comment,
            partitioned_by=statement.partitioned_by,
            cluster_by=statement.cluster_by,
            properties=statement.properties,
            policy=statement.policy,
            consistency=statement.consistency,
            expectations=statement.expectations,
            timing=statement.timing,
        )

    def create(self, *statements: CreateView) -> EpochRecord | None:
        """Define views and fill them, all in one epoch; ``None`` when they are all there already and IF NOT
        EXISTS was said."""
        definitions = self._definitions(statements)
        with self._shop.lease() as lease:
            before = self._shop.library()
            if (retimed := _only_retimed(before, definitions)) is not None:
                return self._shop.housekeeping(lease).retime(*retimed)
            library, defined = self._analysed(before, definitions)
            if not defined:
                return None
            without_data = not all(statement.with_data for statement in statements)
            unused = unread(library)
            kept = None
            if not without_data and not unused:
                kept = self._shop.housekeeping(lease).redefine(before, tuple(defined.values()))
            if kept is not None:
                return self._brought_up(lease, list(defined)) or kept
            views = tuple(view for name, view in defined.items() if name not in unused)
            change = Redefinition(views, drop=unused, without_data=without_data)
            return self._define_swept(lease, before, change)

    def check(self, statements: Sequence[CreateView]) -> None:
        """Raise if these views, in this order, cannot be defined. Nothing is done."""
        self._analysed(self._shop.library(), self._definitions(statements))

    def _definitions(self, statements: Sequence[CreateView]) -> list[tuple[CreateView, ViewDefinition]]:
        definitions = [(statement, self.definition(statement)) for statement in statements]
        for _, definition in definitions:
            refuse_reserved(definition)
            refuse_timeless(definition)
        return definitions

    def _analysed(
        self, before: Library, definitions: Sequence[tuple[CreateView, ViewDefinition]]
    ) -> tuple[Library, dict[str, KnownView]]:
        """The views that are to be defined, with those that hang on them, and the library with them."""
        library, defined = before, dict[str, KnownView]()
        for statement, definition in definitions:
            if not self._is_wanted(before, statement, definition):
                continue
            made = define_with_state(self._shop.engine, library, definition, set(defined))
            library = library.with_views(*made)
            replaced = [each.name for each in made if each.name in before.views]
            followers = self.followers(library, replaced, {*defined, *(each.name for each in made)})
            defined.update({each.name: each for each in (*made, *followers)})
            library = library.with_views(*followers)
        return library, defined

    def _brought_up(self, lease: Lease, names: Sequence[str]) -> EpochRecord | None:
        """Refresh views that were defined anew with the rows they had. They are published: what fails now is
        told, and waits for the next refresh."""
        library = self._shop.library()
        try:
            done = self._shop.refresh(lease, library, list(with_siblings(library, names)), None)
        except (RefreshError, SourceError) as error:
            logger.warning("%s: defined anew, and not refreshed yet: %s", ", ".join(names), error)
            return None
        return None if isinstance(done, EpochPlan) else done

    def _define_swept(self, lease: Lease, before: Library, change: Redefinition) -> EpochRecord:
        """Views of remote tables have a source behind them, which comes and goes with the definition."""
        known = declared_sources(self._shop.ledger)
        behind = {view.name: source_behind(view) for view in change.define}
        new = tuple(source for source in behind.values() if source is not None)
        gone = [name for name, source in behind.items() if name in known and source is None]
        opened = [self._shop.declared(name) for name in gone]
        for each in opened:
            each.take_leave()
        refuse_members(new, known)
        if new and change.without_data:
            raise DefinitionError(
                f"view {new[0].name} reads remote tables, whose changes are kept for it from now on",
                code="VK-SWEEP-UNSUITED",
                hint="Leave WITH NO DATA out: it is filled when it is created.",
            )
        self._shop.know({**known, **{source.name: source for source in new}}.values())
        with ExitStack() as stack:
            for source in new:
                stack.enter_context(self._shop.giving_up(source))
            record = self._shop.redefine(lease, before, replace(change, declare=new, forget=tuple(gone)))
        for each in opened:
            each.release()
        return record

    def _is_wanted(self, library: Library, statement: CreateView, definition: ViewDefinition) -> bool:
        """Whether the view is to be created; an error if its name is taken."""
        existing = library.lookup(show_path(definition.name), ())
        if existing is None:
            self.require_free(definition)
            return True
        if is_base_view(library.views[existing]):
            raise DefinitionError(
                f"{existing} is the name of a source",
                code="VK-NAME-TAKEN",
                hint="Choose another name, or DROP SOURCE.",
            )
        if not (statement.if_not_exists or statement.replace):
            raise DefinitionError(
                f"there is a materialized view {existing} already",
                code="VK-VIEW-EXISTS",
                hint="CREATE OR REPLACE MATERIALIZED VIEW replaces it.",
            )
        return not statement.if_not_exists

    def require_free(self, definition: ViewDefinition) -> None:
        if self._shop.engine.catalog.facts(definition.name) is not None:
            raise DefinitionError(
                f"{show_path(definition.name)} is the name of a table or view in the catalog",
                code="VK-NAME-TAKEN",
                hint="Choose another name, or drop what is there.",
            )

    def followers(
        self, library: Library, replaced: Collection[str], redefined: Collection[str] = ()
    ) -> tuple[KnownView, ...]:
        """The views that read replaced ones, hidden ones among them, analysed again: they are recomputed in
        the same epoch. ``redefined``: what else is defined with them, and not yet in the catalog."""
        readers = {each for name in replaced for each in library.graph.descendants(name)}
        descendants, redefined = readers - set(replaced), {*replaced, *redefined}
        followers: list[KnownView] = []
        for other in library.graph.order():
            if other not in descendants or library.views[other].hidden:
                continue  # who reads a hidden view brings it along
            try:
                made = define_with_state(
                    self._shop.engine, library, library.views[other].definition, redefined
                )
            except DefinitionError as error:
                raise DefinitionError(
                    f"view {other} reads {', '.join(replaced)} and would break: {error.message}",
                    code="VK-BREAKS-READER",
                    hint=f"Drop or replace {other} first.",
                ) from error
            followers += made
            redefined |= {each.name for each in made}
            library = library.with_views(*made)
        return tuple(followers)

    def alter(self, name: str, properties: Mapping[str, str]) -> EpochRecord | None:
        """Set table properties of a view, and store it as they say; ``None`` if it has them all."""
        with self._shop.lease() as lease:
            library = self._shop.library()
            known = library.views[name]
            definition = replace(
                known.definition,
                properties=tuple({**dict(known.definition.properties), **properties}.items()),
            )
            if PROPERTY in properties and definition != known.definition:
                views = define_with_state(self._shop.engine, library, definition)
                if views[-1].analysis.tables != known.analysis.tables:
                    return self.restate(lease, library, views)
            return self._shop.housekeeping(lease).alter(name, properties)

    def restate(self, lease: Lease, library: Library, views: Sequence[KnownView]) -> EpochRecord:
        """Keep a view with hidden state from now on, or without; it and those that read it are recomputed."""
        after = library.with_views(*views)
        followers = self.followers(after, [view.name for view in views if view.name in library.views])
        after = after.with_views(*followers)
        unused = unread(after)
        defined = {view.name: view for view in (*views, *followers) if view.name not in unused}
        with still_failing(self._shop.ledger, defined.values()):
            return self._shop.redefine(lease, library, Redefinition(tuple(defined.values()), drop=unused))

    def retime(self, name: str, timing: Timing | None) -> EpochRecord | None:
        """Say how fresh a view is to be; ``None`` if that was said before. Nothing is computed."""
        with self._shop.lease() as lease:
            return self._shop.housekeeping(lease).retime(name, timing)

    def drop(self, name: str) -> EpochRecord:
        """Drop a view that no other view reads."""
        with self._shop.lease() as lease:
            library = self._shop.library()
            source = source_of(library.views[name])
            if join_of(library.views[name]) is not None:
                refuse_read(library, name)
                opened = self._shop.declared(name)
                opened.take_leave()
                record = self._shop.redefine(lease, library, Redefinition(drop=(name,), forget=(name,)))
                opened.release()  # a database that is away does not keep the view
                return record
            if source is not None:
                raise DefinitionError(
                    f"view {name} holds the source {parse_path(source)[1]}",
                    code="VK-VIEW-IN-USE",
                    hint=f"DROP SOURCE {parse_path(source)[1]} drops both.",
                )
            refuse_read(library, name)
            return self._shop.redefine(lease, library, Redefinition(drop=(name, *unread(library, [name]))))


def _only_retimed(
    library: Library, definitions: Sequence[tuple[CreateView, ViewDefinition]]
) -> tuple[str, Timing | None] | None:
    """Name and timing of a view that is defined as before but for how fresh it is to be."""
    if len(definitions) != 1 or not definitions[0][0].replace:
        return None
    name = show_path(definitions[0][1].name)
    new, known = definitions[0][1], library.views.get(name)
    if known is None or new.timing == known.definition.timing:
        return None
    return (name, new.timing) if replace(new, timing=known.definition.timing) == known.definition else None


def refuse_read(library: Library, name: str) -> None:
    """An error if other views read this one."""
    readers = library.graph.children(name)
    if readers:
        raise DefinitionError(
            f"view {name} is read by {', '.join(readers)}",
            code="VK-VIEW-IN-USE",
            hint="Drop those first.",
        )
