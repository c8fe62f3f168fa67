"""Iceberg tables as sources: a table is a system of one, its versions are its snapshots.

What each question costs, in Spark jobs (the driver alone answers the ones with none)::

    current, columns, rows        none
    row_count                     none for the current version
    change                        one; two when more than appends happened
    extents                       one
    versions_after, statistics    one
    describe, schema, identity    two
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.errors import SourceError
from viewkeeper.sources.contract import Capabilities, ColumnStatistics, Description, SourceColumn, Statistics
from viewkeeper.sources.iceberg_bounds import BoundColumn
from viewkeeper.sources.iceberg_catalog import Standing, read_history, source_error, standing
from viewkeeper.sources.iceberg_changes import (
    AllRows,
    AppendedFiles,
    BoundedFiles,
    ChangedFiles,
    ComparedSnapshots,
    IcebergChange,
    Piece,
    paths,
)
from viewkeeper.sources.iceberg_files import (
    MOST_BOUND_COLUMNS,
    MOST_FILES_WITH_BOUNDS,
    FileChange,
    column_widths,
    compare_files,
    file_extents,
    live_files,
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
from viewkeeper.sources.iceberg_identity import TableIdentity, read_identity
from viewkeeper.sources.iceberg_reader import TableReader, translate_columns
from viewkeeper.sql.quoting import quote_path, show_path

MOST_SEGMENTS: Final = 6
"""With more compactions than this in between, comparing both ends once is cheaper than each stretch."""

_UNTOLD_ROWS: Final = 1 << 50
"""Stands for a row count that the writer left out of the summary: an upper bound must not be too low."""

_METADATA_COLUMNS: Final = frozenset({"_file", "_pos", "_deleted", "_vk_w", "_vk_file", "_vk_pos"})


class IcebergSource:
    """One Iceberg table."""

    capabilities = Capabilities(rows_at_version=True, lists_versions=True, acknowledges=False)

    def __init__(
        self, spark: SparkSession, table: tuple[str, ...], read_options: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self._spark = spark
        self._parts = table
        self._table = show_path(table)
        self._known: History | None = None
        self._identity: TableIdentity | None = None
        self._standing: Standing | None = None
        self.read_options = read_options
        self._reader = TableReader(table, read_options)
        self._columns_then: dict[str, tuple[SourceColumn, ...]] = {}

    def current(self) -> Mapping[str, str | None]:
        self._standing = standing(self._spark, self._parts)
        self._known = self._identity = None  # the schema may be another one, at the same version
        return {self._table: self._standing.version}

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

    def describe(self, table: str) -> Description:
        """The columns with their field ids, the table's UUID, and its identifier fields as its key; without
        ids, UUID and key where the metadata file cannot be read."""
        columns = self.columns(table)
        identity = self._identity = read_identity(self._spark, self._parts)
        if identity is None:
            return Description(columns, None, ())
        known = tuple(
            SourceColumn(column.name, column.type, identity.column_id(column.name)) for column in columns
        )
        version = None if self._standing is None else self._standing.version
        unwritten = () if version is None else identity.unwritten(version)
        return Description(known, identity.uuid, identity.key, unwritten)

    def schema(self, table: str) -> tuple[SourceColumn, ...]:
        return self.describe(table).columns

    def schema_version(self, table: str, version: str | None) -> str | None:
        """The id of the table's schema; ``version`` is its newest. No job more, unless the table was altered
        since that was written."""
        self._check(table)
        if version is None:
            return None
        known = self._history(version).schema_id
        if known is not None:
            return known
        identity = self._identified()
        return None if identity is None else identity.schema_id

    def identity(self, table: str) -> str | None:
        return self.describe(table).identity

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

    def distinct(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        """What the newest statistics file says of each (`compute_table_stats` writes one)."""
        self._check(table)
        identity = read_identity(self._spark, self._parts)
        known = {} if identity is None else identity.distinct
        return {column: known[column] for column in columns if column in known}

    def widths(self, table: str, version: str, columns: Sequence[str]) -> Mapping[str, float]:
        """What the metrics of the data files say, of today's columns; one job."""
        self._check(table)
        return column_widths(self._spark, self._reader, version, columns)

    def row_count(self, table: str, version: str | None) -> int | None:
        """Rows at a version, as far as metadata tells; of the version that was asked for last, no job."""
        if self._standing is not None and self._standing.version == version:
            return self._standing.rows
        return self.statistics(table, version).rows

    def rows(self, table: str, version: str | None) -> str:
        self._check(table)
        if version is None:
            return f"(SELECT * FROM {quote_path(self._parts)} WHERE false)"
        return self._reading(version).relation(version)

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
            everything = AllRows(self._reading(new), new, _rows_at(history[new]))
            return IcebergChange(table, None, new, (everything,))
        try:
            commits = history.commits(old, new)
        except SourceError as error:
            raise self._diagnose(error, old, identity) from None
        if commits is None:
            return self._compared(history, old, new, "snapshots in between are expired")
        return self._change(history, old, new, segments(old, commits))

    def extents(
        self, table: str, old: str | None, new: str | None, columns: Sequence[str]
    ) -> Mapping[str, Extents]:
        self._check(table)
        if old is None or new is None:
            return {}
        now = self.columns(table)
        wanted = [column for column in now if column.name in set(columns)]
        bounds = self._bound_columns(self._history(new), (old, new), now, wanted)
        if not bounds:
            return {}
        live = live_files(self._spark, self._reader, (old, new), bounds)
        return file_extents(live[old], live[new], bounds)

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """Nothing to do: a snapshot never changes."""

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """Nothing to do: a table's history is kept by its own settings, not for us."""

    def release(self) -> None:
        """Nothing to do."""

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
            ends = [version for segment in mixed for version in (segment.start, segment.end)]
            bounds = self._bound_columns(history, ends, now, now)
            for files in read_files(self._spark, self._reader, mixed, bounds):
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
            return [AppendedFiles(self._reader, segment.start, segment.end, rows)]
        pieces: list[Piece] = []
        if change.appended:
            only = None if change.appended_is_all else paths(change.appended)
            rows = sum(file.records for file in change.appended)
            bounded = BoundedFiles(change.appended, bounds)
            pieces.append(AppendedFiles(self._reader, segment.start, segment.end, rows, only, bounded))
        pieces.append(ChangedFiles(self._reading(segment.start, segment.end), change, bounds))
        return pieces

    def _bound_columns(
        self,
        history: History,
        versions: Sequence[str],
        now: Sequence[SourceColumn],
        wanted: Sequence[SourceColumn],
    ) -> tuple[BoundColumn, ...]:
        """Those of the wanted columns by whose bounds files may be skipped.

        The bounds come under the names of today's schema, the reads use the schema of their snapshot: only
        when both are the same, column by column, does a name mean the same column in both.
        """
        for version in dict.fromkeys(versions):
            files = history[version].count("total-data-files")
            if files is None or files > MOST_FILES_WITH_BOUNDS or self._columns_at(version) != tuple(now):
                return ()
        if not self._are_todays(history, versions):
            return ()
        suited = [column for column in wanted if BoundColumn.suits(column.name, column.type)]
        return tuple(BoundColumn(column.name, column.type) for column in suited[:MOST_BOUND_COLUMNS])

    def _are_todays(self, history: History, versions: Sequence[str]) -> bool:
        """Whether columns of these versions are today's columns of the same name: one may have been dropped,
        and another of its name and type added. Two jobs where the table's log does not tell."""
        schemas = {history.schemas.get(version) for version in versions}
        if history.schema_id is not None and schemas == {history.schema_id}:
            return True
        identity = self._identified()
        if identity is None:
            return False
        return not any(identity.unwritten(version) for version in versions) and all(
            version in identity.names_at for version in versions
        )

    def _identified(self) -> TableIdentity | None:
        """What the table is now; read once for each look at it."""
        identity = self._identity
        if identity is None:
            identity = self._identity = read_identity(self._spark, self._parts)
        return identity

    def _compared(self, history: History, old: str, new: str, reason: str) -> IcebergChange:
        before, after = _rows_at(history[old]), _rows_at(history[new])
        piece = ComparedSnapshots(self._reading(old, new), old, new, before, after)
        return IcebergChange(self._table, old, new, (piece,), reason)

    def _diagnose(self, error: SourceError, old: str, identity: str | None) -> SourceError:
        """Expired or recreated: the recorded identity decides, where both sides know theirs."""
        if identity is None or error.code == "VK-SOURCE-DIVERGED":
            return error
        now = self.identity(self._table)
        if now is None:
            return error
        return expired(self._table, old) if now == identity else recreated(self._table, old)

    def _reading(self, *versions: str) -> TableReader:
        """A reader that knows today's columns at these versions; two jobs if a schema differs, else none."""
        now = self.columns(self._table)
        others = [version for version in versions if self._columns_at(version) != now]
        identity = self._identified() if others else None
        if identity is None:
            return self._reader
        return TableReader(
            self._parts,
            self.read_options,
            {v: translate_columns(now, self._columns_at(v), identity, v) for v in others},
        )

    def _columns_at(self, version: str) -> tuple[SourceColumn, ...]:
        """The columns of a snapshot's own schema, which never changes; no Spark job."""
        if version not in self._columns_then:
            self._columns_then[version] = self._columns_of(self._reader.at(version))
        return self._columns_then[version]

    def _columns_of(self, relation: str) -> tuple[SourceColumn, ...]:
        try:
            fields = self._spark.sql(f"SELECT * FROM {relation}").schema.fields
        except PySparkException as error:
            raise source_error(error, self._table) from error
        return tuple(SourceColumn(field.name, field.dataType.simpleString()) for field in fields)

    def _history(self, version: str) -> History:
        """All snapshots; read again only when the version is not among those read before."""
        known = self._known  # another thread may ask anew where the table stands
        if known is None or version not in known.snapshots:
            known = self._known = read_history(self._spark, self._parts)
        return known

    def _check(self, table: str) -> None:
        if table != self._table:
            raise SourceError(f"{table} is not part of the source {self._table}", code="VK-SOURCE-MISSING")


def _rows_at(snapshot: Snapshot) -> int:
    rows = snapshot.count("total-records")
    return _UNTOLD_ROWS if rows is None else rows
