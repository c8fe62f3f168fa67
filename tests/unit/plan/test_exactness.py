from __future__ import annotations

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter, Project
from viewkeeper.algebra.scalars import Column, Named, Scalar, column
from viewkeeper.plan.exactness import obstacle

from .world import SALES, scan

sales = scan(SALES, "store", "amount")
total = Aggregate(sales, ("store",), (AggregateCall("total", "sum", (column("amount"),)),))
regrouped = Aggregate(total, ("total",), (AggregateCall("stores", "count"),))


def typed(kind):
    return lambda relation: {name: "int" if name == "store" else kind for name in relation.columns}


def test_an_inner_sum_of_floating_point_numbers_is_an_obstacle():
    assert obstacle(regrouped, typed("double")).code == "INEXACT_INNER_AGGREGATE"
    assert obstacle(regrouped, typed("decimal(10,2)")) is None


def test_at_the_top_it_is_none_even_below_a_having():
    having = Filter(total, Scalar((Column("total"), " > 1")))
    assert obstacle(having, typed("double")) is None


def test_a_map_among_the_columns_that_are_read_is_an_obstacle():
    assert obstacle(total, typed("map<string,int>")).code == "MAP_COLUMN"
    assert obstacle(total, typed("struct<a:map<string,int>>")).code == "MAP_COLUMN"


def test_strings_under_a_collation_are_an_obstacle():
    assert obstacle(total, typed("string collate UTF8_LCASE")).code == "COLLATION"
    folded = Project(sales, (Named("n", Scalar(("collate(", Column("amount"), ", 'UTF8_LCASE')"))),))
    assert obstacle(folded, typed("string")).code == "COLLATION"
