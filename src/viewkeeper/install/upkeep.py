"""The upkeep of storage tables, by Iceberg's own procedures. None of them changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from viewkeeper.install.storage import table_sql
from viewkeeper.plan.upkeep import SMALL_BYTES, Files
from viewkeeper.sql.quoting import literal, parse_path, quote, quote_path

_COMPACT = {"min-input-files": "2", "delete-ratio-threshold": "0.1", "remove-dangling-deletes": "true"}


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots that a table has, oldest first, and those that its main and branches are at."""

    all: tuple[str, ...]
    current: tuple[str, ...]


def files_of(session: SparkSession, storage: str) -> Files:
    """What the table is made of; from metadata alone."""
    table = table_sql(storage)
    (found,) = session.sql(
        "SELECT d.*, x.deleted, m.manifests FROM "
        f"(SELECT count(*) AS files, count_if(file_size_in_bytes < {SMALL_BYTES}) AS small, "
        f"coalesce(sum(record_count), 0) AS rows FROM {table}.data_files) AS d, "
        f"(SELECT coalesce(sum(record_count), 0) AS deleted FROM {table}.delete_files) AS x, "
        f"(SELECT count(*) AS manifests FROM {table}.manifests) AS m"
    ).collect()
    return Files(found["files"], found["small"], found["rows"], found["deleted"], found["manifests"])


def snapshots_of(session: SparkSession, storage: str) -> Snapshots:
    """By one query."""
    table = table_sql(storage)
    rows = session.sql(
        f"SELECT CAST(snapshot_id AS STRING) AS id, committed_at, false AS current FROM {table}.snapshots "
        f"UNION ALL SELECT CAST(snapshot_id AS STRING), NULL, true FROM {table}.refs ORDER BY committed_at"
    ).collect()
    return Snapshots(
        tuple(row["id"] for row in rows if not row["current"]),
        tuple(row["id"] for row in rows if row["current"]),
    )


def compact(session: SparkSession, storage: str, *, ordered: bool) -> None:
    """Rewrite small files, and those of which many rows are deleted; sorted, if the view has an order."""
    options = ", ".join(f"{literal(key)}, {literal(value)}" for key, value in _COMPACT.items())
    strategy = ", strategy => 'sort'" if ordered else ""
    _call(session, storage, f"rewrite_data_files({_table(storage)}{strategy}, options => map({options}))")


def rewrite_manifests(session: SparkSession, storage: str) -> None:
    """List the files anew, so that planning a query opens fewer lists."""
    _call(session, storage, f"rewrite_manifests({_table(storage)})")


def expire(session: SparkSession, storage: str, snapshots: Sequence[str]) -> None:
    """Forget these snapshots, and remove the files that only they have."""
    # Without older_than, whatever is older than five days would go, too.
    ids = ", ".join(f"{int(each)}L" for each in snapshots)
    never = "older_than => TIMESTAMP '1970-01-01 00:00:00'"
    _call(session, storage, f"expire_snapshots({_table(storage)}, {never}, snapshot_ids => array({ids}))")


def _call(session: SparkSession, storage: str, procedure: str) -> None:
    session.sql(f"CALL {quote(parse_path(storage)[0])}.system.{procedure}").collect()


def _table(storage: str) -> str:
    return f"table => {literal(quote_path(parse_path(storage)))}"
