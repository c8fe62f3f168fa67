"""The branches of a union, cast to the types that it has.

    R ⊎ S,  R(x INT), S(x DOUBLE)    becomes    π_{CAST(x AS DOUBLE)}(R) ⊎ S

Spark casts the rows of a union where it stands. A delta may hold rows of one branch alone, so that there is
no union, and 5 would be '5' above it, and not '5.0'. Written out, the cast goes wherever the rows go.
"""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.algebra.relations import Project, Relation, UnionAll, map_children
from viewkeeper.algebra.scalars import Named, column, compose
from viewkeeper.plan.layout import Types


def with_union_types(relation: Relation, types: Types) -> Relation:
    """The relation with every branch of every union in it cast to the union's types."""
    inner = map_children(relation, lambda child: with_union_types(child, types))
    if not isinstance(inner, UnionAll):
        return inner
    wanted = types(inner)
    return UnionAll(tuple(_cast(branch, wanted, types(branch)) for branch in inner.inputs))


def _cast(branch: Relation, wanted: Mapping[str, str], own: Mapping[str, str]) -> Relation:
    if all(own[name] == kind for name, kind in wanted.items()):
        return branch
    return Project(
        branch,
        tuple(
            Named(name, column(name) if own[name] == kind else compose("CAST(", column(name), f" AS {kind})"))
            for name, kind in wanted.items()
        ),
    )
