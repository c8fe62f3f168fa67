"""How wide texts are, as files say, and what it says of the costs of joins."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import pytest

from viewkeeper.algebra.relations import Join
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.execute.engine import Engine
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.text_widths import TextWidths, measure_missing, with_widths

from .world import STORES, FakeChange, scan, situation, view


@dataclass
class FakeEngine:
    """Finds any text a hundred bytes wide; what it was asked."""

    asked: list[tuple[str, list[str]]] = field(default_factory=list)

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
    known = measure_missing(cast(Engine, engine), made, {})
    assert known[notes] == TextWidths(1_000_000, {"text": 100.0, "untold": 0.0})
    assert TextWidths.from_json(asdict(known[notes])) == known[notes]
    asked = len(engine.asked)
    assert measure_missing(cast(Engine, engine), made, known) == known
    assert len(engine.asked) == asked, "what is known is not asked for again"
    grown = replace(made, rows={**made.rows, notes: 2_000_001})
    assert measure_missing(cast(Engine, engine), grown, known)[notes].rows == 2_000_001

    def read(widths: dict[str, float]) -> int:
        told = {**known, notes: replace(known[notes], columns=widths)}
        (plan,) = plan_epoch(with_widths(made, told)).views
        return plan.propagations[0].cost

    assert read({"text": 100.0}) - read({}) >= 80 * 1_000_000, "a hundred bytes instead of twenty"
    assert read({"text": 0.1}) == read({}), "what is stored in a tenth of a byte is no less to be read"


@pytest.mark.parametrize("kept", [None, [], {"rows": 3}, {"rows": 3, "columns": {"text": "wide"}}])
def test_what_is_no_width_is_measured_anew(kept: Any) -> None:
    assert TextWidths.from_json(kept) is None
