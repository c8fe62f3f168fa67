"""In which order the tables of a term are joined, and what is broadcast."""

from __future__ import annotations

from viewkeeper.algebra.relations import Field, Join, Relation, Scan
from viewkeeper.algebra.rules.join import Chain, join_order
from viewkeeper.algebra.scalars import column, compose

ORDERS = Scan("orders", (Field("o", "o"), Field("c", "c")))
LINES = Scan("lines", (Field("l", "l"), Field("s", "s")))
CUSTOMERS = Scan("customers", (Field("k", "k"),))
SUPPLIERS = Scan("suppliers", (Field("p", "p"),))
JOIN = Join(
    (ORDERS, LINES, CUSTOMERS, SUPPLIERS),
    (
        compose(column("o"), " = ", column("l")),
        compose(column("c"), " = ", column("k")),
        compose(column("s"), " = ", column("p")),
    ),
)
LARGE = [False] * 4


def joined(relation: Relation) -> list[tuple[Relation, tuple[int, ...]]]:
    """What is joined on the way, from the first on, each with what is broadcast."""
    if not isinstance(relation, Join):
        return [(relation, ())]
    before, following = relation.inputs
    return [*joined(before), (following, relation.broadcast)]


def test_each_is_connected_to_those_before_it() -> None:
    assert join_order(JOIN, [2], [0, 1, 3], LARGE) == [0, 1, 3]
    assert join_order(JOIN, [3], [0, 1, 2], LARGE) == [1, 0, 2]


def test_large_tables_come_as_early_as_that_allows() -> None:
    assert join_order(JOIN, [0], [1, 2, 3], [False, False, True, True]) == [1, 2, 3]
    assert join_order(JOIN, [0], [1, 2, 3], [False, True, False, True]) == [2, 1, 3]


def test_what_is_connected_to_nothing_is_joined_all_the_same() -> None:
    assert join_order(Join(JOIN.inputs, ()), [3], [0, 1, 2], LARGE) == [0, 1, 2]


def test_a_chain_begins_with_the_delta_and_broadcasts_it_while_it_is_small() -> None:
    delta = Scan("delta", (Field("o", "o"), Field("c", "c")))
    others: dict[int, Relation] = {1: LINES, 2: CUSTOMERS, 3: SUPPLIERS}
    small = [False, False, True, False]
    chain = Chain(JOIN, small, lambda reached, _: reached == 0b0001)
    found = chain.on(0b0001, delta, others)
    assert joined(found) == [
        (delta, ()),
        (LINES, (0,)),  # the delta is broadcast to it
        (SUPPLIERS, ()),  # what has come of it is not small
        (CUSTOMERS, (1,)),  # is small itself
    ]


def test_a_condition_is_applied_once_as_soon_as_its_columns_are_there() -> None:
    both = Scan("delta", tuple(Field(name, name) for name in (*ORDERS.columns, *LINES.columns)))
    chain = Chain(JOIN, LARGE, lambda reached, _: False)
    found = chain.on(0b0011, both, {2: CUSTOMERS}, joined=both.columns)
    assert isinstance(found, Join)
    assert found.conjuncts == (JOIN.conjuncts[1],)
