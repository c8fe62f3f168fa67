"""Ledgers of warehouses that never ran: as many views and epochs as asked for, made without Spark.

For measuring and testing whatever only reads a ledger. The views are aggregates over one table of sales,
every fifth reads the view before it; each epoch refreshes some of them, by a plan of our own planner.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Field, Relation, Scan
from viewkeeper.algebra.scalars import column
from viewkeeper.analyse.analysis import Analysis, QueryText, Reason, TableHole
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.ledger import (
    Ledger,
    NewEpoch,
    SourceObservation,
    ViewRecord,
    ViewRefreshRecord,
    ViewState,
    publishing,
    sqlite_url,
)
from viewkeeper.ledger.database import Database
from viewkeeper.library import KnownView
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.layout import layout_of
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Situation, Span, ViewInput
from viewkeeper.plan.source_change import SourceChange
from viewkeeper.sql.quoting import show_path

SALES = "lake.default.sales"
_PINS = SessionPins("lake", ("default",), "UTC")
_BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)
_HOLDER = "a test"
_TOGETHER = 5
"""So many views an epoch refreshes."""


def made_up_ledger(folder: Path, views: int, epochs: int, names: Sequence[str] = ()) -> str:
    """Write a ledger into a warehouse's folder, and return its URL. ``names``: of the first views; the last
    one cannot be kept by deltas, and all but the first few of the views are as the last epoch left them."""
    folder.mkdir(parents=True, exist_ok=True)
    url = sqlite_url(folder / "ledger.db")
    with Ledger.open(url) as ledger:
        lease = ledger.acquire(_HOLDER)
    known = _views(views, names)
    plans: dict[int, Any] = {}
    database = Database(url)
    try:
        # In one transaction, since each commit waits for the disk.
        with database.writing() as connection:
            for number in range(1, epochs + 1):
                when = _BEGAN + timedelta(minutes=5 * number)
                epoch = publishing.begin(connection, lease, when)
                publishing.publish(connection, _epoch(epoch, known, plans), when)
            last = publishing.begin(connection, lease, _BEGAN + timedelta(minutes=5 * (epochs + 1)))
    finally:
        database.close()
    with Ledger.open(url) as ledger:
        ledger.abandon(lease, last, "<the disk> was full")
        ledger.release(lease)
        ledger.observe({SALES: SourceObservation(str(epochs), _BEGAN + timedelta(minutes=5 * epochs))})
    return url


def _views(count: int, names: Sequence[str]) -> list[KnownView]:
    given = [*names, *(f"sales_by_{number}" for number in range(len(names), count))][:count]
    made: list[KnownView] = []
    for at, name in enumerate(given):
        parent = made[-1].name if at % _TOGETHER == _TOGETHER - 1 else SALES
        made.append(_view(name, parent, incremental=at < count - 1 or count == 1))
    return made


def _view(name: str, parent: str, *, incremental: bool) -> KnownView:
    columns = ("store", "n", "total")
    read = Scan(parent, tuple(Field(each, each) for each in columns))
    calls = (AggregateCall("n", "count"), AggregateCall("total", "sum", (column("total"),)))
    relation = Aggregate(read, ("store",), calls)
    select = "SELECT store, count(*) AS n, sum(total) AS total FROM "
    text = QueryText((select, TableHole(parent, None), " GROUP BY store"))
    reason = None if incremental else Reason("NON_DETERMINISTIC", "rand() gives other values each time")
    analysis = Analysis(text, relation if incremental else None, reason)
    layout = layout_of(relation, [(each, "bigint") for each in columns], _types)
    facts = {"identity": "1", "schema": "pinned", "columns": [[each, "bigint", 1] for each in columns]}
    path = ("lake", "default", name)
    definition = ViewDefinition(path, text.fill({parent: parent}), _PINS)
    return KnownView(show_path(path), f"definition of {name}", definition, analysis, layout, {parent: facts})


def _types(relation: Relation) -> Mapping[str, str]:
    return dict.fromkeys(relation.columns, "bigint")


def _epoch(epoch: int, views: Sequence[KnownView], plans: dict[int, Any]) -> NewEpoch:
    """The first epoch defines all the views, the others refresh some of them in turn, each time alike."""
    start = (epoch * _TOGETHER) % len(views)
    moved = views if epoch == 1 else views[start : start + _TOGETHER]
    defined: tuple[ViewRecord, ...] = tuple(view.record(epoch) for view in moved) if epoch == 1 else ()
    turn = 0 if epoch == 1 else start + 1
    if turn not in plans:
        plans[turn] = _plan(epoch, moved)
    return NewEpoch(
        epoch,
        {SALES: str(epoch)},
        tuple(_state(view, epoch) for view in moved),
        tuple(_refresh(view, epoch) for view in moved),
        define=defined,
        plan=plans[turn],
        seconds={"plan": 0.2, "compute": 1.0 + epoch % 7, "install": 0.5, "publish": 0.1},
    )


def _state(view: KnownView, epoch: int) -> ViewState:
    (parent,) = view.analysis.tables
    version = str(epoch) if parent == SALES else f"snapshot {epoch}"
    return ViewState(
        view.name, view.definition_id, _storage(view), f"snapshot {epoch}", {parent: version}, epoch
    )


def _refresh(view: KnownView, epoch: int) -> ViewRefreshRecord:
    strategy = "incremental" if epoch > 1 and view.analysis.reason is None else "full"
    rows = 40 + epoch % 60
    estimates: dict[str, Any] = {
        "method": "merge",
        "prices": {"merge": 1.1, "overwrite": 2.5},
        "paid": 1.0,
        "parts": [{"part": "sales", "estimated": rows + 7, "uncorrected": rows, "actual": rows}],
        "violations": {"sold": 3} if epoch % 10 == 0 else {},
    }
    counts = (rows, rows // 2, 0, rows - rows // 2)
    took = (0.4 + epoch % 5 / 10, 0.3)
    return ViewRefreshRecord(view.name, strategy, "merge", None, *counts, *took, estimates)


def _storage(view: KnownView) -> str:
    return f"lake._viewkeeper.s_{zlib.crc32(view.name.encode())}"


@dataclass(frozen=True)
class _Appended:
    inserted: int = 10
    deleted: int = 0
    method: str = "appended files"
    reason: str | None = None

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        return (f"SELECT {', '.join(columns)}, 1L AS _vk_w FROM {SALES}",)


def _plan(epoch: int, views: Sequence[KnownView]) -> Any:
    """What our planner makes of an epoch in which some sales came."""
    before, now = str(epoch - 1), str(epoch)
    inputs = tuple(_input(view, epoch - 1) for view in views)
    inside = {view.name for view in views}
    outside = {table for view in views for table in view.analysis.tables} - inside - {SALES}
    spans: dict[Span, SourceChange | None] = {(SALES, before, now): _Appended()}
    for table in outside:
        spans[table, f"snapshot {before}", f"snapshot {now}"] = _Appended()
    versions = {SALES: now} | dict.fromkeys(outside, f"snapshot {now}")
    return CODEC.encode(plan_epoch(Situation(inputs, versions, spans, rows={SALES: 10_000})))


def _input(view: KnownView, epoch: int) -> ViewInput:
    state = _state(view, epoch)
    new = "it is new" if epoch == 0 else None
    snapshot = None if new else state.snapshot
    return ViewInput(
        *(view.name, view.definition, view.analysis, view.layout, state.storage),
        *(snapshot, state.vector, new, 1000),
    )
