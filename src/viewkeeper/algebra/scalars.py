"""Scalar expressions: the user's own words, with holes where columns stand.

The engine never needs to know what ``log10(a) + 1`` means; it needs to know which columns it reads, and
to hand it to Spark unchanged. So a scalar is a sequence of opaque words and columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WEIGHT = "_vk_w"
"""The signed multiplicity of a row in a delta."""


@dataclass(frozen=True, slots=True)
class Column:
    """A hole: the column of that name, names being unique within one view."""

    name: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression over columns.

    >>> price = Scalar((Column("qty"), " * ", Column("price")))
    >>> sorted(price.columns)
    ['price', 'qty']
    >>> price.substitute({"qty": words("1 + 1")}).parts
    ('(', '1 + 1', ')', ' * ', Column(name='price'))
    """

    parts: tuple[str | Column, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(part.name for part in self.parts if isinstance(part, Column))

    @property
    def is_column(self) -> bool:
        return len(self.parts) == 1 and isinstance(self.parts[0], Column)

    def substitute(self, by: Mapping[str, Scalar]) -> Scalar:
        """This expression with each column in ``by`` replaced, parenthesised unless it is a mere column."""
        parts: list[str | Column] = []
        for part in self.parts:
            replacement = by.get(part.name) if isinstance(part, Column) else None
            if replacement is None:
                parts.append(part)
            elif replacement.is_column:
                parts.extend(replacement.parts)
            else:
                parts.extend(("(", *replacement.parts, ")"))
        return Scalar(tuple(parts))


@dataclass(frozen=True, slots=True)
class Named:
    """An output column: its name and what it is."""

    name: str
    scalar: Scalar

    @property
    def is_rename(self) -> bool:
        """Whether it passes a column through, under the same or another name."""
        return self.scalar.is_column


def column(name: str) -> Scalar:
    """The expression that is just that column."""
    return Scalar((Column(name),))


def words(text: str) -> Scalar:
    """An expression without columns."""
    return Scalar((text,))


def compose(*parts: str | Column | Scalar) -> Scalar:
    """Words, columns and expressions put together; expressions are parenthesised unless mere columns.

    >>> compose("abs(", column("a"), ")").parts
    ('abs(', Column(name='a'), ')')
    """
    result: list[str | Column] = []
    for part in parts:
        if isinstance(part, Scalar):
            result.extend(part.parts if part.is_column else ("(", *part.parts, ")"))
        else:
            result.append(part)
    return Scalar(tuple(result))


def keep(names: Iterable[str]) -> tuple[Named, ...]:
    """The output list that passes these columns through."""
    return tuple(Named(name, column(name)) for name in names)
