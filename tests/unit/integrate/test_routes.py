"""A sweep follows the join graph."""

from __future__ import annotations

from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.views import JoinView, Relation


def view(**columns: str) -> JoinView:
    relations = tuple(Relation(name, tuple(letters), name) for name, letters in columns.items())
    return JoinView(relations, relations[0].columns)


def test_a_chain_is_swept_to_the_left_and_then_to_the_right() -> None:
    routes = Routes(view(r1="ab", r2="bc", r3="cd", r4="de", r5="ef"))
    assert routes.from_("r3") == ("r2", "r1", "r4", "r5")
    assert routes.branches("r3") == (("r2", "r1"), ("r4", "r5"))
    assert routes.branches("r1") == (("r2", "r3", "r4", "r5"),)


def test_numbers_do_not_matter() -> None:
    # r2 hangs on r4 alone: after r1, asking r2 would mean sending no key.
    routes = Routes(view(r1="ab", r2="dx", r3="bc", r4="cd"))
    assert routes.from_("r1") == ("r3", "r4", "r2")


def test_every_dimension_of_a_star_is_a_branch() -> None:
    routes = Routes(view(facts="abc", d1="ax", d2="by", d3="cz", city="xu"))
    assert routes.branches("facts") == (("d1", "city"), ("d2",), ("d3",))
    assert routes.branches("d2") == (("facts", "d1", "d3", "city"),)


def test_relations_that_share_a_column_of_the_start_alone_are_apart() -> None:
    routes = Routes(view(r1="ax", r2="ay", r3="az"))
    assert routes.branches("r2") == (("r1",), ("r3",))


def test_a_cycle_is_one_branch() -> None:
    routes = Routes(view(r1="ab", r2="bc", r3="ca"))
    assert routes.branches("r1") == (("r2", "r3"),)


def test_some_of_the_relations_only() -> None:
    routes = Routes(view(r1="ab", r2="bc", r3="cd", r4="de"))
    assert routes.within("r3", {"r2", "r3", "r4"}) == ("r2", "r4")
