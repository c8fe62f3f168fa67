"""Results inside a query that may be kept: an inner aggregate, DISTINCT or window, as a view of its own.

Without it, the groups that a change touches are computed before and after the change, from all their rows.
As a hidden view of the graph the inner result has a delta like any other, and old rows that need only be
read; all views that contain it share it. What that costs is storage, and one more install in each epoch.

Whether it pays is not guessed. A view whose refreshes take long is tried with its inner results kept, and
stays so if they are quicker then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Filter,
    Project,
    Relation,
    Scan,
    Window,
    children,
    map_children,
    scans,
)
from viewkeeper.define.clock import is_clock
from viewkeeper.errors import DefinitionError
from viewkeeper.plan.properties import asked_for

PROPERTY = "viewkeeper.hidden-state"
"""The table property by which a view's definition pins it."""

_REFRESHES = 3
"""So many refreshes tell what one takes."""
_LONG = 1.0
"""Seconds from which on a refresh is worth the trouble."""


class HiddenState(Enum):
    """Whether inner results are kept."""

    KEEP = "keep"
    NONE = "none"


def pinned(properties: Mapping[str, str]) -> HiddenState | None:
    """What a definition, which was not refused, asks for."""
    asked = asked_for(properties, PROPERTY)
    return None if asked is None else HiddenState(asked)


def refuse_unknown(view: str, properties: Mapping[str, str]) -> None:
    """Raise if a definition asks for something else."""
    asked = asked_for(properties, PROPERTY)
    if asked is not None and asked not in [each.value for each in HiddenState]:
        raise DefinitionError(
            f"view {view}: {PROPERTY} is {asked!r}", code="VK-HIDDEN-STATE", hint="One of: auto, keep, none."
        )


def inner_results(relation: Relation) -> tuple[Relation, ...]:
    """What could be kept, each once. What is at the top is stored as the view itself."""
    while isinstance(relation, Project | Filter | Window):
        relation = relation.child
    if isinstance(relation, Aggregate | Distinct):
        relation = relation.child
    return tuple(dict.fromkeys(_results(relation)))


def _results(relation: Relation) -> Iterator[Relation]:
    """The outermost ones: what they contain is their own affair."""
    if isinstance(relation, Aggregate | Distinct | Window) and any(
        not is_clock(scan.table) for scan in scans(relation)
    ):
        yield relation
        return
    for child in children(relation):
        yield from _results(child)


def reading(relation: Relation, kept: Mapping[Relation, Scan]) -> Relation:
    """The relation with inner results read from where they are kept."""
    if relation in kept:
        return kept[relation]
    return map_children(relation, lambda child: reading(child, kept))


@dataclass(frozen=True, slots=True)
class Trial:
    """What was learned of a view: seconds that a refresh took without hidden state, and whether it was given
    up, being no quicker with it."""

    without: float
    given_up: bool = False


def advisable(seconds: Sequence[float], trial: Trial | None, *, has_state: bool) -> HiddenState | None:
    """What to do after refreshes that took so many seconds each, since it was decided last; ``None``: go on.

    >>> advisable([2.0, 4.0, 3.0], None, has_state=False)
    <HiddenState.KEEP: 'keep'>
    >>> advisable([3.5, 3.2, 3.6], Trial(without=3.0), has_state=True)
    <HiddenState.NONE: 'none'>
    >>> advisable([1.5, 1.2, 1.6], Trial(without=3.0), has_state=True)
    >>> advisable([9.0, 9.0, 9.0], Trial(without=3.0, given_up=True), has_state=False)
    """
    if len(seconds) < _REFRESHES or (trial is not None and trial.given_up):
        return None
    usual = median(seconds)
    if not has_state:
        return HiddenState.KEEP if usual >= _LONG else None
    return HiddenState.NONE if trial is not None and usual >= trial.without else None
