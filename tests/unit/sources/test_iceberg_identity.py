"""What is read out of a table's metadata file."""

from __future__ import annotations

import gzip
import json
from typing import Any

from viewkeeper.sources.contract import ColumnStatistics
from viewkeeper.sources.iceberg_identity import parse_identity

METADATA: dict[str, Any] = {
    "table-uuid": "u",
    "current-schema-id": 1,
    "schemas": [
        {"schema-id": 0, "fields": [{"id": 1, "name": "a"}]},
        {
            "schema-id": 1,
            "fields": [{"id": 1, "name": "k"}, {"id": 2, "name": "b"}],
            "identifier-field-ids": [1],
        },
    ],
    "snapshots": [{"snapshot-id": 5, "schema-id": 0}, {"snapshot-id": 6, "schema-id": 1}],
}


def blob(field: int, ndv: str | None) -> dict[str, Any]:
    properties = {} if ndv is None else {"ndv": ndv}
    return {"type": "apache-datasketches-theta-v1", "fields": [field], "properties": properties}


def test_identity_key_and_names() -> None:
    identity = parse_identity(gzip.compress(json.dumps(METADATA).encode()))
    assert identity.uuid == "u"
    assert identity.key == ("k",)
    assert identity.names_at == {"5": {"1": "a"}, "6": {"1": "k", "2": "b"}}
    assert identity.distinct == {}


def snapshot(number: int, parent: int | None, operation: str = "append", **summary: int) -> dict[str, Any]:
    told = {key.replace("_", "-"): str(value) for key, value in summary.items()}
    return {
        "snapshot-id": number,
        "schema-id": 1,
        "parent-snapshot-id": parent,
        "summary": {"operation": operation, **told},
    }


SNAPSHOTS = [
    snapshot(4, None, total_records=50, added_records=50),
    snapshot(7, 4, "overwrite", total_records=1),  # rolled back
    snapshot(5, 4, total_records=70, added_records=20),
    snapshot(6, 5, "replace", total_records=70, added_records=70, deleted_records=70),
    snapshot(8, 6, "overwrite", total_records=65, added_records=5, deleted_records=10),
    snapshot(9, 8, "delete", total_records=65, added_position_deletes=3),
]
STATISTICS: list[dict[str, Any]] = [
    {"snapshot-id": 7, "blob-metadata": [blob(1, "1")]},
    {"snapshot-id": 6, "blob-metadata": [blob(1, "70"), blob(2, None), blob(9, "3")]},
    {"snapshot-id": 5, "blob-metadata": [blob(1, "60"), blob(2, "8")]},
    {"snapshot-id": 4, "blob-metadata": [blob(2, "9")]},
]


def distinct(statistics: list[dict[str, Any]], snapshots: list[dict[str, Any]] = SNAPSHOTS) -> Any:
    told = {**METADATA, "current-snapshot-id": 9, "snapshots": snapshots, "statistics": statistics}
    return parse_identity(json.dumps(told).encode()).distinct


def test_distinct_values_come_from_the_newest_statistics_of_each_column_under_the_current_names() -> None:
    assert distinct(STATISTICS) == {
        "k": ColumnStatistics(70, 70, came=5, went=13),
        "b": ColumnStatistics(8, 70, came=5, went=13),
    }
    assert distinct(STATISTICS[3:]) == {"b": ColumnStatistics(9, 50, came=25, went=13)}


def test_statistics_that_cannot_be_read_are_passed_over() -> None:
    broken: list[Any] = [
        {"fields": [1], "properties": {"ndv": "many"}},
        {"fields": [1], "properties": {"ndv": -1}},
        {"fields": [1], "properties": None},
        {"fields": [], "properties": {"ndv": "1"}},
        {"fields": "1", "properties": {"ndv": "1"}},
        "nothing",
        {},
    ]
    assert distinct([{"snapshot-id": 9, "blob-metadata": broken}, {}, {"snapshot-id": 5}]) == {}
    # Without the rows of then nobody knows what they tell of now.
    unknown = [{**SNAPSHOTS[-1], "summary": {}}, *SNAPSHOTS[:-1]]
    assert distinct([{"snapshot-id": 9, "blob-metadata": [blob(1, "5")]}], unknown) == {}
    assert distinct(STATISTICS, SNAPSHOTS[4:]) == {}, "their snapshots are expired"


def test_columns_are_told_apart_by_their_ids_and_those_of_their_parts() -> None:
    inner = {"type": "struct", "fields": [{"id": 4, "name": "x", "type": "int"}]}
    listed = {"type": "list", "element-id": 3, "element": inner}
    schema = {
        "schema-id": 2,
        "fields": [{"id": 7, "name": "k", "type": "int"}, {"id": 2, "name": "b", "type": listed}],
    }
    told = {**METADATA, "current-schema-id": 2, "schemas": [*METADATA["schemas"], schema]}
    identity = parse_identity(json.dumps(told).encode())
    assert identity.schema_id == "2"
    assert [identity.column_id(name) for name in ("k", "b", "gone")] == ["7", "2:3,4", None]
    assert identity.unwritten("6") == ("k",), "it had another column of that name"
    assert identity.unwritten("5") == ("k", "b")
