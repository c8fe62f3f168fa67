"""The steps that count rows which come and break an expectation of a view.

What is let in is looked at where it is staged anyway: the change of the view, or all its rows where it is
recomputed. What is dropped is not in there, so its own change is computed: that of the rows which the view
leaves out.
"""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter, Relation, scans
from viewkeeper.algebra.rules.delta import delta
from viewkeeper.algebra.rules.leaves import new
from viewkeeper.algebra.scalars import WEIGHT, column, compose, words
from viewkeeper.define.definitions import OnViolation
from viewkeeper.plan.draft import Draft
from viewkeeper.plan.leaves import ViewLeaves
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.steps import CheckRows


def check_rows(draft: Draft, view: ViewInput, rows: Relation) -> None:
    """Look at the rows that come: those of a delta, or all of them."""
    expected = view.definition.looked_at
    if not expected:
        return
    weight = "1"
    if WEIGHT in rows.columns:
        rows, weight = Filter(rows, compose(column(WEIGHT), " > 0")), WEIGHT
    calls = tuple(
        AggregateCall(
            f"_vk_expected_{at}",
            "sum",
            written=words(f"coalesce(sum(CASE WHEN NOT {each.holds} THEN {weight} END), 0)"),
        )
        for at, each in enumerate(expected)
    )
    failing = tuple(each.name for each in expected if each.on_violation is OnViolation.FAIL_EPOCH)
    names = tuple(each.name for each in expected)
    draft.add(CheckRows(draft.name("checked"), view.name, Aggregate(rows, (), calls), names, failing))


def check_dropped(draft: Draft, view: ViewInput, leaves: ViewLeaves | None) -> None:
    """Count what is left out: what comes of it by the change, or (without leaves) all of it."""
    for name, relation in view.analysis.dropped:
        if leaves is None:
            rows: Relation = new(relation, draft.leaves(view))
            call = AggregateCall("_vk_dropped", "count")
        else:
            draft.extract_for(view, scans(relation))
            change: Delta | None = delta(relation, leaves)
            if change is None:
                continue
            rows = Filter(change.relation, compose(column(WEIGHT), " > 0"))
            call = AggregateCall("_vk_dropped", "sum", written=words(f"coalesce(sum({WEIGHT}), 0)"))
        step = CheckRows(draft.name("dropped"), view.name, Aggregate(rows, (), (call,)), (name,))
        draft.add(step)
