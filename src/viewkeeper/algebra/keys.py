"""Keys of relations, derived from the keys of the tables that they read.

A key of a bag is a set of columns of which no two rows have the same values; a bag with a key holds no
duplicates. From the keys of its inputs follow those of an operator's result:

    key(σ R) = key(R)        key(γ_K R) = K        key(δ R) = all its columns
    key(R ⋈ S) = key(R) ∪ key(S), less what the rest determines

A key determines all columns of its row, and columns that a join sets equal determine each other. So a
projection that drops columns of the key still has one if those that it keeps determine the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.join_sizes import equalities
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Exists,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    TimeFilter,
    Window,
)


def derived_key(relation: Relation, tables: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """A smallest key of the relation, given one of each table that has one; ``None``: none is known."""
    found = _keyed(relation, tables)
    if found is None:
        return None
    return tuple(name for name in relation.columns if name in found.key)


@dataclass(frozen=True, slots=True)
class _Dependency:
    """Rows that agree on these columns agree on those."""

    these: frozenset[str]
    those: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A key, and which columns determine which."""

    key: frozenset[str]
    dependencies: tuple[_Dependency, ...]

    def reduced(self, columns: Iterable[str]) -> _Keyed | None:
        """With a smallest key among these columns; those that are part of the key now are kept longest."""
        left = sorted(columns, key=lambda name: name in self.key)
        if not self.key <= self._determined(left):
            return None
        for name in tuple(left):
            fewer = [other for other in left if other != name]
            if self.key <= self._determined(fewer):
                left = fewer
        return _Keyed(frozenset(left), self.dependencies)

    def _determined(self, columns: Iterable[str]) -> frozenset[str]:
        """All that these columns determine."""
        known = frozenset(columns)
        while True:
            more = known.union(*(each.those for each in self.dependencies if each.these <= known))
            if more == known:
                return known
            known = more


def _keyed(relation: Relation, tables: Mapping[str, Sequence[str]]) -> _Keyed | None:
    match relation:
        case Scan():
            return _scanned(relation, tables.get(relation.table))
        case Filter() | TimeFilter() | SemiJoin():
            return _keyed(relation.child, tables)
        case Exists() | Window():
            below = _keyed(relation.child, tables)
            return None if below is None else _wider(below, relation.columns)
        case OuterJoin(full=False):
            sides = _keyed(relation.left, tables), _keyed(relation.right, tables)
            return _outer(relation, *sides)
        case Project():
            return _projected(relation, _keyed(relation.child, tables))
        case Join():
            return _joined(relation, [_keyed(child, tables) for child in relation.inputs])
        case Aggregate():
            return _with_key(relation.keys, relation.columns)
        case Distinct():
            return _keyed(relation.child, tables) or _with_key(relation.columns, relation.columns)
        case Repeat():
            below = _keyed(relation.child, tables)
            return None if below is None else _Keyed(below.key | {relation.number}, below.dependencies)
        case _:
            return None


def _wider(below: _Keyed, columns: Iterable[str]) -> _Keyed:
    """The same rows with more columns, which depend on the whole row."""
    return _Keyed(below.key, (*below.dependencies, _Dependency(below.key, frozenset(columns))))


def _outer(relation: OuterJoin, left: _Keyed | None, right: _Keyed | None) -> _Keyed | None:
    """A row of the left side is there once for each partner, which the right side's key tells apart (NULL,
    where there is none); only once, if the condition sets that whole key equal to columns of the left."""
    if left is None or right is None:
        return None
    equal = equalities(relation.conjuncts)
    fixed = {
        mine
        for pair in equal
        for mine, theirs in (pair, pair[::-1])
        if mine in right.key and theirs in relation.left.columns
    }
    key = left.key if right.key <= fixed else left.key | right.key
    return _Keyed(key, (*left.dependencies, _Dependency(key, frozenset(relation.columns))))


def _with_key(columns: Iterable[str], all_columns: Iterable[str]) -> _Keyed:
    key = frozenset(columns)
    return _Keyed(key, (_Dependency(key, frozenset(all_columns)),))


def _scanned(scan: Scan, key: Sequence[str] | None) -> _Keyed | None:
    if not key:
        return None
    names = {field.stored.casefold(): field.name for field in scan.fields}
    if any(column.casefold() not in names for column in key):
        return None
    return _with_key((names[column.casefold()] for column in key), scan.columns)


def _projected(project: Project, child: _Keyed | None) -> _Keyed | None:
    if child is None:
        return None
    passed: dict[str, str] = {}
    for item in project.items:
        if item.is_rename:
            (below,) = item.scalar.columns
            passed.setdefault(below, item.name)
    smallest = child.reduced(passed)
    if smallest is None:
        return None
    renamed = tuple(
        _Dependency(
            frozenset(passed[name] for name in each.these),
            frozenset(passed[name] for name in each.those if name in passed),
        )
        for each in child.dependencies
        if each.these <= passed.keys()
    )
    key = frozenset(passed[name] for name in smallest.key)
    return _Keyed(key, (*renamed, _Dependency(key, frozenset(project.columns))))


def _joined(join: Join, inputs: Sequence[_Keyed | None]) -> _Keyed | None:
    known = [each for each in inputs if each is not None]
    if len(known) < len(inputs):
        return None
    key = frozenset[str]().union(*(each.key for each in known))
    dependencies = [dependency for each in known for dependency in each.dependencies]
    for one, two in equalities(join.conjuncts):
        dependencies += [
            _Dependency(frozenset([one]), frozenset([two])),
            _Dependency(frozenset([two]), frozenset([one])),
        ]
    return _Keyed(key, tuple(dependencies)).reduced(name for name in join.columns if name in key)
