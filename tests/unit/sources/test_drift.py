from __future__ import annotations

import pytest

from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.drift import compare_schemas

BEFORE = (
    SourceColumn("id", "int", "1"),
    SourceColumn("Name", "string", "2"),
    SourceColumn("gone", "int", "3"),
)


@pytest.mark.parametrize(
    ("now", "message"),
    [
        pytest.param([("id", "int", "1"), ("Name", "string", "2")], None, id="unused column dropped"),
        pytest.param(
            [("new", "date", "4"), ("name", "string", "2"), ("id", "int", "1")],
            None,
            id="added, reordered, case",
        ),
        pytest.param([("id", "int", "1")], "column Name was dropped", id="dropped"),
        pytest.param(
            [("id", "bigint", "1"), ("Name", "string", "2")],
            "column id was int and is now bigint",
            id="retyped",
        ),
        pytest.param(
            [("id", "int", "1"), ("title", "string", "2")], "column Name was renamed to title", id="renamed"
        ),
        pytest.param(
            [("Name", "int", "1"), ("id", "string", "2")], "column id was renamed to Name", id="names swapped"
        ),
        pytest.param(
            [("id", "int", "1"), ("Name", "string", "9")],
            "column Name was dropped and added again: it is another column of the same name",
            id="dropped and re-added",
        ),
    ],
)
def test_what_became_of_used_columns(now: list[tuple[str, str, str]], message: str | None) -> None:
    drift = compare_schemas(BEFORE, [SourceColumn(*column) for column in now], {"ID", "name"})
    assert (drift and drift.message) == message


def test_without_ids_names_and_types_decide() -> None:
    plain = [SourceColumn(column.name, column.type) for column in BEFORE]
    assert compare_schemas(BEFORE, plain, {"id", "Name", "gone"}) is None
    assert compare_schemas(plain, BEFORE, {"id", "Name", "gone"}) is None
    renamed = [SourceColumn("id", "int"), SourceColumn("title", "string")]
    drift = compare_schemas(plain, renamed, {"Name"})
    assert drift is not None
    assert drift.column == "Name"
    assert drift.message == "column Name was dropped"
