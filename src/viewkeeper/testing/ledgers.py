"""A warehouse on paper: a ledger filled as epochs would fill it, with real definitions and real plans, and
neither Spark nor a table behind it. For tests and benchmarks of whatever reads ledgers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, insert

from viewkeeper.algebra.relations import Relation
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.reading import analyse
from viewkeeper.declaring import base_view
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.define.sources import SourceDefinition
from viewkeeper.learning import told
from viewkeeper.ledger import (
    Lease,
    Ledger,
    NewEpoch,
    SourceObservation,
    SourceRecord,
    ViewRefreshRecord,
    ViewState,
    publishing,
    schema,
    sqlite_url,
)
from viewkeeper.library import KnownView
from viewkeeper.plan.codec import CODEC
from viewkeeper.plan.layout import bag_layout, layout_of
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Situation, ViewInput
from viewkeeper.plan.steps import ComputeBag, ComputeGroups, EpochPlan, Extract, Share, Strategy
from viewkeeper.sources.contract import Description, SourceColumn
from viewkeeper.sql.quoting import parse_path, show_path
from viewkeeper.testing.paper_views import RETAIL, ROWS, TABLES, TOGETHER, PaperView, sales_views

PINS = SessionPins("lake", ("default",), "UTC")
_BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)
_EVERY = timedelta(minutes=5)


@dataclass
class _StoppedClock:
    now: datetime

    def __call__(self) -> datetime:
        return self.now


def paper_ledger(folder: Path, views: int, epochs: int, names: Sequence[str] = ()) -> str:
    """Write a long ledger into a warehouse's folder, and return its URL: the first epoch defines the views,
    each of the others refreshes a few of them, and a last attempt failed. ``names``: of the first views."""
    folder.mkdir(parents=True, exist_ok=True)
    url = sqlite_url(folder / "ledger.db")
    clock = _StoppedClock(_BEGAN + _EVERY)
    with Ledger.open(url, clock=clock) as ledger:
        paper = PaperWarehouse(ledger, clock)
        paper.define(tuple(sales_views(views, names)))
        paper.go_round(epochs - 1)
        clock.now = _BEGAN + _EVERY * (epochs + 1)
        paper.fail("<the disk> was full")
    return url


@dataclass(frozen=True, slots=True)
class PaperChange:
    """What changed in a table."""

    inserted: int
    deleted: int
    method: str = "appended files"
    reason: str | None = None
    passed_over: int = 0

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        listed = ", ".join(columns)
        return (f"SELECT {listed}, 1 AS _vk_w FROM pos VERSION AS OF 2",)


@dataclass
class PaperWarehouse:
    """Publishes epochs in a ledger. ``clock``: when; it moves on by a minute with each epoch."""

    ledger: Ledger
    clock: Callable[[], datetime] | None = None
    views: dict[str, KnownView] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 1))
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _changes: dict[str, PaperChange] = field(default_factory=dict)

    def define(self, views: Sequence[PaperView] = RETAIL) -> int:
        """Define views in one epoch, with data; the epoch's id."""
        made = []
        for view in views:  # one may read another that comes before it
            made.append(self._known(view))
            self.views[made[-1].name] = made[-1]
        lease = self.ledger.acquire("paper")
        epoch = self.ledger.begin(lease)
        plan = self._plan({}, self.ledger.states(), self.views, new={view.name for view in made})
        refreshes = [replace(each, reason="the view is new") for each in self._refreshes(plan)]
        self._publish(lease, epoch, plan, refreshes, [view.name for view in made])
        return epoch

    def declare(self, source: SourceDefinition, version: str) -> None:
        """Declare a source, in an epoch of its own, with base views that hold a version of it."""
        lease = self.ledger.acquire("paper")
        epoch = self.ledger.begin(lease)
        record = SourceRecord(source.name, CODEC.encode(source), epoch)  # type: ignore[arg-type]  # tagged
        described = Description((SourceColumn("id", "bigint", None),), None, ("id",))
        held = {}
        for table in source.all_tables:
            path = (PINS.catalog, source.name, parse_path(table)[-1])
            held[table] = base_view(path, table, described, PINS)
        states = [
            ViewState(view.name, view.definition_id, f"lake._viewkeeper.{at}", "1", {table: version}, epoch)
            for at, (table, view) in enumerate(held.items())
        ]
        records = tuple(view.record(epoch) for view in held.values())
        self.ledger.publish(lease, NewEpoch(epoch, {}, tuple(states), (), define=records, declare=(record,)))
        self.ledger.release(lease)

    def pass_day(self, *, sales: int = 50_000, returns: int = 400, moved_stores: int = 0) -> None:
        """Tables move on to another version, which is seen, but not taken in."""
        self._changes["pos"] = PaperChange(sales, returns)
        if moved_stores:
            self._changes["stores"] = PaperChange(moved_stores, moved_stores, "rewritten rows")
        for table in ("pos", "stores")[: 1 + bool(moved_stores)]:
            self.versions[table] += 1
        at = self._now()
        self.ledger.observe({table: SourceObservation(v, at) for table, v in self._versions().items()})

    def refresh(self, *, violations: Mapping[str, int] | None = None) -> int:
        """Take in what changed, in one epoch; the epoch's id."""
        lease = self.ledger.acquire("paper")
        epoch = self.ledger.begin(lease)
        plan = self._plan(self._changes, self.ledger.states(), self.views)
        refreshes = self._refreshes(plan, violations or {})
        self._publish(lease, epoch, plan, refreshes, ())
        self._changes = {}
        return epoch

    def fail(self, error: str) -> int:
        """An attempt that comes to nothing; its id."""
        lease = self.ledger.acquire("paper")
        epoch = self.ledger.begin(lease)
        self.ledger.abandon(lease, epoch, error)
        self.ledger.release(lease)
        return epoch

    def lengthen(self, epochs: int) -> None:
        """So many more epochs, each with a refresh of every view, written in bulk and without plans."""
        last = self.ledger.latest()
        assert last is not None
        begin = last.id + 1
        at = self._now()
        estimates = {"prices": {"sdbatch": 1.2, "fullrecomp": 8.0}, "method": "sdbatch", "paid": 1.1}
        with self._writing() as connection:
            for first in range(begin, begin + epochs, 500):
                ids = range(first, min(first + 500, begin + epochs))
                connection.execute(
                    insert(schema.attempts),
                    [
                        {"id": i, "token": 0, "holder": "paper", "begun_at": at, "propagated": False}
                        for i in ids
                    ],
                )
                connection.execute(
                    insert(schema.epochs),
                    [
                        {"id": i, "published_at": at + timedelta(minutes=i - begin), "source_versions": {},
                         "plan": None, "seconds": {"compute": 2.0, "install": 1.0}}
                        for i in ids
                    ],
                )  # fmt: skip
                connection.execute(
                    insert(schema.refreshes),
                    [
                        {"epoch_id": i, "place": place, "view": view, "strategy": "incremental",
                         "install": "merge", "reason": None, "delta_rows": 7, "inserted": 5, "deleted": 1,
                         "updated": 1, "compute_seconds": self._random.uniform(0.2, 2.0),
                         "install_seconds": 0.4, "estimates": estimates,
                         "recomputed": None, "derived_from": None}
                        for i in ids for place, view in enumerate(self.views)
                    ],
                )  # fmt: skip

    def go_round(self, epochs: int) -> None:
        """So many more epochs, five minutes apart: each takes new sales into a few of the views, by turns,
        which are planned when they come first. In one transaction, since each commit waits for the disk."""
        lease = self.ledger.acquire("paper")
        states, names = self.ledger.states(), list(self.views)
        turns = [names[at : at + TOGETHER] for at in range(0, len(names), TOGETHER)]
        plans: dict[int, EpochPlan] = {}
        encoded: dict[int, Any] = {}
        at = self._now()
        with self._writing() as connection:
            for _ in range(epochs):
                at += _EVERY
                epoch = publishing.begin(connection, lease, at)
                self.versions["pos"] += 1
                turn = epoch % len(turns)
                if turn not in plans:
                    plans[turn] = self._plan({"pos": PaperChange(500, 0)}, states, turns[turn])
                    encoded[turn] = CODEC.encode(plans[turn])
                refreshes = self._refreshes(plans[turn], {"sold": 3} if epoch % 10 == 0 else {})
                published = self._epoch(epoch, plans[turn], encoded[turn], refreshes, states)
                publishing.publish(connection, published, at)
                states |= {state.view: state for state in published.states}
        self.ledger.release(lease)
        self.ledger.observe({table: SourceObservation(v, at) for table, v in self._versions().items()})

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction past the ledger's own methods."""
        with self.ledger.reading() as connection:
            engine = connection.engine
        with engine.begin() as connection:
            yield connection

    def _now(self) -> datetime:
        return self.clock() if self.clock is not None else datetime.now(timezone.utc)

    def _versions(self) -> dict[str, str]:
        return {_full(table): str(version) for table, version in self.versions.items()}

    def _known(self, view: PaperView) -> KnownView:
        columns = _columns(view.columns)
        known = {name.lower(): info for name, info in self._tables().items()}
        definition = ViewDefinition(
            (PINS.catalog, *PINS.namespace, view.name),
            view.query,
            PINS,
            comment=view.comment,
            expectations=view.expectations,
        )
        analysis = analyse(
            view.query,
            session=PINS,
            resolve=lambda parts: known.get(parts[-1].lower()),
            referee=lambda _: list(columns),
        )
        relation = analysis.relation
        types = dict(columns)

        def typed(asked: Relation) -> dict[str, str]:
            return {name: types.get(name, "bigint") for name in asked.columns}

        layout = bag_layout(columns, None) if relation is None else layout_of(relation, columns, typed)
        name = show_path(definition.name)
        return KnownView(name, f"paper-{len(self.views)}-{view.name}", definition, analysis, layout, {})

    def _tables(self) -> dict[str, TableInfo]:
        known = {name: TableInfo(_full(name), tuple(_columns(columns))) for name, columns in TABLES.items()}
        for view in self.views.values():
            own = tuple((column, "bigint") for column in view.layout.columns)
            known[view.definition.name[-1]] = TableInfo(view.name, own)
        return known

    def _plan(
        self,
        changes: Mapping[str, PaperChange],
        states: Mapping[str, ViewState],
        wanted: Iterable[str],
        new: frozenset[str] | set[str] = frozenset(),
    ) -> EpochPlan:
        inputs: list[ViewInput] = []
        for name in wanted:
            view, state = self.views[name], states.get(name)
            vector = {} if state is None else dict(state.vector)
            fresh = "the view is new" if name in new else None
            snapshot = None if state is None else state.snapshot
            inputs.append(
                ViewInput(
                    name, view.definition, view.analysis, view.layout, f"lake._viewkeeper.s_{len(inputs)}",
                    snapshot, vector, fresh, 40_000,
                )
            )  # fmt: skip
        versions: dict[str, str | None] = dict(self._versions())
        spans = {
            (table, old, versions[table]): changes.get(table.rpartition(".")[2])
            for view in inputs
            for table, old in view.vector.items()
            if table in versions
        }
        rows = {_full(table): count for table, count in ROWS.items()}
        return plan_epoch(Situation(tuple(inputs), versions, spans, rows=rows))

    def _refreshes(
        self, plan: EpochPlan, violations: Mapping[str, int] = MappingProxyType({})
    ) -> list[ViewRefreshRecord]:
        counted = _counted(plan)
        found = []
        for view in plan.views:
            if view.strategy is Strategy.UNCHANGED:
                found.append(ViewRefreshRecord(view.view, "unchanged", None, view.reason))
                continue
            method = view.method or (view.prices[0].method if view.prices else None)
            prices = {price.method.value: round(price.total, 3) for price in view.prices}
            compute, install = self._random.uniform(0.3, 2.4), self._random.uniform(0.2, 0.9)
            estimates: dict[str, Any] = {
                "prices": prices,
                "method": method.value if method else None,
                "parts": told(view, counted),
                "paid": round(compute + install, 3),
            }
            expected = self.views[view.view].definition.expectations
            broken = {each.name: violations[each.name] for each in expected if each.name in violations}
            estimates |= {"violations": broken} if broken else {}
            rows = self._random.randrange(10, 4000)
            full = view.strategy is Strategy.FULL
            found.append(
                ViewRefreshRecord(
                    view.view, view.strategy.value, "overwrite" if full else "merge", view.reason, rows * 2,
                    rows, None if full else rows // 9, None if full else rows // 2, compute, install,
                    estimates, derived_from=view.derived_from,
                )
            )  # fmt: skip
        return found

    def _publish(
        self,
        lease: Lease,
        epoch: int,
        plan: EpochPlan,
        refreshes: Sequence[ViewRefreshRecord],
        define: Sequence[str],
    ) -> None:
        self.ledger.publish(
            lease, self._epoch(epoch, plan, CODEC.encode(plan), refreshes, self.ledger.states(), define)
        )
        self.ledger.release(lease)
        at = self._now()
        self.ledger.observe({table: SourceObservation(v, at) for table, v in plan.versions})

    def _epoch(
        self,
        epoch: int,
        plan: EpochPlan,
        encoded: Any,
        refreshes: Sequence[ViewRefreshRecord],
        before: Mapping[str, ViewState],
        define: Sequence[str] = (),
    ) -> NewEpoch:
        """What an epoch publishes; its plan may be that of an earlier one, for other versions."""
        versions = self._versions()
        moved = {each.view for each in refreshes if each.strategy != "unchanged"} | set(define)
        present = {name: state.snapshot for name, state in before.items()}
        snapshots = {**present, **{name: f"{epoch}00{at}" for at, name in enumerate(sorted(moved))}}
        states = []
        for view in plan.views:
            if view.view in moved:
                parents = {
                    name: snapshots[name]
                    for name in self.views[view.view].analysis.tables
                    if name in snapshots
                }
                own = {table: versions.get(table, version) for table, version in view.vector} | parents
                storage = f"lake._viewkeeper.s_{view.view}"
                states.append(
                    ViewState(
                        view.view,
                        self.views[view.view].definition_id,
                        storage,
                        snapshots[view.view],
                        own,
                        epoch,
                    )
                )
        seconds = {
            "observe": 0.3,
            "extract": 0.5,
            "compute": 0.5 + sum(each.compute_seconds for each in refreshes),
            "install": sum(each.install_seconds for each in refreshes),
            "publish": 0.2,
        }
        return NewEpoch(
            epoch,
            {table: versions.get(table, version or "") for table, version in plan.versions},
            tuple(states),
            tuple(refreshes),
            define=tuple(self.views[name].record(epoch) for name in define),
            plan=encoded,
            seconds=seconds,
        )


def _counted(plan: EpochPlan) -> dict[str, int]:
    """A tenth less than estimated, of what an executor counts: other results leave no trace in the ledger."""
    estimated = {
        name: dict(each.rows)[mask]
        for view in plan.views
        for each in view.propagations
        for mask, name in each.counting
    }
    staged = {step.name for step in plan.steps if isinstance(step, Extract) and step.staged}
    for step in plan.steps:
        match step:
            case Share() if step.counts is not None or step.looked_up:
                staged.add(step.name)
            case ComputeBag(reserve=None) | ComputeGroups(counts=True):
                staged.add(step.name)
            case _:
                pass
    return {name: round(rows * 0.9) + 1 for name, rows in estimated.items() if name in staged}


def _full(table: str) -> str:
    return f"lake.default.{table}"


def _columns(text: str) -> list[tuple[str, str]]:
    """Names and types; a comma within a type is followed by no space."""
    return [(name, kind.lower()) for name, kind in (each.split(" ", 1) for each in text.split(", "))]
