"""Iceberg tables as sources: a table is a system of one, its versions are its snapshots.

What each question costs, in Spark jobs (the driver alone answers the ones with none)::

    current, columns, rows        none
    change                        one; two when more than appends happened
    versions_after, statistics    one
    schema, identity              two
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SourceError
from viewkeeper.sources.contract import Capabilities, SourceColumn, Statistics
from viewkeeper.sources.iceberg_bounds import BoundColumn
from viewkeeper.sources.iceberg_changes import (
    AllRows,
    AppendedFiles,
    ChangedFiles,
    ComparedSnapshots,
    IcebergChange,
    Piece,
    at_version,
    paths,
)
from viewkeeper.sources.iceberg_files import (
    MOST_BOUND_COLUMNS,
    MOST_FILES_WITH_BOUNDS,
    FileChange,
    compare_files,
    read_files,
)
from viewkeeper.sources.iceberg_history import (
    History,
    Segment,
    Snapshot,
    expired,
    recreated,
    segments,
)
from viewkeeper.sources.iceberg_identity import read_identity
from viewkeeper.sql.quoting import quote_path, show_path

MOST_SEGMENTS: Final = 6
"""With more compactions than this in between, comparing both ends once is cheaper than each stretch."""

_UNTOLD_ROWS: Final = 1 << 50
"""Stands for a row count that the writer left out of the summary: an upper bound must not be too low."""

_METADATA_COLUMNS: Final = frozenset({"_file", "_pos", "_deleted", "_vk_w", "_vk_file", "_vk_pos"})


class IcebergSource:
    """One Iceberg table."""

    capabilities = Capabilities(rows_at_version=True, lists_versions=True, acknowledges=False)

    def __init__(self, spark: SparkSession, table: tuple[str, ...]) -> None:
        self._spark = spark
        self._parts = table
        self._table = show_path(table)
        self._histories: dict[str, History] = {}

    def current(self) -> Mapping[str, str | None]:
        return {self._table: _current_version(self._spark, self._parts)}

    def versions_after(self, table: str, version: str | None) -> Sequence[str]:
        self._check(table)
        newest = self.current()[table]
        if newest is None:
            if version is not None:
                raise recreated(table, version)
            return ()
        history = self._history(newest)
        if version is None:
            return tuple(snapshot.id for snapshot in reversed(history.lineage(newest)))
        commits = history.commits(version, newest)
        if commits is None:
            raise expired(table, version)
        return tuple(commit.id for commit in commits)

    def columns(self, table: str) -> tuple[SourceColumn, ...]:
        """Names and types as they are now, without ids; no Spark job."""
        self._check(table)
        return self._columns_of(quote_path(self._parts))

    def schema(self, table: str) -> tuple[SourceColumn, ...]:
        """Names, types and field ids as they are now. Ids are ``None`` where they cannot be read."""
        columns = self.columns(table)
        identity = read_identity(self._spark, self._parts)
        ids = {} if identity is None else identity.field_ids
        return tuple(SourceColumn(column.name, column.type, ids.get(column.name)) for column in columns)

    def identity(self, table: str) -> str | None:
        """The table's UUID; ``None`` where it cannot be read."""
        self._check(table)
        identity = read_identity(self._spark, self._parts)
        return None if identity is None else identity.uuid

    def statistics(self, table: str, version: str | None) -> Statistics:
        self._check(table)
        if version is None:
            return Statistics(0, 0, 0)
        snapshot = self._history(version)[version]
        return Statistics(
            snapshot.count("total-records"),
            snapshot.count("total-files-size"),
            snapshot.count("total-data-files"),
        )

    def rows(self, table: str, version: str | None) -> str:
        self._check(table)
        if version is None:
            return f"(SELECT * FROM {quote_path(self._parts)} WHERE false)"
        return at_version(self._parts, version)

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> IcebergChange | None:
        self._check(table)
        if old == new:
            return None
        if new is None:
            raise recreated(table, old)
        history = self._history(new)
        if old is None:
            everything = AllRows(self._parts, new, _rows_at(history[new]))
            return IcebergChange(table, None, new, (everything,))
        try:
            commits = history.commits(old, new)
        except SourceError as error:
            raise self._diagnose(error, old, identity) from None
        if commits is None:
            return self._compared(history, old, new, "snapshots in between are expired")
        return self._change(history, old, new, segments(old, commits))

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """Nothing to do: a table's history is kept by its own settings, not for us."""

    def _change(
        self, history: History, old: str, new: str, stretches: tuple[Segment, ...]
    ) -> IcebergChange | None:
        if not stretches:
            return None
        mixed = [segment for segment in stretches if not segment.appends_only]
        if len(mixed) > MOST_SEGMENTS:
            return self._compared(history, old, new, f"{len(mixed)} compactions in between")
        changes: dict[Segment, FileChange] = {}
        bounds: tuple[BoundColumn, ...] = ()
        if mixed:
            now = self.columns(self._table)
            if _METADATA_COLUMNS & {column.name.casefold() for column in now}:
                return self._compared(
                    history, old, new, "a column has the name of an Iceberg metadata column"
                )
            bounds = self._bound_columns(history, mixed, now)
            for files in read_files(self._spark, self._parts, mixed, bounds):
                change = compare_files(files)
                if isinstance(change, str):
                    return self._compared(history, old, new, change)
                changes[files.segment] = change
        pieces = [
            piece
            for segment in stretches
            for piece in self._pieces(segment, changes.get(segment), bounds)
            if piece.inserted or piece.deleted
        ]
        return IcebergChange(self._table, old, new, tuple(pieces)) if pieces else None

    def _pieces(
        self, segment: Segment, change: FileChange | None, bounds: tuple[BoundColumn, ...]
    ) -> list[Piece]:
        if change is None:
            rows = sum(commit.count("added-records") or 0 for commit in segment.commits)
            return [AppendedFiles(self._parts, segment.start, segment.end, rows)]
        pieces: list[Piece] = []
        if change.appended:
            only = None if change.appended_is_all else paths(change.appended)
            rows = sum(file.records for file in change.appended)
            pieces.append(AppendedFiles(self._parts, segment.start, segment.end, rows, only))
        pieces.append(ChangedFiles(self._parts, change, bounds))
        return pieces

    def _bound_columns(
        self, history: History, mixed: Sequence[Segment], now: Sequence[SourceColumn]
    ) -> tuple[BoundColumn, ...]:
        """Columns by whose bounds files may be skipped.

        The bounds come under the names of today's schema, the reads use the schema of their snapshot: only
        when both are the same, column by column, does a name mean the same column in both.
        """
        for segment in mixed:
            for version in (segment.start, segment.end):
                files = history[version].count("total-data-files")
                if files is None or files > MOST_FILES_WITH_BOUNDS:
                    return ()
        for version in {version for segment in mixed for version in (segment.start, segment.end)}:
            if self._columns_of(at_version(self._parts, version)) != tuple(now):
                return ()
        suited = [column for column in now if BoundColumn.suits(column.name, column.type)]
        return tuple(BoundColumn(column.name, column.type) for column in suited[:MOST_BOUND_COLUMNS])

    def _compared(self, history: History, old: str, new: str, reason: str) -> IcebergChange:
        before, after = _rows_at(history[old]), _rows_at(history[new])
        piece = ComparedSnapshots(self._parts, old, new, before, after)
        return IcebergChange(self._table, old, new, (piece,), reason)

    def _diagnose(self, error: SourceError, old: str, identity: str | None) -> SourceError:
        """Expired or recreated: the recorded identity decides, where both sides know theirs."""
        if identity is None or error.code == "VK-SOURCE-DIVERGED":
            return error
        now = self.identity(self._table)
        if now is None:
            return error
        return expired(self._table, old) if now == identity else recreated(self._table, old)

    def _columns_of(self, relation: str) -> tuple[SourceColumn, ...]:
        try:
            fields = self._spark.sql(f"SELECT * FROM {relation}").schema.fields
        except AnalysisException as error:
            raise _source_error(error, self._table) from error
        return tuple(SourceColumn(field.name, field.dataType.simpleString()) for field in fields)

    def _history(self, version: str) -> History:
        """All snapshots, read anew unless a snapshot set with that version in it was read before."""
        if version not in self._histories:
            self._histories = {version: _read_history(self._spark, self._parts)}
        return self._histories[version]

    def _check(self, table: str) -> None:
        if table != self._table:
            raise SourceError(f"{table} is not part of the source {self._table}", code="VK-SOURCE-MISSING")


def current_versions(
    spark: SparkSession, tables: Sequence[tuple[str, ...]], *, threads: int = 4
) -> dict[str, str | None]:
    """The current version of each table, under its shown name; no Spark job, several tables at a time."""
    with ThreadPoolExecutor(max_workers=max(1, min(threads, len(tables)))) as pool:
        versions = pool.map(lambda table: _current_version(spark, table), tables)
        return dict(zip(map(show_path, tables), versions, strict=True))


def _rows_at(snapshot: Snapshot) -> int:
    rows = snapshot.count("total-records")
    return _UNTOLD_ROWS if rows is None else rows


def _current_version(spark: SparkSession, table: tuple[str, ...]) -> str | None:
    name = quote_path(table)
    try:
        # catalogs keep tables for a while: without this, a commit of another session is not seen
        spark.sql(f"REFRESH TABLE {name}")
    except Exception as error:  # a view makes Spark fail in ways of its own; the properties tell what it is
        if "current-snapshot-id" in _properties(spark, table):
            raise SourceError(f"table {show_path(table)} cannot be refreshed: {error}") from error
    version = _properties(spark, table).get("current-snapshot-id")
    if version is None:
        raise _not_iceberg(show_path(table))
    return version if version.lstrip("-").isdigit() else None


def _properties(spark: SparkSession, table: tuple[str, ...]) -> dict[str, str]:
    try:
        rows = spark.sql(f"SHOW TBLPROPERTIES {quote_path(table)}").collect()
    except PySparkException as error:
        raise _source_error(error, show_path(table)) from error
    return {row["key"]: row["value"] for row in rows}


def _read_history(spark: SparkSession, table: tuple[str, ...]) -> History:
    query = f"SELECT snapshot_id, parent_id, operation, summary FROM {quote_path((*table, 'snapshots'))}"
    try:
        rows = spark.sql(query).collect()
    except PySparkException as error:
        raise _source_error(error, show_path(table)) from error
    found = (
        Snapshot(
            str(row["snapshot_id"]),
            None if row["parent_id"] is None else str(row["parent_id"]),
            row["operation"],
            dict(row["summary"] or {}),
        )
        for row in rows
    )
    return History(show_path(table), {snapshot.id: snapshot for snapshot in found})


def _not_iceberg(table: str) -> SourceError:
    return SourceError(
        f"{table} is not an Iceberg table",
        code="VK-SOURCE-KIND",
        hint="only Iceberg tables have the snapshots that tell what changed; copy it into one "
        "(CREATE TABLE … USING iceberg AS SELECT …)",
    )


def _source_error(error: PySparkException, table: str) -> SourceError:
    """Spark's error in our words; anything unforeseen keeps Spark's."""
    condition = error.getCondition() or ""
    if "NOT_FOUND" in condition or "NO_SUCH" in condition:
        return SourceError(
            f"table {table} does not exist",
            code="VK-SOURCE-MISSING",
            hint="create it, or drop the views that read it",
        )
    return SourceError(f"table {table} cannot be read: {error.getMessage() or error}")
