"""The *Parts* example of Labio et al. (2000), Figures 6 to 12, by each of the four algorithms.

Figures 11 and 12 misprint group a: it holds (a, 40, 2) before, and (a, 60, 2) after.
"""

from __future__ import annotations

from collections import Counter

from bag_algebra import Bag, evaluate
from random_relations import MemoryLeaves
from stored_groups import installed

from viewkeeper.algebra.aggregates import GROUP_COUNT, keep_for
from viewkeeper.algebra.relations import AggregateCall, Field, Filter, Project, Relation, Scan, Staged
from viewkeeper.algebra.rules.delta import delta
from viewkeeper.algebra.rules.leaves import new, old
from viewkeeper.algebra.scalars import WEIGHT, column, compose, keep
from viewkeeper.algebra.summary_delta import (
    OPERATION,
    ROW,
    Groups,
    groups_after,
    groups_before,
    prepare_changes,
    summary_delta,
    touched_by_summary_delta,
)

COLUMNS = ("orderID", "partID", "qty", "cost")
V1 = Counter([(1, "a", 1, 20), (1, "b", 2, 250), (2, "a", 1, 20), (3, "c", 1, 500)])
INSERTED = Counter([(1, "a", 2, 20), (4, "c", 1, 500), (4, "d", 1, 30)])
DELETED = Counter([(1, "a", 1, 20), (1, "b", 2, 250)])

REVENUE = AggregateCall("revenue", "sum", (compose(column("qty"), " * ", column("cost")),))
KEPT, _ = keep_for([REVENUE], lambda argument: "int")
PARTS = Groups(
    Scan("V1", tuple(Field(name, name) for name in COLUMNS)),
    ("partID",),
    KEPT,
    ((GROUP_COUNT, "bigint"), *((each.name, "bigint") for each in KEPT)),
)
SHOWN = ("partID", next(each.name for each in KEPT if each.call.function == "sum"), GROUP_COUNT)
"""partID, revenue and tuplecnt."""


def warehouse() -> MemoryLeaves:
    change = Counter({(*row, 1): n for row, n in INSERTED.items()})
    change.update({(*row, -1): n for row, n in DELETED.items()})
    leaves = MemoryLeaves(
        {
            "V1@old": (COLUMNS, V1),
            "V1@new": (COLUMNS, V1 + INSERTED - DELETED),
            "V1@delta": ((*COLUMNS, WEIGHT), change),
        },
        changed=frozenset(["V1"]),
        growing=frozenset(),
    )
    stored = evaluate(old(PARTS.rows, leaves), leaves.stored)
    columns = (*PARTS.rows.columns, ROW)
    leaves.stored["Parts"] = (columns, Counter((*row, at) for at, row in enumerate(stored)))
    return leaves


LEAVES = warehouse()
STORED = Staged("Parts", tuple(Field(name, name) for name in (*PARTS.rows.columns, ROW)))
CHANGE = delta(PARTS.child, LEAVES)
assert CHANGE is not None
SUMMARY_DELTA = LEAVES.share(
    summary_delta(PARTS, prepare_changes(PARTS, CHANGE, insert_only=False), insert_only=False),
    "summary-delta",
)
TOUCHED = touched_by_summary_delta(PARTS, STORED, SUMMARY_DELTA, insert_only=False)


def shown(relation: Relation, where: str | None = None) -> set[tuple[object, ...]]:
    rows = relation if where is None else Filter(relation, compose(column(OPERATION), where))
    return set(evaluate(Project(rows, keep(SHOWN)), LEAVES.stored))


def after() -> Bag:
    return evaluate(new(PARTS.rows, LEAVES), LEAVES.stored)


def test_figure_7_parts() -> None:
    assert shown(STORED) == {("a", 40, 2), ("b", 500, 1), ("c", 500, 1)}


def test_figure_10_the_summary_delta() -> None:
    assert shown(SUMMARY_DELTA) == {("a", 20, 0), ("b", -500, -1), ("c", 500, 1), ("d", 30, 1)}


def test_figures_11_and_12_deletions_and_insertions_made_explicit() -> None:
    touched = {row[0] for row in shown(TOUCHED, " <> 'I'")}
    assert {row for row in shown(STORED) if row[0] in touched} == {("a", 40, 2), ("b", 500, 1), ("c", 500, 1)}
    assert shown(TOUCHED, " <> 'D'") == {("a", 60, 2), ("c", 1000, 2), ("d", 30, 1)}


def test_figure_11_by_what_the_touched_groups_remember() -> None:
    remembering = touched_by_summary_delta(PARTS, STORED, SUMMARY_DELTA, insert_only=False, remembered=True)
    before = groups_before(PARTS, LEAVES.share(remembering, "remembering"))
    assert shown(before) == {("a", 40, 2), ("b", 500, 1), ("c", 500, 1)}


def test_sdcursor_and_sdbatch_give_what_fullrecomp_gives() -> None:
    before = evaluate(old(PARTS.rows, LEAVES), LEAVES.stored)
    assert installed(PARTS, before, evaluate(TOUCHED, LEAVES.stored)) == after()


def test_sdoverwrite_gives_what_fullrecomp_gives() -> None:
    written = groups_after(PARTS, STORED, LEAVES.share(TOUCHED, "touched"))
    rows = evaluate(Project(written, keep(PARTS.rows.columns)), LEAVES.stored)
    assert rows == after()
