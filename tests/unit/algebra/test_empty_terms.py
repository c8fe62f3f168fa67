"""Which terms of a join's delta must be empty, by the values that its tables hold."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.empty_terms import Extent, Extents, KeyReference, checked_references, left_out
from viewkeeper.algebra.expressions import Node, accesses, cost, n_term
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes
from viewkeeper.algebra.relations import Field, Filter, Join, Scan
from viewkeeper.algebra.scalars import Scalar, column, compose

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


LINE_OF_ORDER = KeyReference("lines", ("l_order",), "orders", ("o_key",))
REFERRED = known(o_key=Extents(unreferred=frozenset({LINE_OF_ORDER})))


def test_a_foreign_key_says_it_of_old_rows_alone() -> None:
    tree, turned = n_term(2), Node((1, 0))
    assert list(left_out(JOIN, tree, CHANGED, REFERRED)) == [(0b01, 0b10)], "Δorders ⋈ old lines"
    assert list(checked_references(JOIN, tree, CHANGED, REFERRED)) == [(0b01, LINE_OF_ORDER)]
    assert not list(left_out(JOIN, turned, CHANGED, REFERRED)), "new lines belong to new orders"
    null_safe = Join((ORDERS, LINES), (compose(column("o_key"), " <=> ", column("l_order")),))
    assert not list(left_out(null_safe, tree, CHANGED, REFERRED))
    other = Join((ORDERS, LINES), (compose(column("o_customer"), " = ", column("l_order")),))
    assert not list(left_out(other, tree, CHANGED, REFERRED)), "not by the key"


def test_unchanged_rows_are_old_wherever_they_stand() -> None:
    same_customer = compose(column("o_customer"), " = ", column("c_key"))
    few = Filter(ORDERS, compose(column("o_customer"), " > 1"))
    relation = Join((LINES, few, CUSTOMERS), (same_customer, SAME_ORDER))
    tree = n_term(3)
    assert list(left_out(relation, tree, [False, True, True], REFERRED)) == [(0b010, 0b101)]
    assert not list(left_out(relation, tree, [True, True, True], REFERRED)), "the lines before it are new"


def test_what_the_values_tell_needs_no_foreign_key() -> None:
    told = Extents(OLD, ALL, CAME, frozenset({LINE_OF_ORDER}))
    extents = known(o_key=told, l_order=Extents(OLD, ALL, CAME))
    assert list(left_out(JOIN, n_term(2), CHANGED, extents)) == [(0b01, 0b10)]
    assert not list(checked_references(JOIN, n_term(2), CHANGED, extents))


def test_a_key_of_two_columns_needs_both_from_one_row() -> None:
    stock = Scan("stock", (Field("part", "s_part"), Field("place", "s_place")))
    one = Scan("sold", (Field("part", "part"), Field("place", "place")))
    two = Scan("sold", (Field("part", "part_2"), Field("place", "place_2")))
    reference = KeyReference("sold", ("part", "place"), "stock", ("part", "place"))
    extents = known(**dict.fromkeys(("part", "place"), Extents(unreferred=frozenset({reference}))))
    by_part = compose(column("s_part"), " = ", column("part"))
    by_place = compose(column("s_place"), " = ", column("place"))
    by_other_place = compose(column("s_place"), " = ", column("place_2"))

    def dropped(*conjuncts: Scalar) -> list[tuple[int, int]]:
        relation = Join((stock, one, two), conjuncts)
        return list(left_out(relation, n_term(3), [True, True, True], extents))

    assert dropped(by_part, by_place) == [(0b001, 0b110)]
    assert not dropped(by_part)
    assert not dropped(by_part, by_other_place)


def test_what_is_left_out_is_not_read() -> None:
    inputs = (
        JoinInput("orders", frozenset({"o_key"}), 100, 120, 20),
        JoinInput("lines", frozenset({"l_order"}), 1_000, 1_200, 200),
    )
    sizes = JoinSizes(inputs, (SAME_ORDER,))
    assert cost(n_term(2), sizes, without=[0b01]) == 200 + 120
    assert accesses(n_term(2), CHANGED, without=[0b01]) == [1, 0]
