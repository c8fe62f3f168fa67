"""How many rows a relation holds, roughly: enough to say what is small.

A join along a key multiplies the rows by the ratio of the two tables' sizes: each of 1,500 customers has
about |orders| / |customer| orders. A join without an equality multiplies by the size of the other side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from viewkeeper.algebra.relations import Aggregate, Distinct, Join, Relation, Repeat, Scan, UnionAll, children
from viewkeeper.algebra.rules.leaves import Leaves
from viewkeeper.algebra.scalars import Column, Scalar

SMALL_ROWS = 200_000
"""What holds at most so many rows is broadcast; Spark has no estimate of its own for deltas."""

_EQUALS = re.compile(r"\s*(=|==|<=>)\s*\Z")


def size(relation: Relation, leaves: Leaves) -> int | None:
    """Rows of a relation, at most or nearly so; ``None`` when unknown."""
    if isinstance(relation, Scan):
        return leaves.size(relation)
    sizes = [size(child, leaves) for child in children(relation)]
    known = [each for each in sizes if each is not None]
    if len(known) < len(sizes):
        return None
    if isinstance(relation, Repeat):
        return relation.times * known[0]
    return sum(known) if isinstance(relation, UnionAll) else max(known, default=0)


def delta_size(relation: Relation, leaves: Leaves) -> int | None:
    """Rows of a relation's delta, as if every changed row of a leaf came through once."""
    if isinstance(relation, Scan):
        return leaves.delta_size(relation)
    if isinstance(relation, Repeat):
        below = delta_size(relation.child, leaves)
        return None if below is None else relation.times * below
    return _sum(delta_size(child, leaves) for child in children(relation))


def work_of_delta(relation: Relation, leaves: Leaves) -> int | None:
    """The rows that the operands of a delta's expression read: what Lee et al. (2001) call its work."""
    if delta_size(relation, leaves) == 0:
        return 0
    if isinstance(relation, Scan):
        return leaves.delta_size(relation)
    inner = [work_of_delta(child, leaves) for child in children(relation)]
    sizes = [size(child, leaves) for child in children(relation)]
    match relation:
        case Join():
            terms = [delta_size(child, leaves) != 0 for child in relation.inputs]
            # One term per changed input, which reads all the others.
            others = [_sum([*sizes[:at], *sizes[at + 1 :]]) for at, term in enumerate(terms) if term]
            return _sum([*inner, *others])
        case Aggregate() | Distinct():
            return _sum([*inner, *sizes, *sizes])  # the affected keys, looked up before and after
        case _:
            return _sum(inner)


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def fan_out(relation: Join, at: int, joined: list[int], leaves: Leaves) -> float | None:
    """By how much joining input ``at`` to those joined before multiplies their rows; ``None``: unknown."""
    own = size(relation.inputs[at], leaves)
    if own is None:
        return None
    columns = set(relation.inputs[at].columns)
    ratios = []
    for other in joined:
        if any(_links(c, columns, set(relation.inputs[other].columns)) for c in relation.conjuncts):
            partner = size(relation.inputs[other], leaves)
            if partner is None:
                return None
            ratios.append(own / max(1, partner))
    return max(1.0, min(ratios)) if ratios else float(max(1, own))


def _links(conjunct: Scalar, left: set[str], right: set[str]) -> bool:
    """Whether it is an equality between a column of one side and a column of the other."""
    match conjunct.parts:
        case (Column(one), str(word), Column(two)) if _EQUALS.match(word):
            return (one in left and two in right) or (one in right and two in left)
        case _:
            return False
