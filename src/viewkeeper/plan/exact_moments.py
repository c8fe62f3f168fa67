"""Variances, covariances, correlations and averages inside a query, made of sums that are exact.

    stddev_samp(x)    becomes    √((n·Σx² − (Σx)²) / (n·(n − 1)))  over  γ_{keys; n, Σx, Σx²}

Spark works them out row by row in floating point, so that the last bits depend on the order of the rows. At
the top of a view that does no harm; inside, a delta takes old rows away by computing them again, and would
not find them. Of whole numbers and short decimals the sums are exact, and what is made of them is the same
each time (the formulas: :mod:`viewkeeper.algebra.aggregates`). A view that has them so is also recomputed and
verified so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewkeeper.algebra.aggregates import is_made_of_exact_sums, keep_for, may_be_made_of_sums
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Filter,
    Project,
    Relation,
    map_children,
)
from viewkeeper.algebra.scalars import Named, column
from viewkeeper.plan.exactness import argument_types
from viewkeeper.plan.layout import Types


def with_exact_moments(relation: Relation, types: Types) -> Relation:
    """The relation with every aggregate but the one at the top made of exact sums, where that can be."""
    if isinstance(relation, (Project, Filter)):
        return map_children(relation, lambda child: with_exact_moments(child, types))
    return map_children(relation, lambda child: _exact(child, types))


def _exact(relation: Relation, types: Types) -> Relation:
    inner = map_children(relation, lambda child: _exact(child, types))
    if not isinstance(inner, Aggregate):
        return inner
    kinds = {
        call: argument_types(inner.child, call, types) for call in inner.calls if may_be_made_of_sums(call)
    }
    made = {call: each for call, each in kinds.items() if is_made_of_exact_sums(call, each)}
    return _of_sums(inner, made) if made else inner


def _of_sums(aggregate: Aggregate, made: Mapping[AggregateCall, Sequence[str]]) -> Relation:
    """The aggregate with these calls, whose arguments have these types, computed from sums."""
    known = {
        argument: kind
        for call, kinds in made.items()
        for argument, kind in zip(call.arguments, kinds, strict=True)
    }
    others = tuple(call for call in aggregate.calls if call not in made)
    kept, values = keep_for(tuple(made), known.__getitem__)
    sums = Aggregate(aggregate.child, aggregate.keys, (*others, *(each.call for each in kept)))
    shown = {name: column(name) for name in aggregate.columns} | dict(values)
    return Project(sums, tuple(Named(name, value) for name, value in shown.items()))
