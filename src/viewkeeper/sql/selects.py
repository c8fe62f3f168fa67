"""A SELECT under construction, and how it is laid out on the page.

Lines are kept as a list and indented as a list: the user's own text may hold a string literal with a line
break in it, and only the first line of each entry may be moved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.scalars import Scalar
from viewkeeper.sql.quoting import ident

BROADCAST = "/*+ BROADCAST("
"""How the hint begins by which some operands of a join are sent everywhere."""

_WIDTH = 100
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_COLUMN_ALONE = re.compile(r"\(+(\w+|`[^`]*`)\)+")


@dataclass(frozen=True, slots=True)
class Term:
    """What an output column is, as text over the columns of FROM.

    ``plain``: a column and nothing more, so that it may stand wherever the output column does.
    ``capturable``: a bare name, which a lambda variable of the same name would hide.
    """

    text: str
    plain: bool
    capturable: bool = True


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT … FROM … WHERE … GROUP BY …; ``terms`` holds the output columns in order."""

    terms: Mapping[str, Term]
    source: tuple[str, ...]
    where: tuple[str, ...] = ()
    group_by: tuple[str, ...] | None = None
    distinct: bool = False
    windowed: bool = False
    broadcast: tuple[str, ...] = ()
    table: str | None = None
    """The text of the one stored relation it reads, while it does nothing but name its columns."""

    @property
    def open(self) -> bool:
        """Whether WHERE, GROUP BY and other output columns can still be added."""
        return self.group_by is None and not self.distinct and not self.windowed

    def lines(self) -> list[str]:
        """The statement, one entry per line."""
        result = [*_select_list(self), *self.source]
        if self.where:
            result.extend(_conditions("WHERE", self.where))
        if self.group_by:
            result.append("GROUP BY " + ", ".join(self.group_by))
        return result


def scalar_text(scalar: Scalar, terms: Mapping[str, Term]) -> str:
    """The expression with its columns written as the terms say, parenthesised unless they are plain."""
    if scalar.is_column:
        (name,) = scalar.columns
        return terms[name].text
    return "".join(part if isinstance(part, str) else _operand(terms[part.name]) for part in scalar.parts)


def fits(scalar: Scalar, terms: Mapping[str, Term]) -> bool:
    """Whether the expression may be written over these terms without computing anything twice, and
    without a lambda variable capturing a name."""
    used = [terms[name] for name in scalar.columns]
    if not all(term.plain for term in used):
        return False
    has_lambda = any("->" in part for part in scalar.parts if isinstance(part, str))
    renamed = any(
        term.capturable and term.text != ident(name) for name, term in terms.items() if name in scalar.columns
    )
    return not (has_lambda and renamed)


def own_terms(columns: Sequence[str], alias: str | None = None) -> dict[str, Term]:
    """The terms that pass these columns of FROM through."""
    prefix = f"{alias}." if alias else ""
    return {name: Term(prefix + ident(name), plain=True, capturable=not alias) for name in columns}


def indented(lines: Sequence[str]) -> list[str]:
    """The lines, two places further in."""
    return ["  " + line for line in lines]


def conjunction(conditions: Sequence[str]) -> str:
    """The conditions joined by AND; one that may hold an OR is parenthesised."""
    return " AND ".join(_conjunct(condition, conditions) for condition in conditions)


def _conjunct(condition: str, among: Sequence[str]) -> str:
    alone = _COLUMN_ALONE.fullmatch(condition)
    if alone is not None:
        return alone[
            1
        ]  # Spark would take `t WHERE (a)` for a table t that is called WHERE and has a column a
    loose = len(among) > 1 and _OR.search(condition) and not _is_enclosed(condition)
    return f"({condition})" if loose else condition


def _is_enclosed(condition: str) -> bool:
    """Whether one pair of parentheses holds all of it; not sure of it when there are quotes."""
    if not (condition.startswith("(") and condition.endswith(")")) or re.search("[`'\"]", condition):
        return False
    depth = 0
    for index, sign in enumerate(condition):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return index == len(condition) - 1
    return False


def _conditions(keyword: str, conditions: Sequence[str]) -> list[str]:
    line = f"{keyword} {conjunction(conditions)}"
    if len(line) <= _WIDTH:
        return [line]
    first, *rest = (_conjunct(condition, conditions) for condition in conditions)
    return [f"{keyword} {first}", *(f"  AND {condition}" for condition in rest)]


def _select_list(select: Select) -> list[str]:
    hint = f" {BROADCAST}{', '.join(select.broadcast)}) */" if select.broadcast else ""
    head = "SELECT" + hint + (" DISTINCT" if select.distinct else "")
    items = [_item(name, term) for name, term in select.terms.items()] or ["1 AS _vk_one"]
    line = f"{head} {', '.join(items)}"
    if len(line) <= _WIDTH:
        return [line]
    *rest, last = items
    return [head, *indented([f"{item}," for item in rest]), "  " + last]


def _item(name: str, term: Term) -> str:
    shown = ident(name)
    keeps_name = term.plain and (term.text == shown or term.text.endswith("." + shown))
    return term.text if keeps_name else f"{term.text} AS {shown}"


def _operand(term: Term) -> str:
    return term.text if term.plain else f"({term.text})"
