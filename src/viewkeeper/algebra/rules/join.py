"""Inner joins of any number of relations, self joins and non-equi conditions included.

Δ(R₁ ⋈ … ⋈ Rₙ) = ⊎ over the terms of a delta expression (see :mod:`viewkeeper.algebra.expressions`).
A term has one delta, whose weight becomes the weight of the joined row.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.deltas import Delta, plus
from viewkeeper.algebra.estimates import SMALL_ROWS, delta_size, fan_out, size
from viewkeeper.algebra.expressions import ChooseExpression, Operand, Term
from viewkeeper.algebra.relations import Join, Project, Relation
from viewkeeper.algebra.rules.leaves import Leaves, new, old
from viewkeeper.algebra.scalars import WEIGHT, keep


def join_delta(
    relation: Join, deltas: Sequence[Delta | None], leaves: Leaves, expression: ChooseExpression
) -> Delta | None:
    """The sum of the expression's terms, each with its delta first."""
    changed = [delta is not None for delta in deltas]
    # A delta that several terms read, or that was dear to compute, is shared by the leaves themselves.
    return plus([_term(relation, term, deltas, leaves) for term in expression(changed)])


def _term(relation: Join, term: Term, deltas: Sequence[Delta | None], leaves: Leaves) -> Delta:
    operands: list[Relation] = []
    for operand, child, delta in zip(term, relation.inputs, deltas, strict=True):
        match operand:
            case Operand.DELTA:
                assert delta is not None
                operands.append(delta.relation)
            case Operand.OLD:
                operands.append(old(child, leaves))
            case Operand.NEW:
                operands.append(new(child, leaves) if delta is not None else old(child, leaves))
    joined = _delta_first(relation, operands, term.index(Operand.DELTA), leaves)
    return Delta(Project(joined, keep((*relation.columns, WEIGHT))))


def _delta_first(relation: Join, operands: Sequence[Relation], first: int, leaves: Leaves) -> Relation:
    """A left-deep chain from the delta on, each join saying what is small enough to be broadcast.

    Spark reorders joins little without statistics, and has none of deltas: left alone it would shuffle a big
    table rather than broadcast a few rows. Large tables come first, to stream past the delta; small ones are
    then broadcast to what comes out. Broadcasting an intermediate result would collect it before the next
    join can begin, so that is done only where two large tables follow each other.
    """
    result = operands[first]
    rows: float | None = delta_size(relation.inputs[first], leaves)
    joined = [first]
    waiting = list(relation.conjuncts)
    small = [_is_small(size(child, leaves)) for child in relation.inputs]
    for at in join_order(relation, first, small)[1:]:
        available = {*result.columns, *operands[at].columns}
        ready = tuple(conjunct for conjunct in waiting if conjunct.columns <= available)
        waiting = [conjunct for conjunct in waiting if not conjunct.columns <= available]
        broadcast = (1,) if small[at] else (0,) if _is_small(rows) else ()
        result = Join((result, operands[at]), ready, broadcast)
        factor = fan_out(relation, at, joined, leaves)
        rows = None if rows is None or factor is None else rows * factor
        joined.append(at)
    return result


def _is_small(rows: float | None) -> bool:
    return rows is not None and rows <= SMALL_ROWS


def join_order(relation: Join, first: int, small: Sequence[bool]) -> list[int]:
    """The inputs beginning with ``first``, each next one connected to those before it where possible, and the
    large ones as early as that allows."""
    order = [first]
    rest = [at for at in range(len(relation.inputs)) if at != first]
    while rest:
        reached = {name for at in order for name in relation.inputs[at].columns}
        connected = [at for at in rest if _connects(relation, at, reached)]
        following = min(connected or rest, key=lambda at: (small[at], at))
        order.append(following)
        rest.remove(following)
    return order


def _connects(relation: Join, at: int, reached: set[str]) -> bool:
    own = set(relation.inputs[at].columns)
    return any(
        conjunct.columns & own and conjunct.columns & reached and conjunct.columns <= own | reached
        for conjunct in relation.conjuncts
    )
