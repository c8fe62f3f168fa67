"""What is known of the values of columns, how it follows tables, and what it says of the sizes of joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from viewkeeper.algebra.provenance import joined_columns
from viewkeeper.algebra.relations import Filter, Join
from viewkeeper.algebra.scalars import Column, Scalar, words
from viewkeeper.distinct_values import DistinctValues, TableValues, count_missing, with_distinct
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.sketches import Sketched
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.sources.contract import ColumnStatistics

from .world import SALES, STORES, FakeChange, joined, rows, sales, scan, situation, stores, view

AT_ONE = {SALES: "1", STORES: "1"}
third = scan("lake.default.days", "day")
three = Join(
    (Filter(sales, words("true")), stores, third), (*joined.conjuncts, Scalar((Column("day"), " > 3")))
)


def test_values_follow_the_rows() -> None:
    assert DistinctValues(990, 1000, "1").at(1500) == 1485
    assert DistinctValues(12, 1000, "1").at(1500) == 12
    assert DistinctValues(12, 1000, "1").at(5) == 5, "not more than there are rows"
    assert DistinctValues(12, 0, "1").at(5) == 5
    known = TableValues(
        "1", {"id": DistinctValues(990, 1000, "1", "abc", came=3), "kind": DistinctValues(1, 2, "1")}
    )
    assert TableValues.from_json(known.to_json()) == known


@pytest.mark.parametrize(
    "kept",
    [
        None,
        [],
        {"rows": 10, "columns": {"o": 5}},
        {"version": "1", "columns": {"o": {"values": -1, "rows": 5, "version": "1"}}},
        {"version": "1", "columns": {"o": {"values": 1, "rows": float("nan"), "version": "1"}}},
        {"version": "1", "columns": {"o": {"values": "many", "rows": 5, "version": "1"}}},
        {"version": "1", "columns": {"o": {"values": 1, "rows": 5, "version": "1", "patience": None}}},
        {"version": "1", "columns": {"o": {"values": 1, "rows": 5, "version": "1", "newer": 1}}},
    ],
)
def test_what_the_ledger_should_not_hold_is_counted_anew(kept: Any) -> None:
    assert TableValues.from_json(kept) is None


@dataclass
class Counting:
    """Tells statistics, and that every column it is asked to count has ten values."""

    told: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    expired: bool = False
    work: list[str] = field(default_factory=list)

    def statistics(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        return self.told if table == SALES else {}

    def count_values(self, table: str, version: str, columns: Sequence[str]) -> dict[str, Sketched]:
        self.work += [f"count {column}" for column in columns if table == SALES]
        return {column: Sketched(10, "counted") for column in columns}

    def add_values(self, table: str, old: str, new: str, sketches: Mapping[str, str]) -> dict[str, Sketched]:
        self.work += [f"add {column} since {old}" for column in sketches if table == SALES]
        return {} if self.expired else {column: Sketched(20, "added") for column in sketches}


def brought(
    source: Counting, before: DistinctValues | None, change: FakeChange | None = None, **more: Any
) -> DistinctValues:
    """What is known of the sales' stores after a change from version 1 to version 2 and 10,000 rows."""
    now = situation(view("three", three, (SALES, STORES), vector=AT_ONE), sales=change)
    known = {} if before is None else {SALES: TableValues("1", {"store": before})}
    found = count_missing(cast(Engine, source), replace(now, **more), known)[SALES]
    assert found.version == "2"
    return found.columns["store"]


def sketch(rows: int, **more: Any) -> DistinctValues:
    return DistinctValues(10, rows, "1", "counted", **more)


def test_what_nobody_counted_is_counted() -> None:
    source = Counting()
    assert brought(source, None) == replace(sketch(10_000), version="2")
    assert source.work == ["count store"]


@pytest.mark.parametrize(
    ("change", "then"),
    [
        (None, sketch(9_000)),
        (FakeChange(900, 0), sketch(9_100, came=900)),
        (FakeChange(10, 500), sketch(9_000, went=500)),
        (FakeChange(5_000, 4_500), sketch(30_000, came=500, went=4_500)),
    ],
)
def test_a_small_change_is_kept_in_mind(change: FakeChange | None, then: DistinctValues) -> None:
    source = Counting()
    assert brought(source, sketch(then.rows), change) == then
    assert source.work == []


@pytest.mark.parametrize("rows", [0, None])
def test_of_a_table_without_rows_nothing_is_known(rows: int | None) -> None:
    now = situation(view("three", three, (SALES, STORES), vector=AT_ONE), sales=FakeChange())
    source, known = Counting(), {SALES: TableValues("1", {"store": sketch(10)})}
    found = count_missing(cast(Engine, source), replace(now, rows={SALES: rows, STORES: 100}), known)
    assert set(found) == {STORES}
    assert source.work == []


def test_what_came_is_added_to_the_sketch() -> None:
    source = Counting()
    known = sketch(8_900, came=100, went=30, patience=0.4)
    found = brought(source, known, FakeChange(1_000, 0))
    assert found == DistinctValues(20, 10_000, "2", "added", went=30, patience=0.4)
    assert source.work == ["add store since 1"]
    source = Counting(expired=True)
    assert brought(source, known, FakeChange(1_000, 0)).values == 10
    assert source.work == ["add store since 1", "count store"]


def test_when_much_went_it_is_counted_again_and_later_the_next_time_if_that_told_nothing() -> None:
    source = Counting()
    found = brought(source, sketch(10_000, went=1_500), FakeChange(600, 600))
    assert found == replace(sketch(10_000), version="2", patience=0.4)
    assert brought(source, sketch(10_000, patience=4.0), FakeChange(50_000, 50_000)).patience == 4.0
    news = DistinctValues(100, 10_000, "1", "counted", patience=4.0)
    assert brought(source, news, FakeChange(50_000, 50_000)).patience == 0.2
    assert source.work == ["count store"] * 3


def test_of_a_source_that_is_only_read_whole_it_is_counted_when_it_has_doubled() -> None:
    whole = DistinctValues(10, 5_000, "1", growth=1.0, patience=1.0)
    source = Counting()
    assert brought(source, whole, FakeChange(4_000, 0)).came == 4_000
    assert source.work == []
    brought(source, whole, FakeChange(5_000, 0))
    brought(source, whole, FakeChange(5_000, 5_000))
    assert source.work == ["count store"] * 2


def test_the_statistics_of_a_source() -> None:
    source = Counting({"store": ColumnStatistics(7, 9_500, came=500)})
    assert brought(source, None) == DistinctValues(7, 9_500, "2", came=500)
    assert source.work == []
    old = DistinctValues(3, 5_000, "1")
    assert brought(source, old, FakeChange(5_000, 0)).values == 7, "they are asked again"
    assert source.work == []
    for outdated in (ColumnStatistics(7, 5_000, came=5_000), ColumnStatistics(7, 10_000, 9_000, 9_000)):
        source = Counting({"store": outdated})
        assert brought(source, None).sketch == "counted"
        assert source.work == ["count store"]


def test_what_changed_is_taken_from_the_largest_change_or_not_known() -> None:
    # Nobody's change begins where the values stand: some view is behind.
    behind: dict[Any, FakeChange | None] = {
        (SALES, "0", "2"): FakeChange(900, 0),
        (SALES, "-1", "2"): FakeChange(2_000, 0),
    }
    source = Counting()
    brought(source, sketch(8_000), changes=behind)
    assert source.work == ["add store since 1"]
    for nothing in ({"changes": {}}, {"lost": {(SALES, "0", "2"): "expired"}}):
        source = Counting()
        brought(source, sketch(8_000), **nothing)
        assert source.work == ["count store"]


def test_the_columns_that_tables_are_joined_by() -> None:
    assert set(joined_columns(rows)) == {(SALES, "store"), (STORES, "store")}
    assert not set(joined_columns(rows, inputs=3))
    assert set(joined_columns(three, inputs=3)) == {(SALES, "store"), (STORES, "store")}


def test_estimates_use_them() -> None:
    made = situation(view("rows", rows, (SALES, STORES), vector=AT_ONE), stores=FakeChange(5, 5))
    made = replace(made, policy="incremental")

    def estimated(**values: int) -> int:
        columns = {name: DistinctValues(count, 10_000, "1") for name, count in values.items()}
        known = {SALES: TableValues("1", columns)}
        (plan,) = plan_epoch(with_distinct(made, known)).views
        return dict(plan.propagations[0].rows)[0b11]

    assert estimated() == 10 * 10_000 // 100, "each of 100 stores has about as many sales"
    assert estimated(store=10) == estimated(), "the join keeps the larger side's values"
    assert estimated(store=1000) == 10 * 10_000 // 1000, "most sales belong to stores that are not there"
