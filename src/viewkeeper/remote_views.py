"""Views of remote tables: the join behind one is a source of its own, which nobody declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.relations import Field, Staged, map_leaves
from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole
from viewkeeper.declaring import source_of
from viewkeeper.define.sources import SOURCES, SWEEP, SourceDefinition, checked_options
from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.joins import SweptJoin, taken_apart, unsuited
from viewkeeper.integrate.members import COMPLETE, STRONG, one_database, remote_tables, sweep_facts
from viewkeeper.library import KnownView, Library
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import show_path

_HOLE = "vk_swept_join"
_FOLLOWED_BY = {"host", "port", "database", "capture", "publication"}


@dataclass(frozen=True, slots=True)
class Swept:
    """The join behind a view, under the name of a table, and the view over that table."""

    table: str
    join: SweptJoin
    analysis: Analysis

    @property
    def facts(self) -> dict[str, Any]:
        """What a view remembers of its source."""
        return {
            "identity": None,
            "schema": "pinned",
            "columns": [[name, spark, None] for name, _, spark in self.join.types],
            "key": [],
            "used": sorted(self.join.columns),
            "join": self.join.to_json(),
        }


def swept_join(view: str, analysis: Analysis, remote: Mapping[str, PinnedTable]) -> Swept:
    """Take the query of a view over remote tables apart; one that cannot be swept is refused."""
    others = [table for table in analysis.tables if table not in remote]
    if others:
        raise unsuited(view, f"it reads {others[0]} as well, which is here")
    if analysis.relation is None:
        assert analysis.reason is not None
        raise unsuited(view, analysis.reason.message)
    table = show_path((SOURCES, view))
    types = {name: each.types for name, each in remote.items()}
    join, relation = taken_apart(view, analysis.relation, types, table)
    leaf = Staged(_HOLE, tuple(Field(name, name) for name in join.columns))
    before, _, after = print_relation(map_leaves(relation, lambda _: leaf)).partition(_HOLE)
    before, after = before.removesuffix("`"), after.removeprefix("`")
    text = QueryText((before, TableHole(table, None), after))
    return Swept(table, join, Analysis(text, relation, None))


def join_of(view: KnownView) -> SweptJoin | None:
    """The join behind a view of remote tables."""
    return next(
        (SweptJoin.of_json(facts["join"]) for facts in view.sources.values() if "join" in facts), None
    )


def is_base_view(view: KnownView) -> bool:
    """Whether a view holds a table of a source that people declared."""
    return source_of(view) is not None and join_of(view) is None


def source_behind(view: KnownView) -> SourceDefinition | None:
    """The source that sweeps a view; a new one each time that it is defined."""
    join = join_of(view)
    if join is None:
        return None
    consistency = view.definition.consistency or STRONG
    return SourceDefinition(view.name, SWEEP, (), facts=sweep_facts(join, consistency))


def refuse_members(sources: Iterable[SourceDefinition], declared: Mapping[str, SourceDefinition]) -> None:
    """Raise if the sources of a join do not go together, or do not tell what the view is to show."""
    for source in sources:
        facts = dict(source.facts)
        seen: dict[tuple[Any, ...], str] = {}
        for name in SweptJoin.of_json(facts["join"]).sources:
            options = _followed(declared[name])
            other = seen.setdefault((options["host"], options["port"], options["database"]), name)
            if other != name:
                raise one_database(source.name, other, name)
            if facts["consistency"] == COMPLETE and options["capture"] != "log":
                raise DefinitionError(
                    f"view {source.name} is to show every state of {name}, whose triggers do not tell in "
                    "which order transactions were committed",
                    code="VK-CONSISTENCY",
                    hint="Declare the source with capture 'log', or the view with CONSISTENCY STRONG.",
                )


def refuse_lost(library: Library, before: SourceDefinition | None, after: SourceDefinition | None) -> None:
    """Raise if a view is swept over tables that a source would not have any more as they were, or would
    follow in another way; ``None``: it is dropped."""
    if before is None:
        return
    old, new = remote_tables(before), {} if after is None else remote_tables(after)
    is_moved = after is None or after.kind != before.kind or _followed(before) != _followed(after)
    for view in library.views.values():
        join = join_of(view)
        for relation in () if join is None else join.relations:
            is_ours = relation.source == before.name
            if is_ours and (is_moved or new.get(relation.table) != old[relation.table]):
                raise DefinitionError(
                    f"view {view.name} is swept over {relation.table}",
                    code="VK-VIEW-IN-USE",
                    hint="Drop the view first, and create it again when the source is declared anew.",
                )


def _followed(source: SourceDefinition) -> dict[str, Any]:
    """Where a database is, and how it is followed."""
    return checked_options(source).model_dump(include=_FOLLOWED_BY)


def declared_by_people(sources: Iterable[SourceDefinition]) -> list[SourceDefinition]:
    """Without those that stand behind views."""
    return [source for source in sources if source.kind != SWEEP]
