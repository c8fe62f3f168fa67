"""A query over remote tables, taken apart: what is swept, and what is left to Spark."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column
from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.joins import SweptJoin, first_content, taken_apart
from viewkeeper.sources.postgres_types import PostgresType
from viewkeeper.sql.printer import print_relation

ORDERS, CUSTOMERS = "_sources.east.orders", "_sources.west.customers"
INT, BIGINT = PostgresType("integer", "int"), PostgresType("bigint", "bigint")
TEXT, NUMERIC = PostgresType("text", "string"), PostgresType("numeric(8,2)", "decimal(8,2)")
TYPES = {
    ORDERS: {"id": INT, "customer": INT, "amount": NUMERIC, "note": TEXT, "other": INT},
    CUSTOMERS: {"id": BIGINT, "name": TEXT, "limit": NUMERIC},
}
orders = Scan(
    ORDERS,
    (Field("id", "id"), Field("customer", "customer"), Field("amount", "amount"), Field("other", "other")),
)
customers = Scan(CUSTOMERS, (Field("id", "id_2"), Field("name", "name"), Field("limit", "limit")))


def equal(one: str, other: str, word: str = " = ") -> Scalar:
    return Scalar((Column(one), word, Column(other)))


def apart(relation: Relation) -> tuple[SweptJoin, str]:
    join, rest = taken_apart("v", relation, TYPES, "_sources.v")
    assert SweptJoin.of_json(join.to_json()) == join
    return join, print_relation(rest)


def test_columns_that_are_set_equal_have_one_name():
    over = Project(
        Join((orders, customers), (equal("customer", "id_2"),)),
        (Named("o", column("id")), Named("c", column("id_2")), Named("n", column("name"))),
    )
    join, rest = apart(over)
    assert [each.source for each in join.relations] == ["east", "west"]
    assert dict(join.relations[0].columns)["customer"] == dict(join.relations[1].columns)["id"] == "customer"
    assert ("customer", "integer", "int") in join.types
    assert "CAST(" in rest and "bigint" in rest  # what the view shows has the type that it had there
    assert first_content(join, {"r1": "a", "r2": "b"}).endswith(
        "FROM a AS r1 JOIN b AS r2 ON r1.`customer` = r2.`id`"
    )


def test_whatever_else_is_said_is_left_to_spark_and_told_to_the_database_where_it_can_be():
    big = Scalar((Column("id"), " > 3"))
    odd = Scalar((Column("amount"), " * 2 > ", Column("limit")))
    join, rest = apart(Filter(Join((Filter(orders, big), customers), (equal("customer", "id_2"), odd)), big))
    assert join.relations[0].where == '"id" > 3 AND "id" > 3'
    assert join.relations[1].where == ""
    assert rest.count("> 3") == 2
    assert "* 2 >" in rest


def test_what_is_renamed_on_the_way_is_followed():
    inner = Project(
        orders, (Named("k", column("customer")), Named("twice", Scalar((Column("amount"), " * 2"))))
    )
    join, rest = apart(Join((inner, customers), (equal("k", "id_2"), Scalar((Column("twice"), " > 1")))))
    assert len(join.relations) == 2
    assert "* 2) > 1" in rest


def test_two_columns_of_one_table_are_compared_by_spark():
    join, rest = apart(Join((orders, customers), (equal("customer", "id_2"), equal("other", "id_2"))))
    assert dict(join.relations[0].columns)["other"] == "other"
    assert "WHERE other = " in rest


@pytest.mark.parametrize("condition", [
    equal("customer", "id_2", " <=> "),
    equal("customer", "id_2", " < "),
    equal("amount", "limit"),
    equal("customer", "name"),
])  # fmt: skip
def test_without_a_key_to_send_it_is_refused(condition: Scalar):
    with pytest.raises(DefinitionError, match="no key to send") as refused:
        apart(Join((orders, customers), (condition,)))
    assert refused.value.code == "VK-SWEEP-UNSUITED"
    assert "Copy one of them" in (refused.value.hint or "")


def test_more_than_select_project_and_join_is_refused():
    grouped = Aggregate(orders, ("customer",), (AggregateCall("n", "count"),))
    with pytest.raises(DefinitionError, match="aggregate") as refused:
        apart(grouped)
    assert refused.value.code == "VK-SWEEP-UNSUITED"
