"""Which files of an Iceberg table differ between the two ends of a segment.

Data files never change once written, so a table's rows at a snapshot are the rows of its live data
files minus what its live delete files delete. With A the data files added, R those removed and C those
kept whose deletes grew::

    Δ = rows(A at end) − rows(R at start) − rows(C deleted at end, not at start)

All of it is read from the `entries` metadata table at both ends, for every segment in one Spark job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.algebra.empty_terms import Extent, Extents
from viewkeeper.sources.iceberg_bounds import BoundColumn, BoundedFile, Bounds, extent
from viewkeeper.sources.iceberg_history import Segment
from viewkeeper.sources.iceberg_reader import TableReader
from viewkeeper.sql.quoting import quote

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2

MOST_BOUND_COLUMNS: Final = 24
MOST_FILES_WITH_BOUNDS: Final = 20_000
"""Beyond this many files their bounds are not fetched: collecting them would cost more than they spare."""

_DELETE_FILE_PATH_FIELD: Final = 2147483546
"""The reserved field id of `file_path` in position delete files."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A live file at a snapshot. ``target``: the one data file that a delete file speaks of, if it is one."""

    content: int
    path: str
    offset: int | None
    sequence: int
    added_by: str
    records: int
    is_vector: bool
    target: str | None
    bounds: tuple[Bounds, ...] = field(hash=False, compare=False)

    @property
    def bounded(self) -> BoundedFile:
        return BoundedFile(self.records, self.bounds)


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The live files at both ends of a segment."""

    segment: Segment
    start: frozenset[FileEntry]
    end: frozenset[FileEntry]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happened to the files of a segment. Everything here is exact; see the module's formula."""

    segment: Segment
    appended: tuple[FileEntry, ...]
    """Files of append snapshots, whole and undeleted at the end: the incremental reader gives them."""
    appended_is_all: bool
    """Every file that the segment's append snapshots added is among ``appended``."""
    added: tuple[FileEntry, ...]
    removed: tuple[FileEntry, ...]
    grown: tuple[FileEntry, ...] | None
    """C; ``None`` when delete files span several data files, so that C cannot be told."""
    deletes_before: int
    """Positions that C may have had deleted at the start, at most; 0 when there were none."""
    deletes: int
    """Rows newly deleted from C, at most."""
    live_at_start: tuple[FileEntry, ...]
    live_at_end: tuple[FileEntry, ...]


def live_files(
    spark: SparkSession, table: TableReader, versions: Iterable[str], columns: Sequence[BoundColumn]
) -> Mapping[str, set[FileEntry]]:
    """The live files at these versions, with the bounds of these columns; one Spark job."""
    live: dict[str, set[FileEntry]] = {version: set() for version in sorted(set(versions))}
    query = " UNION ALL ".join(_entries_query(table, version, columns) for version in live)
    for row in spark.sql(query).collect():
        live[row["version"]].add(_entry(row))
    return live


def read_files(
    spark: SparkSession,
    table: TableReader,
    segments: Sequence[Segment],
    columns: Sequence[BoundColumn],
) -> tuple[SegmentFiles, ...]:
    """The live files at both ends of each segment, with the bounds of these columns; one Spark job."""
    ends = (version for segment in segments for version in (segment.start, segment.end))
    live = live_files(spark, table, ends, columns)
    return tuple(
        SegmentFiles(segment, frozenset(live[segment.start]), frozenset(live[segment.end]))
        for segment in segments
    )


def column_widths(
    spark: SparkSession, table: TableReader, version: str, columns: Sequence[str]
) -> dict[str, float]:
    """About how many bytes of a row these columns take in the files of a version, compressed; those are left
    out of whose size no file tells, and all where they are not today's."""
    sums = ", ".join(
        f"sum({size}) / nullif(sum(IF({size} IS NULL, 0, record_count)), 0)"
        for size in (f"readable_metrics.{quote(column)}.column_size" for column in columns)
    )
    query = f"SELECT {sums} FROM {table.metadata_at('files', version)} WHERE content = {DATA}"
    try:
        found = spark.sql(query).collect()[0]
    except PySparkException:
        return {}
    return {column: float(size) for column, size in zip(columns, found, strict=True) if size is not None}


def _entries_query(table: TableReader, version: str, columns: Sequence[BoundColumn]) -> str:
    path = f"data_file.lower_bounds[{_DELETE_FILE_PATH_FIELD}]"
    path_high = f"data_file.upper_bounds[{_DELETE_FILE_PATH_FIELD}]"
    bounds = ", ".join(
        f"{column.text(f'{metric}.lower_bound')}, {column.text(f'{metric}.upper_bound')}, "
        f"CAST({metric}.null_value_count AS STRING), CAST({metric}.value_count AS STRING)"
        for column in columns
        for metric in [f"readable_metrics.{quote(column.name)}"]
    )
    return (
        f"SELECT '{int(version)}' AS version, data_file.content AS content, data_file.file_path AS path, "
        "data_file.content_offset AS offset, coalesce(sequence_number, 0) AS sequence, "
        "CAST(snapshot_id AS STRING) AS added_by, data_file.record_count AS records, "
        "data_file.file_format = 'PUFFIN' AS is_vector, "
        "CASE WHEN data_file.content = 1 THEN coalesce(data_file.referenced_data_file, "
        f"IF({path} = {path_high}, decode({path}, 'UTF-8'), NULL)) END AS target, "
        f"array({bounds}) AS bounds "
        f"FROM {table.metadata_at('entries', version)} WHERE status < 2"
    )


def _entry(row: Row) -> FileEntry:
    texts = row["bounds"]
    bounds = tuple(
        Bounds(texts[i], texts[i + 1], _number(texts[i + 2]), _number(texts[i + 3]))
        for i in range(0, len(texts), 4)
    )
    return FileEntry(
        row["content"], row["path"], row["offset"], row["sequence"], row["added_by"], row["records"],
        row["is_vector"], row["target"], bounds,
    )  # fmt: skip


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def compare_files(files: SegmentFiles) -> FileChange | str:
    """What changed; or, in words, why the files' metadata cannot tell it."""
    fresh, gone = files.end - files.start, files.start - files.end
    fresh_deletes = [file for file in fresh if file.content != DATA]
    gone_deletes = [file for file in gone if file.content != DATA]
    deletes_changed = bool(fresh_deletes or gone_deletes)
    if deletes_changed and any(file.content == EQUALITY_DELETES for file in files.start | files.end):
        return "the table has equality delete files"
    kept = {file.path: file for file in files.start & files.end if file.content == DATA}
    start_deletes, end_deletes = _by_target(files.start), _by_target(files.end)
    touched = [file.target for file in (*fresh_deletes, *gone_deletes)]
    # a delete file of several data files that merely stays cannot have new rows in it, so only changes matter
    tellable = None not in touched
    grown = {path: kept[path] for path in touched if path in kept} if tellable else {}
    for path in grown:
        before, after = start_deletes.get(path, ()), end_deletes.get(path, ())
        if not after or _records(after) < _records(before):
            return "deletes of a kept file were taken back"
    added = [file for file in fresh if file.content == DATA]
    removed = [file for file in gone if file.content == DATA]
    appended = [
        file
        for file in added
        if file.added_by in files.segment.appended and tellable and file.path not in end_deletes
    ]
    targets_before = {None, *grown} if tellable else set(start_deletes)
    counted = sum(_newly_deleted(start_deletes.get(p, ()), end_deletes[p]) for p in grown)
    return FileChange(
        segment=files.segment,
        appended=_sorted(appended),
        appended_is_all=len(appended) == _files_appended(files.segment),
        added=_sorted(set(added) - set(appended)),
        removed=_sorted(removed),
        grown=_sorted(grown.values()) if tellable else None,
        deletes_before=sum(_records(start_deletes.get(target, ())) for target in targets_before),
        deletes=counted if tellable else _records(fresh_deletes),
        live_at_start=_sorted(file for file in files.start if file.content == DATA),
        live_at_end=_sorted(file for file in files.end if file.content == DATA),
    )


def file_extents(
    start: Set[FileEntry], end: Set[FileEntry], columns: Sequence[BoundColumn]
) -> dict[str, Extents]:
    """Between which values these columns lie at both ends; and in what was added, if nothing went."""
    only_added = start <= end and all(file.content == DATA for file in end - start)

    def among(index: int, files: Iterable[FileEntry]) -> Extent | None:
        return extent(columns[index], index, (file.bounded for file in files if file.content == DATA))

    return {
        column.name: Extents(
            among(index, start), among(index, end), among(index, end - start) if only_added else None
        )
        for index, column in enumerate(columns)
    }


def _sorted(files: Iterable[FileEntry]) -> tuple[FileEntry, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _records(files: Iterable[FileEntry]) -> int:
    return sum(file.records for file in files)


def _by_target(files: Iterable[FileEntry]) -> Mapping[str | None, Sequence[FileEntry]]:
    found: dict[str | None, list[FileEntry]] = {}
    for file in files:
        if file.content == POSITION_DELETES:
            found.setdefault(file.target, []).append(file)
    return found


def _vectors(*sides: Sequence[FileEntry]) -> bool:
    return all(file.is_vector for side in sides for file in side)


def _newly_deleted(before: Sequence[FileEntry], after: Sequence[FileEntry]) -> int:
    """Positions deleted since; at most, but never 0, which would promise that there are none."""
    if _vectors(before, after) or (len(before) <= 1 and len(after) == 1):
        return max(1, _records(after) - _records(before))
    return max(1, _records(set(after) - set(before)))


def _files_appended(segment: Segment) -> int | None:
    """How many files the append snapshots say they added; ``None`` if one does not say."""
    counts = [commit.count("added-data-files") for commit in segment.commits if commit.appends]
    return None if None in counts else sum(count for count in counts if count is not None)
