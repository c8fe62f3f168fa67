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
    """The relation with every branch of every union in it cast to the union's types. Of three branches Spark
    adds up the first two and then the third: a text that stands beside a date becomes one, and only then
    the timestamp that the third has."""
    inner = map_children(relation, lambda child: with_union_types(child, types))
    if not isinstance(inner, UnionAll):
        return inner
    own = [types(branch) for branch in inner.inputs]
    if all(each == own[0] for each in own):
        return inner
    done, so_far = [inner.inputs[0]], own[0]
    for branch, its_own in zip(inner.inputs[1:], own[1:], strict=True):
        wanted = types(UnionAll((done[0], branch)))
        done = [*(_cast(each, wanted, so_far) for each in done), _cast(branch, wanted, its_own)]
        so_far = wanted
    return UnionAll(tuple(done))


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
