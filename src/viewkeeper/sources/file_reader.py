"""Reads files under a schema that is fixed: no row is skipped, padded or cut off in silence.

A row of CSV or JSON that does not fit the schema is *bad*: it has too few or too many columns, a value of
another type, or bytes that are no text in the file's encoding. The refresh fails and names it; or it is left
out, and kept in the quarantine. Files of the other formats carry their own schema, which must have every
column of the source's.
"""

from __future__ import annotations

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from viewkeeper.define.sources import FileOptions
from viewkeeper.errors import DefinitionError, SourceError
from viewkeeper.sources.conditions import require_condition
from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.file_listing import FileState, Listing, escaped, escaped_paths
from viewkeeper.sql.quoting import literal, quote

BAD_ROW = "VK-BAD-ROW"
"""Marks the error of a bad row."""

_CORRUPT = "_vk_corrupt"
_PARSED = ("csv", "json")
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
"""What Spark reads in the place of bytes that are no text."""
_USUAL_OPTIONS = {
    # As RFC 4180 has it: a quote within quotes is written twice. Spark's own default is a backslash.
    "csv": {"escape": '"', "enforceSchema": "false", "columnPruning": "false"},
    "json": {},
}
_SCHEMAS_AT_ONCE = 8

_COUNTING = ("parquet", "orc")
"""These say how many rows they have, in their footers."""
_PACKED = (".gz", ".bz2", ".zst", ".zstd", ".xz", ".lz4", ".snappy", ".deflate")
_PACKS_BY = 10


class FileReader:
    """Reads the files of one source."""

    def __init__(
        self,
        spark: SparkSession,
        source: str,
        options: FileOptions,
        schema: str | None,
        zone: str | None = None,
    ) -> None:
        self._spark = spark
        self._source = source
        self._options = options
        self._schema = schema or options.columns_types
        self._zone = zone
        self._fitting: set[tuple[str, FileState]] = set()
        self._counted: dict[str, int] = {}

    def pinned_schema(self, listing: Listing) -> str:
        """As it is declared, or inferred from these files."""
        if self._options.columns_types is not None:
            self._refuse_unsuited(self._declared(self._options.columns_types))
            return self._options.columns_types
        reader = self._spark.read.format(self._options.format).options(**self._reader_options())
        if self._options.format == "csv":
            reader = reader.option("inferSchema", "true")
        try:
            found = reader.load(escaped_paths(listing)).schema
        except Exception as error:  # a file that is none of this format is told as Java tells it
            raise self._unreadable(error) from error
        self._refuse_unsuited(found)
        return ", ".join(f"{quote(field.name)} {field.dataType.simpleString()}" for field in found.fields)

    @property
    def columns(self) -> tuple[SourceColumn, ...]:
        """Those that are kept."""
        types = {field.name: field.dataType.simpleString() for field in self._fields.fields}
        return tuple(SourceColumn(name, types[name]) for name in self._options.columns or types)

    def relation(self, listing: Listing) -> str:
        """A name under which the rows of these files can be read."""
        self._require_schema(listing)
        rows = self._raw(listing)
        if self._options.format in _PARSED:
            told = f"concat('{BAD_ROW} in ', _metadata.file_path, ': ', coalesce({_CORRUPT}, {_not_text()}))"
            good = f"NOT ({self._is_bad})"
            if self._options.on_bad_rows == "fail":
                good = f"assert_true({good}, {told}) IS NULL"
            rows = rows.where(good)
        if self._options.where is not None:
            rows = rows.where(self._options.where)
        name = "vk_files_" + hashlib.sha256(f"{self._source} {listing.version}".encode()).hexdigest()[:20]
        rows.select(*(quote(column.name) for column in self.columns)).createOrReplaceGlobalTempView(name)
        return f"global_temp.{name}"

    def row_count(self, listing: Listing) -> int:
        """At most so many rows: as the files tell, where they do, or as many short ones as there could be."""
        counted = self._counted.get(listing.version)
        if counted is None:
            if self._options.format in _COUNTING:
                found = self._spark.read.format(self._options.format).load(escaped_paths(listing))
                counted = found.count()
            else:
                names = [field.name for field in self._fields.fields]
                named = sum(len(name) + 4 for name in names) if self._options.format == "json" else 0
                packed = any(path.endswith(_PACKED) for path in listing.files)
                counted = listing.bytes // (2 * len(names) + named) * (_PACKS_BY if packed else 1) + 1
            self._counted[listing.version] = counted
        return counted

    def bad_rows(self, listing: Listing) -> DataFrame:
        """The bad rows of these files: ``file``, ``line`` where it can be told, ``record`` and ``reason``."""
        reason = f"CASE WHEN {_CORRUPT} IS NULL THEN {_not_text()} ELSE 'does not fit the columns' END"
        bad = (
            self._raw(listing)
            .where(self._is_bad)
            .selectExpr(
                "_metadata.file_path AS file",
                f"coalesce({_CORRUPT}, to_csv(struct({self._names}))) AS record",
                f"{reason} AS reason",
            )
        )
        lines = (
            self._spark.read.text(escaped_paths(listing), wholetext=True)
            .selectExpr(
                "_metadata.file_path AS file", "posexplode(split(value, '\\\\r?\\\\n')) AS (at, record)"
            )
            .groupBy("file", "record")
            .agg({"at": "min"})
            .selectExpr("file", "record", "`min(at)` + 1 AS line")
        )
        return bad.join(lines, ["file", "record"], "left").select("file", "line", "record", "reason")

    @property
    def _fields(self) -> StructType:
        assert self._schema is not None, "it is pinned when the source is declared"
        return self._declared(self._schema)

    @property
    def _names(self) -> str:
        return ", ".join(quote(field.name) for field in self._fields.fields)

    @property
    def _is_bad(self) -> str:
        texts = [
            f"contains({quote(field.name)}, {literal(_NO_TEXT)})"
            for field in self._fields.fields
            if field.dataType.simpleString() == "string"
        ]
        return " OR ".join([f"{_CORRUPT} IS NOT NULL", *(f"coalesce({text}, false)" for text in texts)])

    def _raw(self, listing: Listing) -> DataFrame:
        schema = self._fields
        reader = self._spark.read.format(self._options.format).options(**self._reader_options())
        if self._options.format in _PARSED:
            schema = StructType([*schema.fields]).add(_CORRUPT, "string")
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _CORRUPT)
        # Never let a setting of the session skip a file that cannot be read.
        reader = reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")
        return reader.schema(schema).load(escaped_paths(listing))

    def _reader_options(self) -> dict[str, str]:
        zone = {"timeZone": self._zone} if self._zone and self._options.format in _PARSED else {}
        return {**_USUAL_OPTIONS.get(self._options.format, {}), **zone, **self._options.reader}

    def _declared(self, ddl: str) -> StructType:
        try:
            parsed = StructType.fromDDL(ddl)
        except PySparkException as error:
            raise DefinitionError(
                f"source {self._source}: its schema cannot be read: {str(error).strip().splitlines()[0]}",
                code="VK-SOURCE-OPTION",
                hint="Write it as in CREATE TABLE: 'id BIGINT, name STRING'.",
            ) from error

        assert isinstance(parsed, StructType)
        return parsed

    def _refuse_unsuited(self, schema: StructType) -> None:
        """Raise if the key, or what is to be kept, is not among the columns, or cannot be kept."""
        columns = [SourceColumn(field.name, field.dataType.simpleString()) for field in schema.fields]
        require_condition(self._spark, self._source, self._options.where, columns)
        known = {field.name for field in schema.fields}
        for name in (*self._options.key, *self._options.columns):
            if name not in known:
                raise DefinitionError(
                    f"source {self._source}: its files have no column {name}",
                    code="VK-SOURCE-OPTION",
                    hint=f"They have {', '.join(sorted(known))}.",
                )
        if self._options.columns and not set(self._options.key) <= set(self._options.columns):
            raise DefinitionError(
                f"source {self._source}: the key must be among the columns that are kept",
                code="VK-SOURCE-OPTION",
            )
        for field in schema.fields:
            if "map<" in field.dataType.simpleString() and field.name in (self._options.columns or known):
                raise DefinitionError(
                    f"source {self._source}: column {field.name} has maps, which Spark cannot compare",
                    code="VK-SOURCE-TYPE",
                    hint="Name the columns to keep (option columns), or declare it as a struct or a string.",
                )
        reserved = [name for name in known if name.casefold().startswith("_vk_")]
        if reserved:
            raise DefinitionError(
                f"source {self._source}: column {reserved[0]}: names with _vk_ in front are viewkeeper's own",
                code="VK-RESERVED-NAME",
                hint="Declare the schema without it.",
            )

    def _require_schema(self, listing: Listing) -> None:
        """Each file that carries a schema must have the source's columns, with their types: Spark would read
        NULLs for a column that is missing."""
        if self._options.format in _PARSED:
            return
        unknown = [item for item in listing.files.items() if item not in self._fitting]
        with ThreadPoolExecutor(_SCHEMAS_AT_ONCE, "viewkeeper") as pool:
            for item, schema in zip(
                unknown, pool.map(lambda item: self._schema_of(item[0]), unknown), strict=True
            ):
                self._require_columns(item[0], schema)
                self._fitting.add(item)

    def _schema_of(self, path: str) -> StructType:
        try:
            return self._spark.read.format(self._options.format).load(escaped(path)).schema
        except Exception as error:  # as above
            raise self._unreadable(error, path) from error

    def _require_columns(self, path: str, schema: StructType) -> None:
        there = {field.name: field.dataType.simpleString() for field in schema.fields}
        for field in self._fields.fields:
            wanted = field.dataType.simpleString()
            found = there.get(field.name)
            if found != wanted:
                told = (
                    f"has no column {field.name}"
                    if found is None
                    else f"has {field.name} as {found}, not {wanted}"
                )
                raise SourceError(
                    f"source {self._source}: the file {path} {told}",
                    code="VK-FILE-SCHEMA",
                    hint="Deliver it with the source's columns, or declare the source anew.",
                )

    def _unreadable(self, error: Exception, path: str | None = None) -> SourceError:
        named = re.search(r"reading file (.*?)\. ", str(error))
        path = named.group(1) if path is None and named else path
        what = f"its files in {self._options.path}" if path is None else f"the file {path}"
        return SourceError(
            f"source {self._source}: {what} cannot be read as {self._options.format}",
            code="VK-FILES-UNREADABLE",
            hint="Was it cut off, or is it of another format?",
        )


def _not_text() -> str:
    return "'bytes that are no text in this encoding'"
