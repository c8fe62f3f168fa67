"""What a kind of source must provide for the contract suite to run on it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from pyspark.sql import SparkSession

from viewkeeper.execute.embedded import CATALOG
from viewkeeper.execute.tuning import reading_files
from viewkeeper.sources.contract import Change, Source
from viewkeeper.sources.delta_lake import DeltaSource
from viewkeeper.sources.iceberg import IcebergSource
from viewkeeper.sql.quoting import quote_path, show_path

COLUMNS = ("id", "part", "name", "price", "at")
Bag = Counter[tuple[object, ...]]


class SourceHarness(ABC):
    """One table of one source system: how to change it, and what it holds at a version."""

    source: Source
    table: str

    @abstractmethod
    def random_operation(self, rng: random.Random) -> str:
        """Change the table in some way; returns words for the failure message."""

    @abstractmethod
    def version(self) -> str | None: ...

    @abstractmethod
    def rows(self, version: str | None) -> Bag: ...

    @abstractmethod
    def delta(self, change: Change, columns: Sequence[str] = COLUMNS) -> Bag: ...


@dataclass(frozen=True)
class IcebergKind:
    """A way to keep an Iceberg table."""

    name: str
    format_version: int
    mode: str
    partitioned: bool
    granularity: str = "file"

    def __str__(self) -> str:
        return self.name


ICEBERG_KINDS = (
    IcebergKind("v2-cow", 2, "copy-on-write", partitioned=False),
    IcebergKind("v2-cow-partitioned", 2, "copy-on-write", partitioned=True),
    IcebergKind("v2-mor", 2, "merge-on-read", partitioned=False),
    IcebergKind("v2-mor-partitioned", 2, "merge-on-read", partitioned=True),
    IcebergKind("v2-mor-partition-deletes", 2, "merge-on-read", partitioned=True, granularity="partition"),
    IcebergKind("v3-mor", 3, "merge-on-read", partitioned=False),
    IcebergKind("v3-mor-partitioned", 3, "merge-on-read", partitioned=True),
)

_NUMBERS = count()


class IcebergHarness(SourceHarness):
    """An Iceberg table of three partitions, with NULLs and duplicates in every column."""

    def __init__(self, spark: SparkSession, kind: IcebergKind, name: str | None = None) -> None:
        self.spark = spark
        self.kind = kind
        self.parts = (CATALOG, "contract", name or f"t{next(_NUMBERS)}")
        self.name = quote_path(self.parts)
        self.table = show_path(self.parts)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path(self.parts[:2])}")
        self.create()
        self._rows: dict[str | None, Bag] = {}
        self.source: IcebergSource = IcebergSource(spark, self.parts, reading_files(2))

    def create(
        self, columns: str = "id INT, part INT, name STRING, price DECIMAL(8,2), at TIMESTAMP"
    ) -> None:
        partitioned = "PARTITIONED BY (part)" if self.kind.partitioned else ""
        modes = ", ".join(
            f"'write.{what}.mode' = '{self.kind.mode}'" for what in ("delete", "update", "merge")
        )
        self.spark.sql(
            f"CREATE TABLE {self.name} ({columns}) USING iceberg {partitioned} TBLPROPERTIES "
            f"('format-version' = '{self.kind.format_version}', {modes}, "
            f"'write.delete.granularity' = '{self.kind.granularity}')"
        )

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.replace("{t}", self.name)).collect()

    def insert(self, first: int, last: int, part: str = "id % 3") -> None:
        """Rows of these ids; every seventh id has NULLs, and comes twice."""
        self.sql(
            f"INSERT INTO {{t}} SELECT {_row(part)} FROM range({first}, {last}, 1, 1) "
            f"UNION ALL SELECT {_row(part)} FROM range({first}, {last}, 1, 1) WHERE id % 7 = 0"
        )

    def compact(self) -> None:
        self._call("rewrite_data_files", ", options => map('rewrite-all', 'true')")

    def compact_deletes(self) -> None:
        self._call("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')")

    def rewrite_manifests(self) -> None:
        self._call("rewrite_manifests", "")

    def _call(self, procedure: str, arguments: str) -> None:
        table = quote_path(self.parts[1:]).replace("'", "\\'")
        self.spark.sql(f"CALL {CATALOG}.system.{procedure}(table => '{table}'{arguments})").collect()

    def random_operation(self, rng: random.Random) -> str:
        low = rng.randrange(60)
        high = low + rng.randrange(1, 20)
        between = f"id BETWEEN {low} AND {high}"
        part = rng.randrange(3)
        statements = {
            "insert": f"INSERT INTO {{t}} SELECT {_row('id % 3')} FROM range({low}, {high}, 1, 1)",
            "insert duplicates": f"INSERT INTO {{t}} SELECT {_row('id % 3')} FROM range({low}, {high}, 1, 1) "
            f"UNION ALL SELECT {_row('id % 3')} FROM range({low}, {high}, 1, 1)",
            "copy": f"INSERT INTO {{t}} SELECT * FROM {{t}} WHERE {between}",
            "delete": f"DELETE FROM {{t}} WHERE {between}",
            "delete NULLs": "DELETE FROM {t} WHERE name IS NULL AND id % 2 = 0",
            "update": f"UPDATE {{t}} SET price = price + 1 WHERE {between}",
            "update to NULL": f"UPDATE {{t}} SET name = NULL, at = NULL WHERE {between}",
            "move": f"UPDATE {{t}} SET part = {part}, id = id + 1 WHERE {between}",
            "merge": f"MERGE INTO {{t}} USING (SELECT CAST(id AS INT) AS i FROM range({low}, {high})) "
            "ON id <=> i WHEN MATCHED AND i % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET price = 7 "
            "WHEN NOT MATCHED THEN INSERT (id, part, name) VALUES (i, i % 3, 'merged')",
            "merge nothing": "MERGE INTO {t} USING (SELECT -1 AS i) ON id = i WHEN MATCHED THEN DELETE",
            "overwrite": f"INSERT OVERWRITE {{t}} SELECT {_row(str(part))} FROM range({low}, {high}, 1, 1)",
            "drop a partition": f"DELETE FROM {{t}} WHERE part = {part}",
            "truncate": "TRUNCATE TABLE {t}",
        }
        services = {
            "compact": self.compact,
            "compact deletes": self.compact_deletes,
            "rewrite manifests": self.rewrite_manifests,
        }
        often = ["insert", "delete", "update", "merge"] * 3
        name = rng.choice([*statements, *services, *often])
        if name in services:
            services[name]()
            return name
        self.sql(statements[name])
        return statements[name]

    def version(self) -> str | None:
        return self.source.current()[self.table]

    def rows(self, version: str | None) -> Bag:
        wanted = ", ".join(COLUMNS)
        return Counter(
            tuple(row)
            for row in self.spark.sql(
                f"SELECT {wanted} FROM {self.source.rows(self.table, version)}"
            ).collect()
        )

    def delta(self, change: Change, columns: Sequence[str] = COLUMNS) -> Bag:
        found: Bag = Counter()
        for statement in change.statements(columns):
            for row in self.spark.sql(statement).collect():
                found[tuple(row)[:-1]] += row[-1]
        return found


@dataclass(frozen=True)
class DeltaKind:
    """A way to keep a Delta table."""

    name: str
    properties: str
    partitioned: bool

    def __str__(self) -> str:
        return self.name


DELTA_KINDS = (
    DeltaKind("delta-feed", "'delta.enableChangeDataFeed' = 'true'", partitioned=False),
    DeltaKind("delta-vectors", "'delta.enableDeletionVectors' = 'true'", partitioned=True),
    DeltaKind("delta-rewriting", "'delta.enableDeletionVectors' = 'false'", partitioned=True),
)


class DeltaHarness(IcebergHarness):
    """The same table, kept by Delta."""

    def __init__(self, spark: SparkSession, kind: DeltaKind) -> None:
        self.spark = spark
        self.parts = ("spark_catalog", "contract", f"d{next(_NUMBERS)}")
        self.name = quote_path(self.parts)
        self.table = show_path(self.parts)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path(self.parts[:2])}")
        partitioned = "PARTITIONED BY (part)" if kind.partitioned else ""
        spark.sql(
            f"CREATE TABLE {self.name} (id INT, part INT, name STRING, price DECIMAL(8,2), at TIMESTAMP) "
            f"USING delta {partitioned} TBLPROPERTIES ({kind.properties})"
        )
        self.source = DeltaSource(spark, self.parts)  # type: ignore[assignment]

    def sql(self, statement: str) -> None:
        super().sql("DELETE FROM {t}" if statement.startswith("TRUNCATE") else statement)

    def compact(self) -> None:
        self.sql("OPTIMIZE {t}")

    def compact_deletes(self) -> None:
        self.sql("REORG TABLE {t} APPLY (PURGE)")

    def rewrite_manifests(self) -> None:
        """Adds files again, with statistics, that are there already."""
        self.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '5')")


def _row(part: str) -> str:
    null = "id % 7 = 0"
    return (
        f"CAST(id AS INT) AS id, CAST({part} AS INT) AS part, "
        f"IF({null}, NULL, concat('n', CAST(id % 5 AS STRING))) AS name, "
        f"IF({null}, NULL, CAST(id % 10 AS DECIMAL(8, 2))) AS price, "
        f"IF({null}, NULL, timestamp_seconds(1700000000 + id * 3600)) AS at"
    )
