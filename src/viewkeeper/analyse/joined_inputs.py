"""Two parts of FROM joined: inner joins are one list of inputs, the others have two sides.

An outer, semi or anti join puts what was read so far on its left side, and is then one input itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.algebra.relations import Filter, OuterJoin, Project, Relation
from viewkeeper.algebra.scalars import Named, Scalar, column, compose, keep
from viewkeeper.analyse.inputs import Inputs, all_of
from viewkeeper.analyse.scopes import Names, Origin, Output, Scope

SharedKeys = Sequence[tuple[Output, Output]]
"""The columns of both sides that USING or NATURAL sets equal."""


def both(left: Inputs, right: Inputs) -> Inputs:
    """The inputs of both sides, and their names."""
    scope = replace(
        left.scope,
        origins=(*left.scope.origins, *right.scope.origins),
        visible=(*left.scope.visible, *right.scope.visible),
    )
    return Inputs((*left.relations, *right.relations), (*left.conjuncts, *right.conjuncts), scope)


def under_using(inputs: Inputs, keys: SharedKeys) -> Scope:
    """Under USING each key is one column, and stands first; each side's can still be named with its table,
    and is the first of ``table.*``, too."""
    hidden = {output for pair in keys for output in pair}
    rest = (output for output in inputs.scope.visible if output not in hidden)
    origins = tuple(_keys_first(origin, keys) for origin in inputs.scope.origins)
    return replace(inputs.scope, origins=origins, visible=(*(mine for mine, _ in keys), *rest))


def _keys_first(origin: Origin, keys: SharedKeys) -> Origin:
    own = [output for pair in keys for output in pair if output in origin.outputs]
    return replace(origin, outputs=tuple(dict.fromkeys((*own, *origin.outputs))))


def _left_join(left: Relation, right: Relation, conjuncts: Sequence[Scalar]) -> OuterJoin:
    """What concerns the right side alone narrows it before it is joined."""
    own = [each for each in conjuncts if each.columns and each.columns <= set(right.columns)]
    rest = tuple(each for each in conjuncts if each not in own)
    return OuterJoin(left, Filter(right, all_of(own)) if own else right, rest)


def outer_joined(
    left: Inputs,
    right: Inputs,
    scope: Scope,
    conjuncts: Sequence[Scalar],
    keys: SharedKeys,
    side: str,
    names: Names,
) -> Inputs:
    """A RIGHT join is a LEFT one the other way round. Under USING the key is that of the side of which all
    rows are kept; in a FULL join whichever is there."""
    rest = scope.visible[len(keys) :]
    if side == "RIGHT":
        theirs = (replace(mine, column=theirs.column) for mine, theirs in keys)
        joined: Relation = _left_join(right.relation(), left.relation(), conjuncts)
        return Inputs((joined,), (), replace(scope, visible=(*theirs, *rest)))
    if side != "FULL":
        return Inputs((_left_join(left.relation(), right.relation(), conjuncts),), (), scope)
    joined = OuterJoin(left.relation(), right.relation(), tuple(conjuncts), full=True)
    if not keys:
        return Inputs((joined,), (), scope)
    merged = [Output(mine.name, names.fresh(mine.name or "key")) for mine, _ in keys]
    items = [
        Named(out.column, compose("coalesce(", column(mine.column), ", ", column(theirs.column), ")"))
        for out, (mine, theirs) in zip(merged, keys, strict=True)
    ]
    joined = Project(joined, (*keep(joined.columns), *items))
    return Inputs((joined,), (), replace(scope, visible=(*merged, *rest)))


def common_names(left: Scope, right: Scope) -> list[str]:
    """The names that NATURAL is about."""
    theirs = {right.fold(output.name) for output in right.visible if output.name}
    return [output.name for output in left.visible if output.name and left.fold(output.name) in theirs]
