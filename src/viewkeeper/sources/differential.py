"""Snapshot differential: what lies between the rows that were seen and those that are there, as one query.

For a source that tells nothing of its changes both states are compared (Labio and Garcia-Molina 1996 call it
the snapshot differential problem). With a key two rows of the same key are one row, changed; without, the
states are bags::

    keyed     Δ = { −o, +n : o.key = n.key, o ≠ n }  ∪  { −o : o.key only seen }  ∪  { +n : n.key only there }
    bag       Δ(r) = |r in there| − |r in seen|

Each comes in two forms. *Sort-merge* brings both states into one order, whole rows, and runs along them: a
merge join by key; a bag is grouped. *Hash* first finds out, from a fingerprint of each row, which keys or
rows differ, and then reads only those: what is shuffled are two numbers for each row, so it is the one for
large states. A fingerprint has 96 bits, of two independent hashes, and is taken only of columns whose every
value has one of its own; rows with nested values are always compared whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.sql.quoting import literal, quote

HASH_FROM_BYTES = 32 << 20
"""States of fewer bytes are compared whole: two passes over them would take longer than one."""

SEEDS = (1, 2)
NESTED = ("array<", "map<", "struct<", "variant")
"""Types whose values a fingerprint does not tell apart: NULLs within them hash like nothing."""


class Form(Enum):
    """How two states are compared."""

    SORT_MERGE = "sort-merge"
    HASH = "hash"


@dataclass(frozen=True, slots=True)
class Differential:
    """Two states of a table, each a relation for FROM, whose columns have these names and types."""

    seen: str
    there: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()

    def form(self, size: int) -> Form:
        """For states of so many bytes."""
        nested = any(kind.startswith(NESTED) for _, kind in self.columns)
        return Form.SORT_MERGE if nested or size < HASH_FROM_BYTES else Form.HASH

    def sql(self, form: Form) -> str:
        """All columns, and the weight of each row."""
        if form is Form.HASH:
            return self._by_hash()
        return self._keyed_by_sorting() if self.key else self._bag_by_sorting()

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(quote(name) for name, _ in self.columns)

    def _keyed_by_sorting(self) -> str:
        """The copies of a key are counted on the way: counting them needs the same order as joining."""
        key = [quote(name) for name in self.key]
        both = " AND ".join(f"o.{name} <=> n.{name}" for name in key)
        same = " AND ".join(f"o.{name} <=> n.{name}" for name in self._names)
        rows = ", ".join(
            f"named_struct({self._labelled(side)}, '{WEIGHT}', {weight}L, "
            f"'_vk_is', {side}._vk_copies IS NOT NULL)"
            for side, weight in (("o", -1), ("n", 1))
        )
        return (
            f"SELECT {', '.join(self._names)}, {WEIGHT} FROM (\n"
            f"  SELECT /*+ MERGE(n) */ inline(array({rows})) FROM\n"
            f"  (SELECT *, 1 AS _vk_copies FROM {self.seen}) AS o\n"
            f"  FULL OUTER JOIN ({_counted(self.there, key)}) AS n ON {both}\n"
            f"  WHERE {_once('coalesce(n._vk_copies, 1)', [f'n.{name}' for name in key])}\n"
            f"  AND (o._vk_copies IS NULL OR n._vk_copies IS NULL OR NOT ({same}))\n"
            ") WHERE _vk_is"
        )

    def _labelled(self, side: str) -> str:
        return ", ".join(f"{literal(name)}, {side}.{quote(name)}" for name, _ in self.columns)

    def _bag_by_sorting(self) -> str:
        names = ", ".join(self._names)
        return (
            f"SELECT {names}, sum({WEIGHT}) AS {WEIGHT} FROM (\n"
            f"  SELECT {names}, -1L AS {WEIGHT} FROM {self.seen}\n"
            f"  UNION ALL SELECT {names}, 1L FROM {self.there}\n"
            f") GROUP BY {names} HAVING sum({WEIGHT}) <> 0"
        )

    def _by_hash(self) -> str:
        """Which keys, or which fingerprints, do not come out even; then the rows that have them."""
        by = [quote(name) for name in self.key] or ["_vk_1"]
        first, second = (fingerprint(self._names, seed) for seed in SEEDS)
        wanted = {"_vk_1": first, "_vk_2": f"shiftright({second}, 32)"}
        added = ["sum(_vk_side)", "sum(_vk_2 * _vk_side)"]
        if self.key:
            # By itself a key tells nothing of the row: both fingerprints do, in parts that cannot overflow.
            added += ["sum(shiftright(_vk_1, 32) * _vk_side)", "sum((_vk_1 & 4294967295L) * _vk_side)"]

        def marked(relation: str, weight: int) -> str:
            columns = [*(quote(name) for name in self.key), *(f"{v} AS {k}" for k, v in wanted.items())]
            return f"SELECT {', '.join(columns)}, {weight}L AS _vk_side FROM {relation}"

        def rows(relation: str, weight: int) -> str:
            found = relation if self.key else f"(SELECT *, {first} AS _vk_1 FROM {relation})"
            return (
                f"SELECT /*+ BROADCAST(d) */ {', '.join(f'r.{name}' for name in self._names)}, "
                f"{weight}L AS {WEIGHT} FROM {found} AS r LEFT SEMI JOIN differing AS d "
                f"ON {' AND '.join(f'r.{name} <=> d.{name}' for name in by)}"
            )

        uneven = " OR ".join(f"{each} <> 0" for each in added)
        if self.key:
            uneven = f"{_once('count_if(_vk_side = 1)', by)} AND ({uneven})"
        return (
            f"WITH differing AS (SELECT {', '.join(by)} FROM (\n"
            f"  {marked(self.seen, -1)}\n  UNION ALL {marked(self.there, 1)}\n"
            f") GROUP BY {', '.join(by)} HAVING {uneven})\n"
            f"{rows(self.seen, -1)}\nUNION ALL\n{rows(self.there, 1)}"
        )


def fingerprint(values: Sequence[str], seed: int) -> str:
    """64 bits of a row. NULL hashes like nothing at all, so where a NULL stands is part of it."""
    nulls = ", ".join(f"isnull({value})" for value in values)
    return f"xxhash64({seed}, {', '.join(values)}, {nulls})"


def unique(rows: str, key: Sequence[str], seen: str | None = None) -> str:
    """A SELECT of rows whose keys must come once: within them, and not in what was ``seen`` before."""
    names = [quote(name) for name in key]
    counted = _counted(rows, names)
    if seen is None:
        once = _once("_vk_copies", names)
        return f"SELECT * EXCEPT (_vk_copies) FROM ({counted}) WHERE {once}"
    both = " AND ".join(f"n.{name} <=> o.{name}" for name in names)
    known = f"SELECT {', '.join(names)}, 1 AS _vk_known FROM {seen}"
    once = _once("n._vk_copies + coalesce(o._vk_known, 0)", [f"n.{name}" for name in names])
    return (
        f"SELECT n.* EXCEPT (_vk_copies) FROM ({counted}) AS n LEFT JOIN ({known}) AS o ON {both} "
        f"WHERE {once}"
    )


def _counted(rows: str, key: Sequence[str]) -> str:
    """Rows, each with the copies that there are of its key."""
    return f"SELECT *, count(*) OVER (PARTITION BY {', '.join(key)}) AS _vk_copies FROM {rows}"


def _once(count: str, key: Sequence[str]) -> str:
    """True, or an error that names a key which comes more than once."""
    told = ", ', ', ".join(f"coalesce(CAST({name} AS STRING), 'NULL')" for name in key)
    return f"assert_true({count} <= 1, concat('{KEY_TWICE} (', {told}, ')')) IS NULL"


KEY_TWICE = "VK-KEY-TWICE"
"""Marks the error of a key that comes more than once in what is there."""
