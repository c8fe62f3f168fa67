"""What a catalog says of an Iceberg table: its current snapshot, its history, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SourceError
from viewkeeper.sources.iceberg_history import History, Snapshot
from viewkeeper.sql.quoting import quote_path, show_path


def current_versions(
    spark: SparkSession, tables: Sequence[tuple[str, ...]], *, threads: int = 4
) -> dict[str, str | None]:
    """The current version of each table, under its shown name; no Spark job, several tables at a time."""
    with ThreadPoolExecutor(max_workers=max(1, min(threads, len(tables)))) as pool:
        versions = pool.map(lambda table: current_version(spark, table), tables)
        return dict(zip(map(show_path, tables), versions, strict=True))


def current_version(spark: SparkSession, table: tuple[str, ...]) -> str | None:
    """The current snapshot id, ``None`` if never written; no Spark job."""
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
        raise source_error(error, show_path(table)) from error
    return {row["key"]: row["value"] for row in rows}


def read_history(spark: SparkSession, table: tuple[str, ...]) -> History:
    """All snapshots that the table still has, and the schema it has now; one Spark job."""
    query = (
        "SELECT snapshot_id, parent_id, operation, summary, CAST(NULL AS TIMESTAMP) AS logged_at, "
        f"CAST(NULL AS INT) AS schema_id FROM {quote_path((*table, 'snapshots'))} "
        "UNION ALL SELECT CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS STRING), "
        "CAST(NULL AS MAP<STRING, STRING>), timestamp, latest_schema_id "
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
    newest = max(logged, key=lambda row: row["logged_at"], default=None)
    return History(
        show_path(table),
        {snapshot.id: snapshot for snapshot in found},
        None if newest is None else str(newest["schema_id"]),
    )


def _not_iceberg(table: str) -> SourceError:
    return SourceError(
        f"{table} is not an Iceberg table",
        code="VK-SOURCE-KIND",
        hint="only Iceberg tables have the snapshots that tell what changed; copy it into one "
        "(CREATE TABLE … USING iceberg AS SELECT …)",
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
