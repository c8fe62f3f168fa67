"""Parts of joins that several views have in common: Δ(⋈P) of the same tables under the same conditions.

Lee et al. (2001) leave this to future work. Views name columns as they like and need different ones; so a
common part is a join of its own, over all the columns that any of the views needs, and each view takes its
own of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.algebra.expressions import places
from viewkeeper.algebra.relations import Field, Join, Scan
from viewkeeper.algebra.scalars import Scalar, column
from viewkeeper.algebra.stars import block_of, qualified


@dataclass(frozen=True, slots=True)
class Part:
    """What makes two parts the same: tables and conditions, these over the tables' own columns."""

    tables: frozenset[str]
    conditions: frozenset[Scalar]


@dataclass(frozen=True, slots=True)
class LocalPart:
    """A part as one view has it: what it is called there, and which columns of the tables are needed."""

    part: Part
    names: Mapping[str, str]
    """The shared name of each of the view's columns."""
    columns: frozenset[tuple[str, str]]
    """Table and column."""


def part_of(relation: Join, relations: int) -> LocalPart | None:
    """These inputs of a join, with the conditions among them; ``None`` when they read a table twice, or are
    more than filtered tables."""
    inputs = tuple(relation.inputs[place] for place in places(relations))
    available = {name for child in inputs for name in child.columns}
    inside = tuple(each for each in relation.conjuncts if each.columns <= available)
    block = block_of(Join(inputs, inside))
    if block is None or block.reads_a_table_twice:
        return None
    if not all(block.values[name].is_column for name in available):
        return None
    names = {name: next(iter(block.values[name].columns)) for name in available}
    return LocalPart(
        Part(frozenset(scan.table for scan in block.scans), frozenset(block.conditions)),
        names,
        frozenset((scan.table, field.stored) for scan in block.scans for field in scan.fields),
    )


@dataclass(frozen=True, slots=True)
class CommonJoin:
    """A part as a join of its own, and what the shared names are called in it."""

    relation: Join
    names: Mapping[str, str]


def common_join(part: Part, needed: Iterable[tuple[str, str]]) -> CommonJoin:
    """The join over all the columns that are needed."""
    by_table: dict[str, dict[str, str]] = {table: {} for table in sorted(part.tables)}
    for table, stored in sorted(needed):
        by_table[table].setdefault(qualified(table, stored), stored)
    names: dict[str, str] = {}
    scans = []
    for table, columns in by_table.items():
        fields = []
        for shared, stored in columns.items():
            names[shared] = f"c{len(names) + 1}"
            fields.append(Field(stored, names[shared]))
        scans.append(Scan(table, tuple(fields)))
    here = {shared: column(name) for shared, name in names.items()}
    conditions = sorted((each.substitute(here) for each in part.conditions), key=repr)
    return CommonJoin(Join(tuple(scans), tuple(conditions)), names)
