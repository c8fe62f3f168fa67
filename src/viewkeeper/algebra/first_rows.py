"""The first rows in an order: those that LIMIT shows, and more of them, which are kept.

Of the first k rows nothing follows when one of them goes: the next one has to be found among all the others.
So the first K > k are kept, with those that tie with the last of them:

    S = {r ∈ R : r ⪯ s},    s the last row that is kept

A change of R then does to S what it does to the rows up to s, and nothing else of R has to be known:

    S′ = first_K(S ⊎ {r ∈ ΔR : r ⪯ s})

Only when fewer than k rows are left of S, R is read again. Where R has fewer than K rows, S is all of it, and
whatever comes is taken in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import Filter, Join, Project, Relation, Window, WindowCall
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, compose, keep

Order: TypeAlias = tuple[tuple[str, str], ...]
"""Columns, each with its direction as SQL says it: `` DESC NULLS LAST``; nothing: ascending, NULL first."""

_NUMBERED = "row_number() OVER (ORDER BY "
_UP_TO = re.compile(r" <= (\d+)\Z")
_DIRECTION = re.compile(r" (ASC|DESC)( NULLS (FIRST|LAST))?")
_PLACE = "_vk_place"
_LAST = "_vk_last"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """A query that shows no row of its child beyond the ``shown``-th in a total order."""

    child: Relation
    order: Order
    shown: int


def limited(child: Relation, order: Order, number: str, skipped: int, most: int | None) -> Filter:
    """The rows whose number in the order lies between two bounds; ``number`` is a name for it."""
    numbered = Window(child, (), (WindowCall(number, _over("row_number()", order)),))
    bounds = [compose(column(number), f" > {skipped}")] if skipped else []
    bounds += [] if most is None else [compose(column(number), f" <= {skipped + most}")]
    return Filter(numbered, bounds[0] if len(bounds) == 1 else compose(bounds[0], " AND ", bounds[1]))


def first_rows(relation: Relation) -> FirstRows | None:
    """What :func:`limited` made, taken apart again, if it has a last row."""
    match relation:
        case Filter(Window(child, (), (WindowCall(number, call),)), predicate) if call.parts[
            0
        ] == _NUMBERED and predicate.columns == {number}:
            words = "".join(part for part in predicate.parts if isinstance(part, str)).rstrip(")")
            bound, order = _UP_TO.search(words), _order_of(call)
            return None if bound is None or order is None else FirstRows(child, order, int(bound[1]))
        case _:
            return None


def first(rows: Relation, order: Order, most: int) -> Relation:
    """first_K(R): the first rows in the order, and all that tie with the last of them."""
    placed = Window(rows, (), (WindowCall(_PLACE, _over("rank()", order)),))
    return Project(Filter(placed, compose(column(_PLACE), f" <= {most}")), keep(rows.columns))


def up_to_last(change: Delta, stored: Relation, order: Order) -> Delta:
    """{r ∈ ΔR : r ⪯ s}: of a change what concerns the rows that are kept; nothing, if there are none."""
    backwards = tuple((name, _reversed(direction)) for name, direction in order)
    placed = Window(stored, (), (WindowCall(_PLACE, _over("row_number()", backwards)),))
    last = Project(
        Filter(placed, compose(column(_PLACE), " = 1")),
        tuple(Named(f"{_LAST}_{at}", column(name)) for at, (name, _) in enumerate(order)),
    )
    reaching = Join((change.relation, last), (_not_behind(order),), broadcast=(1,))
    return Delta(Project(reaching, keep(change.relation.columns)))


def _not_behind(order: Order) -> Scalar:
    """r ⪯ s, column by column: before it, or equal and not behind it in the columns that follow."""
    condition: Scalar | None = None
    for at, (name, direction) in reversed(list(enumerate(order))):
        mine, last = column(name), column(f"{_LAST}_{at}")
        down, nulls_first = _read(direction)
        one_is_null = (
            compose(mine, " IS NULL AND ", last, " IS NOT NULL")
            if nulls_first
            else compose(mine, " IS NOT NULL AND ", last, " IS NULL")
        )
        before = compose("coalesce(", mine, " > " if down else " < ", last, ", ", one_is_null, ")")
        equal = compose(mine, " <=> ", last)
        condition = compose(
            before, " OR ", equal if condition is None else compose(equal, " AND ", condition)
        )
    assert condition is not None, "rows are ordered by something"
    return condition


def _over(function: str, order: Sequence[tuple[str, str]]) -> Scalar:
    parts: list[str | Column] = [f"{function} OVER (ORDER BY "]
    for at, (name, direction) in enumerate(order):
        parts += [", "] if at else []
        parts += [Column(name), direction] if direction else [Column(name)]
    return Scalar((*parts, ")"))


def _order_of(call: Scalar) -> Order | None:
    """The columns that rows are ordered by; ``None`` if these are no mere columns any more."""
    found: list[tuple[str, str]] = []
    for part in call.parts[1:-1]:
        if isinstance(part, Column):
            found.append((part.name, ""))
        elif _DIRECTION.fullmatch(part):
            found[-1] = (found[-1][0], part)
        elif part != ", ":
            return None
    return tuple(found)


def _read(direction: str) -> tuple[bool, bool]:
    """Whether it goes down, and whether NULL comes first."""
    down = direction.startswith(" DESC")
    return down, direction.endswith("NULLS FIRST") if "NULLS" in direction else not down


def _reversed(direction: str) -> str:
    """
    >>> _reversed(""), _reversed(" DESC NULLS FIRST")
    (' DESC NULLS LAST', ' ASC NULLS LAST')
    """
    down, nulls_first = _read(direction)
    return f" {'ASC' if down else 'DESC'} NULLS {'LAST' if nulls_first else 'FIRST'}"
