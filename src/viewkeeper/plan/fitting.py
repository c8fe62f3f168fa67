"""Rates from what was measured: the least squares that stay near what was believed before.

Every observation is a sum of loads and the seconds that they took together. With u = rate / believed rate:

    minimise   Σ ((Σ load·rate − seconds) / max(seconds, 0.2))²  +  λ Σ (u − 1)²      with u ≥ 1/10

so what was not measured stays as it was believed, nothing that grows with the data becomes free only because
it did not show in small tables, and a run of a second counts as much as one of a minute. The problem is
convex; one rate after the other is moved to its best value, until none moves any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from viewkeeper.plan.prices import Load, Operation, Rate, Rates

_RIDGE = 0.01
_ROUNDS = 300
_STILL = 1e-6
_LEAST = 0.1
_SHORT = 0.2
"""Seconds below which differences are noise."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was done, and the seconds that it took."""

    loads: tuple[Load, ...]
    seconds: float


def fitted(believed: Rates, observations: Sequence[Observation]) -> Rates:
    """The rates that explain what was observed."""
    unknown = [
        (operation, each.name)
        for operation, rate in believed.items()
        for each in fields(Rate)
        if getattr(rate, each.name) > 0
    ]
    rows = [_row(observation, believed, unknown) for observation in observations]
    factors = _least_squares(rows, len(unknown))
    found = dict(believed)
    for (operation, name), factor in zip(unknown, factors, strict=True):
        rate = found[operation]
        found[operation] = replace(rate, **{name: getattr(rate, name) * factor})
    return found


def _row(
    observation: Observation, believed: Rates, unknown: Sequence[tuple[Operation, str]]
) -> tuple[list[float], float]:
    """The share of each unknown in the observation, and what they should sum up to: its seconds, weighed."""
    weight = 1 / max(observation.seconds, _SHORT)
    shares = [
        weight
        * sum(_share(load, believed, name) for load in observation.loads if load.operation is operation)
        for operation, name in unknown
    ]
    return shares, weight * observation.seconds


_AMOUNTS = {
    "read_row": "read_rows",
    "read_byte": "read_bytes",
    "changed_row": "changed_rows",
    "changed_byte": "changed_bytes",
}


def _share(load: Load, believed: Rates, name: str) -> float:
    amount: float = 1.0 if name == "fixed" else getattr(load, _AMOUNTS[name])
    rate: float = getattr(believed[load.operation], name)
    return amount * rate


def _least_squares(rows: Sequence[tuple[Sequence[float], float]], unknown: int) -> list[float]:
    """Bounded below, with a ridge towards 1, by coordinate descent."""
    factors = [1.0] * unknown
    columns = [[shares[at] for shares, _ in rows] for at in range(unknown)]
    squares = [sum(value * value for value in column) for column in columns]
    left = [wanted - sum(shares) for shares, wanted in rows]
    for _ in range(_ROUNDS):
        moved = 0.0
        for at, column in enumerate(columns):
            if not squares[at]:
                continue
            gradient = sum(value * rest for value, rest in zip(column, left, strict=True))
            best = (gradient + squares[at] * factors[at] + _RIDGE) / (squares[at] + _RIDGE)
            step = max(_LEAST, best) - factors[at]
            if step:
                factors[at] += step
                left = [rest - step * value for value, rest in zip(column, left, strict=True)]
                moved = max(moved, abs(step))
        if moved < _STILL:
            break
    return factors
