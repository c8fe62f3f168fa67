"""What analysis finds out about a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewkeeper.errors import Position

if TYPE_CHECKING:
    from viewkeeper.algebra.relations import Relation


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a query is not kept incrementally: a stable code, a sentence, and where it stands."""

    code: str
    message: str
    position: Position | None = None

    def __str__(self) -> str:
        where = f" ({self.position})" if self.position else ""
        return f"{self.code}: {self.message}{where}"


@dataclass(frozen=True, slots=True)
class TableHole:
    """A place in a query's text where a table is named. ``alias``: the name by which the rest of the
    query knows it, when the user gave none of their own."""

    table: str
    alias: str | None


@dataclass(frozen=True, slots=True)
class QueryText:
    """The query as the user wrote it, with holes where tables are named."""

    parts: tuple[str | TableHole, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it reads, each once, in order of appearance."""
        return tuple(dict.fromkeys(part.table for part in self.parts if isinstance(part, TableHole)))

    def fill(self, relations: Mapping[str, str]) -> str:
        """The query with each table replaced by a relation: ``t VERSION AS OF 5``, ``(SELECT …)``."""
        return "".join(
            part
            if isinstance(part, str)
            else relations[part.table] + (f" AS {part.alias}" if part.alias else "")
            for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class Analysis:
    """A query in normal form: its text with holes, and its algebra unless ``reason`` says why not.

    ``relation.columns`` are the view's output columns, in order and under the user's names."""

    text: QueryText
    relation: Relation | None
    reason: Reason | None
    dropped: tuple[tuple[str, Relation], ...] = ()
    """By expectation: the rows that the view leaves out because they break it, to be counted."""

    @property
    def tables(self) -> tuple[str, ...]:
        return self.text.tables


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table or view that a query names: its canonical name and its columns, each a name and a type."""

    table: str
    columns: tuple[tuple[str, str], ...]
