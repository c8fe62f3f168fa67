"""What is read out of a table's metadata file."""

from __future__ import annotations

import gzip
import json
from typing import Any

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


def test_distinct_values_come_from_the_newest_statistics_under_the_current_names() -> None:
    statistics = [
        {"snapshot-id": 6, "blob-metadata": [blob(1, "70"), blob(2, None), blob(9, "3")]},
        {"snapshot-id": 5, "blob-metadata": [blob(1, "60"), blob(2, "8")]},
        {"snapshot-id": 4, "blob-metadata": [blob(2, "9")]},
    ]
    told = {**METADATA, "statistics": statistics}
    assert parse_identity(json.dumps(told).encode()).distinct == {"k": 70}
    told["statistics"] = statistics[1:]
    assert parse_identity(json.dumps(told).encode()).distinct == {"k": 60, "b": 8}


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
