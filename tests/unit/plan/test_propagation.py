"""The delta expression that is chosen for a join."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.expressions import Terms
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes
from viewkeeper.errors import RefreshError
from viewkeeper.plan.propagation import propagation
from viewkeeper.plan.situation import Joins


def crossed(relations: int, changed: int) -> JoinSizes:
    return JoinSizes(
        tuple(
            JoinInput(f"t{at}", frozenset({f"c{at}"}), 9, 10, 1 if at < changed else None)
            for at in range(relations)
        ),
        (),
    )


def test_all_terms_are_those_of_the_relations_that_changed() -> None:
    found = propagation(crossed(25, changed=8), Joins.ALL_TERMS)
    assert isinstance(found.expression, Terms)
    assert len(found.expression.terms) == 255


@pytest.mark.parametrize("changed", [9, 25])
def test_more_than_can_be_planned_are_refused(changed: int) -> None:
    with pytest.raises(RefreshError, match=f"{2**changed - 1:,}") as refused:
        propagation(crossed(25, changed), Joins.ALL_TERMS)
    assert refused.value.code == "VK-TOO-MANY-TERMS"
    assert propagation(crossed(25, changed), Joins.N_TERM).expression
