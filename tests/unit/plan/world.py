"""Small situations for planner tests: a table of sales, a table of stores, and views over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column
from viewkeeper.analyse.analysis import Analysis, QueryText, Reason, TableHole
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.plan.layout import layout_of
from viewkeeper.plan.situation import Situation, ViewInput

PINS = SessionPins("lake", ("default",), "UTC")
SALES, STORES = "lake.default.sales", "lake.default.stores"


def scan(table: str, *columns: str) -> Scan:
    return Scan(table, tuple(Field(name, name) for name in columns))


def types(relation: Relation) -> Mapping[str, str]:
    """Stands for Spark's analysis: enough for these views."""
    known = {"city": "string", "store": "int", "store_2": "int"}
    return {name: known.get(name, "bigint") for name in relation.columns}


sales = scan(SALES, "store", "amount")
stores = Scan(STORES, (Field("store", "store_2"), Field("city", "city")))
joined = Join((sales, stores), (Scalar((Column("store"), " = ", Column("store_2"))),))
by_store = Aggregate(
    sales, ("store",), (AggregateCall("n", "count"), AggregateCall("total", "sum", (column("amount"),)))
)
rows = Project(joined, (Named("city", column("city")), Named("amount", column("amount"))))
large = Filter(rows, Scalar((Column("amount"), " > 10")))


@dataclass(frozen=True)
class FakeChange:
    inserted: int = 10
    deleted: int = 10
    method: str = "appended files"
    reason: str | None = None
    passed_over: int = 0

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        return (f"SELECT {', '.join(columns)}, _vk_w FROM changes",)


def view(
    name: str,
    relation: Relation | None,
    tables: tuple[str, ...],
    *,
    vector: Mapping[str, str | None],
    policy: str | None = None,
    needs_full: str | None = None,
) -> ViewInput:
    text = QueryText(("SELECT * FROM ", *(TableHole(table, None) for table in tables)))
    reason = None if relation is not None else Reason("RECURSIVE_CTE", "a recursive WITH")
    laid_out = relation if relation is not None else rows
    layout = layout_of(laid_out, [(name, "bigint") for name in laid_out.columns], types)
    full_name = f"lake.default.{name}"
    definition = ViewDefinition(("lake", "default", name), "SELECT …", PINS, policy=policy)
    snapshot = None if needs_full else "100"
    return ViewInput(
        full_name,
        definition,
        Analysis(text, relation, reason),
        layout,
        f"lake._viewkeeper.s_{name}",
        snapshot,
        vector,
        needs_full,
        1000,
    )


def situation(*views: ViewInput, **changes: FakeChange | None) -> Situation:
    """Sales and stores at version 2; ``sales=…`` and ``stores=…`` are what changed since version 1."""
    spans = {}
    for table, change in changes.items():
        full = f"lake.default.{table}"
        spans[full, "1", "2"] = change
    versions = {
        SALES: "2" if "sales" in changes else "1",
        STORES: "2" if "stores" in changes else "1",
    }
    return Situation(views, versions, spans, rows={SALES: 10_000, STORES: 100})
