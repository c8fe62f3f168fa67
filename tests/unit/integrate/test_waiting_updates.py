"""Which updates come next, and which must come together."""

from __future__ import annotations

from viewkeeper.integrate.messages import Transaction, Update, UpdateId
from viewkeeper.integrate.waiting import Waiting

T = Transaction("t", frozenset({"a", "b"}))
U = Transaction("u", frozenset({"a", "b"}))


def update(source: str, sequence: int, transaction: Transaction | None = None) -> Update:
    return Update(source, sequence, {}, transaction)


def groups(waiting: Waiting) -> list[tuple[UpdateId, ...]]:
    found = []
    while group := waiting.take_next():
        found.append(tuple(each.id for each in group))
    return found


def waiting(*updates: Update) -> Waiting:
    made = Waiting()
    for each in updates:
        made.add(each)
    return made


def test_updates_come_in_the_order_of_arrival() -> None:
    made = waiting(update("b", 1), update("a", 1), update("b", 2))
    assert groups(made) == [(("b", 1),), (("a", 1),), (("b", 2),)]


def test_a_global_transaction_comes_whole_and_holds_up_its_own_sources_only() -> None:
    made = waiting(update("a", 1, T), update("a", 2), update("c", 1), update("b", 1))
    assert groups(made) == [(("c", 1),), (("b", 1),)]
    assert made.incomplete == ("t",)
    made.add(update("b", 2, T))
    assert groups(made) == [(("a", 1), ("b", 2)), (("a", 2),)]
    assert made.incomplete == ()


def test_what_comes_before_a_part_is_not_drawn_into_the_transaction() -> None:
    made = waiting(update("a", 1, T), update("b", 1), update("b", 2, T))
    assert groups(made) == [(("b", 1),), (("a", 1), ("b", 2))]


def test_transactions_in_opposite_orders_come_in_one_step() -> None:
    made = waiting(update("a", 1, T), update("b", 1, U), update("a", 2), update("a", 3, U))
    assert groups(made) == []
    made.add(update("b", 2, T))
    assert groups(made) == [(("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2))]


def test_the_first_of_a_source_can_be_taken_out_of_turn() -> None:
    made = waiting(update("a", 1), update("b", 1), update("b", 2))
    assert made.take_first("b").id == ("b", 1)
    assert [each.id for each in made.of("b")] == [("b", 2)]
    assert groups(made) == [(("a", 1),), (("b", 2),)]
