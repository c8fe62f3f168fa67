"""A PostgreSQL database as a source: some of its tables, which move together, transaction by transaction.

Its version is a position in the server's log. The first copy is read from a snapshot that stands exactly
where the replication slot begins; from then on whole transactions are read from the log, as many as wait::

    current()        read the log behind the position of the base views      (or take a snapshot)
    change()         what the transactions did to one table, taken together
    acknowledge()    the epoch is published: the server may forget what it covers
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pyspark.sql import SparkSession

from viewkeeper.define.sources import SourceDefinition
from viewkeeper.errors import DefinitionError, SourceError
from viewkeeper.sources.contract import Shelf
from viewkeeper.sources.extracted import QueriedChange, as_problem
from viewkeeper.sources.horizons import Horizons
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.pgoutput import RowChange, Transaction
from viewkeeper.sources.postgres_capture import Capture, capture_of
from viewkeeper.sources.postgres_delta import STAGED, PinnedTable, signed_rows
from viewkeeper.sources.postgres_drift import require_same_tables, require_untouched, speaks_of
from viewkeeper.sources.postgres_server import Server, ServerTable
from viewkeeper.sources.postgres_tables import PostgresTables, pinned_table

_CAPTURE = "capture"
"""Under this name the id of what captures changes for us is remembered, beside versions."""


class PostgresSource(PostgresTables):
    """Followed transaction by transaction: by the server's log, or by triggers."""

    def __init__(self, spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str) -> None:
        super().__init__(spark, definition, shelf, catalog)
        self._transactions: Sequence[Transaction] = ()

    # Declaring.

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        """With the tables as they are now, and a name for what captures their changes."""
        tables = self._pinned_tables()
        remote = self._pinned_remote()
        name = f"vk_{uuid.uuid4().hex[:20]}"
        problems = self._lacking(name)
        if problems:
            what, _, remedy = problems[0].partition(". ")
            raise DefinitionError(f"source {definition.name}: {what}", code="VK-SOURCE-SETUP", hint=remedy)
        if tables:
            # What captured changes before is given back when this is published: until then it may be needed.
            self._shelf.save(_CAPTURE, {"name": name, "before": self._known_captures()})
        facts = {"capture": name, "tables": _json(tables), "remote": _json(remote)}
        return replace(
            definition,
            tables=tuple(table.name for table in tables),
            remote=tuple(table.name for table in remote),
            facts=tuple(facts.items()),
        )

    def _pinned_remote(self) -> list[PinnedTable]:
        """The tables that are not copied: of a row that goes the log must tell all."""
        found = self._remote_server.tables()
        for table in found:
            self._refuse_unsuited(table)
            if self._server.options.capture == "log" and table.identity != "f":
                raise DefinitionError(
                    f"source {self._definition.name}: {table.namespace}.{table.name} is not copied, and the "
                    "log does not tell all of a row that goes",
                    code="VK-SOURCE-IDENTITY",
                    hint=f"ALTER TABLE {table.sql} REPLICA IDENTITY FULL",
                )
        return [pinned_table(table) for table in found]

    def _lacking(self, capture: str) -> Sequence[str]:
        options = self._server.options
        whole = Server(self._definition.name, options.over(options.tables + options.remote))
        return capture_of(whole, capture, self._shelf).problems()

    @property
    def _tells_whole_rows(self) -> bool:
        """Triggers do, before and after: such changes add up. What came last is not known of them, for a
        trigger of others that fires before ours may change a row before ours tells how it came to be."""
        return self._server.options.capture == "trigger"

    def _refuse_unsuited(self, table: ServerTable) -> None:
        super()._refuse_unsuited(table)
        named = f"source {self._definition.name}: {table.namespace}.{table.name}"
        if not table.is_whole:
            raise DefinitionError(
                f"{named} consists of other tables, and changes are told of those",
                code="VK-SOURCE-SETUP",
                hint="Name its parts as tables of the source, or compare: capture 'diff'.",
            )
        for column in table.kept:
            if column.generated and not (self._tells_whole_rows and column.generated == "s"):
                raise DefinitionError(
                    f"{named}: column {column.name} is worked out by the server, and not told with a change",
                    code="VK-SOURCE-TYPE",
                    hint="Leave the column out, or compare instead: capture 'diff'.",
                )
        if self._tells_whole_rows:
            return
        if table.identity == "f" and any(column.generated for column in table.columns):
            raise DefinitionError(
                f"{named} has REPLICA IDENTITY FULL and a column that the server works out: PostgreSQL 18 "
                "refuses to change the rows of such a table once it is published",
                code="VK-SOURCE-IDENTITY",
                hint="Capture changes by triggers, or compare: capture 'trigger', capture 'diff'.",
            )
        large = next((column.name for column in table.kept if column.is_large), None)
        if table.identity != "f" and large is not None and table.where is not None:
            raise DefinitionError(
                f"{named}: only some rows are kept, and the log does not tell column {large} of a row that "
                "comes among them when the value stays as it is",
                code="VK-SOURCE-IDENTITY",
                hint=f"ALTER TABLE {table.sql} REPLICA IDENTITY FULL",
            )
        if not (table.key and table.identity in "df") and table.identity != "f":
            raise DefinitionError(
                f"source {self._definition.name}: the log does not tell which row of {table.namespace}."
                f"{table.name} an UPDATE or DELETE concerns: it has no primary key",
                code="VK-SOURCE-IDENTITY",
                hint=f"ALTER TABLE {table.sql} REPLICA IDENTITY FULL",
            )

    def problems(self) -> Sequence[str]:
        try:
            for table in (*self._server.tables(), *self._remote_server.tables()):
                self._refuse_unsuited(table)
            return [*self._lacking(self._fact("capture")), *self._captured.warnings()]
        except (SourceError, DefinitionError) as error:
            return (as_problem(error),)

    def release(self) -> None:
        """What captures changes goes: a slot that nobody reads fills the server's disk."""
        self.let_go()
        for name in self._known_captures():
            self._capture(name).release()

    def give_up(self) -> None:
        """It was not declared after all: only what captured changes before is left."""
        self.let_go()
        kept = self._shelf.load(_CAPTURE)
        if kept is not None and kept["name"] == self._fact("capture"):
            self._capture(kept["name"]).release()
            before = kept["before"]
            self._shelf.save(_CAPTURE, {"name": before[0] if before else kept["name"], "before": before[1:]})

    def _known_captures(self) -> list[str]:
        """The names of all that may capture changes for us, the newest first."""
        kept = self._shelf.load(_CAPTURE)
        return [] if kept is None else [kept["name"], *kept["before"]]

    def _release_older(self) -> None:
        older = [name for name in self._known_captures() if name != self._fact("capture")]
        if older:
            for name in older:
                self._capture(name).release()
            self._shelf.save(_CAPTURE, {"name": self._fact("capture"), "before": []})

    def _capture(self, name: str) -> Capture:
        return capture_of(self._server, name, self._shelf)

    @cached_property
    def _captured(self) -> Capture:
        return self._capture(self._fact("capture"))

    # Where it stands.

    def current(self) -> Mapping[str, str | None]:
        """All tables stand at one position: behind the last transaction that is read."""
        self.let_go()
        if any(self._seen.get(table) is None for table in self._definition.all_tables):
            # If one table is copied, all are: what the others have not seen yet comes with the copy.
            self._snapshot = self._captured.begin(list(self._tables.values()))
            position = self._snapshot.position
            self._transactions = ()
        else:
            (start,) = {version for _, version in filter(None, self._seen.values())}
            tables = list(self._tables.values())
            self._transactions, position = self._captured.read(start, tables, self._horizon)
            # Asked after the changes were read: until then, at least, the tables were those that we know.
            require_same_tables(self._server, tables)
        return dict.fromkeys(self._definition.all_tables, position)

    def holds(self, table: str, version: str) -> bool:
        """A snapshot is taken first: if nothing waits after that, it is the state of the version."""
        self.let_go()
        tables = list(self._tables.values())
        self._snapshot = self._captured.begin(tables)
        waiting, _ = self._captured.read(version, tables, Horizons().of(self._server))
        if waiting:
            self.let_go()
        return not waiting

    # Changes.

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> QueriedChange | None:
        assert new is not None
        if old == new:
            return None
        assert old is not None
        if self._snapshot is not None:
            raise SourceError(
                "another table of the source is copied anew, and the changes of this one come with its copy",
                code="VK-SOURCE-EXPIRED",
            )
        pinned = self._tables[table]
        net = NetChanges(pinned.names, () if self._tells_whole_rows else pinned.key)
        for transaction in self._transactions:
            net.take(self._concerning(pinned, transaction))
        if net.is_empty:
            return None
        seen = self._seen[table]
        assert seen is not None
        found = signed_rows(net, pinned, seen[0])
        name = self._named(self._spark.createDataFrame(found.table()), table, new)
        selects = tuple(select.replace(STAGED, name) for select in found.selects)
        count = len(self._transactions)
        told = f"{count:,} transaction{'s' if count != 1 else ''}"
        return QueriedChange(table, old, new, found.inserted, found.deleted, told, selects)

    @staticmethod
    def _concerning(pinned: PinnedTable, transaction: Transaction) -> list[RowChange]:
        found = []
        types = {name: type_id for name, _, _, type_id in pinned.columns}
        for change in transaction.changes:
            relation = change.relation
            if not speaks_of(pinned, relation):
                continue
            for name, type_id, _ in relation.columns:
                if types.get(name, type_id) != type_id:
                    raise SourceError(
                        f"column {name} of {relation.namespace}.{relation.name} has another type now",
                        code="VK-SOURCE-CHANGED",
                        hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
                    )
            found.append(change)
        return found

    # After the epoch.

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """What the log holds does not change; what is copied may."""
        if self._snapshot is not None:
            tables = list(self._tables.values())
            require_same_tables(self._server, tables)
            require_untouched(self._server, tables, self._snapshot)

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """The server may forget what the epoch covers."""
        self.let_go()
        for position in filter(None, set(version.values())):
            self._captured.acknowledge(position)
            if not self._transactions:
                self._captured.rest()
        self._release_older()

    def rest(self) -> None:
        if not self._transactions and self._snapshot is None:
            self._captured.rest()


def _json(tables: Sequence[PinnedTable]) -> str:
    return json.dumps([table.to_json() for table in tables])
