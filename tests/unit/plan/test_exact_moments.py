from __future__ import annotations

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter
from viewkeeper.algebra.scalars import Column, Scalar, column
from viewkeeper.plan.exact_moments import with_exact_moments
from viewkeeper.plan.exactness import obstacle
from viewkeeper.sql.printer import print_relation

from .world import SALES, scan

sales = scan(SALES, "store", "amount")
spread = Aggregate(
    sales,
    ("store",),
    (AggregateCall("n", "count"), AggregateCall("spread", "stddev_samp", (column("amount"),))),
)
large = Filter(spread, Scalar((Column("spread"), " > 1")))
counted = Aggregate(large, (), (AggregateCall("stores", "count"),))


def typed(kind):
    return lambda relation: dict.fromkeys(relation.columns, kind)


def test_a_deviation_inside_a_query_is_made_of_exact_sums():
    made = with_exact_moments(counted, typed("int"))
    assert made.columns == counted.columns
    assert "stddev_samp" not in print_relation(made)
    assert "sqrt(" in print_relation(made)
    assert obstacle(counted, typed("int")) is not None
    assert obstacle(made, typed("int")) is None


def test_it_stays_as_it_is_at_the_top_and_where_sums_are_not_exact():
    assert with_exact_moments(large, typed("int")) == large
    for kind in ("double", "bigint", "decimal(12,2)"):
        assert with_exact_moments(counted, typed(kind)) == counted
        assert obstacle(counted, typed(kind)) is not None


def test_averages_of_large_whole_numbers_too():
    mean = Aggregate(sales, ("store",), (AggregateCall("mean", "avg", (column("amount"),)),))
    inside = Aggregate(mean, ("mean",), (AggregateCall("stores", "count"),))
    assert "avg(" not in print_relation(with_exact_moments(inside, typed("bigint")))
    for kind in ("int", "decimal(12,2)", "double"):
        assert with_exact_moments(inside, typed(kind)) == inside
