"""The databases that a view is swept over, and the tables of theirs that it joins. Needs no Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from viewkeeper.define.sources import PostgresOptions, SourceDefinition, checked_options
from viewkeeper.errors import DefinitionError, SourceError
from viewkeeper.integrate.joins import SweptJoin
from viewkeeper.integrate.politeness import Politeness
from viewkeeper.integrate.remote import Remote, Taken, remote
from viewkeeper.sources.contract import Shelf
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.pgoutput import Operation, RowChange
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_drift import speaks_of
from viewkeeper.sources.postgres_server import Server

STRONG = "strong"
"""As many transactions in an epoch as are waiting."""
COMPLETE = "complete"
"""An epoch for each transaction."""
_FACTS = ("join", "slot", "consistency")
T = TypeVar("T")


def sweep_facts(join: SweptJoin, consistency: str) -> tuple[tuple[str, str], ...]:
    """What a source has to know to sweep a view."""
    slot = f"vk_{uuid.uuid4().hex[:20]}"
    return tuple(zip(_FACTS, (join.to_json(), slot, consistency), strict=True))


def sources_of_join(definition: SourceDefinition) -> tuple[str, ...]:
    """The declared sources that a swept join reads."""
    return SweptJoin.of_json(dict(definition.facts)["join"]).sources


def one_database(view: str, source: str, other: str) -> DefinitionError:
    """A sweep takes each source for a database of its own, which changes by itself."""
    return DefinitionError(
        f"view {view} joins tables of {source} and {other}, which are one database",
        code="VK-SWEEP-UNSUITED",
        hint="Declare one source with the tables of both: they move together then.",
    )


def remote_tables(definition: SourceDefinition) -> dict[str, PinnedTable]:
    """The tables of a source that are not copied, as they were when it was declared."""
    pinned = [PinnedTable.of_json(each) for each in json.loads(definition.fact("remote") or "[]")]
    return dict(zip(definition.remote_tables, pinned, strict=True))


def positions_of(version: str) -> dict[str, str]:
    """Where each database stands at a version of the join."""
    return dict(json.loads(version))


def version_of(positions: Mapping[str, str]) -> str:
    """The version of the join at which the databases stand there."""
    return json.dumps(positions, sort_keys=True)


@dataclass(frozen=True, slots=True)
class PartOfShelf:
    """What is remembered of one database."""

    shelf: Shelf
    part: str

    def load(self, version: str) -> Mapping[str, Any] | None:
        return self.shelf.load(f"{self.part} {version}")

    def save(self, version: str, content: Mapping[str, Any]) -> None:
        self.shelf.save(f"{self.part} {version}", content)

    def forget_others(self, version: str) -> None:
        """Everything is still needed."""


class Members:
    """The databases behind one swept view. ``declared``: all sources, those that name them among them."""

    def __init__(
        self, definition: SourceDefinition, shelf: Shelf, declared: Mapping[str, SourceDefinition]
    ) -> None:
        facts = dict(definition.facts)
        self._shelf = shelf
        self._declared = declared
        self.join = SweptJoin.of_json(facts["join"])
        self.slot = facts["slot"]
        self.consistency = facts["consistency"]

    @cached_property
    def tables(self) -> dict[str, PinnedTable]:
        """The tables of the join, as they were when their source was declared."""
        known: dict[str, PinnedTable] = {}
        for each in self._declared.values():
            known |= remote_tables(each)
        return {relation.table: known[relation.table] for relation in self.join.relations}

    @cached_property
    def remotes(self) -> dict[str, Remote]:
        return {name: self.remote(name, self.slot) for name in self.join.sources}

    def remote(self, source: str, slot: str) -> Remote:
        """A database, with what captures its changes for us."""
        options = checked_options(self._declared[source])
        assert isinstance(options, PostgresOptions)
        ours = self.tables_of(source)
        server = Server(source, options.over(tuple(f"{table.namespace}.{table.name}" for table in ours)))
        return remote(server, slot, ours, PartOfShelf(self._shelf, source))

    def tables_of(self, source: str) -> list[PinnedTable]:
        """The tables of one database, each once."""
        ours = (self.tables[each.table] for each in self.join.relations if each.source == source)
        return list(dict.fromkeys(ours))

    def politely(self, source: str, act: Callable[[], T]) -> T:
        """Ask a database, within the limits that its source was declared with."""
        server = self.remotes[source].server
        return Politeness(server.options, PartOfShelf(self._shelf, source), source).run(act)

    def require_different(self, view: str) -> None:
        """Raise if two sources are one database after all, under two names of its host."""
        seen: dict[tuple[str, ...], str] = {}
        for source, each in self.remotes.items():
            (started,) = each.server.one("SELECT pg_postmaster_start_time()::text")
            other = seen.setdefault((each.primary, started, each.server.options.database), source)
            if other != source:
                raise one_database(view, other, source)

    def concerns(self, source: str, taken: Taken) -> bool:
        """Whether a transaction of a database changed one of the tables."""
        return bool(self._changes(source, taken))

    def truncates(self, source: str, taken: Taken) -> bool:
        """Whether a transaction emptied one of the tables: which rows went, nobody tells."""
        return any(change.operation is Operation.TRUNCATE for change in self._changes(source, taken))

    def _changes(self, source: str, taken: Taken) -> list[RowChange]:
        """What a transaction did to the tables. Another database may have some of the same names."""
        tables = self.tables_of(source)
        changes = taken.transaction.changes
        return [each for each in changes if any(speaks_of(table, each.relation) for table in tables)]

    def release(self, slot: str, sources: Iterable[str]) -> None:
        """Give back what captured changes at these sources: a slot that nobody reads fills a server's disk.
        One server that cannot be reached does not keep the others theirs."""
        left: dict[str, SourceError] = {}
        for source in sources:
            try:
                if source in self._declared:
                    self.remote(source, slot).release()
            except SourceError as error:
                left[source] = error
        for first in left.values():
            raise SourceError(
                f"{first.message}; what captured its changes is left there",
                code=first.code,
                hint=f"Remove it at {', '.join(left)}: SELECT pg_drop_replication_slot('{slot}'); "
                f"DROP PUBLICATION IF EXISTS {slot}; with triggers, DELETE FROM viewkeeper.readers "
                f"WHERE name = '{slot}'.",
            )

    def lag(self, version: str) -> Lag:
        """What waits in all databases together."""
        positions = positions_of(version)
        lags = [each.lag(positions[source]) for source, each in self.remotes.items()]
        return Lag(sum(each.transactions for each in lags), max(each.seconds for each in lags))
