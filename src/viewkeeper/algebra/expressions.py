"""Delta expressions of a many-way join: which operand each term reads in which state.

An expression is a tuple of terms; a term says for each input whether its delta, its old or its new state
stands there. The rule for joins runs any of them, so a better one is a new function here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias


class Operand(Enum):
    """What stands for one input in one term."""

    OLD = "old"
    NEW = "new"
    DELTA = "delta"


Term: TypeAlias = tuple[Operand, ...]
Expression: TypeAlias = tuple[Term, ...]
ChooseExpression: TypeAlias = Callable[[Sequence[bool]], Expression]


def n_term(changed: Sequence[bool]) -> Expression:
    """The n-term expression [GMS93; Lee et al. 2001, Section 2, expression (2)].

    Δ(R₁ ⋈ … ⋈ Rₙ) = ⊎ᵢ R₁ⁿᵉʷ ⋈ … ⋈ Rᵢ₋₁ⁿᵉʷ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ᵒˡᵈ ⋈ … ⋈ Rₙᵒˡᵈ, over the i that changed.

    >>> [[operand.value for operand in term] for term in n_term([True, False, True])]
    [['delta', 'old', 'old'], ['new', 'new', 'delta']]
    """
    return tuple(
        tuple(
            Operand.DELTA if at == i else Operand.NEW if at < i else Operand.OLD for at in range(len(changed))
        )
        for i, has_changed in enumerate(changed)
        if has_changed
    )
