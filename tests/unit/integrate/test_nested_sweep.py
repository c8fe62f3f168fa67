"""Nested SWEEP takes along what interferes, and comes to an end."""

from __future__ import annotations

from itertools import count

from machines import answer, chain, changes, queries, update

from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.messages import Transaction, Update, ViewChange
from viewkeeper.integrate.nested_sweep import NestedSweep

VIEW = chain("ab", "bc", output="ac")


def test_interfering_updates_are_published_together() -> None:
    machine = NestedSweep(VIEW)
    (first,) = queries(machine.receive(update(VIEW, 1, "r1", {(1, 2): 1})))
    assert machine.receive(update(VIEW, 1, "r2", {(2, 3): 1})) == []
    (second,) = queries(machine.receive(answer(first, {(2, 3): 1, (2, 9): 1})))
    assert second.relation.name == "r1"
    outputs = machine.receive(answer(second, {(1, 2): 1}))
    assert changes(outputs) == [{(1, 3): 1, (1, 9): 1}]
    (change,) = [each for each in outputs if isinstance(each, ViewChange)]
    assert change.updates == (("s1", 1), ("s2", 1))


def oscillate(limit: int, updates: int) -> list[int]:
    """Two relations that change whenever the other is asked: the updates in each change of the view."""
    machine = NestedSweep(VIEW, limit=limit)
    published: list[int] = []
    numbers = {"r1": count(1), "r2": count(1)}
    outputs = machine.receive(update(VIEW, next(numbers["r1"]), "r1", {(1, 1): 1}))
    for _ in range(updates):
        (query,) = queries(outputs)
        name = query.relation.name
        machine.receive(update(VIEW, next(numbers[name]), name, {(1, 1): 1}))
        outputs = machine.receive(answer(query, {(1, 1): 1}))
        published += [len(each.updates) for each in outputs if isinstance(each, ViewChange)]
    return published


def test_without_an_end_to_interference_there_is_no_end() -> None:
    assert oscillate(limit=1_000, updates=200) == []


def test_the_limit_forces_an_end() -> None:
    assert oscillate(limit=10, updates=200) == [10] * 20
    assert oscillate(limit=1, updates=200) == [1] * 200


def test_an_update_of_two_relations_is_not_taken_in_half() -> None:
    both = {"r2": Bag(("b", "c"), {(2, 3): 1}), "r3": Bag(("c", "d"), {(3, 4): 1})}
    view = chain("ab", "bc", "cd", output="ad")
    machine = NestedSweep(view)
    (first,) = queries(machine.receive(update(view, 1, "r1", {(1, 2): 1})))
    machine.receive(Update("s2", 1, both))
    machine.receive(update(view, 2, "r2", {(2, 5): 1}))
    # Neither the transaction nor what came behind it from that source.
    (second,) = queries(machine.receive(answer(first, {(2, 3): 1, (2, 5): 1})))
    assert second.relation.name == "r3"
    assert second.partial.rows == {}


def test_a_part_of_a_global_transaction_is_not_taken_in() -> None:
    transaction = Transaction("t", frozenset({"s1", "s2"}))
    machine = NestedSweep(VIEW)
    (query,) = queries(machine.receive(update(VIEW, 1, "r1", {(1, 2): 1})))
    machine.receive(Update("s2", 1, {"r2": Bag(("b", "c"), {(2, 3): 1})}, transaction))
    outputs = machine.receive(answer(query, {(2, 3): 1}))
    assert changes(outputs) == [{}]
    assert machine.incomplete == ("t",)
