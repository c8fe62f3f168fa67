"""Taking out of an answer what it should not contain, here and at once (Section 4).

A query asks for P ⋈ Rⱼ as of a certain moment, and is answered from another state of Rⱼ. The difference is
made of updates that are known here:

    P ⋈ Rⱼ = P ⋈ Rⱼ(answer) − Σ {P ⋈ ΔRⱼ : in the answer, but later} + Σ {P ⋈ ΔRⱼ : earlier, but not in it}

Over a channel that keeps the order an answer lacks nothing that is earlier, and the last sum is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

from viewkeeper.integrate.bags import Bag
from viewkeeper.integrate.messages import Answer, Compensation, Query, UpdateId

Change: TypeAlias = tuple[UpdateId, Bag]
"""What an update did to the relation that was asked."""


def compensate(
    query: Query, answer: Answer, later: Iterable[Change], earlier: Iterable[Change], *, merge: bool = True
) -> tuple[Bag, list[Compensation]]:
    """What the query asked for, and what was done to get it from the answer. ``merge``: the later updates are
    added up and joined once."""
    rows = answer.rows
    done = []
    contained = [change for change in later if answer.has(change[0])]
    for changes in _merged(contained) if merge else [[change] for change in contained]:
        total = added_up(rows for _, rows in changes)
        error = query.partial.join(total)
        rows = rows.minus(error)
        updates = tuple(update for update, _ in changes)
        done.append(Compensation(query.number, query.relation.name, query.partial, updates, total, error))
    for update, lacking in earlier:
        if not answer.has(update):
            rows = rows.plus(query.partial.join(lacking))
    return rows, done


def added_up(bags: Iterable[Bag]) -> Bag:
    """The sum of one bag or more."""
    return reduce(Bag.plus, bags)


def _merged(changes: list[Change]) -> list[list[Change]]:
    return [changes] if changes else []
