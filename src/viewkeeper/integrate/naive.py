"""The naive algorithm: SWEEP without compensation. Wrong as soon as updates are concurrent (Section 3).

    ΔV = R₁ ⋈ … ⋈ ΔRᵢ ⋈ … ⋈ Rₙ        with every Rⱼ as it is when it is asked

It is here to be caught by the checker, and to show what the others do for their promises.
"""

from __future__ import annotations

from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.messages import Answer, Compensation, Query
from viewkeeper.integrate.sweep import Delta, Sweep


class Naive(Sweep):
    """The state machine of SWEEP, which believes every answer."""

    def _correct(self, query: Query, answer: Answer, delta: Delta) -> tuple[Bag, list[Compensation]]:
        return answer.rows, []
