"""Rates found again from what they produced."""

from __future__ import annotations

from random import Random

import pytest

from viewkeeper.plan.fitting import Observation, fitted
from viewkeeper.plan.prices import Load, Operation, Rate

BELIEVED = {
    Operation.MERGE: Rate(0.5, 1e-7, 1e-9, 1e-5, 1e-7),
    Operation.INSERT: Rate(0.3, 0.0, 0.0, 2e-6, 1e-8),
    Operation.REBUILD: Rate(0.4, 1e-7, 1e-8, 1e-6, 0.0),
}
TRUE = {
    Operation.MERGE: Rate(0.9, 4e-7, 0.0, 3e-5, 2e-7),
    Operation.INSERT: Rate(0.2, 0.0, 0.0, 1e-6, 4e-8),
    Operation.REBUILD: BELIEVED[Operation.REBUILD],
}


def observations(count: int, noise: float = 0.0) -> list[Observation]:
    random = Random(1)
    found = []
    for _ in range(count):
        loads = tuple(
            Load(operation, random.choice((1e4, 1e6, 5e6)), random.choice((1e6, 1e8)), *changed(random))
            for operation in (Operation.MERGE, Operation.INSERT)
            if random.random() < 0.7
        )
        if loads:
            seconds = sum(load.seconds(TRUE) for load in loads) * random.uniform(1 - noise, 1 + noise)
            found.append(Observation(loads, seconds))
    return found


def changed(random: Random) -> tuple[float, float]:
    rows = random.choice((100.0, 1e4, 1e5))
    return rows, rows * random.choice((10, 100))


@pytest.mark.parametrize(("noise", "within"), [(0.0, 0.05), (0.1, 0.15)])
def test_what_was_not_seen_is_predicted(noise: float, within: float) -> None:
    seen, unseen = observations(200, noise)[:120], observations(200)[120:]
    rates = fitted(BELIEVED, seen)
    for each in unseen:
        predicted = sum(load.seconds(rates) for load in each.loads)
        assert predicted == pytest.approx(each.seconds, rel=within, abs=0.05)


def test_what_was_not_measured_stays_as_it_was_believed() -> None:
    rates = fitted(BELIEVED, observations(50))
    assert rates[Operation.REBUILD] == BELIEVED[Operation.REBUILD]
    assert fitted(BELIEVED, []) == BELIEVED


def test_nothing_that_grows_with_the_data_becomes_free() -> None:
    odd = [Observation((Load(Operation.MERGE, rows, 0, 0, 0),), 1 / (1 + rows)) for rows in (0, 1e6, 1e7)]
    rate = fitted(BELIEVED, odd)[Operation.MERGE]
    assert rate.read_row == pytest.approx(BELIEVED[Operation.MERGE].read_row / 10)
