"""Incremental or full: the decision, in one place.

Every way has its price (:mod:`viewkeeper.plan.prices`), and the cheapest is taken. Where sizes are not known,
there are no prices: then deltas are used, unless they hold more than a fifth of the rows that recomputing
would read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.errors import RefreshError
from viewkeeper.plan.methods import Method
from viewkeeper.plan.prices import Price
from viewkeeper.plan.steps import Strategy, Work

FULL_ABOVE = 0.2
"""Share of changed rows above which recomputing is taken to be cheaper, where there are no prices."""
DOUBT = 0.5
"""Seconds by which prices that were not measured here may err: within them deltas are used, so that views
which read this one get small changes."""
MEASURED_DOUBT = 0.1
"""The same, of prices that ``viewkeeper calibrate`` measured here, for views that others read."""

STRICT = "incremental strict"
POLICIES = ("auto", "incremental", STRICT, "full")


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do with a view, and the sentence that says why it is recomputed."""

    strategy: Strategy
    reason: str | None
    because: str | None = None
    """Why deltas are used, where recomputing had a price, too."""


def choose(
    view: str,
    policy: str,
    obstacle: str | None,
    work: Work,
    parents_full: Sequence[str],
    prices: Sequence[Price] = (),
    doubt: float = DOUBT,
) -> Choice:
    """The strategy for a view whose inputs changed. ``obstacle`` says why it cannot be incremental."""
    if policy == "full":
        return Choice(Strategy.FULL, "policy full")
    if obstacle is not None:
        if policy == "incremental strict":
            raise RefreshError(
                f"view {view} cannot be refreshed incrementally: {obstacle}",
                code="VK-NOT-INCREMENTAL",
                hint='Use policy "incremental" or "auto" to let it be recomputed.',
            )
        return Choice(Strategy.FULL, obstacle)
    if policy == "auto":
        if parents_full:
            return _after_recomputing(parents_full, prices)
        if prices:
            return _cheapest(prices, doubt)
        # Only what the sources' metadata vouches for: how much of a parent's change reaches its readers is
        # not known yet, and most aggregates let little through.
        if work.full is not None and work.known is not None and work.full > 0:
            share = work.known / work.full
            if share > FULL_ABOVE:
                return Choice(Strategy.FULL, f"{share:.0%} of the rows it reads changed")
    return Choice(Strategy.INCREMENTAL, None)


def _after_recomputing(parents: Sequence[str], prices: Sequence[Price]) -> Choice:
    """What came of a parent that was recomputed has to be found by comparing all its rows, old and new. That
    is in the prices; but so large a change is never used where it is not cheaper."""
    told = f"{', '.join(parents)} was recomputed"
    choice = _cheapest(prices, 0.0) if prices else Choice(Strategy.FULL, told)
    return replace(choice, reason=told) if choice.strategy is Strategy.FULL else choice


def _cheapest(prices: Sequence[Price], doubt: float) -> Choice:
    full = next(price for price in prices if price.method is Method.FULLRECOMP)
    best = min((price for price in prices if price is not full), key=lambda price: price.total)
    if full.total + doubt < best.total:
        told = f"about {full.total:.1f} s, against {best.total:.1f} s by {best.method.value}"
        return Choice(Strategy.FULL, f"recomputing is cheaper: {told}")
    told = f"about {best.total:.1f} s by {best.method.value}, against {full.total:.1f} s by recomputing"
    sure = best.total <= full.total
    return Choice(Strategy.INCREMENTAL, None, told if sure else f"{told}, which is too close to tell")
