"""The Spark side of a warehouse: one object that holds its sessions and does its Spark work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from viewkeeper.algebra.aggregates import GROUP_COUNT
from viewkeeper.algebra.empty_terms import KeyReference
from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.define.definitions import SessionPins, ViewDefinition
from viewkeeper.errors import DefinitionError, LedgerError, NotFoundError, RefreshError, ViewkeeperError
from viewkeeper.events import Event
from viewkeeper.execute.catalog import Catalog
from viewkeeper.execute.embedded import CATALOG, embedded_session
from viewkeeper.execute.executor import Executor
from viewkeeper.execute.faults import FAULTS, marks_in
from viewkeeper.execute.key_references import TouchedRows, Violations, holds, violations
from viewkeeper.execute.meter import metering
from viewkeeper.execute.observing import Observer
from viewkeeper.execute.sessions import Sessions
from viewkeeper.execute.sketches import Sketched, sketched
from viewkeeper.execute.tuning import METADATA, tuning_for
from viewkeeper.execute.verifying import Comparison, compare_all
from viewkeeper.install import storage
from viewkeeper.install.publish import run_chores
from viewkeeper.install.row_hash import HASH
from viewkeeper.ledger.records import Chore
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.overflows import overflow_search
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.steps import EpochPlan, Strategy
from viewkeeper.session import require_views, session_pins, work_session
from viewkeeper.sources.contract import ColumnStatistics
from viewkeeper.sources.iceberg_catalog import keeps_tables
from viewkeeper.sources.quarantine import quarantine_table
from viewkeeper.sql.quoting import quote, quote_path

logger = logging.getLogger("viewkeeper")


class Defined(Protocol):
    """Something with a definition, such as a known view."""

    @property
    def definition(self) -> ViewDefinition: ...


class Engine:
    """Everything that needs Spark. Work runs in sessions of our own; ``spark`` is the user's."""

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self.spark = spark
        self.catalog_name = catalog
        require_views(spark, catalog)
        self.sessions = Sessions(spark)
        # Overflow and bad casts are errors for us, whatever the user's session says.
        self.pins = replace(session_pins(spark), ansi=True)
        self.catalog = Catalog(self.sessions, self.pins)
        self.observer = Observer(self.catalog.session, self.catalog, catalog)
        self._caches = keeps_tables(spark, catalog)
        self._seen: dict[str, str] = {}

    def current_pins(self) -> SessionPins:
        """What gives a query its meaning in the user's session now; overflow is always an error."""
        pins = session_pins(self.spark)
        return SessionPins(pins.catalog, pins.namespace, pins.time_zone, True, pins.case_sensitive)

    def use(self, catalog: str | None, namespace: tuple[str, ...] | None) -> None:
        """Make these the current catalog and namespace of the user's session, creating the namespace."""
        pins = session_pins(self.spark)
        where = (catalog or pins.catalog, *(namespace or pins.namespace))
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path(where)}")
        self.spark.sql(f"USE {quote_path(where)}")

    def create_namespace(self, where: tuple[str, ...]) -> None:
        """Make sure that there is such a namespace."""
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path(where)}")

    def session_in(self, namespace: str) -> SparkSession:
        """A session of its own, in a new namespace of the warehouse's catalog."""
        where = (self.catalog_name, namespace)
        self.spark.sql(f"CREATE NAMESPACE {quote_path(where)}")
        return work_session(self.spark, replace(self.pins, catalog=self.catalog_name, namespace=(namespace,)))

    def see(self, snapshots: Mapping[str, str]) -> None:
        """Let the user's session know these snapshots of storage tables: its catalog may have cached the
        tables as they were before."""
        for table, snapshot in snapshots.items():
            if self._caches and self._seen.get(table) != snapshot:
                self.spark.sql(f"REFRESH TABLE {storage.table_sql(table)}")
                self._seen[table] = snapshot

    def executor(
        self, views: Mapping[str, Defined], plan: EpochPlan, emit: Callable[[Event], None]
    ) -> Executor:
        """For one epoch."""
        pins = {name: view.definition.session for name, view in views.items()}
        sizes = {view.view: view.work for view in plan.views if view.strategy is Strategy.INCREMENTAL}
        return Executor(self.sessions, pins, self.pins, sizes, emit)

    def metering(self, emit: Callable[[Event], None]) -> AbstractContextManager[None]:
        """While it lasts, what Spark reads is told now and then."""
        return metering(self.spark, emit)

    def create_storage(self, table: str, layout: Layout, definition: ViewDefinition) -> None:
        """An empty storage table; a type that Iceberg cannot store is the definition's error."""
        for statement in storage.create_storage(table, layout, definition):
            try:
                self.catalog.session.sql(statement)
            except PySparkException as error:
                raise DefinitionError(
                    f"the view's rows cannot be stored: {first_line(error)}",
                    code="VK-UNSTORABLE",
                    hint="Cast the column to a type that Iceberg has, EXTRACT a number from an interval,"
                    " or mend PARTITIONED BY / CLUSTER BY.",
                ) from error

    def quarantine(self, source: str) -> DataFrame:
        """The rows of a source that are set aside, in the user's session."""
        table = quarantine_table(self.catalog_name, source)
        if self.catalog.columns(table) is None:
            raise NotFoundError(
                f"source {source} sets no rows aside",
                code="VK-NO-QUARANTINE",
                hint="Only where it is declared with on_bad_rows 'quarantine' does it.",
            )
        return self.spark.table(quote_path(table))

    def read(self, query: str, epoch: int | None) -> DataFrame:
        """A query in the user's session, at the views of an epoch, which may be too old to be read."""
        try:
            return self.spark.sql(query)
        except Exception as error:  # Iceberg's own errors come as Java's
            said = str(error)
            gone = "Cannot find snapshot" in said or ("NOT_FOUND" in said and storage.NAMESPACE in said)
            if epoch is None or not gone:
                raise
            raise LedgerError(
                f"epoch {epoch} can no longer be read: what its views held was removed",
                code="VK-EPOCH-EXPIRED",
                hint="`viewkeeper maintain --keep-epochs --keep-days` says how long epochs can be read.",
            ) from error

    def rewriting_session(self) -> SparkSession:
        """A session for rewriting whole tables: with Spark's usual settings, not ours for small work."""
        return self.sessions.pinned(self.pins)

    def run_chores(
        self, chores: Sequence[Chore], is_left: Callable[[Chore], bool], done: Callable[[Chore], None]
    ) -> None:
        """Finish or clean up: what is left of it when its turn comes."""
        run_chores(self.catalog.session, chores, is_left, done)

    def clean_up(self, chores: Sequence[Chore]) -> None:
        """Clean up what the ledger was not told of: nobody else does."""
        self.run_chores(chores, lambda chore: True, lambda chore: None)

    def compare(self, comparisons: Sequence[Comparison], pins: SessionPins) -> list[tuple[int, int]]:
        """Of each view: rows missing from it, and rows it has too many."""
        return compare_all(self.sessions.pinned(pins), comparisons)

    def constants(self, expressions: Sequence[str], pins: SessionPins) -> list[Any]:
        """What expressions without columns are worth; no job. ``None`` of all, where one of them fails."""
        listed = ", ".join(f"{each} AS c{at}" for at, each in enumerate(expressions))
        try:
            return list(
                self.sessions.pinned(pins, METADATA).sql(f"SELECT {listed} FROM VALUES (0)").collect()[0]
            )
        except PySparkException:
            return [None] * len(expressions)

    def ask(self, query: str) -> list[Row]:
        """The answer to a question about the user's tables, under the names of the user's session."""
        try:
            return self.sessions.pinned(self.current_pins()).sql(query).collect()
        except PySparkException as error:
            raise DefinitionError(
                f"the tables cannot be asked: {first_line(error)}",
                code="VK-UNKNOWN-TABLE" if "NOT_FOUND" in (error.getCondition() or "") else "VK-UNANSWERED",
            ) from error

    def copies(self, table: str, layout: Layout) -> float | None:
        """How many copies a row of a bag has, on average; ``None`` if it has no rows."""
        rows, distinct = "count(*)", f"approx_count_distinct({HASH})"
        if layout.counted:
            rows, distinct = f"sum({quote(layout.stored_name(GROUP_COUNT))})", "count(*)"
        query = f"SELECT {rows} AS rows, {distinct} AS different FROM {storage.table_sql(table)}"
        (found,) = self.catalog.session.sql(query).collect()
        return found["rows"] / found["different"] if found["different"] else None

    def statistics(self, table: str, columns: Sequence[str]) -> Mapping[str, ColumnStatistics]:
        """What a source's own statistics tell of these columns."""
        return self.observer.source(table).distinct(table, columns)

    def count_values(self, table: str, version: str, columns: Sequence[str]) -> dict[str, Sketched]:
        """About how many values these columns of a source have, counted now; with sketches where the rows
        that come can be added to them. Nothing, if that fails."""
        source = self.observer.source(table)
        try:
            rows = self.sessions.pinned(self.pins).sql(f"SELECT * FROM {source.rows(table, version)}")
            found = sketched(rows, columns)
        except Exception as error:  # whatever it is: only estimates rest on this
            logger.info("the values of %s are not counted: %s", table, first_line(error))
            return {}
        if source.capabilities.rows_at_version:
            return found
        return {column: Sketched(each.values) for column, each in found.items()}

    def add_values(self, table: str, old: str, new: str, sketches: Mapping[str, str]) -> dict[str, Sketched]:
        """The sketches with the values of the rows that came between two versions. Nothing, if that fails,
        as of versions that are expired, and sketches that are none."""
        try:
            change = self.observer.source(table).change(table, old, new)
            if change is None:
                return {}
            session = self.sessions.pinned(self.pins)
            rows = reduce(DataFrame.unionAll, map(session.sql, change.statements(list(sketches))))
            return sketched(rows.where(f"{WEIGHT} > 0"), list(sketches), sketches)
        except Exception as error:  # likewise
            logger.info("the new values of %s are not counted: %s", table, first_line(error))
            return {}

    def widths(self, table: str, version: str, columns: Sequence[str]) -> dict[str, float]:
        """About how many bytes of a row these columns of a source take; nothing is counted for it."""
        return dict(self.observer.source(table).widths(table, version, columns)) if columns else {}

    def violations(self, touched: Sequence[TouchedRows]) -> list[Violations | None]:
        """Whether foreign keys hold on the rows touched; see :mod:`viewkeeper.foreign_keys`."""
        if not touched:
            return []
        changed = sum(each.rows for each in touched)
        return violations(self.sessions.pinned(self.pins, tuning_for(changed)), touched)

    def holds(self, reference: KeyReference, child: str, parent: str) -> bool:
        """Whether a foreign key holds on whole tables, as FROM has them."""
        return holds(self.sessions.pinned(self.pins), reference, child, parent)

    def rows(self, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
        """A small result as a DataFrame of the user's session."""
        return self.spark.createDataFrame(list(rows), schema)

    def explain_failure(
        self, error: Exception, view: ViewInput | None, versions: Mapping[str, str | None]
    ) -> ViewkeeperError:
        """Spark's failure in our words: which view, and that nothing was changed."""
        name = f"view {view.name}" if view else "the epoch"
        what, code, hint = first_line(error), RefreshError.code, None
        if isinstance(error, PySparkException):
            code = "VK-REFRESH-FAILED"
            condition = error.getCondition() or ""
            if "OVERFLOW" in condition or "OUT_OF_RANGE" in condition:
                code, hint = "VK-OVERFLOW", "Cast to a wider type in the view's query."
                where = None if view is None else self._overflowing(view, versions)
                what = f"a sum is too large for its type, {where}: {what}" if where else what
        for fault in FAULTS:
            if fault.marks & marks_in(str(error)):
                what, code, hint = f"{fault.what} ({fault.told(str(error)) or what})", fault.code, fault.hint
                break
        return RefreshError(
            f"{name}: {what}; every view is as it was", code=code, hint=hint, view=view.name if view else None
        )

    def _overflowing(self, view: ViewInput, versions: Mapping[str, str | None]) -> str | None:
        """The column and a group that overflow, as far as that can be told."""
        search = overflow_search(view, versions)
        if search is None:
            return None
        try:
            found = self.sessions.pinned(view.definition.session).sql(search.query).collect()
        except PySparkException:
            return None  # it was not the sum that failed, or not the sum alone
        return search.told(found[0].asDict()) if found else None


def embedded_engine(folder: Path) -> Engine:
    """An engine on the embedded warehouse in the folder."""
    return Engine(embedded_session(folder), CATALOG)


def first_line(error: Exception) -> str:
    """What Spark says, without the plan and the stack."""
    lines = str(error).strip().split("\n", 2)
    # What Spark raises of its own is told by py4j in two lines, the first of them naming a Java object.
    telling = 1 if lines[0].startswith("An error occurred while calling ") and len(lines) > 1 else 0
    return lines[telling].removeprefix(": ")[:500]
