"""The delta of an Iceberg table as SQL text: one piece per way of reading, added up with UNION ALL.

=====================  ==========================================================================
`AllRows`              the table was never read before: every row is new
`AppendedFiles`        the incremental reader, which opens only the files of append snapshots
`ChangedFiles`         one scan at the end: rows of added files, and, with the opposite sign, rows of
                       kept files that are deleted by now (``_deleted``) and were not at the start;
                       one scan at the start for the rows of removed files
`ComparedSnapshots`    both snapshots in full, where metadata cannot tell
=====================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from viewkeeper.algebra.empty_terms import Extent
from viewkeeper.sources.iceberg_bounds import BoundColumn, extent, pruning_predicate
from viewkeeper.sources.iceberg_files import FileChange, FileEntry
from viewkeeper.sources.iceberg_reader import TableReader
from viewkeeper.sql.quoting import literal, quote

WEIGHT: Final = "_vk_w"
BROADCAST_POSITIONS: Final = 2_000_000
"""Fewer old delete positions than this are sent to every executor; more are joined by a shuffle."""
_BROADCAST_PATHS: Final = 500_000
"""The same of positions that come with the paths of their files, which take far more room."""
_PLACES: Final = 40
"""Bits for the place of a row in its file: no file has a trillion rows."""


@dataclass(frozen=True, slots=True)
class WrittenBounds:
    """A type, and two values of it as SQL."""

    type: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class BoundedFiles:
    """Files, and the columns whose bounds are known of them."""

    files: tuple[FileEntry, ...]
    columns: tuple[BoundColumn, ...]

    def extent(self, name: str) -> Extent | None:
        """Between which values a column lies in all of them, if it is known."""
        for at, column in enumerate(self.columns):
            if column.name == name:
                return extent(column, at, (file.bounded for file in self.files))
        return None


@dataclass(frozen=True, slots=True)
class AllRows:
    """Every row at a version is new."""

    table: TableReader
    version: str
    rows: int

    method = "all rows"
    passed_over = 0
    bounded = None

    @property
    def inserted(self) -> int:
        return self.rows

    @property
    def deleted(self) -> int:
        return 0

    def sql(self, columns: Sequence[str]) -> str:
        return _signed(self.table, columns, self.version, "1")


@dataclass(frozen=True, slots=True)
class AppendedFiles:
    """The rows that append snapshots added. ``files``: only these of them, where some did not last."""

    table: TableReader
    start: str
    end: str
    rows: int
    files: tuple[str, ...] | None = None
    bounded: BoundedFiles | None = None

    method = "appended files"
    passed_over = 0

    @property
    def inserted(self) -> int:
        return self.rows

    @property
    def deleted(self) -> int:
        return 0

    def sql(self, columns: Sequence[str]) -> str:
        chosen = "" if self.files is None else f" WHERE {_file_in(self.files)}"
        source = self.table.appended(self.start, self.end)
        return f"SELECT {_columns(columns)}{_weight('1')} FROM {source}{chosen}"


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """Rows of added and removed files, and rows newly deleted from kept ones."""

    table: TableReader
    change: FileChange
    bound_columns: tuple[BoundColumn, ...]

    @property
    def method(self) -> str:
        change = self.change
        parts = [
            _count(change.added, "added file") if change.added else "",
            _count(change.removed, "removed file") if change.removed else "",
            "deleted rows" if change.grown is None else "",
            f"deleted rows of {_count(change.grown, 'file')}" if change.grown else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def bounded(self) -> BoundedFiles | None:
        change = self.change
        if change.grown is None:
            return None
        return BoundedFiles((*change.added, *change.removed, *change.grown), self.bound_columns)

    @property
    def inserted(self) -> int:
        return sum(file.records for file in self.change.added)

    @property
    def deleted(self) -> int:
        return sum(file.records for file in self.change.removed) + self.change.deletes

    @property
    def passed_over(self) -> int:
        return self.change.deletes_before

    def sql(self, columns: Sequence[str]) -> str:
        pieces = []
        if self.change.added or self.change.grown is None or self.change.grown:
            pieces.append(self._at_end(columns))
        if self.change.removed:
            pieces.append(self._at_start(columns))
        union = " UNION ALL ".join(pieces)
        # copy-on-write writes the rows of a file again that it does not touch: take them out, they are
        # far more than the change itself
        return consolidated(columns, union) if self.change.added and self.change.removed else union

    def _at_start(self, columns: Sequence[str]) -> str:
        change = self.change
        where = _wanted(
            _file_in(paths(change.removed)), change.removed, change.live_at_start, self.bound_columns
        )
        return f"{_signed(self.table, columns, change.segment.start, '-1')} WHERE {where}"

    def _at_end(self, columns: Sequence[str]) -> str:
        change, end = self.change, self.change.segment.end
        if change.grown is not None and not change.grown:
            where = _wanted(
                _file_in(paths(change.added)), change.added, change.live_at_end, self.bound_columns
            )
            return f"{_signed(self.table, columns, end, '1')} WHERE {where}"
        where = self._deleted_or_added()
        weight = "IF(_deleted, -1, 1)"
        if not change.deletes_before:
            return f"{_signed(self.table, columns, end, weight)} WHERE {where}"
        # rows that were deleted already at the start are no change; only deleted rows are looked up
        positions = self.table.metadata_at("position_deletes", change.segment.start)
        now = (
            f"SELECT {self.table.select(columns, end)}{_weight(weight)}, _file AS _vk_file, _pos AS _vk_pos "
            f"FROM {self.table.at(end)} WHERE {where}"
        )
        if change.grown is None:
            hint = _hint("before") if change.deletes_before <= _BROADCAST_PATHS else ""
            return (
                f"SELECT {hint}{_columns(columns, 'now')}now.{WEIGHT} "
                f"FROM ({now}) AS now LEFT ANTI JOIN (SELECT file_path, pos FROM {positions}) AS before "
                f"ON now.{WEIGHT} < 0 AND now._vk_file = before.file_path AND now._vk_pos = before.pos"
            )
        # The place of a row is one number, of its file and of itself: a path is long, and takes longest where
        # it is compared with many that begin alike.
        files = _numbered(paths(change.grown))
        place = f"shiftleft(file._vk_number, {_PLACES})"
        hint = _hint("before") if change.deletes_before <= BROADCAST_POSITIONS else ""
        return (
            f"SELECT {hint}{_columns(columns, 'now')}now.{WEIGHT} FROM "
            f"(SELECT {_hint('file')}now.*, {place} + now._vk_pos AS _vk_place "
            f"FROM ({now}) AS now LEFT JOIN {files} AS file ON now._vk_file = file._vk_path) AS now "
            f"LEFT ANTI JOIN (SELECT {_hint('file')}{place} + deleted.pos AS _vk_place "
            f"FROM (SELECT file_path, pos FROM {positions} WHERE {_in('file_path', paths(change.grown))}) "
            f"AS deleted JOIN {files} AS file ON deleted.file_path = file._vk_path) AS before "
            f"ON now.{WEIGHT} < 0 AND now._vk_place = before._vk_place"
        )

    def _deleted_or_added(self) -> str:
        change = self.change
        if change.grown is None:
            deleted = f"_deleted AND NOT {_file_in(paths(change.added))}" if change.added else "_deleted"
        else:
            deleted = f"_deleted AND {_file_in(paths(change.grown))}"
        if change.added:
            deleted = f"({deleted}) OR (NOT _deleted AND {_file_in(paths(change.added))})"
        if change.grown is None:
            return deleted
        return _wanted(f"({deleted})", (*change.grown, *change.added), change.live_at_end, self.bound_columns)


@dataclass(frozen=True, slots=True)
class ComparedSnapshots:
    """Both snapshots read in full, equal rows cancelled."""

    table: TableReader
    start: str
    end: str
    rows_before: int
    rows_after: int

    method = "compared snapshots"
    passed_over = 0
    bounded = None

    @property
    def inserted(self) -> int:
        return self.rows_after

    @property
    def deleted(self) -> int:
        return self.rows_before

    def sql(self, columns: Sequence[str]) -> str:
        return consolidated(
            columns,
            f"{_signed(self.table, columns, self.end, '1')} UNION ALL "
            f"{_signed(self.table, columns, self.start, '-1')}",
        )


Piece = AllRows | AppendedFiles | ChangedFiles | ComparedSnapshots


@dataclass(frozen=True, slots=True)
class IcebergChange:
    """What lies between two versions; the sum of its pieces is exact."""

    table: str
    old: str | None
    new: str
    pieces: tuple[Piece, ...]
    reason: str | None = None

    @property
    def inserted(self) -> int:
        return sum(piece.inserted for piece in self.pieces)

    @property
    def deleted(self) -> int:
        return sum(piece.deleted for piece in self.pieces)

    @property
    def passed_over(self) -> int:
        return sum(piece.passed_over for piece in self.pieces)

    @property
    def method(self) -> str:
        return ", ".join(dict.fromkeys(piece.method for piece in self.pieces))

    def bounds(self, column: str) -> WrittenBounds | None:
        """Between which values those of a column lie in all rows that changed, NULLs apart."""
        found = [None if piece.bounded is None else piece.bounded.extent(column) for piece in self.pieces]
        known = [each for each in found if each is not None]
        if len(known) < len(found) or not known:
            return None
        low, high = min(each.low for each in known), max(each.high for each in known)
        written = BoundColumn(column, known[0].type)
        return WrittenBounds(written.type, written.literal(low), written.literal(high))

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        """One, but for a second stretch that the incremental reader gives: Spark 4.1 loads a table once per
        statement, and would read the first stretch again."""
        incremental = [piece.sql(columns) for piece in self.pieces if isinstance(piece, AppendedFiles)]
        others = [piece.sql(columns) for piece in self.pieces if not isinstance(piece, AppendedFiles)]
        return (" UNION ALL ".join((*incremental[:1], *others)), *incremental[1:])


def paths(files: Sequence[FileEntry]) -> tuple[str, ...]:
    """Their paths."""
    return tuple(file.path for file in files)


def consolidated(columns: Sequence[str], union: str) -> str:
    """The signed rows with equal rows added up; those that cancel are gone."""
    keys = f" GROUP BY {', '.join(map(quote, columns))}" if columns else ""
    return (
        f"SELECT {_columns(columns)}CAST(SUM({WEIGHT}) AS BIGINT) AS {WEIGHT} "
        f"FROM ({union}){keys} HAVING SUM({WEIGHT}) <> 0"
    )


def _count(files: Sequence[FileEntry], noun: str) -> str:
    return f"{len(files)} {noun}{'' if len(files) == 1 else 's'}"


def _columns(columns: Sequence[str], alias: str | None = None) -> str:
    prefix = f"{alias}." if alias else ""
    return "".join(f"{prefix}{quote(column)}, " for column in columns)


def _signed(table: TableReader, columns: Sequence[str], version: str, weight: str) -> str:
    return f"SELECT {table.select(columns, version)}{_weight(weight)} FROM {table.at(version)}"


def _weight(expression: str) -> str:
    return f"CAST({expression} AS BIGINT) AS {WEIGHT}"


def _file_in(files: Sequence[str]) -> str:
    return _in("_file", files)


def _in(column: str, values: Sequence[str]) -> str:
    return f"{column} IN ({', '.join(map(_text, values))})"


def _hint(alias: str) -> str:
    return f"/*+ BROADCAST({alias}) */ "


def _numbered(files: Sequence[str]) -> str:
    """A table of these files, each with a number."""
    rows = ", ".join(f"({_text(path)}, {number}L)" for number, path in enumerate(files))
    return f"(SELECT * FROM VALUES {rows} AS file(_vk_path, _vk_number))"


def _text(value: str) -> str:
    # Spark replaces ${…} in statements before it parses them; two adjacent literals are one string
    return literal(value).replace("${", "$' '{")


def _wanted(
    condition: str,
    wanted: Sequence[FileEntry],
    live: Sequence[FileEntry],
    columns: Sequence[BoundColumn],
) -> str:
    """The condition, and bounds by which Iceberg skips the files that cannot meet it."""
    bounds = pruning_predicate([f.bounded for f in wanted], [f.bounded for f in live], columns)
    return condition if bounds is None else f"{bounds} AND {condition}"
