"""The two ways to store a bag (Labio et al. 2000, Section 2.2), and which one a view should have.

DUP stores every copy of a row as a row; CNT stores each row once, with the number of its copies. To delete
one of many copies, DUP has to choose which one, where CNT changes a number; to insert a row, DUP only
appends, where CNT has to look for it. So it depends on how many copies there are: by the paper's Table 1, CNT
is cheaper from 2.8 copies on, if as many rows are deleted as inserted (``tests/unit/plan/test_prices.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum

from viewkeeper.errors import DefinitionError
from viewkeeper.plan.properties import asked_for

PROPERTY = "viewkeeper.representation"
"""The table property by which a view's definition pins it."""

_CNT_FROM = 2.8
_DUP_BELOW = 1.3
"""Between the two a view stays as it is: converting costs as much as writing it anew."""

# What Spark groups by value: equal rows are the same row, letter for letter. Not so 0.0 and -0.0, or strings
# under a collation; and maps cannot be grouped at all.
_PLAIN = re.compile(
    r"(boolean|tinyint|smallint|int|bigint|date|timestamp|timestamp_ntz|string|binary|(var)?char\(\d+\)"
    r"|decimal\(\d+,\s*\d+\))\Z"
)


class Representation(Enum):
    """How copies of a row are stored."""

    DUP = "dup"
    CNT = "cnt"


def pinned(properties: Mapping[str, str]) -> Representation | None:
    """The one that a definition, which was not refused, asks for."""
    asked = asked_for(properties, PROPERTY)
    return None if asked is None else Representation(asked)


def can_be_counted(types: Iterable[str]) -> bool:
    """Whether copies of a row can be told by grouping.

    >>> can_be_counted(["int", "string", "decimal(12,2)"]), can_be_counted(["double"])
    (True, False)
    """
    return all(_PLAIN.match(kind) for kind in types)


def advisable(now: Representation, copies: float) -> Representation:
    """The one for a bag with so many copies of a row, on average.

    >>> [advisable(Representation.DUP, copies).value for copies in (1.0, 2.0, 3.0)]
    ['dup', 'dup', 'cnt']
    >>> [advisable(Representation.CNT, copies).value for copies in (1.0, 2.0, 3.0)]
    ['dup', 'cnt', 'cnt']
    """
    if now is Representation.DUP:
        return Representation.CNT if copies >= _CNT_FROM else now
    return Representation.DUP if copies < _DUP_BELOW else now


def refuse_unsuitable(
    view: str, properties: Mapping[str, str], *, is_bag: bool, columns: Mapping[str, str]
) -> None:
    """Raise if the representation that a definition asks for cannot be had."""
    asked = asked_for(properties, PROPERTY)
    if asked is None:
        return
    if asked not in [each.value for each in Representation]:
        raise _error(f"view {view}: {PROPERTY} is {asked!r}", "One of: auto, dup, cnt.")
    if asked == Representation.DUP.value and is_bag:
        return
    if not is_bag:
        raise _error(
            f"view {view}: {PROPERTY} is {asked!r}, but what is stored are groups, rows beyond a LIMIT, or "
            "rows that are always recomputed",
            "Leave it out: there is but one way to store them.",
        )
    hard = [name for name, kind in columns.items() if not can_be_counted([kind])]
    if hard:
        raise _error(
            f"view {view}: copies cannot be counted, because of column {hard[0]} of type {columns[hard[0]]}",
            "Cast it, or leave the property out.",
        )


def _error(message: str, hint: str) -> DefinitionError:
    return DefinitionError(message, code="VK-REPRESENTATION", hint=hint)
