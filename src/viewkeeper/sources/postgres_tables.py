"""The tables of a PostgreSQL database that a source names: what all ways to follow them have in common."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.define.sources import PostgresOptions, SourceDefinition, checked_options
from viewkeeper.errors import DefinitionError, SourceError
from viewkeeper.sources.conditions import pushed, require_condition
from viewkeeper.sources.contract import Capabilities, Description, Shelf, SourceColumn
from viewkeeper.sources.extracted import Extracted
from viewkeeper.sources.horizons import Horizon, Horizons
from viewkeeper.sources.postgres_copy import Copying
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server, ServerTable, Snapshot


class PostgresTables(Extracted):
    """Tables as they were when the source was declared, and a snapshot in which they can be read."""

    capabilities = Capabilities(rows_at_version=False, lists_versions=False, acknowledges=True)

    def __init__(self, spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str) -> None:
        options = checked_options(definition)
        assert isinstance(options, PostgresOptions)
        self._spark = spark
        self._definition = definition
        self._shelf = shelf
        self._server = Server(definition.name, options)
        self._seen: dict[str, tuple[str, str] | None] = {}
        self._snapshot: Snapshot | None = None
        self._horizons: Horizons | None = None
        self._views: set[str] = set()
        """Under these names Spark finds what was read, for as long as it is needed."""

    # What the tables are.

    def _pinned_tables(self) -> list[PinnedTable]:
        """The tables to copy as they are now; what cannot be kept is refused."""
        found = self._server.tables()
        names = [table.name for table in (*found, *self._remote_server.tables())]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DefinitionError(
                f"source {self._definition.name}: two tables are named {twice[0]}",
                code="VK-SOURCE-OPTION",
                hint="Declare a source for each schema.",
            )
        for table in found:
            self._refuse_unsuited(table)
        standby, encoding = self._server.one("SELECT pg_is_in_recovery(), current_setting('server_encoding')")
        if encoding != "UTF8":
            raise DefinitionError(
                f"source {self._definition.name}: the database has the encoding {encoding}",
                code="VK-SOURCE-SETUP",
                hint="Only UTF8 is read. Copy the database into one that is created with ENCODING 'UTF8'.",
            )
        if standby:
            raise DefinitionError(
                f"source {self._definition.name}: the server is a standby",
                code="VK-SOURCE-SETUP",
                hint="Name the primary.",
            )
        pinned = [pinned_table(table) for table in found]
        for each in pinned:
            require_condition(self._spark, self._definition.name, each.where, _columns(each))
        return pinned

    def _refuse_unsuited(self, table: ServerTable) -> None:
        there = [column.name for column in table.columns]
        missing = next(iter(sorted(table.named.difference(there))), None)
        if missing is not None:
            raise DefinitionError(
                f"source {self._definition.name}: there is no column {missing} in {table.namespace}."
                f"{table.name}",
                code="VK-SOURCE-OPTION",
                hint=f"There are: {', '.join(there)}.",
            )
        for column in table.kept:
            if column.spark is None:
                raise DefinitionError(
                    f"source {self._definition.name}: column {column.name} of {table.namespace}.{table.name} "
                    f"has the type {column.type}, which Spark has no type for",
                    code="VK-SOURCE-TYPE",
                    hint=f"Leave it out: tables '{table.namespace}.{table.name} (…)' keeps the columns that "
                    "are named. Or change its type.",
                )

    @cached_property
    def _remote_server(self) -> Server:
        """The server, and those of its tables that are not copied."""
        options = self._server.options
        return Server(self._definition.name, options.over(options.remote))

    @cached_property
    def _tables(self) -> dict[str, PinnedTable]:
        pinned = [PinnedTable.of_json(each) for each in json.loads(self._fact("tables"))]
        return dict(zip(self._definition.all_tables, pinned, strict=True))

    def _fact(self, name: str) -> str:
        return dict(self._definition.facts)[name]

    def describe(self, table: str) -> Description:
        pinned = self._tables[table]
        return Description(_columns(pinned), None, pinned.key)

    # What is read.

    def watch(self, horizons: Horizons) -> None:
        self._horizons = horizons

    @property
    def _horizon(self) -> Horizon:
        """How far it is looked at: to where it is now, unless others look, too."""
        return (self._horizons or Horizons()).of(self._server)

    def show(self, table: str, rows: str | None, version: str | None) -> None:
        self._seen[table] = None if rows is None or version is None else (rows, version)

    def rows(self, table: str, version: str | None) -> str:
        """The table in the snapshot that was taken, under a name."""
        if self._snapshot is None:
            raise SourceError(
                f"source {self._definition.name} keeps no history: version {version} cannot be read",
                code="VK-NO-HISTORY",
            )
        return self._copied(table, version, self._snapshot, "")

    def _copied(self, table: str, version: str | None, snapshot: Snapshot, condition: str) -> str:
        pinned = self._tables[table]
        wanted = pushed(pinned.where, pinned.types)
        copying = Copying(self._spark, self._server, pinned.sql, pinned.types, wanted)
        rows = copying.rows(snapshot.name, condition)
        return self._named(rows if pinned.where is None else rows.where(pinned.where), table, version)

    def _named(self, rows: DataFrame, table: str, version: str | None) -> str:
        told = hashlib.sha256(f"{self._definition.name} {table} {version}".encode()).hexdigest()[:20]
        name = f"vk_pg_{told}"
        rows.createOrReplaceGlobalTempView(name)
        self._views.add(name)
        return f"global_temp.{name}"

    def let_go(self) -> None:
        while self._views:
            self._spark.catalog.dropGlobalTempView(self._views.pop())
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None


def _columns(table: PinnedTable) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(name, spark) for name, _, spark, _ in table.columns)


def pinned_table(table: ServerTable) -> PinnedTable:
    """The table, to be remembered as it is."""
    kept = tuple((each, each.spark.spark) for each in table.kept if each.spark is not None)
    layout = tuple((each.name, each.type_id) for each in table.columns)
    return PinnedTable(
        table.namespace,
        table.name,
        tuple((each.name, each.type, spark, each.type_id) for each, spark in kept),
        table.key,
        table.oid,
        table.identity,
        table.where,
        layout,
        tuple(each.number for each, _ in kept),
        tuple(each.labels for each, _ in kept),
    )
