"""Signed bags, against loops that nobody can get wrong."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.bags import Bag, Row, bag
from viewkeeper.integrate.simulate.lattice import evaluate
from viewkeeper.integrate.views import Comparison, JoinView, Relation

VALUES = st.sampled_from([None, 0, 1, 2])
COUNTS = st.sampled_from([-2, -1, 1, 2])


def bags(*columns: str) -> st.SearchStrategy[Bag]:
    rows = st.dictionaries(st.tuples(*[VALUES] * len(columns)), COUNTS, max_size=6)
    return rows.map(lambda found: Bag(columns, found))


def looped(view: JoinView, contents: dict[str, Bag]) -> dict[Row, int]:
    """The view by the definition of SQL: all combinations of rows, in which equal columns are equal."""
    found: dict[Row, int] = {}
    for combination in product(*(contents[relation.name].rows.items() for relation in view.relations)):
        values: dict[str, object] = {}
        count, holds = 1, True
        for relation, (row, times) in zip(view.relations, combination, strict=True):
            count *= times
            for column, value in zip(relation.columns, row, strict=True):
                holds &= column not in values or (value is not None and values[column] == value)
                values[column] = value
        if holds and all(each.holds(values[each.column]) for each in view.where):  # type: ignore[arg-type]
            out = tuple(values[column] for column in view.output)
            found[out] = found.get(out, 0) + count  # type: ignore[index, arg-type]
    return {row: count for row, count in found.items() if count}


@given(bags("a", "b"), bags("b", "c"), bags("c", "a", "d"))
def test_a_view_is_what_the_loops_say(r: Bag, s: Bag, t: Bag) -> None:
    relations = (Relation("r", r.columns, "x"), Relation("s", s.columns, "y"), Relation("t", t.columns, "z"))
    view = JoinView(relations, ("d", "b"), (Comparison("d", ">=", 1),))
    contents = {"r": r, "s": s, "t": t}
    assert evaluate(view, contents).rows == looped(view, contents)


@given(bags("a", "b"), bags("a", "b"), bags("b", "c"))
def test_a_join_distributes_over_a_sum(r: Bag, change: Bag, s: Bag) -> None:
    assert r.plus(change).join(s) == r.join(s).plus(change.join(s))


@given(bags("a", "b"), bags("b", "a"))
def test_what_is_added_can_be_taken_away(r: Bag, change: Bag) -> None:
    assert r.plus(change).minus(change) == r
    assert r.minus(r).rows == {}


def test_null_equals_nothing_unless_it_is_said_to() -> None:
    one, two = bag("ab", (1, None)), bag("bc", (None, 2))
    assert one.join(two).rows == {}
    assert one.join(two, nulls_match=True).rows == {(1, None, 2): 1}


def test_stripped_of_sign_and_multiplicity() -> None:
    assert Bag(("a",), {(1,): -2, (2,): 3}).stripped() == bag("a", (1,), (2,))


def test_a_view_without_a_way_between_its_relations_is_refused() -> None:
    relations = (Relation("r", ("a", "b"), "x"), Relation("s", ("b",), "y"), Relation("t", ("c",), "z"))
    with pytest.raises(DefinitionError, match="t shares no column") as refused:
        JoinView(relations, ("a",))
    assert refused.value.code == "VK-SWEEP-NO-KEY"


def test_a_view_that_reads_what_nobody_has_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no relation has a column z"):
        JoinView((Relation("r", ("a",), "x"),), ("z",))
