"""Which staged results a step reads, and how often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from viewkeeper.algebra.relations import Relation, Staged, leaves
from viewkeeper.plan.lookups import all_lookups
from viewkeeper.plan.steps import (
    CheckRows,
    ComputeBag,
    ComputeGroups,
    ComputeReplacement,
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
    return Counter(leaf.name for leaf in leaves(relation) if isinstance(leaf, Staged))


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
        case ComputeBag(refilled=after) if after is not None:
            return staged_in(step.relation) + staged_in(after)
        case ComputeReplacement():
            # Its keys are read once more, when it is installed.
            return staged_in(step.relation) + Counter(each.keys.name for each in step.keys)
        case Share() | ComputeGroups() | ComputeBag() | ComputeVisible() | CheckRows():
            return staged_in(step.relation)
        case Install():
            return Counter([step.source.name])


def relations_of(step: Step) -> tuple[Relation, ...]:
    """What a step computes, in our algebra."""
    match step:
        case ComputeGroups(recomputed=after) | ComputeBag(refilled=after) if after is not None:
            return step.relation, after
        case Share() | ComputeGroups() | ComputeBag() | ComputeReplacement() | ComputeVisible() | CheckRows():
            return (step.relation,)
        case ComputeRows(query=query) if not isinstance(query, str):
            return (query,)
        case _:
            return ()


def _mentions(text: str, name: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


def settled(steps: Sequence[Step], *, stage_extracts: bool = False) -> list[Step]:
    """The steps, with nothing staged that is read in one place only: an extract or a shared result that one
    step reads once, rows that only their installation reads. Staging them would be a pass for nothing, unless
    large tables are searched for them: what is staged can tell its range first."""
    names = [step.name for step in steps if not isinstance(step, (Install, Publish))]
    computing = [step for step in steps if not isinstance(step, Install)]
    read = sum((staged_by(step, names) for step in computing), Counter[str]())
    searches = all_lookups(relation for step in computing for relation in relations_of(step))
    return [
        _settled(step, read, tuple(sorted(searches.get(step.name, ()))), stage_extracts=stage_extracts)
        if isinstance(step, (Extract, Share))
        else _unstaged(step, read)
        for step in steps
    ]


def _settled(
    step: Extract | Share, read: Counter[str], looked_up: tuple[str, ...], *, stage_extracts: bool
) -> Step:
    staged = read[step.name] != 1 or bool(looked_up)
    match step:
        case Extract():
            return replace(step, staged=staged or stage_extracts, looked_up=looked_up)
        case Share():
            return replace(step, staged=staged or step.counts is not None, looked_up=looked_up)


def _unstaged(step: Step, read: Counter[str]) -> Step:
    match step:
        case ComputeRows():
            return replace(step, staged=step.apart or read[step.name] > 0)
        case Install(source=ComputeRows() as source):
            return replace(step, source=replace(source, staged=source.apart or read[source.name] > 0))
        case _:
            return step


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
