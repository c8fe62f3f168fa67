"""Keys derived from the keys of tables: they are as small as expected, and no two rows share their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from bag_algebra import evaluate
from random_relations import VALUES, RandomRelations

from viewkeeper.algebra.keys import derived_key
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Field,
    Filter,
    Join,
    Leaf,
    Project,
    Relation,
    Scan,
    TableAt,
    UnionAll,
    map_leaves,
)
from viewkeeper.algebra.scalars import Scalar, column, compose, keep

CASES = 2_000
KEYS = {"customer": ["custkey"], "orders": ["orderkey"], "lineitem": ["orderkey", "linenumber"]}


def scan(table: str, *columns: str) -> Scan:
    return Scan(table, tuple(Field(name, f"{table[0]}_{name}") for name in columns))


CUSTOMER = scan("customer", "custkey", "name")
ORDERS = scan("orders", "orderkey", "custkey", "date")
LINEITEM = scan("lineitem", "orderkey", "linenumber", "qty")


def equal(one: str, two: str) -> Scalar:
    return compose(column(one), " = ", column(two))


SALES = Join(
    (CUSTOMER, ORDERS, LINEITEM), (equal("c_custkey", "o_custkey"), equal("l_orderkey", "o_orderkey"))
)


def key(relation: Relation) -> Sequence[str] | None:
    return derived_key(relation, KEYS)


def test_the_key_of_a_join_leaves_out_what_the_rest_determines() -> None:
    assert key(SALES) == ("l_orderkey", "l_linenumber")


def test_a_projection_keeps_a_key_of_equal_columns() -> None:
    shown = Project(SALES, keep(["c_name", "o_orderkey", "l_linenumber", "l_qty"]))
    assert key(shown) == ("o_orderkey", "l_linenumber")


def test_a_projection_without_the_key_has_none() -> None:
    assert key(Project(SALES, keep(["o_orderkey", "l_qty"]))) is None


def test_a_computed_column_is_no_key() -> None:
    computed = Project(LINEITEM, (*keep(["l_linenumber"]), *keep(["l_qty"])))
    assert key(computed) is None


def test_a_table_without_a_key_spoils_that_of_a_join() -> None:
    assert derived_key(SALES, {"customer": ["custkey"]}) is None


def test_a_scan_that_leaves_the_key_out_has_none() -> None:
    assert key(scan("lineitem", "orderkey", "qty")) is None


def test_names_are_compared_as_spark_does() -> None:
    assert derived_key(CUSTOMER, {"customer": ["CustKey"]}) == ("c_custkey",)


def test_groups_and_distinct_rows_have_keys_of_their_own() -> None:
    groups = Aggregate(LINEITEM, ("l_orderkey",), (AggregateCall("n", "count"),))
    assert derived_key(groups, {}) == ("l_orderkey",)
    assert derived_key(Distinct(Project(LINEITEM, keep(["l_qty"]))), {}) == ("l_qty",)
    joined = Join((groups, ORDERS), (equal("l_orderkey", "o_orderkey"),))
    assert key(joined) == ("o_orderkey",)


def test_a_filter_keeps_the_key_and_a_union_loses_it() -> None:
    assert key(Filter(ORDERS, compose(column("o_date"), " > 0"))) == ("o_orderkey",)
    assert key(UnionAll((ORDERS, ORDERS))) is None


def test_no_two_rows_share_a_derived_key() -> None:
    derived = 0
    for seed in range(CASES):
        random = Random(seed)
        relation = RandomRelations(random).relation(3)
        found = derived_key(relation, {"a": ["x"], "b": ["x"]})
        if found is None:
            continue
        derived += 1
        rows = {
            "a@now": (("x", "y"), Counter((x, random.choice(VALUES)) for x in range(4))),
            "b@now": (("x", "z"), Counter((x, random.choice(VALUES)) for x in range(3))),
        }
        bag = evaluate(map_leaves(relation, at_now), rows)
        places = [relation.columns.index(name) for name in found]
        shared = Counter(tuple(row[place] for place in places) for row, n in bag.items() for _ in range(n))
        assert all(count == 1 for count in shared.values()), f"seed {seed}: {relation} {found}"
    assert derived > CASES / 4


def at_now(leaf: Leaf) -> Relation:
    assert isinstance(leaf, Scan)
    return TableAt(leaf.table, "now", leaf.fields)
