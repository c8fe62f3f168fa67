"""Deltas that were computed and kept for a later epoch: between the ledger and the executor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from viewkeeper.execute.executor import KeptDelta, Outcome
from viewkeeper.install.counts import Counts
from viewkeeper.ledger.records import Chore, ChoreKind, Propagation
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.steps import ComputeRows, EpochPlan, Install, Publish, Step


def drop_tables(epoch: int, tables: Iterable[str]) -> list[Chore]:
    """What removes these tables."""
    return [Chore(None, ChoreKind.DROP_STORAGE, epoch, {"storage": table}) for table in tables]


def drop_kept(propagation: Propagation) -> list[Chore]:
    """What removes the tables of its deltas."""
    return drop_tables(propagation.id, [kept["table"] for kept in propagation.tables.values()])


def plan_of(propagation: Propagation) -> EpochPlan:
    """The plan that installs it."""
    plan = CODEC.decode(propagation.plan)
    assert isinstance(plan, EpochPlan)
    return plan


def kept_deltas(propagation: Propagation) -> dict[str, KeptDelta]:
    """The kept deltas as the executor takes them."""
    return {
        view: KeptDelta(
            kept["table"],
            Counts(kept["inserted"], kept["deleted"], kept["updated"], kept["recomputed"]),
            kept["seconds"],
            kept.get("violations", {}),
            kept.get("counted", {}),
        )
        for view, kept in propagation.tables.items()
    }


def record(table: str, outcome: Outcome, counted: Mapping[str, int]) -> dict[str, object]:
    """A kept delta as the ledger takes it. ``counted``: the rows of the results that it was made of."""
    counts = outcome.counts
    return {
        "table": table,
        "inserted": counts.inserted,
        "deleted": counts.deleted,
        "updated": counts.updated,
        "recomputed": counts.recomputed,
        "seconds": outcome.compute_seconds,
        "violations": outcome.violations,
        "counted": dict(counted),
    }


def install_only(plan: EpochPlan) -> EpochPlan:
    """The plan that installs what this one computes; rows that would be computed on the way are kept, too."""
    steps: list[Step] = []
    for step in plan.steps:
        if isinstance(step, Install):
            source = step.source
            if isinstance(source, ComputeRows):
                source = replace(source, staged=True)
            steps.append(replace(step, source=source))
        elif isinstance(step, Publish):
            steps.append(step)
    return replace(plan, steps=tuple(steps))
