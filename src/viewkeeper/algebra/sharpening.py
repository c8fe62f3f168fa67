"""Statements sharpened by what is known of the staged results that they read, once these are there.

They are broadcast or not by their size; a key without NULLs is compared by ``=``; and where a table is
searched for keys, the range of these is a condition on the table, too, so that the files outside it are
skipped. (Spark would infer that condition, but for the wrong constraints that its checkpoints have.)

A range that spares little is left out: with a condition on a column Iceberg first puts all values of its
dictionaries in order, for each group of rows that it reads, which takes longer than to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from viewkeeper.algebra.estimates import is_small
from viewkeeper.algebra.provenance import equated, origin, staged_origin
from viewkeeper.algebra.relations import (
    Filter,
    Join,
    Leaf,
    OuterJoin,
    Relation,
    SemiJoin,
    Staged,
    TableAt,
    map_children,
    map_leaves,
)
from viewkeeper.algebra.scalars import Scalar, column, compose


@dataclass(frozen=True, slots=True)
class Keys:
    """The least and the greatest value of a column; all of them, where they are few."""

    least: Any
    most: Any
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """Of a result: its rows, the columns without NULL, and what is known of the values of some of these."""

    rows: int
    never_null: tuple[str, ...] = ()
    keys: Mapping[str, Keys] = field(default_factory=dict)


Spares: TypeAlias = Callable[[TableAt, str, Keys], bool]
"""Whether a range of a stored column spares so much of a table that it is worth to be a condition."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation, and the values of the parameters in it."""

    relation: Relation
    values: Mapping[str, Any]


def sharpened(
    relation: Relation, profiles: Mapping[str, Profile], spares: Spares, *, ansi: bool = True
) -> Statement:
    """The relation with what is known by now of the staged results that it reads. ``ansi``: how types are
    compared."""

    def known(leaf: Leaf) -> Relation:
        if not isinstance(leaf, Staged) or leaf.name not in profiles:
            return leaf
        found = profiles[leaf.name]
        return replace(leaf, rows=found.rows, never_null=found.never_null)

    bounds = _Bounds(profiles, spares, ansi=ansi)
    bounded = bounds.on(map_leaves(relation, known)) if profiles else relation
    return Statement(bounded, bounds.values)


class _Bounds:
    """What is known of keys, as conditions on what is searched for them."""

    def __init__(self, profiles: Mapping[str, Profile], spares: Spares, *, ansi: bool) -> None:
        self._profiles = profiles
        self._spares = spares
        self._ansi = ansi
        self.values: dict[str, Any] = {}

    def on(self, relation: Relation) -> Relation:
        relation = map_children(relation, self.on)
        match relation:
            case SemiJoin(child, keys, on, anti=False):
                alike = not relation.across
                found = [
                    self._among(child, left, self._bounding(relation, keys, right), alike=alike)
                    for left, right in on
                ]
                return replace(relation, child=_where(child, found))
            case Join():
                return self._joined(relation)
            case OuterJoin(broadcast=True):
                return replace(relation, broadcast=not self._turned_out_large(relation.right))
            case _:
                return relation

    def _turned_out_large(self, relation: Relation) -> bool:
        """Whether what was expected to be small is known by now, and is not."""
        found = staged_origin(relation, relation.columns[0])
        if found is None or found[0].name not in self._profiles:
            return False
        return not is_small(self._profiles[found[0].name].rows, relation)

    def _joined(self, relation: Join) -> Join:
        found: list[list[Scalar | None]] = [[] for _ in relation.inputs]
        for (keys_at, key), (searched_at, name) in equated(relation):
            keys = self._keys(relation.inputs[keys_at], key)
            # Texts are ordered otherwise than the numbers that they may be compared with.
            if keys is not None and not isinstance(keys.least, str):
                found[searched_at].append(self._among(relation.inputs[searched_at], name, keys, alike=False))
        inputs = zip(relation.inputs, found, strict=True)
        return replace(relation, inputs=tuple(_where(child, conditions) for child, conditions in inputs))

    def _bounding(self, relation: SemiJoin, keys: Relation, name: str) -> Keys | None:
        """Both sides are one column, of one type, unless the keys come from across an equality."""
        found = self._keys(keys, name)
        return None if relation.across and found is not None and isinstance(found.least, str) else found

    def _keys(self, keys: Relation, name: str) -> Keys | None:
        found = staged_origin(keys, name)
        if found is None or found[0].name not in self._profiles:
            return None
        staged, stored = found
        return self._profiles[staged.name].keys.get(stored)

    def _among(self, searched: Relation, name: str, keys: Keys | None, *, alike: bool) -> Scalar | None:
        """The condition on the column that is searched. ``alike``: the keys are of its type. Of others there
        is no list without ANSI mode, in which '01' = 1 compares numbers, and '01' IN (1) texts."""
        if keys is None:
            return None
        if keys.values and (alike or self._ansi):
            listed = ", ".join(self._bound(value) for value in keys.values)
            return compose(column(name), f" IN ({listed})")
        held = origin(searched, name)
        if held is not None and isinstance(held[0], TableAt) and not self._spares(held[0], held[1], keys):
            return None
        return compose(column(name), f" BETWEEN {self._bound(keys.least)} AND {self._bound(keys.most)}")

    def _bound(self, value: Any) -> str:
        """A parameter that stands for the value."""
        name = f"vk_{len(self.values)}"
        self.values[name] = value
        return f":{name}"


def _where(relation: Relation, conditions: Iterable[Scalar | None]) -> Relation:
    for condition in conditions:
        if condition is not None and not isinstance(relation, Staged):
            relation = Filter(relation, condition)
    return relation
