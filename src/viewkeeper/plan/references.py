"""Which staged results a step reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from viewkeeper.algebra.relations import Relation, Staged, children
from viewkeeper.plan.steps import (
    ComputeBag,
    ComputeGroups,
    ComputeRows,
    ComputeVisible,
    Extract,
    Install,
    Publish,
    Share,
    Step,
)


def staged_in(relation: Relation) -> frozenset[str]:
    """The names of the staged results that a relation reads."""
    if isinstance(relation, Staged):
        return frozenset([relation.name])
    return frozenset().union(*(staged_in(child) for child in children(relation)))


def staged_by(step: Step, known: Iterable[str]) -> frozenset[str]:
    """Which of the known staged results a step reads directly."""
    match step:
        case Extract() | Publish():
            return frozenset()
        case ComputeRows(query=str() as text):
            # A query in the user's words names its tables in the text; ours stand there by exact name.
            return frozenset(name for name in known if _names(text, name))
        case ComputeRows(query=query):
            assert not isinstance(query, str)
            return staged_in(query)
        case ComputeGroups(recomputed=after) if after is not None:
            return (staged_in(step.relation) | staged_in(after)) - {step.draft}
        case Share() | ComputeGroups() | ComputeBag() | ComputeVisible():
            return staged_in(step.relation)
        case Install():
            return frozenset([step.source.name])


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def without_unused(steps: Sequence[Step]) -> list[Step]:
    """The steps without those whose result nobody reads."""
    names = [step.name for step in steps if not isinstance(step, (Install, Publish))]
    needed: set[str] = set()
    kept: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, (Extract, Share, ComputeVisible)) and step.name not in needed:
            continue
        needed |= staged_by(step, names)
        kept.append(step)
    return kept[::-1]
