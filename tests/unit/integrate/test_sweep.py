"""SWEEP's options, its two traps, and answers that say what they contain."""

from __future__ import annotations

import pytest
from machines import answer, chain, changes, queries, run, update

from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.messages import Compensation, Transaction, Update, ViewChange
from viewkeeper.integrate.sweep import Sweep

VIEW = chain("ab", "bc", "cd", output="abcd")


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("count", [-1, -2, 3])
def test_merging_branches_keeps_sign_and_multiplicity(parallel: bool, count: int) -> None:
    machine = Sweep(VIEW, parallel=parallel)
    contents: dict[str, dict[Row, int]] = {"r1": {(1, 2): 1, (5, 2): 2}, "r3": {(3, 4): 1}}
    outputs = machine.receive(update(VIEW, 1, "r2", {(2, 3): count}))
    assert len(queries(outputs)) == (2 if parallel else 1)
    assert changes(run(machine, outputs, contents)) == [{(1, 2, 3, 4): count, (5, 2, 3, 4): 2 * count}]


def test_branches_are_merged_where_the_delta_has_nulls() -> None:
    view = chain("ab", "bxc", "cd", output="abxcd")
    machine = Sweep(view, parallel=True)
    outputs = machine.receive(update(view, 1, "r2", {(2, None, 3): -1}))
    contents: dict[str, dict[Row, int]] = {"r1": {(1, 2): 1}, "r3": {(3, 4): 1}}
    assert changes(run(machine, outputs, contents)) == [{(1, 2, None, 3, 4): -1}]


def test_a_query_always_has_a_key_to_send() -> None:
    view = chain("ab", "dx", "bc", "cd", output="abcdx")
    machine = Sweep(view)
    contents: dict[str, dict[Row, int]] = {"r2": {(4, 5): 1}, "r3": {(2, 3): 1}, "r4": {(3, 4): 1}}
    every = run(machine, machine.receive(update(view, 1, "r1", {(1, 2): 1})), contents)
    assert [query.relation.name for query in queries(every)] == ["r3", "r4", "r2"]
    assert [(query.shared, query.keys) for query in queries(every)] == [
        (("b",), {(2,)}),
        (("c",), {(3,)}),
        (("d",), {(4,)}),
    ]


def test_null_is_no_key() -> None:
    machine = Sweep(VIEW)
    (query,) = queries(machine.receive(update(VIEW, 1, "r1", {(1, None): 1, (1, 2): 1})))
    assert query.keys == {(2,)}


def test_a_view_of_one_relation_asks_nobody() -> None:
    view = chain("ab", output="b")
    assert Sweep(view).receive(update(view, 1, "r1", {(1, 2): 1, (3, 2): 1})) == [
        ViewChange((("s1", 1),), Bag(("b",), {(2,): 2}))
    ]


@pytest.mark.parametrize("pipeline", [1, 2])
def test_pipelining_starts_sooner_and_publishes_in_order(pipeline: int) -> None:
    view = chain("ab", "bc", output="ac")
    machine = Sweep(view, pipeline=pipeline)
    (first,) = queries(machine.receive(update(view, 1, "r1", {(1, 2): 1})))
    outputs = machine.receive(update(view, 1, "r2", {(2, 3): 1}))
    if pipeline == 1:
        assert outputs == []
        # r2 has its update already when it answers: that is taken out, and found again by the next sweep.
        (second,) = queries(outputs := machine.receive(answer(first, {(2, 3): 1})))
        assert changes(outputs) == [{}]
        assert changes(machine.receive(answer(second, {(1, 2): 1}))) == [{(1, 3): 1}]
    else:
        (second,) = queries(outputs)
        assert changes(machine.receive(answer(second, {(1, 2): 1}))) == []
        assert changes(machine.receive(answer(first, {(2, 3): 1}))) == [{}, {(1, 3): 1}]


@pytest.mark.parametrize("merge", [True, False])
def test_interfering_updates_of_one_source_may_be_merged(merge: bool) -> None:
    view = chain("ab", "bc", output="ac")
    machine = Sweep(view, merge=merge)
    (query,) = queries(machine.receive(update(view, 1, "r1", {(1, 2): 1})))
    machine.receive(update(view, 1, "r2", {(2, 3): 1}))
    machine.receive(update(view, 2, "r2", {(2, 4): 1}))
    outputs = machine.receive(answer(query, {(2, 3): 1, (2, 4): 1, (2, 9): 1}))
    assert changes(outputs) == [{(1, 9): 1}]
    compensations = [output for output in outputs if isinstance(output, Compensation)]
    assert [len(each.updates) for each in compensations] == ([2] if merge else [1, 1])


def test_an_answer_may_say_what_it_contains() -> None:
    view = chain("ab", "bc", output="ac")
    machine = Sweep(view)
    (query,) = queries(machine.receive(update(view, 1, "r1", {(1, 2): 1})))
    machine.receive(update(view, 1, "r2", {(2, 3): 1}))
    machine.receive(update(view, 2, "r2", {(2, 4): 1}))
    # The second is visible, the first is not: visible sets are no prefix.
    outputs = machine.receive(answer(query, {(2, 4): 1, (2, 9): 1}, contains=[2]))
    assert changes(outputs) == [{(1, 9): 1}]


def test_what_an_answer_lacks_of_earlier_updates_is_added() -> None:
    view = chain("ab", "bc", output="ac")
    machine = Sweep(view, pipeline=2)
    (first,) = queries(machine.receive(update(view, 1, "r2", {(2, 3): 1})))
    (second,) = queries(machine.receive(update(view, 1, "r1", {(1, 2): 1})))
    # By the time that r2 answers, its own update is published; it was not when r2 was asked.
    assert changes(machine.receive(answer(first, {}, contains=[]))) == [{}]
    assert changes(machine.receive(answer(second, {}, contains=[]))) == [{(1, 3): 1}]


def test_a_transaction_over_two_relations_of_a_source_is_one_change() -> None:
    view = chain("ab", "bc", output="ac")
    both = Update("s1", 1, {"r1": Bag(("a", "b"), {(1, 2): 1}), "r2": Bag(("b", "c"), {(2, 3): 1})})
    machine = Sweep(view)
    every = run(machine, machine.receive(both), {"r1": {(1, 2): 1}, "r2": {(2, 3): 1}})
    assert changes(every) == [{(1, 3): 1}]
    assert len(queries(every)) == 2


def test_a_global_transaction_is_one_change() -> None:
    view = chain("ab", "bc", output="ac")
    transaction = Transaction("t", frozenset({"s1", "s2"}))
    machine = Sweep(view)
    assert machine.receive(Update("s1", 1, {"r1": Bag(("a", "b"), {(1, 2): 1})}, transaction)) == []
    assert machine.incomplete == ("t",)
    outputs = machine.receive(Update("s2", 1, {"r2": Bag(("b", "c"), {(2, 3): 1})}, transaction))
    every = run(machine, outputs, {"r1": {(1, 2): 1}, "r2": {(2, 3): 1}})
    assert changes(every) == [{(1, 3): 1}]
    assert [each.updates for each in every if isinstance(each, ViewChange)] == [(("s1", 1), ("s2", 1))]


def test_an_update_of_nothing_is_a_state_too() -> None:
    assert changes(Sweep(VIEW).receive(Update("s1", 1, {}))) == [{}]
