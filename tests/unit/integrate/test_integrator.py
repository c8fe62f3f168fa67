"""Messages that are lost, doubled or reordered are noticed, whatever they are."""

from __future__ import annotations

import pytest

from viewkeeper.integrate.bags import Bag, bag
from viewkeeper.integrate.errors import IntegrationError
from viewkeeper.integrate.integrator import Integrator
from viewkeeper.integrate.messages import Answer, Mark, Message, Query, Transaction, Update
from viewkeeper.integrate.simulate.worlds import figure_5
from viewkeeper.integrate.sweep import Sweep

VIEW = figure_5().view
NOTHING = Bag(("A", "B", "D"), {})


def update(sequence: int, transaction: Transaction | None = None) -> Update:
    return Update("Source 2", sequence, {"R2": bag("BD", (3, 5))}, transaction)


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([update(2)], "VK-SWEEP-GAP"),
        ([update(1), update(3)], "VK-SWEEP-GAP"),
        ([update(1), update(1)], "VK-SWEEP-REPEATED"),
        ([update(1), update(2), update(1)], "VK-SWEEP-REPEATED"),
        ([update(1), Mark("Source 2", 2)], "VK-SWEEP-GAP"),
        ([update(1), update(2), Mark("Source 2", 1)], "VK-SWEEP-OLDER"),
        ([update(1), Answer("Source 1", 2, 1, NOTHING)], "VK-SWEEP-GAP"),
        ([update(1), Answer("Source 1", 1, 7, NOTHING)], "VK-SWEEP-UNASKED"),
        ([update(1), Answer("Source 1", 1, 1, NOTHING, frozenset({1}))], "VK-SWEEP-UNKNOWN"),
        ([Update("Source 1", 1, {"R2": bag("BD", (3, 5))})], "VK-SWEEP-UNKNOWN"),
        ([Update("Source 9", 1, {})], "VK-SWEEP-UNKNOWN"),
    ],
)
def test_what_does_not_fit_halts_the_integrator(messages: list[Message], code: str) -> None:
    integrator = Integrator(VIEW, Sweep(VIEW))
    *before, last = messages
    for message in before:
        integrator.receive(message)
    with pytest.raises(IntegrationError) as halted:
        integrator.receive(last)
    assert halted.value.code == code


def test_nothing_may_be_owed_in_the_end() -> None:
    integrator = Integrator(VIEW, Sweep(VIEW))
    integrator.check_quiet()
    (query,) = integrator.receive(update(1))
    assert isinstance(query, Query)
    integrator.receive(Mark("Source 2", 1))
    with pytest.raises(IntegrationError, match="query 1 was never answered") as halted:
        integrator.check_quiet()
    assert halted.value.code == "VK-SWEEP-UNANSWERED"


def test_a_part_of_a_transaction_may_not_be_owed_either() -> None:
    integrator = Integrator(VIEW, Sweep(VIEW))
    assert integrator.receive(update(1, Transaction("t", frozenset({"Source 1", "Source 2"})))) == []
    with pytest.raises(IntegrationError, match="transaction t came in part only") as halted:
        integrator.check_quiet()
    assert halted.value.code == "VK-SWEEP-INCOMPLETE"
