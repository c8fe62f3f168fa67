"""Generalized cube views (Mumick et al. 1997, Section 3.2): one block of SELECT, FROM, WHERE and GROUP BY.

To compare two views, their expressions must speak of the same things. Here every column is named by its table
(``lake.shop.pos.qty``), whatever the view calls it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from viewkeeper.algebra.aggregates import Kept
from viewkeeper.algebra.relations import Filter, Join, Project, Relation, Scan
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.algebra.summary_delta import Groups

_WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Star:
    """What a view aggregates: tables, the conditions between and on them, keys, and what is kept.

    Keys and arguments are over the tables' own columns; names are those of the view. ``meaning`` is whatever
    gives the words of its expressions their meaning: the same words mean another thing in another time zone.
    """

    tables: frozenset[str]
    conditions: frozenset[Scalar]
    keys: Mapping[str, Scalar]
    kept: Mapping[str, tuple[Kept, tuple[Scalar, ...]]] = field(default_factory=dict)
    meaning: Hashable = None

    def key_of(self, scalar: Scalar) -> str | None:
        """The key that has this value, if there is one."""
        return next((name for name, key in self.keys.items() if key == scalar), None)


def table_of(column: str) -> str:
    """The table of a column that is named by it."""
    return column.rpartition("\0")[0]


def tables_of(scalar: Scalar) -> set[str]:
    """The tables of its columns, which are named by them."""
    return {table_of(name) for name in scalar.columns}


def qualified(table: str, column: str) -> str:
    """A column under the one name that all views share; ``\\0`` is in no identifier."""
    return f"{table}\0{column.casefold()}"


def star_of(groups: Groups, meaning: Hashable = None) -> Star | None:
    """The view as a star; ``None`` when it is no single block, or reads a table twice."""
    block = block_of(groups.child)
    if block is None or block.reads_a_table_twice:
        return None
    kept = {
        each.name: (each, tuple(_canonical(argument, block.values) for argument in each.call.reads))
        for each in groups.all_kept
    }
    return Star(
        frozenset(scan.table for scan in block.scans),
        frozenset(block.conditions),
        {key: block.values[key] for key in groups.keys},
        kept,
        meaning,
    )


@dataclass(frozen=True, slots=True)
class Block:
    """One block of SELECT, FROM and WHERE: its tables, its conditions, and what each of its columns is."""

    scans: tuple[Scan, ...]
    conditions: tuple[Scalar, ...]
    values: Mapping[str, Scalar]

    @property
    def reads_a_table_twice(self) -> bool:
        return len({scan.table for scan in self.scans}) < len(self.scans)


def block_of(relation: Relation) -> Block | None:
    """The relation as one block; ``None`` when it is more than that."""
    match relation:
        case Scan(table, fields):
            values = {each.name: Scalar((Column(qualified(table, each.stored)),)) for each in fields}
            return Block((relation,), (), values)
        case Filter(child, predicate):
            below = block_of(child)
            if below is None:
                return None
            condition = _canonical(predicate, below.values)
            return Block(below.scans, (*below.conditions, condition), below.values)
        case Project(child, items):
            below = block_of(child)
            if below is None:
                return None
            projected = {item.name: _canonical(item.scalar, below.values) for item in items}
            return Block(below.scans, below.conditions, projected)
        case Join(inputs, conjuncts):
            parts = [block_of(child) for child in inputs]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            values = {name: value for part in known for name, value in part.values.items()}
            conditions = [condition for part in known for condition in part.conditions]
            conditions += [_canonical(conjunct, values) for conjunct in conjuncts]
            scans = tuple(scan for part in known for scan in part.scans)
            return Block(scans, tuple(conditions), values)
        case _:
            return None


def _canonical(scalar: Scalar, values: Mapping[str, Scalar]) -> Scalar:
    """Over the tables' columns, with white space and the order of an equality made the same for all."""
    parts = tuple(_words(part) if isinstance(part, str) else part for part in scalar.parts)
    return _ordered(Scalar(parts).substitute(values))


def _words(text: str) -> str:
    """Literals, quoted names and the fields of structs stay as they are: case may matter in them."""
    return text if any(sign in text for sign in "'\"`.") else _WHITE_SPACE.sub(" ", text).lower()


def _ordered(scalar: Scalar) -> Scalar:
    match scalar.parts:
        case (Column(one), str(sign), Column(other)) if sign.strip() == "=":
            first, second = sorted((one, other))
            return Scalar((Column(first), " = ", Column(second)))
        case _:
            return scalar


def equalities(conditions: frozenset[Scalar]) -> Iterator[tuple[str, str, Scalar]]:
    """The conditions that say that two columns are equal."""
    for condition in conditions:
        match condition.parts:
            case (Column(one), " = ", Column(other)):
                yield one, other, condition
            case _:
                continue
