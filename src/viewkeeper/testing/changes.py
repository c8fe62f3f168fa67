"""Random changes to tables: what happens to data between two refreshes, as SQL statements to replay.

Rows are inserted, deleted, updated, given other keys, set to NULL and back, duplicated, all removed and put
in again; in several tables between two refreshes, and by several commits to one table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from viewkeeper.sql.quoting import quote
from viewkeeper.testing.tables import NULL, Table, row_hash

LARGEST = 40
"""A table that may have grown beyond is emptied: tests are to be quick."""


class Changes:
    """Makes up changes to some tables; the same seed makes up the same ones."""

    def __init__(self, tables: Sequence[Table], random: Random, rows: int = 8) -> None:
        self._tables = tables
        self._random = random
        self._rows = rows
        self._at_most = {table.name: rows for table in tables}
        self._emptied: set[str] = set()

    def fill(self) -> tuple[str, ...]:
        """The statements that make and fill the tables; now and then one stays empty."""
        statements: list[str] = []
        for table in self._tables:
            statements.append(table.sql)
            if self._random.random() < 0.95:
                statements.append(table.insert(self._random, self._rows))
        return tuple(statements)

    def cycle(self) -> tuple[str, ...]:
        """The changes before one refresh."""
        tables = self._random.sample(self._tables, self._random.randint(1, len(self._tables)))
        commits = [table for table in tables for _ in range(self._random.choice((1, 1, 2, 3)))]
        self._random.shuffle(commits)
        return tuple(statement for table in commits for statement in self._change(table))

    def _change(self, table: Table) -> tuple[str, ...]:
        if self._at_most[table.name] > LARGEST:
            return self._refill(table)
        if table.name in self._emptied and self._random.random() < 0.5:
            self._emptied.discard(table.name)
            return (self._insert(table),)
        kinds: list[tuple[int, Callable[[Table], tuple[str, ...]]]] = [
            (5, lambda changed: (self._insert(changed),)),
            (4, self._delete),
            (2, self._delete_some_copies),
            (5, self._update),
            (2, self._to_null),
            (2, self._from_null),
            (3, self._duplicate),
            (1, self._empty),
            (1, self._refill),
            (1, self._replace),
            (1, self._change_nothing),
        ]
        chosen = self._random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        return chosen(table)

    def _insert(self, table: Table) -> str:
        if not table.required <= set(table.changeable):
            (copied,) = self._duplicate(table)
            return copied
        rows = self._random.randint(1, 4)
        self._at_most[table.name] += rows
        return table.insert(self._random, rows)

    def _delete(self, table: Table) -> tuple[str, ...]:
        return (f"DELETE FROM {table.name} WHERE {self._some(table)}",)

    def _delete_some_copies(self, table: Table) -> tuple[str, ...]:
        """Of equal rows only some: what tells them apart is where they are stored."""
        modulus = self._random.randint(2, 4)
        place = self._random.randrange(modulus)
        return (f"DELETE FROM {table.name} WHERE pmod(_pos, {modulus}) = {place}",)

    def _update(self, table: Table) -> tuple[str, ...]:
        """One or two columns; some of them are what views join and group by."""
        if not table.changeable:
            return self._duplicate(table)
        count = min(len(table.changeable), self._random.randint(1, 2))
        columns = self._random.sample(table.changeable, count)
        setting = ", ".join(f"{quote(column)} = {table.value(column, self._random)}" for column in columns)
        return (f"UPDATE {table.name} SET {setting} WHERE {self._some(table)}",)

    def _to_null(self, table: Table) -> tuple[str, ...]:
        nullable = [column for column, _ in table.columns if column not in table.required]
        if not nullable:
            return self._update(table)
        column = self._random.choice(nullable)
        return (f"UPDATE {table.name} SET {quote(column)} = NULL WHERE {self._some(table)}",)

    def _from_null(self, table: Table) -> tuple[str, ...]:
        if not table.changeable:
            return self._duplicate(table)
        column = self._random.choice(table.changeable)
        value = table.value(column, self._random, nulls=0.0)
        return (f"UPDATE {table.name} SET {quote(column)} = {value} WHERE {quote(column)} IS NULL",)

    def _duplicate(self, table: Table) -> tuple[str, ...]:
        self._at_most[table.name] += self._at_most[table.name] // 3
        return (f"INSERT INTO {table.name} SELECT * FROM {table.name} WHERE {self._scattered(table, 3)}",)

    def _empty(self, table: Table) -> tuple[str, ...]:
        self._at_most[table.name] = 0
        self._emptied.add(table.name)
        return (f"DELETE FROM {table.name}",)

    def _refill(self, table: Table) -> tuple[str, ...]:
        self._empty(table)
        self._emptied.discard(table.name)
        self._at_most[table.name] = self._rows
        return (f"DELETE FROM {table.name}", table.insert(self._random, self._rows))

    def _replace(self, table: Table) -> tuple[str, ...]:
        """All rows written anew, and some of them left out."""
        return (
            f"INSERT OVERWRITE {table.name} SELECT * FROM {table.name} WHERE NOT {self._scattered(table, 4)}",
        )

    def _change_nothing(self, table: Table) -> tuple[str, ...]:
        """A commit, but the same rows."""
        column = quote(table.columns[0][0])
        return (f"UPDATE {table.name} SET {column} = {column} WHERE {self._some(table)}",)

    def _some(self, table: Table) -> str:
        """A condition that some of the rows may meet."""
        column, _ = self._random.choice(table.columns)
        value = table.value(column, self._random)
        if self._random.random() < 0.4:
            return self._scattered(table, self._random.randint(2, 5))
        if value == NULL:
            return f"{quote(column)} IS NULL"
        return f"{quote(column)} {self._random.choice(('=', '=', '<=>', '>', '<'))} {value}"

    def _scattered(self, table: Table, modulus: int) -> str:
        return f"pmod({row_hash(table)}, {modulus}) = {self._random.randrange(modulus)}"
