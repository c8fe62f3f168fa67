"""The oracle: whatever happens to the sources, a view must hold what its query gives.

A case is run in a namespace and with a ledger of its own: make the tables and the views; then, cycle by
cycle, change the tables, refresh, and compare every view with its query, recomputed at the recorded versions,
both ways. A view that should be kept by deltas and was not is a failure, too.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.errors import ViewkeeperError
from viewkeeper.ledger import sqlite_url
from viewkeeper.plan.situation import USUAL, Options
from viewkeeper.results import Epoch
from viewkeeper.session import apply_settings, close_work_session, work_session
from viewkeeper.sql.quoting import quote_path
from viewkeeper.testing.cases import Case, Cycle, View
from viewkeeper.warehouse import Warehouse, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = {
    # Tables of a few rows: compiling a plan takes longer than interpreting it, and one partition is enough.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings that make work on tiny tables quick."""


START = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
"""What time it is when the views of a case are filled."""
BETWEEN_CYCLES = timedelta(days=20)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a case: in which cycle (0 is the first filling), with which views, and how.

    ``kind`` is what a smaller case must share to be the same failure: the code of an error, say.
    """

    cycle: int
    views: tuple[str, ...]
    kind: str
    message: str

    def __str__(self) -> str:
        where = f"cycle {self.cycle}" if self.cycle else "at the start"
        return f"{where}: {self.message}"


@dataclass(slots=True)
class Outcome:
    """What came out of a case: failures, and how much was looked at."""

    failures: list[Failure] = field(default_factory=list)
    compared: int = 0
    incremental: int = 0
    skipped: list[str] = field(default_factory=list)
    """Views and statements of random cases that Spark itself refuses."""
    views: Counter[str] = field(default_factory=Counter)
    """How many views are ``incremental``, how many have no delta rule and are recomputed (``full``), and how
    many Spark itself has no meaning for (``refused``)."""

    @property
    def ok(self) -> bool:
        return not self.failures


class Oracle:
    """Runs cases beside a session of the user's, in namespaces that it makes and removes."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: str = "lake",
        *,
        clean_up: bool = True,
        options: Options = USUAL,
    ) -> None:
        self._spark = spark
        self._catalog = catalog
        self._clean_up = clean_up
        self._options = options

    def run(self, case: Case, *, skip_invalid: bool = False) -> Outcome:
        """Run a case to its end or to the first cycle that fails. ``skip_invalid`` passes over views and
        statements that Spark refuses, as it may refuse random ones."""
        outcome = Outcome()
        with self._warehouse() as warehouse:
            for statement in case.tables:
                warehouse.spark.sql(statement)
            views = self._define(warehouse, case, outcome, skip_invalid=skip_invalid)
            outcome.views.update("incremental" if each.incremental else "full" for each in warehouse.status())
            outcome.views["refused"] += len(outcome.skipped)
            if outcome.ok:
                self._check(warehouse, 0, Cycle(()), views, outcome)
            for number, cycle in enumerate(case.cycles, start=1):
                if not outcome.ok:
                    break
                for statement in cycle.statements:
                    if not _runs(warehouse.spark, statement, skip_invalid=skip_invalid):
                        outcome.skipped.append(statement)
                self._check(warehouse, number, cycle, views, outcome)
        return outcome

    def _define(
        self, warehouse: Warehouse, case: Case, outcome: Outcome, *, skip_invalid: bool
    ) -> dict[str, View]:
        defined: dict[str, View] = {}
        for view in case.views:
            if skip_invalid and not _has_a_meaning(warehouse.spark, view.query):
                outcome.skipped.append(view.name)
                continue
            try:
                warehouse.sql(view.sql)
            except Exception as error:  # what is no ViewkeeperError is a failure all the more
                outcome.failures.append(Failure(0, (view.name,), *_told(error)))
                return defined
            defined[view.name] = view
        return defined

    def _check(
        self, warehouse: Warehouse, number: int, cycle: Cycle, views: dict[str, View], outcome: Outcome
    ) -> None:
        """Refresh, then compare all the views, also those that lag behind: at their own versions."""
        names = [name for name in cycle.views if name in views]
        warehouse.clock = lambda: START + number * BETWEEN_CYCLES
        try:
            epoch = warehouse.refresh(*names, policy=cycle.policy)
            verified = warehouse.verify()
        except Exception as error:  # what is no ViewkeeperError is a failure all the more
            kind, message = _told(error)
            named = tuple(name for name in views if re.search(rf"\b{name}\b", message))
            outcome.failures.append(Failure(number, named or tuple(views), kind, message))
            return
        if number:
            outcome.failures += _recomputed(number, cycle, epoch, views)
        outcome.incremental += sum(view.strategy == "incremental" for view in epoch.views)
        outcome.compared += len(verified)
        outcome.failures += [
            Failure(number, (found.view.rsplit(".", 1)[-1],), "rows", str(found))
            for found in verified
            if not found.ok
        ]

    @contextmanager
    def _warehouse(self) -> Iterator[Warehouse]:
        """A warehouse in an empty namespace; its ledger is gone afterwards, and so are its tables."""
        namespace = (self._catalog, f"oracle_{os.getpid()}_{uuid.uuid4().hex[:8]}")
        session = work_session(self._spark)
        apply_settings(session, TINY)
        session.sql(f"CREATE NAMESPACE {quote_path(namespace)}")
        session.sql(f"USE {quote_path(namespace)}")
        with tempfile.TemporaryDirectory(prefix="viewkeeper-oracle-") as folder:
            ledger = sqlite_url(Path(folder) / "ledger.db")
            with connect(spark=session, catalog=self._catalog, ledger=ledger) as warehouse:
                warehouse.options = self._options
                try:
                    yield warehouse
                finally:
                    if self._clean_up:
                        _remove(warehouse, namespace)
        close_work_session(session)


def _remove(warehouse: Warehouse, namespace: tuple[str, ...]) -> None:
    for view in reversed(warehouse.views()):
        warehouse.sql(f"DROP MATERIALIZED VIEW {view}")
    where = quote_path(namespace)
    for row in warehouse.spark.sql(f"SHOW TABLES IN {where}").collect():
        warehouse.spark.sql(f"DROP TABLE {where}.{quote_path((row['tableName'],))} PURGE")
    warehouse.spark.sql(f"DROP NAMESPACE {where}")


def _has_a_meaning(spark: SparkSession, query: str) -> bool:
    try:
        return bool(spark.sql(query).columns)
    except Exception:  # whatever Spark says against it: it is not a test of ours
        return False


def _runs(spark: SparkSession, statement: str, *, skip_invalid: bool) -> bool:
    try:
        spark.sql(statement)
    except Exception:  # whatever Spark or Iceberg say against it: it is not a test of ours
        if not skip_invalid:
            raise
        return False
    return True


def _recomputed(number: int, cycle: Cycle, epoch: Epoch, views: dict[str, View]) -> Iterator[Failure]:
    """The views that were recomputed, although there is a delta rule for all that they do."""
    if cycle.policy != "incremental":
        return
    for refreshed in epoch.views:
        name = refreshed.view.rsplit(".", 1)[-1]
        if refreshed.strategy == "full" and views[name].incremental:
            yield Failure(number, (name,), "recomputed", f"{name} was recomputed: {refreshed.reason}")


def _told(error: Exception) -> tuple[str, str]:
    """The kind and the words of an error."""
    if isinstance(error, ViewkeeperError):
        return error.code, str(error)
    return type(error).__name__, f"{type(error).__name__}: {error}"
