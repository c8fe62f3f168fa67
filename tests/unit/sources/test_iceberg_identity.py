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
