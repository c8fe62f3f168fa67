"""ECA, Strobe and C-Strobe: what they need, and what they pay."""

from __future__ import annotations

import pytest
from machines import changes, queries

from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.c_strobe import CStrobe
from viewkeeper.integrate.eca import Eca
from viewkeeper.integrate.messages import Answer, SumQuery, Update
from viewkeeper.integrate.simulate.worlds import figure_5
from viewkeeper.integrate.strobe import Strobe
from viewkeeper.integrate.views import JoinView, Relation

R1 = Relation("r1", ("k1", "a"), "s1", ("k1",))
R2 = Relation("r2", ("k2", "a"), "s2", ("k2",))
KEYED = JoinView((R1, R2), ("k1", "k2"))
EMPTY = Bag(("k1", "k2"), {})


def change(relation: Relation, sequence: int, rows: dict[tuple[int, ...], int]) -> Update:
    return Update(relation.source, sequence, {relation.name: Bag(relation.columns, dict(rows))})


def test_eca_needs_one_source() -> None:
    with pytest.raises(DefinitionError) as refused:
        Eca(figure_5().view)
    assert refused.value.code == "VK-SWEEP-ONE-SOURCE"


@pytest.mark.parametrize("algorithm", [Strobe, CStrobe])
def test_strobe_needs_keys(algorithm: type[Strobe] | type[CStrobe]) -> None:
    with pytest.raises(DefinitionError) as refused:
        algorithm(figure_5().view, Bag(("D", "F"), {}))
    assert refused.value.code == "VK-SWEEP-KEYS"


def test_the_queries_of_eca_grow_with_the_square_of_what_interferes() -> None:
    view = figure_5(one_source=True).view
    machine = Eca(view)
    sizes = []
    for sequence in range(1, 31):
        relation = view.relations[sequence % 3]
        changed = {relation.name: Bag(relation.columns, {(sequence, sequence): 1})}
        (query,) = machine.receive(Update("Source 1", sequence, changed))
        assert isinstance(query, SumQuery)
        sizes.append(query.tuples)
    # A term has at most one update of each relation; with three relations, pairs of the others decide.
    assert sizes[:3] == [1, 3, 8]
    assert 3.5 < sizes[29] / sizes[14] < 4.5


def test_strobe_waits_until_all_is_quiet() -> None:
    machine = Strobe(KEYED, EMPTY)
    (one,) = queries(machine.receive(change(R1, 1, {(1, 0): 1})))
    (two,) = queries(machine.receive(change(R2, 1, {(7, 0): 1})))
    found = Bag(("k1", "a", "k2"), {(1, 0, 7): 1})
    assert machine.receive(Answer("s2", 2, one.number, found)) == []
    # Both found the same row, and it is there once.
    outputs = machine.receive(Answer("s1", 2, two.number, found.arranged(("k2", "a", "k1"))))
    assert changes(outputs) == [{(1, 7): 1}]


def test_strobe_deletes_from_what_is_still_being_asked() -> None:
    machine = Strobe(KEYED, EMPTY)
    (query,) = queries(machine.receive(change(R1, 1, {(1, 0): 1})))
    assert machine.receive(change(R2, 1, {(7, 0): -1})) == []
    # The answer was given before the delete, and came by another way.
    assert changes(
        machine.receive(Answer("s2", 2, query.number, Bag(("k1", "a", "k2"), {(1, 0, 7): 1})))
    ) == [{}]


def test_c_strobe_asks_for_what_a_concurrent_delete_took_away() -> None:
    r3 = Relation("r3", ("k3", "a"), "s3", ("k3",))
    view = JoinView((R1, R2, r3), ("k1", "k2", "k3"))
    machine = CStrobe(view, Bag(("k1", "k2", "k3"), {}))
    (first,) = queries(machine.receive(change(R1, 1, {(1, 0): 1})))
    machine.receive(change(R2, 1, {(7, 0): -1}))
    (second,) = queries(machine.receive(Answer("s2", 2, first.number, Bag(("k1", "a", "k2"), {}))))
    (third,) = queries(machine.receive(Answer("s3", 1, second.number, Bag(("k1", "a", "k2", "k3"), {}))))
    assert third.relation.name == "r3"
    assert third.partial.rows == {(1, 0, 7): 1}
    outputs = machine.receive(Answer("s3", 2, third.number, Bag(("k1", "a", "k2", "k3"), {(1, 0, 7, 9): 1})))
    # The row of the insert, and then its end by the delete.
    assert changes(outputs) == [{(1, 7, 9): 1}, {(1, 7, 9): -1}]


def test_c_strobe_knows_a_row_that_was_deleted_and_came_back() -> None:
    machine = CStrobe(KEYED, EMPTY)
    (query,) = queries(machine.receive(change(R1, 1, {(1, 0): 1})))
    machine.receive(change(R2, 1, {(7, 0): -1}))
    machine.receive(change(R2, 2, {(7, 0): 1}))
    outputs = machine.receive(Answer("s2", 3, query.number, Bag(("k1", "a", "k2"), {(1, 0, 7): 1})))
    assert changes(outputs) == [{(1, 7): 1}, {(1, 7): -1}]
    (again,) = queries(outputs)
    assert changes(
        machine.receive(Answer("s1", 2, again.number, Bag(("k2", "a", "k1"), {(7, 0, 1): 1})))
    ) == [{(1, 7): 1}]
