"""A table of any database that has a JDBC driver: read whole at each poll, and compared with what was seen.

SQL has no common word for a snapshot, so there is no more than one table, and it is read by one SELECT, which
sees one state of it in every database worth the name. Its version is a digest of its rows; they are read once
a poll, and kept until the epoch is over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.define.sources import JdbcOptions, SourceDefinition, checked_options
from viewkeeper.errors import DefinitionError, SourceError
from viewkeeper.sources.conditions import require_condition
from viewkeeper.sources.contract import Capabilities, Description, Shelf, SourceColumn
from viewkeeper.sources.differential import NESTED, SEEDS, Differential, fingerprint, unique
from viewkeeper.sources.drift import compare_schemas
from viewkeeper.sources.extracted import Extracted, QueriedChange, as_problem
from viewkeeper.sql.quoting import literal, quote

_COUNTED = "counted"
"""Under this name the number of rows is remembered, beside versions."""
_DRIVERS = {
    "db2": "com.ibm.db2.jcc.DB2Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "postgresql": "org.postgresql.Driver",
    "sqlite": "org.sqlite.JDBC",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
}
"""By the name in the URL. Java finds a driver by itself only if it was there when Java was started."""
_NARROW = ("tinyint", "smallint", "int")
"""What Spark takes SQLite's whole numbers for. They have 64 bits, of which it would drop the upper ones."""
_TOO_WIDE = "a number of more than 32 bits"
"""Marks the error of a number that does not fit a column that was declared before that was known."""
_FETCH_ROWS = 10_000
_BYTES_PER_ROW = 50


class JdbcSource(Extracted):
    """One table."""

    capabilities = Capabilities(rows_at_version=False, lists_versions=False, acknowledges=False)

    def __init__(self, spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str) -> None:
        options = checked_options(definition)
        assert isinstance(options, JdbcOptions)
        self._spark = spark
        self._name = definition.name
        self._options = options
        self._shelf = shelf
        (self._table,) = definition.all_tables
        known = definition.fact("columns")
        self._columns = tuple(SourceColumn(*column) for column in json.loads(known)) if known else ()
        self._seen: str | None = None
        self._rows: DataFrame | None = None
        self._count = 0

    # Declaring.

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        """With the columns that the table has now."""
        there = {column.name: column for column in _columns_of(self._whole())}
        for name in (*self._options.columns, *self._options.key):
            if name not in there:
                raise DefinitionError(
                    f"source {self._name}: there is no column {name} in {self._options.table}",
                    code="VK-SOURCE-OPTION",
                    hint=f"There are: {', '.join(there)}.",
                )
        require_condition(self._spark, self._name, self._options.where, tuple(there.values()))
        kept = dict.fromkeys((*self._options.key, *self._options.columns)) if self._options.columns else there
        columns = [[column.name, column.type] for name, column in there.items() if name in kept]
        return replace(definition, facts=(("columns", json.dumps(columns)),))

    def problems(self) -> Sequence[str]:
        try:
            self._checked()
        except SourceError as error:
            return (as_problem(error),)
        return ()

    # What it is.

    def describe(self, table: str) -> Description:
        return Description(self._columns, None, self._options.key)

    # Where it stands.

    def show(self, table: str, rows: str | None, version: str | None) -> None:
        self._seen = rows

    def current(self) -> Mapping[str, str | None]:
        self.let_go()
        self._rows = self._checked().persist(StorageLevel.DISK_ONLY)
        self._rows.createOrReplaceGlobalTempView(self._view)
        hashes = [fingerprint([_hashed(column) for column in self._columns], seed) for seed in SEEDS]
        # Sums of halves: neither the order of rows nor an overflow changes them.
        sums = [f"sum({half})" for h in hashes for half in (f"shiftright({h}, 32)", f"{h} & 4294967295L")]
        row = self._told(self._rows.selectExpr("count(*)", *sums))
        self._count = row[0] or 0
        return {self._table: hashlib.sha256(json.dumps(row).encode()).hexdigest()[:16]}

    def rows(self, table: str, version: str | None) -> str:
        """What was read last."""
        if self._rows is None:
            raise SourceError(
                f"source {self._name}: its rows of before are not kept", code="VK-SOURCE-EXPIRED"
            )
        there = f"global_temp.{self._view}"
        return f"({unique(there, self._options.key)})" if self._options.key else there

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> QueriedChange | None:
        assert new is not None
        if old == new:
            return None
        assert self._seen is not None, "there is a base view if there was a version"
        columns = tuple((column.name, column.type) for column in self._columns)
        compared = Differential(f"({self._seen})", f"global_temp.{self._view}", columns, self._options.key)
        form = compared.form(self._count * _BYTES_PER_ROW)
        keyed = "by key" if self._options.key else "as bags"
        before = int((self._shelf.load(_COUNTED) or {"rows": self._count})["rows"])
        told = f"snapshot differential, {keyed}, {form.value}"
        return QueriedChange(table, old, new, self._count, max(before, 1), told, (compared.sql(form),))

    # After the epoch.

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """What was read is kept here; how many rows it has is a bound for what can go next time."""
        self._shelf.save(_COUNTED, {"rows": self._count})

    def let_go(self) -> None:
        if self._rows is not None:
            self._spark.catalog.dropGlobalTempView(self._view)
            self._rows.unpersist()
            self._rows = None

    # Reading.

    @property
    def _view(self) -> str:
        return f"vk_jdbc_{hashlib.sha256(self._name.encode()).hexdigest()[:20]}"

    def _checked(self) -> DataFrame:
        """The rows to keep, if the table still has the columns."""
        found = self._read()
        there = tuple(self._as_declared(column) for column in _columns_of(found))
        drift = compare_schemas(self._columns, there, {column.name for column in self._columns})
        if drift is not None:
            raise SourceError(
                f"source {self._name}: {drift.message}",
                code="VK-SOURCE-CHANGED",
                hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
            )
        return found.selectExpr(*map(self._read_as, self._columns))

    def _as_declared(self, column: SourceColumn) -> SourceColumn:
        """Sources that were declared when SQLite's numbers were read narrow go on so."""
        before = {each.name.casefold(): each.type for each in self._columns}.get(column.name.casefold())
        known = self._is_sqlite and before in _NARROW and column.type == "bigint"
        return replace(column, type=before) if known and before is not None else column

    def _read_as(self, column: SourceColumn) -> str:
        name = quote(column.name)
        if not (self._is_sqlite and column.type in _NARROW):
            return name
        fits = f"coalesce(try_cast({name} AS {column.type}), raise_error({literal(_TOO_WIDE)}))"
        return f"IF({name} IS NULL, NULL, {fits}) AS {name}"

    def _read(self) -> DataFrame:
        """The rows to keep."""
        found = self._whole()
        return found if self._options.where is None else found.where(self._options.where)

    def _whole(self) -> DataFrame:
        given = {
            "url": self._options.url,
            "dbtable": self._options.table,
            "fetchsize": str(_FETCH_ROWS),
            "driver": self._options.driver or _DRIVERS.get(self._options.url.split(":")[1].casefold()),
            "user": self._options.user,
            "password": self._options.secret(),
        }
        told = {key: value for key, value in given.items() if value is not None}
        reader = self._spark.read.format("jdbc").options(**told)
        try:
            found = reader.load()
            narrow = [column.name for column in _columns_of(found) if column.type in _NARROW]
            if narrow and self._is_sqlite:
                wide = ", ".join(f"{quote(name)} BIGINT" for name in narrow)
                found = reader.option("customSchema", wide).load()
            return found
        except Exception as error:
            raise self._refused(error) from None

    @property
    def _is_sqlite(self) -> bool:
        return self._options.url.casefold().startswith("jdbc:sqlite:")

    def _told(self, query: DataFrame) -> list[int | None]:
        try:
            return list(query.collect()[0])
        except PySparkException as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> SourceError:
        """What the driver said, without anything that we told it."""
        if f"[USER_RAISED_EXCEPTION] {_TOO_WIDE}" in str(error):
            return SourceError(
                f"source {self._name}: {self._options.table} has numbers of more than 32 bits, "
                "and was declared when they were read as INT",
                code="VK-SOURCE-CHANGED",
                hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
            )
        said = str(error).strip().splitlines()
        what = next(
            (line for line in said if "Exception" in line or "Error" in line), said[0] if said else ""
        )
        secret = self._options.secret()
        return SourceError(
            f"source {self._name}: {self._options.table} cannot be read: "
            f"{(what.replace(secret, '…') if secret else what).lstrip(': ')}",
            code="VK-SOURCE-UNREACHABLE",
            hint="Is the database up, are user, password, table and the driver's class right?",
        )


def _hashed(column: SourceColumn) -> str:
    """What stands for a value in the digest: NULLs within an array hash like nothing, but not in its text."""
    name = quote(column.name)
    if not column.type.startswith(NESTED):
        return name
    return f"to_json(named_struct('v', {name}), map('ignoreNullFields', 'false'))"


def _columns_of(rows: DataFrame) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(field.name, field.dataType.simpleString()) for field in rows.schema.fields)
