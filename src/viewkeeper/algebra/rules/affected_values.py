"""Which values of a column a change can touch: found from the changes of the tables, without computing more.

If every row that comes or goes in T has a value of column c that is in K, then

    ΔT = +(T′ ⋉ K) − (T ⋉ K)

whatever T is made of; K may hold more than those. Along σ, π, ⋈, ⟕, ⋉, γ and ω a value of c comes from a
column of a table, or is set equal to one, so K is read off the tables' changes: a few rows, while ΔT itself
may take many joins.
"""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.estimates import column_type, distinct_values, size
from viewkeeper.algebra.join_sizes import equalities
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Exists,
    Expand,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    TimeFilter,
    UnionAll,
    Window,
    children,
    scans,
)
from viewkeeper.algebra.rules.leaves import Leaves
from viewkeeper.algebra.rules.read_once import change_of
from viewkeeper.algebra.rules.restrict import equated, restrict
from viewkeeper.algebra.scalars import Named, column

_FAN_OUT = 100
"""With more partners than this for each row, those that did not change are not to be looked at again."""


def by_affected_values(relation: Relation, columns: Iterable[str], leaves: Leaves) -> Delta | None:
    """ΔT = +(T′ ⋉ K) − (T ⋉ K) by one of these columns; ``None`` if their values cannot be told."""
    found = [(name, values) for name in columns if (values := affected(relation, name, leaves)) is not None]
    if not found:
        return None
    _, values = max(found, key=lambda each: distinct_values(relation, each[0], leaves) or 0.0)
    keys = leaves.share(Distinct(_union(values)), "affected values")
    return change_of(restrict(relation, keys), leaves)


def affected(relation: Relation, name: str, leaves: Leaves) -> list[Relation] | None:
    """Relations of one column, of this name, that hold every value that it has in a row of the change."""
    if not has_changed(relation, leaves):
        return []
    match relation:
        case Scan():
            delta = leaves.delta(relation)
            return [] if delta is None else [Project(delta.relation, (Named(name, column(name)),))]
        case Project():
            scalar = next(item.scalar for item in relation.items if item.name == name)
            below = next(iter(scalar.columns)) if scalar.is_column else None
            return None if below is None else _as(affected(relation.child, below, leaves), below, name)
        case Filter() | Distinct():
            return affected(relation.child, name, leaves)
        case TimeFilter() if not has_changed(relation.clock, leaves):
            return affected(relation.child, name, leaves)
        case Aggregate() | Window():
            return affected(relation.child, name, leaves) if name in relation.keys else None
        case Generate() | Repeat() | Expand():
            return affected(relation.child, name, leaves) if name in relation.child.columns else None
        case UnionAll():
            return _all(affected(child, name, leaves) for child in relation.inputs)
        case Join():
            return _of_join(relation, name, leaves)
        case Exists() if name in relation.child.columns:
            return _of_sides(relation.child, relation.among, relation, name, leaves)
        case OuterJoin(full=False) if name in relation.left.columns:
            return _of_sides(relation.left, relation.right, relation, name, leaves)
        case _:
            return None


def has_changed(relation: Relation, leaves: Leaves) -> bool:
    """Whether a table that it reads may have."""
    return any(leaves.delta(scan) is not None for scan in scans(relation))


def is_plain(relation: Relation) -> bool:
    """Whether its change is no more than joins of changes: it has a table, filters, projections and joins."""
    match relation:
        case Scan():
            return True
        case Filter() | TimeFilter() | Project() | Join():
            return all(map(is_plain, children(relation)))
        case _:
            return False


def has_few_partners(left: Relation, right: Relation, leaves: Leaves) -> bool:
    """Whether a row of the left side has but a few on the right, as far as it is known."""
    mine, theirs = size(left, leaves), size(right, leaves)
    return mine is not None and theirs is not None and theirs <= _FAN_OUT * max(1, mine)


def _of_sides(
    left: Relation, right: Relation, relation: Exists | OuterJoin, name: str, leaves: Leaves
) -> list[Relation] | None:
    """Rows of the left side that changed themselves, or that have the key of a row of the right that did."""
    mine = affected(left, name, leaves)
    if not has_changed(right, leaves):
        return mine
    partner = equated([name], right.columns, relation.conjuncts).get(name)
    if partner is None or not _is_one_type((left, name), (right, partner), leaves):
        return None
    return _all([mine, _as(affected(right, partner, leaves), partner, name)])


def _of_join(relation: Join, name: str, leaves: Leaves) -> list[Relation] | None:
    """Of each input that changed: the column itself, or one that the join sets equal to it."""
    same = _equals(relation, name, leaves)
    found: list[list[Relation] | None] = []
    for child in relation.inputs:
        if has_changed(child, leaves):
            own = next((each for each in same if each in child.columns), None)
            if own is None:
                return None
            found.append(_as(affected(child, own, leaves), own, name))
    return _all(found)


def _equals(relation: Join, name: str, leaves: Leaves) -> list[str]:
    """The columns that a join sets equal to this one, itself first, and then those that are set equal to
    these; each of the same type as the one before it: '01' equals 1, which equals '1', and is not '1'."""
    home = {column: child for child in relation.inputs for column in child.columns}
    same = [name]
    pairs = [
        (one, two)
        for one, two in equalities(relation.conjuncts)
        if one in home and two in home and _is_one_type((home[one], one), (home[two], two), leaves)
    ]
    for known in same:
        for pair in pairs:
            for one, two in (pair, pair[::-1]):
                if one == known and two not in same:
                    same.append(two)
    return same


def _is_one_type(one: tuple[Relation, str], other: tuple[Relation, str], leaves: Leaves) -> bool:
    """Whether two columns that are set equal are known to have one type: '01' equals 1 and is not '1'."""
    kinds = [column_type(*each, leaves) for each in (one, other)]
    return kinds[0] is not None and kinds[0] == kinds[1]


def _as(values: list[Relation] | None, name: str, new_name: str) -> list[Relation] | None:
    if values is None or name == new_name:
        return values
    return [Project(each, (Named(new_name, column(name)),)) for each in values]


def _all(found: Iterable[list[Relation] | None]) -> list[Relation] | None:
    every = list(found)
    if any(each is None for each in every):
        return None
    return [relation for each in every if each is not None for relation in each]


def _union(values: list[Relation]) -> Relation:
    return values[0] if len(values) == 1 else UnionAll(tuple(values))
