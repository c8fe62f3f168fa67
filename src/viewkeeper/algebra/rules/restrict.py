"""R ⋉ K: a relation narrowed to affected keys, the narrowing done as deep down as it can be.

    σ(R) ⋉ K = σ(R ⋉ K)                          γ_G(R) ⋉ K = γ_G(R ⋉ K),  K over G
    (R ⋈ S) ⋉ K = (R ⋉ K) ⋈ S   and   (R ⟕ S) ⋉ K = (R ⋉ K) ⟕ S,  K over R

What a row of R is joined with has R's keys: along an equality R.a = S.b the other side is narrowed as well,
where it would be read for nothing (⟕, ⋉, ▷). NULL is a key like any other (⋉ compares by ``<=>``).

Through ⊎ the keys are left to Spark: a branch may have a narrower type than the union, and comparing a number
with a text that is none is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeeper.algebra.join_sizes import equal_columns
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Exists,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    SemiJoin,
    TimeFilter,
    Window,
)
from viewkeeper.algebra.scalars import Named, Scalar, column


def restrict(relation: Relation, keys: Relation, *, across: bool = False) -> Relation:
    """R ⋉ K, on all the columns of K, which are columns of R. ``across``: the keys come from columns that a
    condition sets equal to these, maybe of another type; that is not followed any further."""
    wanted = frozenset(keys.columns)
    match relation:
        case Filter() | TimeFilter() | Distinct():
            return replace(relation, child=restrict(relation.child, keys, across=across))
        case Project():
            below = {item.name: _below(item) for item in relation.items if item.name in wanted}
            if all(below.values()) and len(set(below.values())) == len(below):
                names = {name: inner for name, inner in below.items() if inner is not None}
                return replace(relation, child=restrict(relation.child, _renamed(keys, names), across=across))
        case Aggregate() | Window() if wanted <= frozenset(relation.keys):
            return replace(relation, child=restrict(relation.child, keys, across=across))
        case Generate() | Repeat() if wanted <= frozenset(relation.child.columns):
            return replace(relation, child=restrict(relation.child, keys, across=across))
        case SemiJoin():
            return replace(relation, child=restrict(relation.child, keys, across=across))
        case Join():
            for at, child in enumerate(relation.inputs):
                if wanted <= frozenset(child.columns):
                    narrowed = restrict(child, keys, across=across)
                    inputs = (*relation.inputs[:at], narrowed, *relation.inputs[at + 1 :])
                    return replace(relation, inputs=inputs)
        case OuterJoin(full=False) if wanted <= frozenset(relation.left.columns):
            right = relation.right if across else _partners(relation.right, keys, relation.conjuncts)
            return replace(relation, left=restrict(relation.left, keys, across=across), right=right)
        case Exists() if wanted <= frozenset(relation.child.columns):
            among = relation.among if across else _partners(relation.among, keys, relation.conjuncts)
            return replace(relation, child=restrict(relation.child, keys, across=across), among=among)
    return SemiJoin(relation, keys, tuple((name, name) for name in keys.columns), across=across)


def _partners(relation: Relation, keys: Relation, conjuncts: Sequence[Scalar]) -> Relation:
    """The rows that can be partners of rows with these keys."""
    names = equated(keys.columns, relation.columns, conjuncts)
    return restrict(relation, _renamed(keys, names), across=True) if names else relation


def equated(mine: Sequence[str], theirs: Sequence[str], conjuncts: Sequence[Scalar]) -> Mapping[str, str]:
    """Of some columns those that the conditions set equal to columns of the other side, and which."""
    found: dict[str, str] = {}
    for conjunct in conjuncts:
        pair = equal_columns(conjunct)
        for one, two in (pair, pair[::-1]) if pair is not None else ():
            if one in mine and two in theirs and two not in found.values():
                found.setdefault(one, two)
    return found


def _renamed(keys: Relation, names: Mapping[str, str]) -> Relation:
    """The keys under the names that these columns have elsewhere; those that are named, each once."""
    if tuple(names) == keys.columns == tuple(names.values()):
        return keys
    chosen = Project(keys, tuple(Named(new, column(old)) for old, new in names.items()))
    return chosen if len(names) == len(keys.columns) else Distinct(chosen)


def _below(item: Named) -> str | None:
    return next(iter(item.scalar.columns)) if item.is_rename else None


def keys_among(rows: Relation, names: Mapping[str, str]) -> Relation:
    """The values of some columns that occur in the rows, each once, under other names."""
    return Distinct(Project(rows, tuple(Named(new, column(old)) for old, new in names.items())))
