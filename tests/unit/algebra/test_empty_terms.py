"""Which terms of a join's delta must be empty, by the values that its tables hold."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.empty_terms import Extent, Extents, left_out
from viewkeeper.algebra.expressions import Node, accesses, cost, n_term
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes
from viewkeeper.algebra.relations import Field, Join, Scan
from viewkeeper.algebra.scalars import column, compose

ORDERS = Scan("orders", (Field("o_key", "o_key"), Field("o_customer", "o_customer")))
LINES = Scan("lines", (Field("l_order", "l_order"),))
CUSTOMERS = Scan("customers", (Field("c_key", "c_key"),))
SAME_ORDER = compose(column("o_key"), " = ", column("l_order"))
JOIN = Join((ORDERS, LINES), (SAME_ORDER,))
CHANGED = [True, True]

OLD, CAME = Extent("bigint", 1, 100), Extent("bigint", 101, 120)
ALL = Extent("bigint", 1, 120)


def known(**extents: Extents):  # type: ignore[no-untyped-def]
    return lambda scan, name: extents.get(name)


def test_new_parents_have_no_old_children() -> None:
    extents = known(o_key=Extents(OLD, ALL, CAME), l_order=Extents(OLD, ALL, CAME))
    assert list(left_out(JOIN, n_term(2), CHANGED, extents)) == [(0b01, 0b10)], "Δorders ⋈ old lines"
    children_first = Node((1, 0))
    assert list(left_out(JOIN, children_first, CHANGED, extents)) == [(0b10, 0b01)], "Δlines ⋈ old orders"


@pytest.mark.parametrize(
    "orders",
    [
        Extents(OLD, ALL, None),  # some went
        Extents(OLD, ALL, Extent("bigint", 100, 120)),  # one has children
        Extents(Extent("string", b"1", b"99"), None, Extent("string", b"A", b"B")),  # Spark casts it
    ],
)
def test_otherwise_nothing_is_left_out(orders: Extents) -> None:
    extents = known(o_key=orders, l_order=Extents(OLD, ALL, None))
    assert not list(left_out(JOIN, n_term(2), CHANGED, extents))


def test_null_finds_null_where_the_condition_says_so() -> None:
    null_safe = Join((ORDERS, LINES), (compose(column("o_key"), " <=> ", column("l_order")),))
    extents = known(o_key=Extents(OLD, ALL, CAME), l_order=Extents(OLD, ALL, CAME))
    assert not list(left_out(null_safe, n_term(2), CHANGED, extents))


def test_what_an_unchanged_table_beside_it_adds_makes_no_difference() -> None:
    same_customer = compose(column("o_customer"), " = ", column("c_key"))
    relation = Join((CUSTOMERS, ORDERS, LINES), (same_customer, SAME_ORDER))
    extents = known(o_key=Extents(OLD, ALL, CAME), l_order=Extents(OLD, ALL, CAME))
    tree = Node((Node((0, 1)), 2))
    assert list(left_out(relation, tree, [False, True, True], extents)) == [(0b011, 0b100)]
    assert not list(left_out(relation, tree, [True, True, True], extents)), "old orders of a changed customer"


def test_what_is_left_out_is_not_read() -> None:
    inputs = (
        JoinInput("orders", frozenset({"o_key"}), 100, 120, 20),
        JoinInput("lines", frozenset({"l_order"}), 1_000, 1_200, 200),
    )
    sizes = JoinSizes(inputs, (SAME_ORDER,))
    assert cost(n_term(2), sizes, without=[0b01]) == 200 + 120
    assert accesses(n_term(2), CHANGED, without=[0b01]) == [1, 0]
