"""What is worked out when a view is read must not depend on who reads it.

Groups are stored as sums and counts, and the user's columns are made of them by whoever reads the view, in
a session with a time zone of its own. ``date(max(at))`` would be another day there: a view with such a column
is stored with its rows as they are, worked out in the time zone of its definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from viewkeeper.algebra.relations import Filter, Project, Relation, Staged, Window, children
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.plan.layout import Layout

_AN_INSTANT = re.compile(r"\btimestamp(?!_ntz)")
_WORDS = re.compile(
    r"time|unix|date_format|to_char|to_varchar|convert|date_trunc|months_between"
    r"|hour|minute|second|milli|micro|make_\w*interval|\bdate_?add\s*\(\s*[a-z]+\s*,",
    re.IGNORECASE,
)
"""Functions, types and units that turn an instant into a date or a text, or the other way round."""


def reads_in_a_time_zone(layout: Layout, declared: Mapping[str, str]) -> bool:
    """Whether what is made of the stored rows may depend on the time zone in which that is done; ``declared``
    are the types of the user's columns."""
    for name, kind in declared.items():
        if _AN_INSTANT.search(kind) and not _is_as_stored(name, layout.top, layout):
            return True  # a date becomes an instant in many ways: DATE + INTERVAL '17' HOUR
    kinds = {field.name: kind for field, kind in zip(layout.fields, layout.types, strict=True)}
    shown = [item.scalar for item in layout.present]
    shown += [] if layout.visible is None else [layout.visible]
    shown += [] if layout.top is None else _computed(layout.top)
    return any(_in_a_time_zone(scalar, kinds) for scalar in shown)


def _is_as_stored(name: str, relation: Relation | None, layout: Layout) -> bool:
    """Whether a column is a stored one, or what a window function says, which reads stored ones."""
    match relation:
        case None | Staged():
            return next(item.scalar.is_column for item in layout.present if item.name == name)
        case Project(child, items):
            scalar = next(item.scalar for item in items if item.name == name)
            return scalar.is_column and _is_as_stored(next(iter(scalar.columns)), child, layout)
        case Filter(child) | Window(child):
            return name not in child.columns or _is_as_stored(name, child, layout)
        case _:
            return False


def _computed(relation: Relation) -> Iterator[Scalar]:
    match relation:
        case Project():
            yield from (item.scalar for item in relation.items)
        case Filter():
            yield relation.predicate
        case Window():
            yield from (call.scalar for call in relation.calls)
    for child in children(relation):
        yield from _computed(child)


def _in_a_time_zone(scalar: Scalar, kinds: Mapping[str, str]) -> bool:
    if scalar.is_column:
        return False
    instants = any(_AN_INSTANT.search(kinds.get(name, "")) for name in scalar.columns)
    return instants or any(_WORDS.search(part) for part in scalar.parts if isinstance(part, str))
