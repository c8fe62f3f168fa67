"""Comparisons of a column with a constant, found in a predicate.

    l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1994-01-01' + INTERVAL '1' YEAR AND upper(x) = 'A'

has two of them. Where all values of a column lie between two bounds, one of the bounds decides whether any
row can meet such a comparison. Only what is certain is found: the words of a constant are those of a short
list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sqlglot.tokenizer_core import TokenType

from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.analyse.parsing import NotParsed, SqlText, tokenize

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_UNITS = {unit + end for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE") for end in ("", "S")}
_CONSTANT_WORDS: Final = frozenset({"DATE", "TIMESTAMP", "INTERVAL", "+", "-", "(", ")", *_UNITS})
_LITERALS: Final = (TokenType.STRING, TokenType.NUMBER)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column, how it is compared, and with what."""

    column: str
    operator: str
    constant: str
    is_text: bool = False
    """Whether the constant is one string."""

    def suits(self, kind: str) -> bool:
        """Whether values of this type keep their order when they are compared with it: strings that are
        compared with a number do not."""
        return self.is_text or kind != "string"

    def possible(self, low: str, high: str) -> str:
        """Whether some value between the two could meet it, as SQL.

        >>> Comparison("day", "<", "DATE'2024-01-01'").possible("DATE'2025-05-01'", "DATE'2025-05-31'")
        "DATE'2025-05-01' < (DATE'2024-01-01')"
        """
        match self.operator:
            case "<" | "<=":
                return f"{low} {self.operator} ({self.constant})"
            case ">" | ">=":
                return f"{high} {self.operator} ({self.constant})"
            case _:
                return f"({self.constant}) BETWEEN {low} AND {high}"


@lru_cache(maxsize=4096)
def comparisons(predicate: Scalar) -> tuple[Comparison, ...]:
    """Those of which every one must be true where the predicate is.

    >>> from viewkeeper.algebra.scalars import Column, Scalar
    >>> for each in comparisons(Scalar((Column("a"), " >= 5 AND ", Column("b"), " BETWEEN 1 AND 2 + 1"))):
    ...     print(each.column, each.operator, each.constant)
    a >= 5
    b >= 1
    b <= 2 + 1
    >>> comparisons(Scalar((Column("a"), " >= 5 OR ", Column("b"), " < 3")))
    ()
    """
    names = {name: f"_vk_{at}" for at, name in enumerate(sorted(predicate.columns))}
    words = (names[part.name] if isinstance(part, Column) else part for part in predicate.parts)
    try:
        text = tokenize("".join(words))
    except NotParsed:
        return ()
    columns = {stand_in.upper(): name for name, stand_in in names.items()}
    return tuple(_found(text, range(len(text.tokens)), columns))


def _found(text: SqlText, tokens: Sequence[int], columns: dict[str, str]) -> Iterator[Comparison]:
    for conjunct in _conjuncts(text, tokens):
        inside = _without_parentheses(text, conjunct)
        if len(inside) < len(conjunct):
            yield from _found(text, inside, columns)
        else:
            yield from _comparison(text, conjunct, columns)


def _conjuncts(text: SqlText, tokens: Sequence[int]) -> list[Sequence[int]]:
    """The stretches between ANDs, outside of parentheses; none where there is an OR, or a CASE, whose own
    conditions cannot be told from those."""
    depth, between, start = 0, False, 0
    found: list[Sequence[int]] = []
    for at, index in enumerate(tokens):
        word = text.word(index)
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth:
            continue
        if word in ("OR", "CASE", "||", "->"):
            return []
        if word == "AND" and not between:
            found.append(tokens[start:at])
            start = at + 1
        between = word == "BETWEEN" or (between and word != "AND")
    return [*found, tokens[start:]]


def _without_parentheses(text: SqlText, tokens: Sequence[int]) -> Sequence[int]:
    """What is inside of parentheses around all of it."""
    if len(tokens) < 2 or text.word(tokens[0]) != "(" or text.word(tokens[-1]) != ")":
        return tokens
    depth = 0
    for index in tokens[:-1]:
        depth += {"(": 1, ")": -1}.get(text.word(index), 0)
        if not depth:
            return tokens
    return tokens[1:-1]


def _comparison(text: SqlText, tokens: Sequence[int], columns: dict[str, str]) -> Iterator[Comparison]:
    if len(tokens) < 3:
        return
    first, second = text.word(tokens[0]), text.word(tokens[1])
    if first in columns and second in _MIRRORED and _is_constant(text, tokens[2:]):
        yield _compared(columns[first], second, text, tokens[2:])
    elif first in columns and second == "BETWEEN":
        ands = [at for at, index in enumerate(tokens) if text.word(index) == "AND"]
        low, high = (tokens[2 : ands[0]], tokens[ands[0] + 1 :]) if len(ands) == 1 else ((), ())
        if _is_constant(text, low) and _is_constant(text, high):
            yield _compared(columns[first], ">=", text, low)
            yield _compared(columns[first], "<=", text, high)
    else:
        last, before = text.word(tokens[-1]), text.word(tokens[-2])
        if last in columns and before in _MIRRORED and _is_constant(text, tokens[:-2]):
            yield _compared(columns[last], _MIRRORED[before], text, tokens[:-2])


def _is_constant(text: SqlText, tokens: Sequence[int]) -> bool:
    return bool(tokens) and all(
        text.tokens[index].token_type in _LITERALS or text.word(index) in _CONSTANT_WORDS for index in tokens
    )


def _compared(column: str, operator: str, text: SqlText, tokens: Sequence[int]) -> Comparison:
    is_text = len(tokens) == 1 and text.tokens[tokens[0]].token_type is TokenType.STRING
    return Comparison(column, operator, text.raw(tokens[0], tokens[-1] + 1), is_text)
