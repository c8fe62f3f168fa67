"""Small tables of random rows, with NULLs and duplicates everywhere; and the values that rows are made of."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from viewkeeper.sql.quoting import ident, literal, quote

NULL = "NULL"

# Few values, so that rows meet in joins, fall into the same groups, and are each other's duplicates.
_VALUES: Mapping[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "3", "-1"),
    "bigint": ("0L", "1L", "2L", "-3L", "5000000000L"),
    "decimal(8,2)": ("0.00", "1.50", "-2.25", "10.01", "999.99"),
    "string": ("'a'", "'b'", "''", "'A'", "'it''s -- or /*'"),
    "date": ("DATE'2024-01-01'", "DATE'2024-02-29'", "DATE'1999-12-31'"),
    "double": ("0.5D", "0.1D", "0.2D", "1000000.3D", "2.7D"),
    "boolean": ("true", "false"),
}
TYPES = tuple(_VALUES)


@dataclass(frozen=True, slots=True)
class Table:
    """A table to change at random: its columns with their types, and the values to put into each.

    ``values`` are SQL literals; a column without any is never changed by itself.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    """The columns that are never NULL."""

    @property
    def sql(self) -> str:
        """The statement that makes it."""
        columns = ", ".join(
            f"{ident(name)} {kind}{' NOT NULL' if name in self.required else ''}"
            for name, kind in self.columns
        )
        partitioned = f" PARTITIONED BY ({', '.join(self.partitioned_by)})" if self.partitioned_by else ""
        listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in self.properties.items())
        properties = f" TBLPROPERTIES ({listed})" if listed else ""
        return f"CREATE TABLE {self.name} ({columns}) USING iceberg{partitioned}{properties}"

    @property
    def changeable(self) -> tuple[str, ...]:
        """The columns for which there are values."""
        return tuple(name for name, _ in self.columns if self.values.get(name))

    def value(self, column: str, random: Random, *, nulls: float = 0.15) -> str:
        """A value for the column, as SQL."""
        choices = self.values.get(column, ())
        null = column not in self.required and random.random() < nulls
        return NULL if null or not choices else random.choice(choices)

    def insert(self, random: Random, rows: int) -> str:
        """A statement that inserts random rows, a line each."""
        lines = [
            "(" + ", ".join(self.value(name, random) for name, _ in self.columns) + ")" for _ in range(rows)
        ]
        return f"INSERT INTO {self.name} VALUES\n" + ",\n".join(lines)


def random_tables(random: Random, count: int = 3) -> tuple[Table, ...]:
    """Tables of every kind of Iceberg table that changes come from."""
    return tuple(_random_table(f"t{at + 1}", random) for at in range(count))


def _random_table(name: str, random: Random) -> Table:
    # The first two are there in every table, so that any two of them can be joined and grouped.
    kinds = ["int", "string", *random.sample(TYPES, random.randint(2, 4))]
    columns = tuple((f"{kind[0]}{at}", kind) for at, kind in enumerate(kinds))
    partitioned = (columns[0][0],) if random.random() < 0.25 else ()
    values = {column: _VALUES[kind] for column, kind in columns}
    return Table(name, columns, random_properties(random), partitioned, values)


def random_properties(random: Random) -> dict[str, str]:
    """The ways in which Iceberg takes rows away: by writing files anew, or beside them; and its formats."""
    mode = random.choice(("copy-on-write", "merge-on-read"))
    return {
        "format-version": random.choice(("2", "3")),
        **{f"write.{operation}.mode": mode for operation in ("delete", "update", "merge")},
    }


def values_of(
    rows: Sequence[Sequence[object]], columns: Sequence[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """The values that occur in rows of a table, as SQL, by column; none for types without literals.

    >>> values_of([(1, "it's"), (2, None)], [("a", "int"), ("b", "string")])
    {'a': ('1', '2'), 'b': ("'it\\\\'s'",)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for at, (name, kind) in enumerate(columns):
        texts = dict.fromkeys(literal_of(row[at], kind) for row in rows)
        own = tuple(text for text in texts if text not in (None, NULL))
        found[name] = own or _VALUES.get(kind, ())
    return found


def literal_of(value: object, kind: str) -> str | None:
    """A value that Spark gave, as SQL; ``None`` for those that have no literal."""
    match value:
        case None:
            return NULL
        case bool():
            return str(value).lower()
        case int() | decimal.Decimal():
            return str(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"double('{value!r}')"
        case str():
            return literal(value)
        case datetime.datetime():
            return f"CAST('{value.isoformat(sep=' ')}' AS {kind})"
        case datetime.date():
            return f"DATE'{value.isoformat()}'"
        case _:
            return None


def row_hash(table: Table) -> str:
    """An expression that scatters a table's rows, equal ones to the same place."""
    hashable = [name for name, kind in table.columns if "map<" not in kind and "variant" not in kind]
    return f"xxhash64({', '.join(quote(name) for name in hashable)})"
