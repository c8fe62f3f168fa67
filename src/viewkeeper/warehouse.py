"""READ THIS FIRST: the warehouse, and the whole flow on one page.

    define ─► analyse ─► plan ─► execute ─► install ─► publish

``sql`` takes a statement: a CREATE is analysed (SQL → algebra and a verdict, ``analyse/``) and laid out
(``plan/layout.py``). ``refresh`` observes the sources (``situations.py``), plans (``plan/planner.py``:
pure), computes deltas and installs them on branches (``execute/executor.py``, ``install/``), and publishes
everything in one ledger transaction (``epochs.py``). ``explain`` prints the steps that ``refresh`` runs;
``verify`` compares a view with its query, recomputed at the recorded versions.

Spark starts when it is first needed: definitions, status and history come from the ledger alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from viewkeeper.analyse.statements import (
    AlterView,
    CreateCube,
    CreateSource,
    CreateView,
    DropSource,
    DropView,
    ExplainView,
    Passthrough,
    RefreshView,
    RetimeView,
    ShowSources,
    ShowViews,
    parse_statement,
)
from viewkeeper.constraints import declared_constraints
from viewkeeper.errors import DefinitionError, LedgerError, position_at
from viewkeeper.events import Event
from viewkeeper.explain import Explanation, Plan, explain_view, kept_state
from viewkeeper.learning import known_rates
from viewkeeper.ledger import Ledger
from viewkeeper.overview import Overview, folder_ledger
from viewkeeper.plan.choice import POLICIES
from viewkeeper.plan.hypothetical import as_if_all_changed
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.prices import Rates, rates_as_json
from viewkeeper.plan.situation import USUAL, Options
from viewkeeper.plan.steps import EpochPlan
from viewkeeper.reading import pinned, refuse_unpinned, snapshots_of
from viewkeeper.results import (
    ConstraintCheck,
    Epoch,
    Propagated,
    Upkept,
    Verification,
    ViewRefresh,
    epoch_of,
    propagated_of,
)
from viewkeeper.sql.quoting import show_path
from viewkeeper.windows import expected_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from viewkeeper.define.project import Project
    from viewkeeper.define.settings import ForeignKey
    from viewkeeper.execute.engine import Engine
    from viewkeeper.maintainer import Maintainer

EMBEDDED = ("lake", "default")
LEASE_SECONDS = 60.0


class Warehouse(Overview):
    """A set of materialized views that are kept fresh together. Made by :func:`connect`."""

    def __init__(
        self,
        ledger: Ledger,
        start: Callable[[], Engine],
        default: tuple[str, ...],
        on_event: Callable[[Event], None] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        options: Options = USUAL,
        foreign_keys: Sequence[ForeignKey] = (),
    ) -> None:
        super().__init__(ledger, default)
        self.options = options
        self.foreign_keys = foreign_keys
        self._start = start
        self._emit = on_event or (lambda event: None)
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._maintainer_: Maintainer | None = None

    # Statements.

    def sql(self, statement: str) -> DataFrame:
        """Run a statement. Ours are carried out; a SELECT reads every view at the latest epoch; anything
        else passes through unchanged."""
        parsed = parse_statement(statement)
        match parsed:
            case CreateView():
                return self._refresh_rows(self._create(statement, parsed))
            case CreateCube():
                record = self._maintainer.views.create(*parsed.views)
                return self._refresh_rows([] if record is None else epoch_of(record).views)
            case AlterView():
                record = self._maintainer.views.alter(self._find(_text(parsed.name)), dict(parsed.properties))
                return self._refresh_rows([] if record is None else epoch_of(record).views)
            case RetimeView():
                record = self._maintainer.views.retime(self._find(_text(parsed.name)), parsed.timing)
                return self._refresh_rows([] if record is None else epoch_of(record).views)
            case RefreshView():
                full = "full" if parsed.full else None
                return self._refresh_rows(self.refresh(_text(parsed.name), policy=full).views)
            case DropView():
                self._drop(_text(parsed.name), missing_ok=parsed.if_exists)
                return self._refresh_rows([])
            case CreateSource():
                record = self._maintainer.sources.declare(parsed)
                return self._refresh_rows([] if record is None else epoch_of(record).views)
            case DropSource():
                self._maintainer.sources.forget(parsed.name, missing_ok=parsed.if_exists)
                return self._refresh_rows([])
            case ShowSources():
                sources = [(each.name, each.kind, each.version, each.seen_at) for each in self.sources()]
                return self._engine.rows(
                    sources, "source STRING, kind STRING, version STRING, seen_at TIMESTAMP"
                )
            case ExplainView():
                return self._engine.rows([(str(self.explain(_text(parsed.name))),)], "plan STRING")
            case ShowViews():
                rows = [(view.view, view.incremental, view.reason, view.epoch) for view in self.status()]
                schema = "view STRING, incremental BOOLEAN, reason STRING, epoch BIGINT"
                return self._engine.rows(rows, schema)
            case Passthrough():
                return self._read(parsed.text, None)

    def _create(self, statement: str, parsed: CreateView) -> list[ViewRefresh]:
        try:
            record = self._maintainer.views.create(parsed)
        except DefinitionError as error:
            if error.position is not None:  # it was found in the query, the user sees the statement
                start, end = (parsed.query_start + at for at in (error.position.start, error.position.end))
                error.position = position_at(statement, start, end)
            raise
        return [] if record is None else epoch_of(record).views

    def _drop(self, name: str, *, missing_ok: bool) -> None:
        if missing_ok and self._library().lookup(name, self._where()) is None:
            return
        self._maintainer.views.drop(self._find(name))

    def _read(self, text: str, epoch: int | None) -> DataFrame:
        library = self._library(epoch)
        if epoch is not None:
            refuse_unpinned(text, library, self._where())
        query, views = pinned(text, library, self._where())
        self._engine.see(snapshots_of(library, views))
        return self._engine.read(query, epoch)

    # The flow.

    def propagate(self, *views: str, policy: str | None = None) -> Propagated:
        """Compute now what :meth:`refresh` would install, and keep it: readers and writers go on meanwhile.
        ``refresh(propagated=True)`` installs it in a short window; a plain refresh takes it in, too."""
        _check_policy(policy)
        if not self._library().views:
            return Propagated(None, {}, [])
        plan, kept = self._maintainer.propagate(self._names(views), policy)
        return propagated_of(plan, kept)

    def refresh(
        self,
        *views: str,
        policy: str | None = None,
        propagated: bool = False,
        on_error: Literal["stop", "skip"] = "stop",
    ) -> Epoch:
        """Bring views (none named: all of them) and their ancestors to the sources' present versions, and
        publish them in one epoch. ``policy``: auto, incremental, incremental strict or full.
        ``propagated``: install exactly what :meth:`propagate` kept, and look at no source.
        ``on_error``: whether a view that fails stops the epoch, or is skipped with all that read it."""
        _check_policy(policy)
        if propagated:
            if views or policy:
                raise ValueError("what was propagated is installed as it is: no views or policy to choose")
            return epoch_of(self._maintainer.install_propagated())
        if not self._library().views:
            return Epoch(self._current_id(), {}, [])
        result, failed = self._maintainer.refresh(self._names(views), policy, skip_failing=on_error == "skip")
        skipped = {view: str(error) for view, error in failed.items()}
        if not isinstance(result, EpochPlan):
            return replace(epoch_of(result), skipped=skipped)
        return Epoch(
            self._current_id(),
            {table: version or "" for table, version in result.versions},
            [_unchanged(view.view, view.reason) for view in result.views],
            skipped=skipped,
        )

    def plan(self, *views: str, policy: str | None = None) -> Plan:
        """What :meth:`refresh` would do now. Touches nothing."""
        _check_policy(policy)
        if not self._library().views:
            return Plan(EpochPlan((), (), ()))
        plan, _ = self._maintainer.plan(self._names(views), policy)
        names = [view.view for view in plan.views]
        prices = self._maintainer.remote_prices(names)
        return Plan(plan, expected_window(self._ledger, plan, names), prices)

    def look(self) -> dict[str, str | None]:
        """The versions that the sources have now, without reading them; those of tables that are read in
        place. :meth:`status` tells by them what is stale."""
        return self._maintainer.look() if self.views() else {}

    def explain(self, view: str) -> Explanation:
        """How a view is kept, and what the next refresh would do with it."""
        name = self._find(view)
        plan, situation = self._maintainer.plan([name], None)
        reason = self._library().views[name].analysis.reason
        hypothetical = plan.view(name).strategy.value == "unchanged"
        if hypothetical:
            plan = plan_epoch(as_if_all_changed(situation))
        window = expected_window(self._ledger, plan, [name])
        priced = self._maintainer.remote_prices([name]).get(name)
        state = kept_state(self._library(), name)
        return explain_view(name, plan, reason, window, hypothetical=hypothetical, priced=priced, state=state)

    def verify(self, *views: str) -> list[Verification]:
        """Recompute views (none named: all of them) at the recorded versions and compare, both ways."""
        library = self._library()
        names = self._names(views)
        if not views:  # those that can be: not what has no rows yet, nor a source that has moved on
            names = [
                name
                for name in names
                if library.states[name].snapshot is not None and not library.views[name].hidden
            ]
        return self._maintainer.verify(names, only_possible=not views)

    def verify_constraints(self, project: Project) -> list[ConstraintCheck]:
        """Whether the keys, foreign keys and dependencies that a project declares hold, checked whole on the
        tables as they are now."""
        self._engine.use(project.catalog, project.namespace)
        return self._maintainer.check(declared_constraints(project.settings))

    def repair(self, view: str) -> Epoch:
        """Rebuild a view from the recorded versions."""
        return epoch_of(self._maintainer.repair(self._find(view)))

    def maintain(
        self, *views: str, keep_epochs: int | None = None, keep_days: float | None = None
    ) -> list[Upkept]:
        """Keep the storage of views (none named: all of them) in shape: rewrite many small files and files
        with many deleted rows, and remove what only epochs show that are neither among the last
        ``keep_epochs`` nor younger than ``keep_days``. Where these are not given, the views' table properties
        ``viewkeeper.keep-epochs`` and ``viewkeeper.keep-days`` say it, or else 100 epochs and 7 days."""
        return self._maintainer.maintain(self._names(views), keep_epochs, keep_days)

    def apply(self, project: Project, *, prune: bool = False, dry_run: bool = False) -> list[str]:
        """Create what a project folder defines anew, replace what it defines otherwise; with ``prune`` drop
        what it no longer defines. The changes, as sentences."""
        maintainer = self._maintainer
        from viewkeeper.applying import apply_project  # after the maintainer: it needs pyspark, too

        return apply_project(maintainer, project, prune=prune, dry_run=dry_run)

    def beside(self, namespace: str, ledger: str) -> Warehouse:
        """A warehouse on the same catalog, with a session and a ledger of its own, to try things out."""
        return connect(spark=self._engine.session_in(namespace), catalog=self.catalog, ledger=ledger)

    # What the ledger knows; no Spark.

    @property
    def rates(self) -> Rates:
        """What operations take here: as calibrated, or as it is believed before."""
        return known_rates(self._ledger)

    @rates.setter
    def rates(self, rates: Rates) -> None:
        self._ledger.calibrate(rates_as_json(rates))

    def quarantine(self, source: str) -> DataFrame:
        """The bad rows of a source that are set aside: ``file``, ``line``, ``record`` and ``reason``."""
        return self._maintainer.sources.quarantine(source)

    def check_sources(self, *names: str) -> dict[str, list[str]]:
        """Of each source (none named: all of them), what is missing or dangerous, as sentences."""
        return self._maintainer.sources.check_sources(names)

    def at(self, epoch: int) -> WarehouseAt:
        """The warehouse as it was at an epoch: all views together."""
        self._ledger.epoch(epoch)  # an unknown epoch is an error here, not at the first read
        return WarehouseAt(self, epoch)

    # Housekeeping.

    @property
    def catalog(self) -> str:
        """The catalog in which views and their storage are."""
        return self._default[0]

    @property
    def ledger(self) -> Ledger:
        """The record of epochs."""
        return self._ledger

    @property
    def spark(self) -> SparkSession:
        """The user's session; its current catalog and namespace are the warehouse's."""
        return self._engine.spark

    @property
    def clock(self) -> Callable[[], datetime]:
        """What time it is, for views that read ``current_date`` and the like: asked once for each epoch. Set
        it in tests of such views."""
        return self._engine.observer.clock.read

    @clock.setter
    def clock(self, read: Callable[[], datetime]) -> None:
        self._engine.observer.clock.read = read

    def close(self) -> None:
        """Close the ledger. A session that was handed over stays open, and so does the JVM."""
        super().close()

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _maintainer(self) -> Maintainer:
        with self._lock:
            if self._maintainer_ is None:
                from viewkeeper.maintainer import Maintainer  # starts pyspark: half a second to import
                from viewkeeper.workshop import Workshop

                emit, seconds = lambda event: self._emit(event), self._lease_seconds
                self._maintainer_ = Maintainer(Workshop(self._ledger, self._start(), emit, seconds))
            self._maintainer_.shop.options = self.options
            self._maintainer_.shop.foreign_keys = self.foreign_keys
            return self._maintainer_

    @property
    def _engine(self) -> Engine:
        return self._maintainer.shop.engine

    def _session(self) -> SparkSession | None:
        return self._maintainer_.shop.engine.spark if self._maintainer_ else None

    def _where(self) -> tuple[str, ...]:
        """The catalog and namespace in which a view's last name is looked up."""
        if self._maintainer_ is None:
            return self._default
        pins = self._maintainer_.shop.engine.current_pins()
        return (pins.catalog, *pins.namespace)

    def _names(self, views: Sequence[str]) -> list[str]:
        library, where = self._library(), self._where()
        return [library.find(view, where) for view in views] if views else list(library.views)

    def _current_id(self) -> int:
        latest = self._ledger.latest()
        return latest.id if latest else 0

    def _refresh_rows(self, refreshes: Sequence[ViewRefresh]) -> DataFrame:
        rows = [
            (r.view, r.strategy, r.reason, r.delta_rows, r.compute_seconds, r.install_seconds)
            for r in refreshes
        ]
        return self._engine.rows(
            rows,
            "view STRING, strategy STRING, reason STRING, delta_rows BIGINT, "
            "compute_seconds DOUBLE, install_seconds DOUBLE",
        )


class WarehouseAt:
    """A warehouse as it was at one epoch; reading only."""

    def __init__(self, warehouse: Warehouse, epoch: int) -> None:
        self._warehouse = warehouse
        self.epoch = epoch

    def sql(self, query: str) -> DataFrame:
        """Run a query with every view as it was at the epoch."""
        return self._warehouse._read(query, self.epoch)


def connect(
    path: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    namespace: tuple[str, ...] | None = None,
    ledger: str | None = None,
    create: bool = True,
    on_event: Callable[[Event], None] | None = None,
    lease_seconds: float = LEASE_SECONDS,
    options: Options = USUAL,
    foreign_keys: Sequence[ForeignKey] = (),
) -> Warehouse:
    """Open a warehouse.

    ``connect("folder")`` is embedded: Spark in local mode, an Iceberg catalog and the ledger on SQLite, all
    in the folder. ``connect(spark=session, catalog="lake", ledger="postgresql://…")`` uses a session of
    yours, classic or Connect, and any catalog that Spark is configured for. ``namespace``: where names are
    looked up, if not where the session is. ``options``: other ways to make plans, to be compared with the
    usual one; they can be set later, too. ``foreign_keys``: what joins may use if it is found to be so.
    """
    folder = Path(path) if path is not None else None
    url = ledger or (folder_ledger(folder, create=create) if folder is not None else None)
    if url is None:
        raise LedgerError(
            "connect needs a place for its ledger",
            code="VK-LEDGER-MISSING",
            hint='Give a folder, connect("path"), or a database, connect(spark=…, ledger="postgresql://…").',
        )
    name = catalog or "lake"

    def start() -> Engine:
        from viewkeeper.execute.engine import Engine, embedded_engine  # starts pyspark

        if spark is not None:
            engine = Engine(spark, name)
        elif folder is not None:
            engine = embedded_engine(folder)
        else:
            raise DefinitionError("connect needs a folder or a Spark session", code="VK-SETUP")
        if namespace is not None:
            engine.use(None, namespace)
        return engine

    where = (name, *(namespace or ("default",)))
    return Warehouse(Ledger.open(url), start, where, on_event, lease_seconds, options, foreign_keys)


def _text(name: Sequence[str]) -> str:
    return show_path(tuple(name))


def _check_policy(policy: str | None) -> None:
    if policy is not None and policy not in POLICIES:
        raise DefinitionError(
            f"there is no refresh policy {policy!r}",
            code="VK-POLICY",
            hint=f"The policies are {', '.join(POLICIES)}.",
        )


def _unchanged(view: str, reason: str | None) -> ViewRefresh:
    return ViewRefresh(view, "unchanged", None, reason, 0, 0, 0, 0, 0.0, 0.0)
