"""What a catalog says of an Iceberg table: its current snapshot, its history, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.errors import SourceError
from viewkeeper.sources.iceberg_history import History, Snapshot
from viewkeeper.sql.quoting import quote_path, show_path

_ROWS: Final = re.compile(r"(\d+) rows")
_SNAPSHOT: Final = re.compile(r"current-snapshot-id=(\d+|none)")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a table stands: its current snapshot, ``None`` if never written, and how many rows that has."""

    version: str | None
    rows: int | None


def keeps_tables(spark: SparkSession, catalog: str) -> bool:
    """Whether a session's catalog may keep tables for a while, so that it does not see others' commits."""
    return spark.conf.get(f"spark.sql.catalog.{catalog}.cache-enabled", "true") != "false"


def is_iceberg_catalog(spark: SparkSession, catalog: str) -> bool:
    """Whether all tables of a catalog are Iceberg's; Spark's own may hold others beside them."""
    kind = spark.conf.get(f"spark.sql.catalog.{catalog}", "")
    return kind == "org.apache.iceberg.spark.SparkCatalog"


def standing(spark: SparkSession, table: tuple[str, ...]) -> Standing:
    """Where the table stands now; no Spark job."""
    failure: Exception | None = None
    if keeps_tables(spark, table[0]):
        try:
            spark.sql(f"REFRESH TABLE {quote_path(table)}")
        except Exception as error:  # a view makes Spark fail in ways of its own; the next question tells
            failure = error
    try:
        told = told_by_description(description(spark, table))
    except PySparkException as error:
        raise source_error(error, show_path(table)) from error
    if told is None:
        raise _not_iceberg(show_path(table))
    if failure is not None:
        raise SourceError(f"table {show_path(table)} cannot be refreshed: {failure}") from failure
    return told


def description(spark: SparkSession, table: tuple[str, ...]) -> dict[str, str]:
    """What ``DESCRIBE TABLE EXTENDED`` says of a table, line by line."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {quote_path(table)}").collect()
    return {row["col_name"]: row["data_type"] or "" for row in described}


def told_by_description(details: Mapping[str, str]) -> Standing | None:
    """Where a table stands, out of its description; ``None`` if it is not Iceberg's."""
    snapshot = _SNAPSHOT.search(details.get("Table Properties", ""))
    if snapshot is None:
        return None
    if snapshot[1] == "none":
        return Standing(None, 0)
    rows = _ROWS.search(details.get("Statistics", ""))
    return Standing(snapshot[1], int(rows[1]) if rows else None)


def read_history(spark: SparkSession, table: tuple[str, ...]) -> History:
    """All snapshots that the table still has, and the schema it has now; one Spark job."""
    query = (
        "SELECT snapshot_id, parent_id, operation, summary, unix_micros(committed_at) AS at, "
        "CAST(NULL AS INT) AS schema_id, CAST(NULL AS BIGINT) AS shown "
        f"FROM {quote_path((*table, 'snapshots'))} "
        "UNION ALL SELECT CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS STRING), "
        "CAST(NULL AS MAP<STRING, STRING>), unix_micros(timestamp), latest_schema_id, latest_snapshot_id "
        f"FROM {quote_path((*table, 'metadata_log_entries'))}"
    )
    try:
        rows = spark.sql(query).collect()
    except PySparkException as error:
        raise source_error(error, show_path(table)) from error
    found = (
        Snapshot(
            str(row["snapshot_id"]),
            None if row["parent_id"] is None else str(row["parent_id"]),
            row["operation"],
            dict(row["summary"] or {}),
        )
        for row in rows
        if row["snapshot_id"] is not None
    )
    logged = [row for row in rows if row["schema_id"] is not None]
    return History(
        show_path(table),
        {snapshot.id: snapshot for snapshot in found},
        _schema_written_last({row["snapshot_id"]: row["at"] for row in rows if row["snapshot_id"]}, logged),
        {str(row["shown"]): str(row["schema_id"]) for row in logged},
    )


def _schema_written_last(committed: Mapping[int, int], logged: Sequence[Row]) -> str | None:
    """The id of the table's schema, if the last that was done to the table is the snapshot that it shows.

    What is logged is the schema of the snapshot, not of the table. They differ if the table was altered, and
    not written to since: then an entry was logged that shows no new snapshot. And they may differ where a
    snapshot was written to a branch, the table altered, and main moved to the branch: then the snapshot is
    older than the entries before. (Its time is not always that of its own entry, which is some milliseconds
    later.)
    """
    if not logged:
        return None
    *before, newest = sorted(logged, key=lambda row: row["at"])
    made = committed.get(newest["shown"])
    if made is None or any(row["shown"] == newest["shown"] or row["at"] > made for row in before):
        return None
    return str(newest["schema_id"])


def _not_iceberg(table: str) -> SourceError:
    return SourceError(
        f"{table} is neither an Iceberg nor a Delta table",
        code="VK-SOURCE-KIND",
        hint="Iceberg and Delta tables tell what changed; declare files with CREATE SOURCE, or copy the "
        "table into one (CREATE TABLE … USING iceberg AS SELECT …)",
    )


def source_error(error: PySparkException, table: str) -> SourceError:
    """Spark's error in our words; anything unforeseen keeps Spark's."""
    condition = error.getCondition() or ""
    if "NOT_FOUND" in condition or "NO_SUCH" in condition:
        return SourceError(
            f"table {table} does not exist",
            code="VK-SOURCE-MISSING",
            hint="create it, or drop the views that read it",
        )
    return SourceError(f"table {table} cannot be read: {error.getMessage() or error}")
