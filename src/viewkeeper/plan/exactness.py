"""Inner aggregates that cannot be computed again bit by bit.

A delta takes away old rows by computing them again. A floating-point SUM or AVG over the same rows in another
order differs in the last bits, and the row to take away would not be found. At the top of a view that does
no harm: groups are replaced by their key.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.algebra.aggregates import is_reproducible
from viewkeeper.algebra.relations import Aggregate, Filter, Project, Relation, children
from viewkeeper.algebra.scalars import Named
from viewkeeper.analyse.analysis import Reason
from viewkeeper.plan.layout import Types


def inexact_inner_aggregate(relation: Relation, types: Types) -> Reason | None:
    """The reason why the query must be recomputed, if one of its inner aggregates is inexact."""
    for aggregate in _inner(relation):
        for call in aggregate.calls:
            if call.argument is None or call.function not in ("sum", "avg"):
                continue
            asked = Project(aggregate.child, (Named("_vk_argument", call.argument),))
            kind = types(asked)["_vk_argument"]
            if not is_reproducible(call, kind):
                return Reason(
                    "INEXACT_INNER_AGGREGATE",
                    f"{call.function} of {kind} values inside the query cannot be computed again bit by bit",
                )
    return None


def _inner(relation: Relation) -> Iterator[Aggregate]:
    """Every aggregate but the one at the top."""
    while isinstance(relation, (Project, Filter)):
        relation = relation.child
    for child in children(relation):
        yield from _all(child)


def _all(relation: Relation) -> Iterator[Aggregate]:
    if isinstance(relation, Aggregate):
        yield relation
    for child in children(relation):
        yield from _all(child)
