"""What a database is told of a condition: parts that both read alike, or nothing."""

from __future__ import annotations

import pytest

from viewkeeper.sources.conditions import pushed
from viewkeeper.sources.postgres_types import PostgresType

TYPES = {
    "id": PostgresType("integer", "int"),
    "Total": PostgresType("numeric(10,2)", "decimal(10,2)"),
    "kind": PostgresType("character varying(10)", "string"),
    "code": PostgresType("character(3)", "string"),
    "is": PostgresType("boolean", "boolean"),
}


@pytest.mark.parametrize(("condition", "told"), [
    (None, ""),
    ("id = 3", '"id" = 3'),
    ("(ID >= -3)", '"id" >= -3'),
    ("3 < id", '"id" > 3'),
    ("id IN (1, 2) AND (kind = 'a' AND id <> 4)", '"id" IN (1, 2) AND "kind" = \'a\''),
    ("kind IS NOT NULL AND Total IS NULL", '"kind" IS NOT NULL AND "Total" IS NULL'),
    ("NOT id IS NULL", '"id" IS NOT NULL'),
    ("`kind` = 'ä'", '"kind" = \'ä\''),
    # Read otherwise there, or perhaps so.
    ("kind > 'a'", ""),
    ("kind = 'it''s'", ""),
    (r"kind = 'a\\b'", ""),
    ("kind = 3", ""),
    ("id = '3'", ""),
    ("id = 1.5", ""),
    ("id = 3L", ""),
    ("id = 99999999999999999999", ""),
    ("code = 'a'", ""),
    ("Total > 3", ""),
    ("id = NULL", ""),
    ("kind = kind", ""),
    ("other = 3", ""),
    # No conjunction.
    ("id = 3 OR kind = 'a'", ""),
    ("NOT (id = 3)", ""),
    ("id BETWEEN 1 AND kind = 'a'", ""),
    ("CASE WHEN is AND id = 1 AND is THEN false ELSE true END", ""),
    ("is AND id = 1 OR kind = 'b' AND id = 2", ""),
    ("id IN (1, kind)", ""),
    ("exists(array(1), x -> x = id AND id = 3)", ""),
    ("id = 3 -- AND kind = 'a'", '"id" = 3'),
    ("this is no condition", ""),
])  # fmt: skip
def test_what_is_told(condition: str | None, told: str):
    assert pushed(condition, TYPES) == told
