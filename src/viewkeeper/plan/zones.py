"""What is worked out when a view is read must not depend on who reads it.

Groups are stored as sums and counts, and the user's columns are made of them by whoever reads the view, in
a session with a time zone of its own. ``date(max(at))`` would be another day there: a view with such a column
is stored with its rows as they are, worked out in the time zone of its definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from viewkeeper.algebra.relations import Filter, Project, Relation, Window, children
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.plan.layout import Layout

_AN_INSTANT = re.compile(r"\btimestamp(?!_ntz)")
_WORDS = re.compile(r"time|unix|date_format|to_char|convert", re.IGNORECASE)
"""Functions and types that turn an instant into a date or a text, or the other way round."""


def reads_in_a_time_zone(layout: Layout) -> bool:
    """Whether what is made of the stored rows may depend on the time zone in which that is done."""
    kinds = {field.name: kind for field, kind in zip(layout.fields, layout.types, strict=True)}
    shown = [item.scalar for item in layout.present]
    shown += [] if layout.visible is None else [layout.visible]
    shown += [] if layout.top is None else _computed(layout.top)
    return any(_in_a_time_zone(scalar, kinds) for scalar in shown)


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
