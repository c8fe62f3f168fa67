"""The checker tells the levels apart, and believes nobody."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from viewkeeper.errors import ViewkeeperError
from viewkeeper.integrate.bags import Bag, bag
from viewkeeper.integrate.levels import Level
from viewkeeper.integrate.messages import Transaction, Update, UpdateId, ViewChange
from viewkeeper.integrate.simulate.checker import is_in_order, level_of
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.views import JoinView, Relation

R = Relation("r", ("x", "a"), "s")
T = Relation("t", ("x", "b"), "u")
VIEW = JoinView((R, T), ("a", "b"))
CONTENTS = {"r": bag(R.columns, (0, "a0")), "t": bag(T.columns, (0, "b0"))}


def set_a(sequence: int, transaction: Transaction | None = None) -> Update:
    rows = {(0, f"a{sequence - 1}"): -1, (0, f"a{sequence}"): 1}
    return Update("s", sequence, {"r": Bag(R.columns, dict(rows))}, transaction)


def set_b(sequence: int, transaction: Transaction | None = None) -> Update:
    rows = {(0, f"b{sequence - 1}"): -1, (0, f"b{sequence}"): 1}
    return Update("u", sequence, {"t": Bag(T.columns, dict(rows))}, transaction)


def history(
    delivered: Sequence[Update],
    states: Sequence[tuple[str, str]],
    claims: Sequence[Sequence[UpdateId]] | None = None,
) -> History:
    """A run in which the view was published with these single rows, beginning with a0, b0."""
    made = History(VIEW, CONTENTS, logs={"s": [], "u": []}, delivered=list(delivered))
    for update in sorted(delivered, key=lambda each: each.sequence):
        made.logs[update.source].append(update)
    before = ("a0", "b0")
    for at, state in enumerate(states):
        claimed = tuple(claims[at]) if claims else ()
        made.changes.append(ViewChange(claimed, bag("ab", state).minus(bag("ab", before))))
        before = state
    return made


RUN = (set_a(1), set_b(1), set_a(2))


@pytest.mark.parametrize(
    ("states", "level"),
    [
        ([("a1", "b0"), ("a1", "b1"), ("a2", "b1")], Level.COMPLETE),
        # A real state is left out, or another order is shown than that of delivery.
        ([("a1", "b0"), ("a2", "b1")], Level.STRONG),
        ([("a2", "b1")], Level.STRONG),
        ([("a0", "b1"), ("a1", "b1"), ("a2", "b1")], Level.STRONG),
        ([("a1", "b0"), ("a1", "b0"), ("a2", "b1")], Level.STRONG),
        # Each is real, but one source goes back.
        ([("a1", "b0"), ("a0", "b1"), ("a2", "b1")], Level.WEAK),
        ([("a2", "b0"), ("a1", "b1"), ("a2", "b1")], Level.WEAK),
        # A state that never was.
        ([("a1", "b7"), ("a1", "b1"), ("a2", "b1")], Level.CONVERGENT),
        ([("a1", "b0"), ("a1", "b1"), ("a2", "b0")], Level.NONE),
        ([], Level.NONE),
    ],
)
def test_the_levels(states: list[tuple[str, str]], level: Level) -> None:
    assert level_of(history(RUN, states)) is level


def test_claims_do_not_help_what_is_wrong() -> None:
    states = [("a0", "b1"), ("a1", "b0"), ("a2", "b1")]
    claims: list[list[UpdateId]] = [[("s", 1)], [("u", 1)], [("s", 2)]]
    assert level_of(history(RUN, states, claims)) is Level.WEAK


def test_claims_do_not_hurt_what_is_right() -> None:
    states = [("a1", "b0"), ("a1", "b1"), ("a2", "b1")]
    claims: list[list[UpdateId]] = [[("u", 1)], [("s", 2)], [("u", 9)]]
    assert level_of(history(RUN, states, claims)) is Level.COMPLETE


def test_a_global_transaction_in_part_is_no_state() -> None:
    both = Transaction("t", frozenset({"s", "u"}))
    run = (set_a(1, both), set_b(1, both))
    assert level_of(history(run, [("a1", "b1")], [[("s", 1), ("u", 1)]])) is Level.COMPLETE
    halves: list[list[UpdateId]] = [[("s", 1)], [("u", 1)]]
    assert level_of(history(run, [("a1", "b0"), ("a1", "b1")], halves)) is Level.CONVERGENT


def test_two_transactions_in_one_step_are_not_complete_unless_they_cannot_be_told_apart() -> None:
    one, two = (Transaction(id, frozenset({"s", "u"})) for id in "tw")
    claims = [[("s", 1), ("s", 2), ("u", 1), ("u", 2)]]
    same = (set_a(1, one), set_b(1, one), set_a(2, two), set_b(2, two))
    assert level_of(history(same, [("a2", "b2")], claims)) is Level.STRONG
    opposite = (set_a(1, one), set_b(1, two), set_a(2, two), set_b(2, one))
    assert level_of(history(opposite, [("a2", "b2")], claims)) is Level.COMPLETE


def test_a_run_that_was_halted_is_in_order_as_far_as_it_went() -> None:
    assert is_in_order(history(RUN, [("a1", "b0")]))
    assert is_in_order(history(RUN, []))
    assert not is_in_order(history(RUN, [("a1", "b0"), ("a0", "b0")]))


def test_a_lattice_that_is_too_large_is_not_guessed_at() -> None:
    run = [set_a(at) for at in range(1, 600)] + [set_b(at) for at in range(1, 600)]
    states = [("a0", "b9"), ("a9", "b0"), ("a599", "b599")]
    with pytest.raises(ViewkeeperError) as undecided:
        level_of(history(run, states))
    assert undecided.value.code == "VK-SWEEP-UNDECIDED"
