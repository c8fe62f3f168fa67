"""What an Iceberg table is, under its name: the UUID it was created with, the ids of its columns, and which
of them identify a row.

Spark SQL shows none of it, but the table's metadata file holds both, and `metadata_log_entries` names that
file. Two small Spark jobs; so this is asked when a view is defined, or when something looks wrong, not
on every refresh.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.sources.contract import INNER, ColumnStatistics
from viewkeeper.sql.quoting import quote, quote_path


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """The UUID, the field id of each top-level column of the current schema, for each snapshot the name that
    it has for each field id, and the names of the identifier fields; the id of the current schema."""

    uuid: str
    field_ids: Mapping[str, str] = field(hash=False)
    names_at: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    key: tuple[str, ...] = ()
    distinct: Mapping[str, ColumnStatistics] = field(default_factory=dict, hash=False)
    """Of each column what the newest statistics file says that tells of it."""
    inner_ids: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Of columns that consist of others: the ids of those, in the order of the type."""
    schema_id: str | None = None

    def column_id(self, name: str) -> str | None:
        """What tells a column from another of the same name and type, and so of its parts."""
        if name not in self.field_ids:
            return None
        inner = self.inner_ids.get(name)
        return f"{self.field_ids[name]}{INNER}{inner}" if inner else self.field_ids[name]

    def unwritten(self, version: str) -> tuple[str, ...]:
        """The columns of the current schema that a snapshot does not have, or another of the same name."""
        then = self.names_at.get(version)
        if then is None:
            return ()
        return tuple(name for name, number in self.field_ids.items() if then.get(number) != name)


def read_identity(spark: SparkSession, table: tuple[str, ...]) -> TableIdentity | None:
    """The identity of a table; ``None`` when Spark itself cannot open the metadata file, as when only the
    catalog's own FileIO holds the credentials."""
    log = quote_path((*table, "metadata_log_entries"))
    newest = spark.sql(f"SELECT max_by(file, struct(timestamp, file)) AS file FROM {log}").collect()
    try:
        # braces, stars and the like in a path would be taken for a pattern
        found = spark.sql(f"SELECT content FROM binaryFile.{quote(_escape(newest[0]['file']))}").collect()
        return parse_identity(bytes(found[0]["content"]))
    except (PySparkException, IndexError, ValueError, KeyError):
        return None


def parse_identity(content: bytes) -> TableIdentity:
    """The identity out of a metadata file, compressed or not."""
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    metadata: dict[str, Any] = json.loads(text)
    names = {
        schema["schema-id"]: {str(column["id"]): column["name"] for column in schema["fields"]}
        for schema in metadata["schemas"]
    }
    current = names[metadata["current-schema-id"]]
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    return TableIdentity(
        metadata["table-uuid"],
        {name: number for number, name in current.items()},
        {
            str(snapshot["snapshot-id"]): names[snapshot["schema-id"]]
            for snapshot in metadata.get("snapshots", ())
            if snapshot.get("schema-id") in names
        },
        tuple(current[str(each)] for each in schema.get("identifier-field-ids", ()) if str(each) in current),
        _distinct(metadata, current),
        {column["name"]: ",".join(ids) for column in schema["fields"] if (ids := _inner(column.get("type")))},
        str(metadata["current-schema-id"]),
    )


def _inner(kind: Any) -> list[str]:
    """The ids of the fields, elements, keys and values that a type is made of."""
    if not isinstance(kind, dict):
        return []
    match kind["type"]:
        case "struct":
            parts = [(part["id"], part["type"]) for part in kind["fields"]]
        case "list":
            parts = [(kind["element-id"], kind["element"])]
        case _:
            parts = [(kind["key-id"], kind["key"]), (kind["value-id"], kind["value"])]
    return [each for id_, inner in parts for each in (str(id_), *_inner(inner))]


def _distinct(metadata: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, ColumnStatistics]:
    """The NDVs of the theta sketches, of each column the newest, with the rows of their snapshot and those
    that came and went since. What cannot be understood of them is passed over."""
    files = {entry.get("snapshot-id"): entry for entry in metadata.get("statistics", ())}
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", ())}
    found: dict[str, ColumnStatistics] = {}
    came = went = 0
    at, seen = metadata.get("current-snapshot-id"), set[Any]()
    while at in snapshots and at not in seen:
        seen.add(at)
        summary = snapshots[at].get("summary", {})
        rows = _number(summary.get("total-records"))
        for field_id, values in _values_told(files.get(at, {})):
            if field_id in names and rows is not None:
                found.setdefault(names[field_id], ColumnStatistics(values, rows, came, went))
        if summary.get("operation") != "replace":
            came += _number(summary.get("added-records")) or 0
            went += _number(summary.get("deleted-records")) or 0
            went += _number(summary.get("added-position-deletes")) or 0
            went += _number(summary.get("added-equality-deletes")) or 0
        at = snapshots[at].get("parent-snapshot-id")
    return found


def _values_told(statistics: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The NDVs of a statistics file, with the id of their column."""
    for blob in statistics.get("blob-metadata", ()):
        match blob:
            case {"fields": [field_id], "properties": {"ndv": told}} if (values := _number(told)) is not None:
                yield str(field_id), values


def _number(text: object) -> int | None:
    """A number out of a property, which any writer may have written."""
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _escape(path: str) -> str:
    return "".join("\\" + letter if letter in "{}[]*?\\" else letter for letter in path)
