"""What a project declares of its tables (keys, foreign keys, dependencies), checked whole.

No plan relies on a declaration without checking it on the rows that it touches; this is for people who want
to know whether what they declared is so. All of it is one Spark query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.define.settings import Settings
from viewkeeper.sql.quoting import ident, parse_path, quote_path


@dataclass(frozen=True, slots=True)
class Constraint:
    """A declaration in words, and a query of its violations: one row for each, with an example's values."""

    text: str
    violations: str


def declared_constraints(settings: Settings) -> list[Constraint]:
    """All that a project declares; the key that a foreign key refers to is one of its declarations, too."""
    keys = dict.fromkeys(settings.keys.items())
    for fk in settings.foreign_keys:
        keys.setdefault((fk.references, settings.referenced(fk)))
    found = [_key(table, columns) for table, columns in keys]
    found += [
        _foreign_key(fk.table, fk.columns, fk.references, settings.referenced(fk))
        for fk in settings.foreign_keys
    ]
    return found + [_dependency(each.table, each.columns, each.determine) for each in settings.dependencies]


def checks(constraints: Sequence[Constraint]) -> str:
    """One query for all of them: the place of each, how many violations it has, and an example."""
    return "\nUNION ALL\n".join(
        f"SELECT {at} AS at, count(*) AS violations, min(example) AS example FROM ({each.violations})"
        for at, each in enumerate(constraints)
    )


def _key(table: str, columns: Sequence[str]) -> Constraint:
    names = [ident(column) for column in columns]
    missing = " OR ".join(f"{name} IS NULL" for name in names)
    return Constraint(
        f"{table}: {', '.join(columns)} is a key",
        f"SELECT {_example(names)} FROM {_table(table)} GROUP BY {', '.join(names)} "
        f"HAVING count(*) > 1 OR {missing}",
    )


def _foreign_key(table: str, columns: Sequence[str], parent: str, referenced: Sequence[str]) -> Constraint:
    mine = [f"c.{ident(column)}" for column in columns]
    on = " AND ".join(f"{one} = p.{ident(other)}" for one, other in zip(mine, referenced, strict=True))
    return Constraint(
        f"{table}: {', '.join(columns)} refers to {parent} ({', '.join(referenced)})",
        f"SELECT {_example(mine)} FROM {_table(table)} AS c LEFT ANTI JOIN {_table(parent)} AS p ON {on}",
    )


def _dependency(table: str, columns: Sequence[str], determine: Sequence[str]) -> Constraint:
    names = [ident(column) for column in columns]
    determined = ", ".join(ident(column) for column in determine)
    return Constraint(
        f"{table}: {', '.join(columns)} determines {', '.join(determine)}",
        f"SELECT {_example(names)} FROM {_table(table)} GROUP BY {', '.join(names)} "
        f"HAVING count(DISTINCT struct({determined})) > 1",
    )


def _example(names: Sequence[str]) -> str:
    values = ", ".join(f"coalesce(CAST({name} AS STRING), 'NULL')" for name in names)
    return f"concat_ws(', ', {values}) AS example"


def _table(name: str) -> str:
    return quote_path(parse_path(name))
