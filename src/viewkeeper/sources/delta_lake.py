"""Delta tables as sources: a table is a system of one, its versions are its commits.

Commits are counted from 0, and a table that is dropped and made anew counts from 0 again. So a version is the
number of a commit and the beginning of the table's id, ``12@1f3c9a2b``.

Where the table keeps a change data feed, that is the delta. Otherwise its log tells which files came and
went, or lost rows to deletion vectors; the rows of those files at the old version, and at the new one, are
the delta once what is in both has cancelled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.algebra.empty_terms import Extents
from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.errors import SourceError
from viewkeeper.sources.contract import Capabilities, ColumnStatistics, Description, SourceColumn, Statistics
from viewkeeper.sources.delta_log import (
    DataFile,
    LogChange,
    feeds,
    has_spellings,
    one_slash,
    read_actions,
    whole,
)
from viewkeeper.sources.file_listing import escaped
from viewkeeper.sources.iceberg_catalog import source_error
from viewkeeper.sources.iceberg_history import diverged, expired, recreated
from viewkeeper.sql.printer import at_version
from viewkeeper.sql.quoting import literal, quote, quote_path, show_path

_ID_LETTERS = 8
_MOST_FILES_NAMED = 1_000
"""With more changed files than this all rows of both versions are compared: naming them would take longer."""


@dataclass(frozen=True, slots=True)
class DeltaChange:
    """The delta between two commits."""

    table: str
    old: str | None
    new: str
    inserted: int
    deleted: int
    method: str
    selects: tuple[tuple[str, str, str], ...]
    """For each part: the relation, the condition on its rows, their weight."""
    reason: str | None = None
    passed_over: int = 0

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        names = "".join(f"{quote(name)}, " for name in columns)
        return tuple(
            f"SELECT {names}{weight} AS {WEIGHT} FROM {relation} WHERE {condition}"
            for relation, condition, weight in self.selects
        )


class DeltaSource:
    """One Delta table of a catalog."""

    read_options: tuple[tuple[str, str], ...] = ()

    def __init__(self, spark: SparkSession, table: tuple[str, ...]) -> None:
        self._spark = spark
        self._table = show_path(table)
        self._name = quote_path(table)
        self._counted: dict[str, int] = {}
        self._has_vectors = False

    @property
    def capabilities(self) -> Capabilities:
        # Delta pins the version of a table with deletion vectors by a rule of its own, which leaves out
        # statements that write to a table of another format (seen in 4.3).
        return Capabilities(
            rows_at_version=True, lists_versions=True, acknowledges=False, read_apart=self._has_vectors
        )

    def current(self) -> Mapping[str, str | None]:
        # The id first: should the table be made anew in between, the next look finds another one.
        detail = self._detail()
        id_ = detail["id"]
        self._has_vectors = "deletionVectors" in (detail["tableFeatures"] or ())
        newest = self._ask(f"DESCRIBE HISTORY {self._name} LIMIT 1")[0]["version"]
        return {self._table: _version(newest, id_)}

    def versions_after(self, table: str, version: str | None) -> Sequence[str]:
        id_ = self._detail()["id"]
        history = [int(row["version"]) for row in self._ask(f"DESCRIBE HISTORY {self._name}")]
        if version is not None and _commit(version) not in history:
            raise expired(table, version)
        return tuple(
            _version(each, id_) for each in sorted(history) if version is None or each > _commit(version)
        )

    def columns(self, table: str) -> tuple[SourceColumn, ...]:
        try:
            fields = self._spark.table(self._name).schema.fields
        except PySparkException as error:
            raise source_error(error, self._table) from error
        return tuple(SourceColumn(field.name, field.dataType.simpleString()) for field in fields)

    def describe(self, table: str) -> Description:
        return Description(self.columns(table), self._detail()["id"], ())

    def schema(self, table: str) -> tuple[SourceColumn, ...]:
        return self.columns(table)

    def schema_version(self, table: str, version: str | None) -> str | None:
        """Not told: the columns themselves are as cheap to ask for."""
        return None

    def identity(self, table: str) -> str | None:
        return str(self._detail()["id"])

    def statistics(self, table: str, version: str | None) -> Statistics:
        detail = self._detail()
        return Statistics(self.row_count(table, version), detail["sizeInBytes"], detail["numFiles"])

    def row_count(self, table: str, version: str | None) -> int | None:
        """Delta answers from the statistics of its files."""
        assert version is not None
        if version not in self._counted:
            (row,) = self._ask(f"SELECT count(*) AS rows FROM {self.rows(table, version)}")
            self._counted[version] = int(row["rows"])
        return self._counted[version]

    def distinct(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        return {}

    def widths(self, table: str, version: str, columns: Sequence[str]) -> Mapping[str, float]:
        return {}

    def extents(
        self, table: str, old: str | None, new: str | None, columns: Sequence[str]
    ) -> Mapping[str, Extents]:
        return {}

    def rows(self, table: str, version: str | None) -> str:
        if version is None:
            return f"(SELECT * FROM {self._name} WHERE false)"
        return self._name + at_version(version)

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> DeltaChange | None:
        if table != self._table:
            raise SourceError(f"{table} is not part of the source {self._table}", code="VK-SOURCE-MISSING")
        assert new is not None, "a Delta table has a version from the beginning"
        if old == new:
            return None
        if old is None:
            rows = self.row_count(table, new) or 0
            everything = (self.rows(table, new), "true", "1L")
            return DeltaChange(table, old, new, rows, 0, "all rows", (everything,))
        detail = self._detail()
        known = _table_of(old) or identity
        if known is not None and not str(detail["id"]).startswith(known):
            raise recreated(table, old)
        first, last = _commit(old), _commit(new)
        if last < first:
            raise diverged(table, old, new)
        if first == last:
            return None
        location = str(detail["location"])
        commits = read_actions(self._spark, location, range(first + 1, last + 1))
        if commits is None:
            raise expired(table, old)
        change = LogChange(feeds=feeds(detail["properties"] or {}))
        for commit in commits:
            change.take_commit(commit)
        if not change.changes_rows:
            return None
        self._sort_out_described_anew(change, old, location)
        if change.feeds and self._are_there(location, change.perishable):
            return self._fed(old, new, change)
        if not self._are_there(location, {path for file in change.before.values() for path in file.paths}):
            raise expired(table, old)  # its rows cannot be read any more
        why = "its change data feed was vacuumed" if change.feeds else "the table keeps no change data feed"
        return self._compared(old, new, change, location, why)

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """Nothing to do: a commit never changes."""

    def acknowledge(self, version: Mapping[str, str | None]) -> None:
        """Nothing to do: a table's history is kept by its own settings, not for us."""

    def release(self) -> None:
        """Nothing to do."""

    def _fed(self, old: str, new: str, change: LogChange) -> DeltaChange:
        relation = f"table_changes({literal(self._name)}, {_commit(old) + 1}, {_commit(new)})"
        weight = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1L ELSE -1L END"
        inserted, deleted = change.fed or self._rows_fed(old, change)
        parts = ((relation, "true", weight),)
        return DeltaChange(self._table, old, new, inserted, deleted, "change data feed", parts)

    def _compared(self, old: str, new: str, change: LogChange, location: str, why: str) -> DeltaChange:
        # Either both sides are told by their files, or both are read whole.
        named = max(len(change.before), len(change.after)) <= _MOST_FILES_NAMED
        before, after = ({whole(location, path) for path in side} for side in (change.before, change.after))
        if before:
            # Removed under another spelling, a file is still there: what is on both sides cancels out.
            spelled = {whole(location, it) for it in {*change.before, *change.after} if has_spellings(it)}
            before, after = before | spelled, after | spelled
        sides = ((old, before, "-1L"), (new, after, "1L"))
        selects = tuple(
            (self.rows(self._table, version), _in_files(files) if named else "true", weight)
            for version, files, weight in sides
            if files or not named
        )
        inserted, deleted = self._rows_in_files(old, change)
        if not named:
            inserted, deleted = (self.row_count(self._table, version) or 0 for version in (new, old))
        told = "added files" if not deleted else "rows of changed files, compared"
        return DeltaChange(
            self._table, old, new, inserted, deleted, told, selects, None if not deleted else why
        )

    def _rows_fed(self, old: str, change: LogChange) -> tuple[int, int]:
        """At most so many rows the feed tells of: those that came and went again are among them."""
        inserted, deleted = self._rows_in_files(old, change)
        passed = _rows(change.passed)
        return inserted + passed, deleted + passed

    def _rows_in_files(self, old: str, change: LogChange) -> tuple[int, int]:
        """At most so many rows came and went: few writers tell how many a removed file held."""
        gone = (
            min(_rows(change.before.values()), self.row_count(self._table, old) or 0) if change.before else 0
        )
        return _rows(change.after.values()), gone

    def _sort_out_described_anew(self, change: LogChange, old: str, location: str) -> None:
        """A file may be added again, rows and all, for the sake of its statistics: that has not changed it;
        and if it went after that, it was there before."""
        if not change.rewritten and not change.gone:
            return
        listed = self._spark.sql(f"SELECT * FROM {self.rows(self._table, old)}").inputFiles()
        there = {one_slash(file) for file in listed}
        removed = [whole(location, path) for path in change.before]
        if removed and there.isdisjoint(removed):
            raise SourceError(
                f"table {self._table}: none of the files that it lost since version {old} was there, "
                f"{removed[0]} for one; there was {min(there, default='none')}",
                code="VK-SOURCE-DIVERGED",
                hint="refresh the views that read it with policy full",
            )
        was_there = [path for path in (*change.rewritten, *change.gone) if whole(location, path) in there]
        for path in was_there:
            if path in change.gone:
                change.before.setdefault(path, change.gone[path])
            else:
                change.after.pop(path, None)

    def _are_there(self, location: str, paths: Iterable[str]) -> bool:
        """Whether all of these files are there: VACUUM removes what the newest version does not need."""
        found = [escaped(whole(location, path)) for path in paths]
        if not found:
            return True
        try:
            self._spark.read.format("binaryFile").load(found)
        except PySparkException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return False
            raise
        return True

    def _detail(self) -> Row:
        return self._ask(f"DESCRIBE DETAIL {self._name}")[0]

    def _ask(self, query: str) -> list[Row]:
        try:
            return self._spark.sql(query).collect()
        except PySparkException as error:
            raise source_error(error, self._table) from error


def _version(commit: int, table_id: str) -> str:
    return f"{commit}@{table_id[:_ID_LETTERS]}"


def _commit(version: str) -> int:
    return int(version.partition("@")[0])


def _table_of(version: str) -> str | None:
    """How the id of its table begins; versions that were recorded earlier do not tell."""
    return version.partition("@")[2] or None


def _rows(files: Iterable[DataFile]) -> int:
    return sum(file.rows for file in files)


def _in_files(paths: Iterable[str]) -> str:
    """Spark names files by URLs, too. Most need no decoding, and it takes its time."""
    url = "_metadata.file_path"
    decoded = f"replace(url_decode(replace({url}, '+', '%2B')), ':///', ':/')"
    path = f"IF(contains({url}, '%') OR contains({url}, ':///'), {decoded}, {url})"
    return f"{path} IN ({', '.join(map(literal, sorted(paths)))})"
