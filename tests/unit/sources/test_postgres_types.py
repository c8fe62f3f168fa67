"""PostgreSQL's types and texts: what has a place in Spark, and what is refused rather than bent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import ViewkeeperError
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.pgoutput import Identity, Operation, Relation, RowChange
from viewkeeper.sources.postgres_delta import PinnedTable, signed_rows
from viewkeeper.sources.postgres_records import record_values
from viewkeeper.sources.postgres_types import PostgresType, array_as_json, spark_type


@pytest.mark.parametrize(
    ("name", "spark"),
    [
        ("smallint", "smallint"),
        ("integer", "int"),
        ("bigint", "bigint"),
        ("real", "float"),
        ("double precision", "double"),
        ("boolean", "boolean"),
        ("date", "date"),
        ("timestamp without time zone", "timestamp_ntz"),
        ("timestamp(3) without time zone", "timestamp_ntz"),
        ("timestamp with time zone", "timestamp"),
        ("timestamp(0) with time zone", "timestamp"),
        ("time without time zone", "string"),
        ("time(6) with time zone", "string"),
        ("text", "string"),
        ("character varying", "string"),
        ("character varying(20)", "string"),
        ("character(3)", "string"),
        ("name", "string"),
        ("uuid", "string"),
        ("json", "string"),
        ("jsonb", "string"),
        ("bytea", "binary"),
        ("numeric", "decimal(38,18)"),
        ("numeric(10,2)", "decimal(10,2)"),
        ("numeric(38,0)", "decimal(38,0)"),
        ("numeric(5,5)", "decimal(5,5)"),
        ("integer[]", "array<int>"),
        ("numeric(10,2)[]", "array<decimal(10,2)>"),
        ("character varying(20)[]", "array<string>"),
        ("timestamp with time zone[]", "array<timestamp>"),
    ],
)
def test_types_that_have_a_place(name: str, spark: str) -> None:
    found = spark_type(name)
    assert found is not None
    assert (found.name, found.spark, found.is_array) == (name, spark, name.endswith("[]"))


@pytest.mark.parametrize(
    "name",
    [
        "interval", "interval[]", "money", "inet", "cidr", "macaddr", "xml", "point", "int4range", "oid",
        "tsvector", "bit(3)", "bit varying(5)", "bpchar", '"char"', "hstore", "shop.domain", "shop.mood",
        "numeric(39,2)", "numeric(1000,10)", "numeric(3,5)", "numeric(5,-2)", "numeric(39,2)[]", "record",
    ],
)  # fmt: skip
def test_types_that_have_none(name: str) -> None:
    assert spark_type(name) is None


def test_an_enum_is_a_text_whatever_it_is_called() -> None:
    assert spark_type("shop.mood", is_enum=True) == PostgresType("shop.mood", "string")
    assert spark_type("shop.mood[]", is_enum=True) == PostgresType("shop.mood[]", "array<string>")
    assert spark_type("shop.numeric", is_enum=True) == PostgresType("shop.numeric", "string")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("{}", []),
        ("{1,2,NULL}", ["1", "2", None]),
        ('{""}', [""]),
        ('{"NULL",NULL,"null"}', ["NULL", None, "null"]),
        ('{"a,b","{c}","d e"," "}', ["a,b", "{c}", "d e", " "]),
        (r'{"say \"hi\"","back\\slash"}', ['say "hi"', r"back\slash"]),
        (r'{"\\x00ff"}', [r"\x00ff"]),
        ("{ä,日本}", ["ä", "日本"]),
        ("{t,f}", ["t", "f"]),
        ('{"2024-02-29 12:34:56.789+00"}', ["2024-02-29 12:34:56.789+00"]),
        ("{-0,NaN,Infinity,1e+30}", ["-0", "NaN", "Infinity", "1e+30"]),
    ],
)
def test_arrays_are_read_as_postgresql_prints_them(text: str, items: list[str | None]) -> None:
    assert json.loads(array_as_json(text)) == items


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from('",\\{}() \t\nnulNUL'),
    max_size=6,
)


def printed_array(items: Sequence[str | None]) -> str:
    """As ``array_out`` prints it."""
    return "{" + ",".join("NULL" if item is None else _array_item(item) for item in items) + "}"


def _array_item(item: str) -> str:
    plain = item and item.upper() != "NULL" and not set(item) & set('",\\{} \t\n\r\v\f')
    return item if plain else '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.lists(st.none() | TEXTS, max_size=5))
def test_any_array_is_read_as_it_was(items: list[str | None]) -> None:
    assert json.loads(array_as_json(printed_array(items))) == items


def printed_record(values: Sequence[str | None]) -> str:
    """As ``record_out`` prints it."""
    return "(" + ",".join("" if value is None else _record_value(value) for value in values) + ")"


def _record_value(value: str) -> str:
    plain = value and not set(value) & set('",\\() \t\n\r\v\f')
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '""') + '"'


@given(st.lists(st.none() | TEXTS, min_size=1, max_size=5))
def test_any_row_that_a_trigger_wrote_is_read_as_it_was(values: list[str | None]) -> None:
    assert record_values(printed_record(values)) == values


@pytest.mark.parametrize("text", ["{{1,2},{3,4}}", '{{"a"}}', "[2:2][1:1]={{1}}"])
def test_arrays_of_more_dimensions_are_refused_by_name(text: str) -> None:
    """What a type declares says nothing of it: only a value tells."""
    table = PinnedTable(
        "shop", "t", (("id", "integer", "int", 23), ("tags", "text[]", "array<string>", 1009)), ("id",)
    )
    relation = Relation(1, "shop", "t", Identity.DEFAULT, (("id", 23, True), ("tags", 1009, False)))
    net = NetChanges(table.names, table.key)
    net.take([RowChange(Operation.INSERT, relation, new=("1", text))])
    with pytest.raises(ViewkeeperError) as refused:
        signed_rows(net, table, "SELECT * FROM seen")
    assert "tags" in refused.value.message


def test_a_pinned_table_is_the_same_after_it_was_kept() -> None:
    columns = (("i d", "numeric(5,2)", "decimal(5,2)", 1700), ("tags", "text[]", "array<string>", 1009))
    labels = ((), ((16390, "so so"), (16392, "fine")))
    table = PinnedTable('sh"op', "Orders", columns, ("i d",), numbers=(1, 3), labels=labels)
    kept = json.loads(json.dumps(table.to_json()))
    assert PinnedTable.of_json(kept) == table
    assert PinnedTable.of_json(kept[:9]) == replace(table, labels=())
    assert PinnedTable.of_json(kept[:8]) == replace(table, labels=(), numbers=())
    assert table.sql == '"sh""op"."Orders"'
    assert {name: kind.is_array for name, kind in table.types.items()} == {"i d": False, "tags": True}
