"""Statements sharpened by what is known of the staged results that they read, once these are there.

They are broadcast or not by their size; a key without NULLs is compared by ``=``; and where a table is
searched for keys, the range of these is a condition on the table, too, so that the files outside it are
skipped. (Spark would infer that condition, but for the wrong constraints that its checkpoints have.)

Where they are few, the keys themselves are the condition: files, and the groups of rows in them, are then
skipped by partitions, bounds, dictionaries and bloom filters, however far the keys lie apart.

A condition that spares little is left out: with one on a column Iceberg first puts all values of its
dictionaries in order, for each group of rows that it reads, which takes longer than to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

from viewkeeper.algebra.estimates import is_small
from viewkeeper.algebra.join_sizes import is_strict
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

LISTED_AT_ONCE = 200
"""Iceberg compares a file's bounds with each of so many values; for a longer list it keeps every file."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The least and the greatest value of a column, NULL apart; all of them in order, where they are few."""

    least: Any
    most: Any
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """Of a result: its rows, the columns without NULL, and what is known of the values of some of these."""

    rows: int
    never_null: tuple[str, ...] = ()
    keys: Mapping[str, Keys] = field(default_factory=dict)


class Tables(Protocol):
    """What is asked of stored tables before they are searched."""

    def holds_texts(self, table: TableAt, stored: str) -> bool:
        """Whether the values of a stored column are texts that are equal only if they are the same."""

    def spares(self, table: TableAt, stored: str, keys: Keys) -> bool:
        """Whether to be among these keys is a condition on a stored column that spares enough of a table."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation, and the values of the parameters in it."""

    relation: Relation
    values: Mapping[str, Any]


def sharpened(
    relation: Relation, profiles: Mapping[str, Profile], tables: Tables, *, ansi: bool = True
) -> Statement:
    """The relation with what is known by now of the staged results that it reads. ``ansi``: how types are
    compared."""

    def known(leaf: Leaf) -> Relation:
        if not isinstance(leaf, Staged) or leaf.name not in profiles:
            return leaf
        found = profiles[leaf.name]
        return replace(leaf, rows=found.rows, never_null=found.never_null)

    bounds = _Bounds(profiles, tables, ansi=ansi)
    bounded = bounds.on(map_leaves(relation, known)) if profiles else relation
    return Statement(bounded, bounds.values)


class Parameters:
    """Values, and by which parameter a statement speaks of each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: Any) -> str:
        """A parameter that stands for the value."""
        name = f"vk_{len(self.values)}"
        self.values[name] = value
        return f":{name}"


def among(name: str, keys: Keys, parameters: Parameters) -> Scalar:
    """That a column is one of these keys, or within their range where they are not listed; NULL is not.

    >>> among("k", Keys(3, 9), Parameters()).parts
    (Column(name='k'), ' BETWEEN :vk_0 AND :vk_1')
    """
    bind = parameters.bind
    if not keys.values:
        return compose(column(name), f" BETWEEN {bind(keys.least)} AND {bind(keys.most)}")
    lists = [keys.values[at : at + LISTED_AT_ONCE] for at in range(0, len(keys.values), LISTED_AT_ONCE)]
    first, *others = (compose(column(name), f" IN ({', '.join(map(bind, listed))})") for listed in lists)
    return reduce(lambda before, listed: compose(before, " OR ", listed), others, first)


class _Bounds:
    """What is known of keys, as conditions on what is searched for them."""

    def __init__(self, profiles: Mapping[str, Profile], tables: Tables, *, ansi: bool) -> None:
        self._profiles = profiles
        self._tables = tables
        self._ansi = ansi
        self._parameters = Parameters()

    @property
    def values(self) -> Mapping[str, Any]:
        return self._parameters.values

    def on(self, relation: Relation) -> Relation:
        relation = map_children(relation, self.on)
        match relation:
            case SemiJoin(child, keys, on, anti=False):
                # Both sides are one column, of one type, unless the keys come from across an equality.
                alike = not relation.across
                found = [
                    self._condition(child, left, self._keys(keys, right, strict=False), alike=alike)
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
        plain = replace(relation, conjuncts=tuple(each for each in relation.conjuncts if is_strict(each)))
        strict = set(equated(plain))
        for pair in equated(relation):
            (keys_at, key), (searched_at, name) = pair
            keys = self._keys(relation.inputs[keys_at], key, strict=pair in strict)
            found[searched_at].append(self._condition(relation.inputs[searched_at], name, keys, alike=False))
        inputs = zip(relation.inputs, found, strict=True)
        return replace(relation, inputs=tuple(_where(child, conditions) for child, conditions in inputs))

    def _keys(self, keys: Relation, name: str, *, strict: bool) -> Keys | None:
        """``strict``: NULL matches nothing, so that it does not matter whether it is among the keys."""
        found = staged_origin(keys, name)
        if found is None or found[0].name not in self._profiles:
            return None
        staged, stored = found
        known = self._profiles[staged.name]
        return known.keys.get(stored) if strict or stored in known.never_null else None

    def _condition(self, searched: Relation, name: str, keys: Keys | None, *, alike: bool) -> Scalar | None:
        """The condition on the column that is searched. ``alike``: the keys are of its type. Of others there
        is no list without ANSI mode, in which '01' = 1 compares numbers, and '01' IN (1) texts; and texts are
        ordered otherwise than the numbers that they may be compared with."""
        if keys is None:
            return None
        held = origin(searched, name)
        table = (held[0], held[1]) if held is not None and isinstance(held[0], TableAt) else None
        if isinstance(keys.least, str) and not alike:
            alike = table is not None and self._tables.holds_texts(*table)
            if not alike:
                return None
        listed = keys.values if alike or self._ansi else ()
        if 0 < len(listed) <= LISTED_AT_ONCE:
            return among(name, keys, self._parameters)
        span = replace(keys, values=())
        if table is None:
            return among(name, span, self._parameters)
        possible = [keys, span] if listed else [span]
        best = next((each for each in possible if self._tables.spares(*table, each)), None)
        return None if best is None else among(name, best, self._parameters)


def _where(relation: Relation, conditions: Iterable[Scalar | None]) -> Relation:
    for condition in conditions:
        if condition is not None and not isinstance(relation, Staged):
            relation = Filter(relation, condition)
    return relation
