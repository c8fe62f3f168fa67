"""Which staged results a step reads, and how often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

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


def staged_in(relation: Relation) -> Counter[str]:
    """The staged results that a relation reads, each as often as it does."""
    if isinstance(relation, Staged):
        return Counter([relation.name])
    return sum((staged_in(child) for child in children(relation)), Counter())


def staged_by(step: Step, known: Iterable[str]) -> Counter[str]:
    """Which of the known staged results a step reads directly, and how often."""
    match step:
        case Extract() | Publish():
            return Counter()
        case ComputeRows(query=str() as text):
            # A query in the user's words names its tables in the text; ours stand there by exact name.
            return +Counter({name: _mentions(text, name) for name in known})
        case ComputeRows(query=query):
            assert not isinstance(query, str)
            return staged_in(query)
        case ComputeGroups(recomputed=after) if after is not None:
            read = staged_in(step.relation) + staged_in(after)
            del read[step.draft or ""]
            return read
        case Share() | ComputeGroups() | ComputeBag() | ComputeVisible():
            return staged_in(step.relation)
        case Install():
            return Counter([step.source.name])


def _mentions(text: str, name: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


def unstaged_where_read_once(steps: Sequence[Step]) -> list[Step]:
    """The steps, with the extracts that one step reads once left in place: that step's query reads the source
    itself. To stage them would be a job and a pass over the rows for nothing."""
    names = [step.name for step in steps if isinstance(step, Extract)]
    read = sum((staged_by(step, names) for step in steps), Counter[str]())
    return [
        replace(step, staged=False) if isinstance(step, Extract) and read[step.name] == 1 else step
        for step in steps
    ]


def without_unused(steps: Sequence[Step]) -> list[Step]:
    """The steps without those whose result nobody reads."""
    names = [step.name for step in steps if not isinstance(step, (Install, Publish))]
    needed: set[str] = set()
    kept: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, (Extract, Share, ComputeVisible)) and step.name not in needed:
            continue
        needed.update(staged_by(step, names))
        kept.append(step)
    return kept[::-1]
