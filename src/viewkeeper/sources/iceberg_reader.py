"""How the rows of an Iceberg table at a version are named in SQL.

`VERSION AS OF` reads with the schema of that snapshot, not with the table's schema of today: a column
added since then is not there, and a renamed one has its old name. Where the two schemas differ, the
columns are selected by their field ids, so that today's names work at every version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.iceberg_identity import TableIdentity
from viewkeeper.sql.quoting import quote, quote_path, read_options


@dataclass(frozen=True, slots=True)
class TableReader:
    """A table, and for the versions whose schema differs from today's: what each column is called there."""

    parts: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    expressions: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return quote_path(self.parts)

    def at(self, version: str) -> str:
        """The rows at a version, for FROM, under the names of their own time."""
        return f"{self.name} VERSION AS OF {int(version)}{read_options(self.options)}"

    def appended(self, start: str, end: str) -> str:
        """The rows that append snapshots added between two versions, for FROM."""
        between = (("start-snapshot-id", f"{int(start)}"), ("end-snapshot-id", f"{int(end)}"))
        return self.name + read_options((*between, *self.options))

    def metadata_at(self, metadata_table: str, version: str) -> str:
        table = quote_path((*self.parts, metadata_table))
        return f"{table} VERSION AS OF {int(version)}{read_options(self.options)}"

    def select(self, columns: Sequence[str], version: str) -> str:
        """The columns for SELECT from :meth:`at`, under today's names; each is followed by a comma."""
        known = {name.casefold(): text for name, text in self.expressions.get(version, {}).items()}
        return "".join(
            f"{known[column.casefold()]} AS {quote(column)}, "
            if column.casefold() in known
            else f"{quote(column)}, "
            for column in columns
        )

    def relation(self, version: str) -> str:
        """The rows at a version, for FROM, under today's names."""
        if version not in self.expressions:
            return self.at(version)
        columns = ", ".join(f"{text} AS {quote(name)}" for name, text in self.expressions[version].items())
        return f"(SELECT {columns} FROM {self.at(version)})"


def translate_columns(
    now: Sequence[SourceColumn], then: Sequence[SourceColumn], identity: TableIdentity, version: str
) -> dict[str, str]:
    """Today's columns as expressions over the columns of a version."""
    names = identity.names_at.get(version, {})
    types = {column.name: column.type for column in then}
    found: dict[str, str] = {}
    for column in now:
        name = names.get(identity.field_ids.get(column.name, ""))
        if name is None or name not in types:
            found[column.name] = f"CAST(NULL AS {column.type})"
        elif types[name] != column.type:
            found[column.name] = f"CAST({quote(name)} AS {column.type})"
        else:
            found[column.name] = quote(name)
    return found
