"""Changes that no view notices: all that changed in a table lies where a view's conditions do not reach.

Between which values the columns of changed rows lie stands in the metadata of their files. Put into the
conditions on a table, they tell whether a changed row could meet them at all: a view over the orders of 1994
need not look at a change of this month's. All views are asked by one question, which reads no row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from viewkeeper.algebra.conditions import conditions_on_tables, stored_predicate
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.analyse.comparisons import comparisons
from viewkeeper.define.definitions import SessionPins
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.observing import Observed
from viewkeeper.plan.situation import Span, ViewInput
from viewkeeper.sources.iceberg_changes import IcebergChange

Excluded = frozenset[tuple[Span, Scalar]]


def excluded_changes(
    engine: Engine, views: Iterable[ViewInput], spans: Mapping[str, Sequence[Span]], observed: Observed
) -> Excluded:
    """The changes of tables that cannot meet conditions under which views read them, each with those."""
    asked: dict[SessionPins, dict[tuple[Span, Scalar], list[str]]] = defaultdict(dict)
    for view in views:
        changed = {span[0]: span for span in spans[view.name]}
        for each in conditions_on_tables(view.analysis.relation):
            scan, predicate = stored_predicate(each)
            span = changed.get(scan.table)
            tests = () if span is None else _tests(observed.changes.get(span), predicate)
            if span is not None and tests:
                asked[view.definition.session][span, predicate] = list(tests)
    return frozenset(
        question for pins, questions in asked.items() for question in _answered(engine, pins, questions)
    )


def _tests(change: object, predicate: Scalar) -> list[str]:
    """What must be true, one and all, if a row that changed is to meet the predicate."""
    if not isinstance(change, IcebergChange):
        return []
    found = ((each, change.bounds(each.column)) for each in comparisons(predicate))
    return [
        each.possible(bounds.low, bounds.high)
        for each, bounds in found
        if bounds is not None and each.suits(bounds.type)
    ]


def _answered(
    engine: Engine, pins: SessionPins, questions: Mapping[tuple[Span, Scalar], Sequence[str]]
) -> Iterable[tuple[Span, Scalar]]:
    tests = [" AND ".join(f"({test})" for test in each) for each in questions.values()]
    answers = engine.constants([f"coalesce({test}, false)" for test in tests], pins)
    return (question for question, possible in zip(questions, answers, strict=True) if possible is False)
