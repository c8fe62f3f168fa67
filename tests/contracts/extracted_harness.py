"""What a source without history must provide for its contract suite: how to change it, and what it holds.

A source of this kind cannot be asked for what it held before, so a copy of each table is kept here, as the
warehouse keeps base views: brought up by deltas, and moved only when an epoch is published.
"""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import DataFrame, SparkSession

from postgres_server import PostgresInstance
from viewkeeper.define.sources import SourceDefinition
from viewkeeper.execute.embedded import CATALOG
from viewkeeper.sources.contract import Change, ExtractedSource
from viewkeeper.sources.kinds import open_source
from viewkeeper.sources.postgres_triggers import install_sql
from viewkeeper.sql.quoting import quote

Row = tuple[Any, ...]
Bag = Counter[Row]
Versions = Mapping[str, str | None]

_NUMBERS = count()


@dataclass
class MemoryShelf:
    """What a source remembers, as the ledger would."""

    kept: dict[str, dict[str, Any]] = field(default_factory=dict)

    def load(self, version: str) -> Mapping[str, Any] | None:
        return self.kept.get(version)

    def save(self, version: str, content: Mapping[str, Any]) -> None:
        self.kept[version] = dict(content)

    def forget_others(self, version: str) -> None:
        self.kept = {each: content for each, content in self.kept.items() if each == version}


@dataclass
class Copy:
    """A table as it was seen, and the version that it is of."""

    rows: Bag
    version: str
    view: str


class ExtractedHarness(ABC):
    """A source, and the copies that are kept of its tables."""

    def __init__(self, spark: SparkSession, kind: str, options: Mapping[str, str]) -> None:
        self.spark = spark
        self.shelf = MemoryShelf()
        declared = SourceDefinition(f"s{next(_NUMBERS)}", kind, tuple(options.items()))
        self.definition = self._open(declared).pinned(declared)
        self.source = self._open(self.definition)
        self.tables = self.definition.all_tables
        self.copies: dict[str, Copy] = {}

    @abstractmethod
    def random_operation(self, chance: random.Random) -> str:
        """Change something; returns words for the failure message."""

    @abstractmethod
    def there(self) -> dict[str, Bag]:
        """What the tables hold now."""

    def _open(self, definition: SourceDefinition) -> ExtractedSource:
        return open_source(self.spark, definition, self.shelf, CATALOG)

    def reopen(self) -> None:
        """As if the process had died: all that is left is what the ledger has."""
        self.source.let_go()
        self.source = self._open(self.definition)

    def look(self) -> Versions:
        """Where the tables stand, once the source knows what was seen of them."""
        for table in self.tables:
            copy = self.copies.get(table)
            if copy is None:
                self.source.show(table, None, None)
            else:
                self.source.show(table, f"SELECT * FROM {copy.view}", copy.version)
        return self.source.current()

    def change(self, table: str, now: Versions) -> Change | None:
        return self.source.change(table, self.copies[table].version, now[table])

    def columns(self, table: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.source.columns(table))

    def delta(self, change: Change | None, columns: Sequence[str]) -> Bag:
        """Summed over equal rows; those that cancel out are left out."""
        found: Bag = Counter()
        if change is not None:
            parts = [self.spark.sql(statement) for statement in change.statements(columns)]
            for row in reduce(DataFrame.unionAll, parts).collect():
                found[plain(row[:-1])] += row[-1]
        return Counter({row: weight for row, weight in found.items() if weight})

    def copy_all(self) -> None:
        """The first epoch: every table is read whole."""
        now = self.look()
        try:
            relations = {table: self.source.rows(table, now[table]) for table in self.tables}
            rows = {table: self.read(f"SELECT * FROM {name}") for table, name in relations.items()}
        except BaseException:
            self.source.let_go()
            raise
        self.source.confirm(now)
        self.publish(now, rows)
        self.source.acknowledge(now)

    def publish(self, now: Versions, rows: Mapping[str, Bag]) -> None:
        for table, held in rows.items():
            version = now[table]
            assert version is not None
            self.copies[table] = Copy(held, version, self._view(table, held))

    def read(self, query: str) -> Bag:
        return Counter(plain(row) for row in self.spark.sql(query).collect())

    def _view(self, table: str, rows: Bag) -> str:
        name = f"copy_{next(_NUMBERS)}"
        columns = self.source.columns(table)
        schema = ", ".join(f"{quote(column.name)} {column.type}" for column in columns)
        self.spark.createDataFrame(list(rows.elements()), schema).createOrReplaceTempView(name)
        return name

    def close(self) -> None:
        self.source.let_go()
        with suppress(Exception):
            self.source.release()


def plain(row: Sequence[Any]) -> Row:
    """Values that can stand in a bag."""
    return tuple(
        bytes(value) if isinstance(value, bytearray) else tuple(value) if isinstance(value, list) else value
        for value in row
    )


def difference(before: Bag, after: Bag) -> Bag:
    found = Counter(after)
    found.subtract(before)
    return Counter({row: weight for row, weight in found.items() if weight})


def check_bounds(change: Change, expected: Bag, story: object) -> None:
    """No more rows come and go than the change says."""
    assert sum(weight for weight in expected.values() if weight > 0) <= change.inserted, story
    assert -sum(weight for weight in expected.values() if weight < 0) <= change.deleted, story
    assert change.method


# Files.


@dataclass(frozen=True)
class FilesKind:
    """How files are delivered."""

    name: str
    mode: str
    key: str = ""
    delivery: str = ""
    form: str = "csv"

    def __str__(self) -> str:
        return self.name


FILES_KINDS = (
    FilesKind("files-append", "append"),
    FilesKind("files-replace", "replace", form="json"),
    FilesKind("files-replace-keyed", "replace", "part, id"),
    FilesKind("files-snapshot", "snapshot"),
    FilesKind("files-snapshot-keyed", "snapshot", "id, part", form="json"),
    FilesKind("files-latest", "snapshot", delivery="latest file"),
)
_SCHEMA = "part STRING, id INT, name STRING, price DECIMAL(8,2), at TIMESTAMP_NTZ"
_FILE_COLUMNS = ("part", "id", "name", "price", "at")


class FilesHarness(ExtractedHarness):
    """Files in a folder, each with some rows; of a keyed table no key comes twice."""

    def __init__(self, spark: SparkSession, kind: FilesKind, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.files: dict[str, list[Row]] = {}
        self._clock = 1_700_000_000
        self._ids = count()
        self.write("f0", self.new_rows(random.Random(0), 8))
        given = {"path": str(folder), "format": kind.form, "mode": kind.mode, "schema": _SCHEMA}
        chosen = {"key": kind.key, "delivery": kind.delivery, "header": "true" * (kind.form == "csv")}
        super().__init__(spark, "files", given | {key: value for key, value in chosen.items() if value})

    def new_rows(self, chance: random.Random, most: int) -> list[Row]:
        rows = [self._row(chance, next(self._ids)) for _ in range(chance.randrange(1, most))]
        return rows if self.kind.key else rows + chance.choices(rows, k=2)

    @staticmethod
    def _row(chance: random.Random, number: int) -> Row:
        return (
            chance.choice(["a", "b, c", None]),
            number,
            chance.choice([f'n "{number}"', "it's; x", None]),
            chance.choice([Decimal(number) / 4, Decimal("-1.50"), None]),
            chance.choice([datetime(2024, 2, 29, 12) + timedelta(hours=number), None]),
        )

    def write(self, name: str, rows: list[Row]) -> None:
        """Rewritten within the same second and with as many bytes, a file cannot be told from what it was."""
        self.files[name] = rows
        file = self.folder / f"{name}.{self.kind.form}"
        told = [self._line(row) for row in rows]
        file.write_text("\n".join([*self._head(), *told, ""]) or "\n", encoding="utf-8")
        self._clock += 1
        os.utime(file, (self._clock, self._clock))

    def _head(self) -> list[str]:
        return [",".join(_FILE_COLUMNS)] if self.kind.form == "csv" else []

    def _line(self, row: Row) -> str:
        told = [None if value is None else str(value) for value in row]
        if self.kind.form == "csv":
            return ",".join("" if each is None else '"' + each.replace('"', '""') + '"' for each in told)
        pairs = (
            f'"{name}": ' + ('"' + each.replace('"', '\\"') + '"' if name != "id" else each)
            for name, each in zip(_FILE_COLUMNS, told, strict=True)
            if each is not None
        )
        return "{" + ", ".join(pairs) + "}"

    def random_operation(self, chance: random.Random) -> str:
        acts = ["add", "add", "nothing"]
        if self.kind.mode != "append":
            acts += ["change", "change", "change", "remove", "touch", "empty"]
        act = chance.choice(acts)
        name = chance.choice(sorted(self.files))
        if act == "add":
            self.write(f"f{next(_NUMBERS):06}", self.new_rows(chance, 6))
        elif act == "change":
            self.write(name, self._changed(chance, self.files[name]))
        elif act == "touch":
            self.write(name, self.files[name])
        elif act == "empty" and self.kind.form == "csv":
            self.write(name, [])
        elif act == "remove" and len(self.files) > 1:
            del self.files[name]
            (self.folder / f"{name}.{self.kind.form}").unlink()
        return f"{act} {name}"

    def _changed(self, chance: random.Random, rows: list[Row]) -> list[Row]:
        kept = [row for row in rows if chance.random() < 0.7]
        told = [
            (row[0], row[1], *self._row(chance, chance.randrange(99))[2:]) if chance.random() < 0.5 else row
            for row in kept
        ]
        return told + self.new_rows(chance, 3)

    def there(self) -> dict[str, Bag]:
        names = [max(self.files)] if self.kind.delivery else list(self.files)
        return {self.tables[0]: Counter(row for name in names for row in self.files[name])}


# PostgreSQL.


CAPTURES = ("log", "trigger", "diff")


class PostgresHarness(ExtractedHarness):
    """Two tables that transactions change together: one with a key, one without."""

    def __init__(self, spark: SparkSession, server: PostgresInstance, capture: str) -> None:
        self._make_tables(server)
        at = self.schema
        if capture == "trigger":
            server.sql(install_sql([f"{at}.keyed", f"{at}.loose"], "keeper"))
        super().__init__(spark, "postgres", postgres_options(server, f"{at}.keyed, {at}.loose", capture))

    def _make_tables(self, server: PostgresInstance) -> None:
        self.server = server
        self.schema = at = f"c{next(_NUMBERS)}"
        server.sql(
            f"CREATE SCHEMA {at} AUTHORIZATION keeper",
            "SET ROLE keeper",
            f"CREATE TABLE {at}.keyed (part TEXT, id INT, name TEXT, price NUMERIC(8,2), at TIMESTAMP, "
            "big TEXT, PRIMARY KEY (id, part))",
            f"ALTER TABLE {at}.keyed ALTER big SET STORAGE EXTERNAL",
            f"CREATE TABLE {at}.loose (name TEXT, n INT, tags TEXT[])",
            f"ALTER TABLE {at}.loose REPLICA IDENTITY FULL",
            f"INSERT INTO {at}.keyed SELECT 'p' || i % 3, i, CASE WHEN i % 5 > 0 THEN 'n' || i END, i / 4.0, "
            "timestamp '2024-02-29 12:00' + i * interval '1 hour', repeat('x' || i, 2000) "
            "FROM generate_series(1, 30) AS i",
            f"INSERT INTO {at}.loose SELECT 'n' || i % 4, NULLIF(i % 3, 0), ARRAY['a,b', NULL] "
            "FROM generate_series(1, 12) AS i",
        )

    def random_operation(self, chance: random.Random) -> str:
        low = chance.randrange(1, 40)
        between = f"id BETWEEN {low} AND {low + chance.randrange(6)}"
        number = next(_NUMBERS) + 1000
        keyed, loose = f"{self.schema}.keyed", f"{self.schema}.loose"
        statements = {
            "insert": f"INSERT INTO {keyed} VALUES ('p', {number}, 'new', NULL, NULL, repeat('y', 3000))",
            "insert and delete": f"INSERT INTO {keyed} VALUES ('p', {number}); "
            f"DELETE FROM {keyed} WHERE id = {number}",
            "update": f"UPDATE {keyed} SET price = coalesce(price, 0) + 1 WHERE {between}",
            "update to NULL": f"UPDATE {keyed} SET name = NULL, at = NULL WHERE {between}",
            "update of the large": f"UPDATE {keyed} SET big = repeat('z{number}', 1500) WHERE {between}",
            "update of nothing": f"UPDATE {keyed} SET name = name WHERE {between}",
            "move": f"UPDATE {keyed} SET id = id + 1000, part = 'm' WHERE {between} AND id < 1000",
            "move back": f"UPDATE {keyed} SET id = id - 1000, part = 'p' || id % 3 WHERE part = 'm'",
            "delete": f"DELETE FROM {keyed} WHERE {between}",
            "delete and insert": f"DELETE FROM {keyed} WHERE id = {low}; "
            f"INSERT INTO {keyed} SELECT 'p' || {low} % 3, {low}, 'again' ON CONFLICT DO NOTHING",
            "insert copies": f"INSERT INTO {loose} SELECT 'n1', 1, '{{}}' FROM generate_series(1, 3)",
            "delete one copy": f"DELETE FROM {loose} WHERE ctid = (SELECT min(ctid) FROM {loose})",
            "update copies": f"UPDATE {loose} SET n = {low}, tags = NULL WHERE name = 'n{low % 4}'",
            "both": f"INSERT INTO {loose} VALUES ('both', {low}, '{{\"x y\"}}'); "
            f"UPDATE {keyed} SET name = 'both' WHERE {between}",
            "truncate": f"TRUNCATE {loose}; INSERT INTO {loose} VALUES ('first', 1)",
            "truncate both": f"TRUNCATE {loose}, {keyed}; INSERT INTO {keyed} VALUES ('p', {number}, 'x')",
            "roll back": f"DELETE FROM {keyed}; ROLLBACK",
        }
        often = ["insert", "update", "delete", "move", "both"] * 2
        name = chance.choice([*statements, *often])
        try:
            with self.server.connect() as connection:
                connection.execute("SET lock_timeout TO '100ms'")
                connection.execute(f"BEGIN; {statements[name]}; COMMIT")
        except psycopg.errors.LockNotAvailable:
            return f"{name} has to wait"  # for who reads the table just then
        return statements[name]

    def there(self) -> dict[str, Bag]:
        found = (self.server.sql(f"SELECT * FROM {self.schema}.{name}") for name in ("keyed", "loose"))
        return dict(zip(self.tables, (Counter(map(plain, rows)) for rows in found), strict=True))

    def close(self) -> None:
        super().close()
        self.server.sql(f"DROP SCHEMA {self.schema} CASCADE")


class JdbcHarness(PostgresHarness):
    """One of the two, read by a stranger: the times of its rows are left out, which have a zone to Spark."""

    def __init__(self, spark: SparkSession, server: PostgresInstance, table: str) -> None:
        self._make_tables(server)
        self.table = table
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?sslmode=disable"
        given = {"url": url, "user": "keeper", "password_env": "VK_TEST_PASSWORD"}
        chosen = {"key": "id, part", "columns": "name, price, big"} if table == "keyed" else {}
        super(PostgresHarness, self).__init__(
            spark, "jdbc", {**given, "table": f"{self.schema}.{table}", **chosen}
        )

    def there(self) -> dict[str, Bag]:
        columns = ", ".join(self.columns(self.tables[0]))
        found = self.server.sql(f"SELECT {columns} FROM {self.schema}.{self.table}")
        return {self.tables[0]: Counter(map(plain, found))}


def postgres_options(server: PostgresInstance, tables: str, capture: str, **more: str) -> dict[str, str]:
    given = {"host": "127.0.0.1", "port": str(server.port), "database": "postgres", "user": "keeper"}
    told = {"password_env": "VK_TEST_PASSWORD", "sslmode": "disable", "tables": tables, "capture": capture}
    return {**given, **told, **more}
