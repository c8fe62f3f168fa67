"""How far a source is ahead of what the warehouse holds of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lag:
    """Transactions that wait to be taken in, and how long the oldest of them has waited."""

    transactions: int
    seconds: float
