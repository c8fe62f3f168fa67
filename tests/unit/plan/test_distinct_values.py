"""What is known of the values of columns, and how the sizes of joins follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from viewkeeper.algebra.provenance import joined_columns
from viewkeeper.algebra.relations import Filter, Join
from viewkeeper.algebra.scalars import Column, Scalar, words
from viewkeeper.distinct_values import DistinctValues, count_missing, with_distinct
from viewkeeper.execute.engine import Engine
from viewkeeper.plan.planner import plan_epoch

from .world import SALES, STORES, FakeChange, joined, rows, sales, scan, situation, stores, view

AT_ONE = {SALES: "1", STORES: "1"}


def test_values_follow_the_rows() -> None:
    known = DistinctValues(1000, {"id": 990, "kind": 12})
    assert known.at(1500) == {"id": 1485.0, "kind": 12.0}
    assert known.at(5) == {"id": 4.95, "kind": 5.0}
    assert not known.is_outgrown(2000)
    assert known.is_outgrown(2001)
    assert known.is_outgrown(499)
    assert DistinctValues.from_json(known.to_json()) == known


def test_the_columns_that_tables_are_joined_by() -> None:
    assert set(joined_columns(rows)) == {(SALES, "store"), (STORES, "store")}
    assert not set(joined_columns(rows, inputs=3))
    third = scan("lake.default.days", "day")
    for condition, known in ((" > 3", set()), (" = 3", {("lake.default.days", "day")})):
        three = Join(
            (Filter(sales, words("true")), stores, third),
            (*joined.conjuncts, Scalar((Column("day"), condition))),
        )
        assert set(joined_columns(three, inputs=3)) == {(SALES, "store"), (STORES, "store"), *known}


def test_estimates_use_them() -> None:
    made = situation(view("rows", rows, (SALES, STORES), vector=AT_ONE), stores=FakeChange(5, 5))
    made = replace(made, policy="incremental")

    def estimated(**values: int) -> int:
        known = {SALES: DistinctValues(10_000, values)} if values else {}
        (plan,) = plan_epoch(with_distinct(made, known)).views
        return dict(plan.propagations[0].rows)[0b11]

    assert estimated() == 10 * 10_000 // 100, "each of 100 stores has about as many sales"
    assert estimated(store=10) == estimated(), "the join keeps the larger side's values"
    assert estimated(store=1000) == 10 * 10_000 // 1000, "most sales belong to stores that are not there"


@dataclass
class FakeEngine:
    """Counts ten values in any column, and finds any text a hundred bytes wide; what it was asked."""

    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    def distinct(self, table: str, version: str, columns: list[str]) -> dict[str, int]:
        self.asked.append((table, columns))
        return dict.fromkeys(columns, 10)

    def widths(self, table: str, version: str, columns: list[str]) -> dict[str, float]:
        self.asked.append((table, columns))
        return {column: 100.0 for column in columns if column != "untold"}


def test_texts_are_as_wide_as_their_files_say() -> None:
    notes, days = "lake.default.notes", "lake.default.days"
    three = Join(
        (scan(notes, "store", "text", "untold", "n"), scan(STORES, "store_2", "day"), scan(days, "day_2")),
        (
            Scalar((Column("store"), " = ", Column("store_2"))),
            Scalar((Column("day"), " = ", Column("day_2"))),
        ),
    )
    vector = dict.fromkeys((notes, STORES, days), "1")
    made = situation(view("three", three, tuple(vector), vector=vector), stores=FakeChange(5, 5))
    made = replace(
        made,
        versions={**made.versions, **vector, STORES: "2"},
        rows={notes: 1_000_000, STORES: 1_000_000, days: 1_000_000},
        types={notes: {"store": "bigint", "text": "string", "untold": "binary", "n": "int"}},
        policy="incremental",
    )
    engine = FakeEngine()
    known = count_missing(cast(Engine, engine), made, {})
    assert known[notes].widths == {"text": 100.0, "untold": 0.0}
    assert DistinctValues.from_json(known[notes].to_json()) == known[notes]
    asked = len(engine.asked)
    assert count_missing(cast(Engine, engine), made, known) == known
    assert len(engine.asked) == asked, "what is known is not asked for again"

    def read(widths: dict[str, float]) -> int:
        narrow = {**known, notes: replace(known[notes], widths=widths)}
        (plan,) = plan_epoch(with_distinct(made, narrow)).views
        return plan.propagations[0].cost

    assert read({"text": 100.0}) - read({}) >= 80 * 1_000_000, "a hundred bytes instead of twenty"
    assert read({"text": 0.1}) == read({}), "what is stored in a tenth of a byte is no less to be read"
