"""Measures what operations take on this cluster (about two minutes), for the cost model to choose by.

Views of a few shapes, in a namespace and with a ledger of their own, are refreshed by every method that suits
them; from what that took the rates of :mod:`viewkeeper.plan.prices` are fitted. Nothing of it stays, but the
rates.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.algebra.reading_costs import SMALL_ROWS, width
from viewkeeper.ledger import sqlite_url
from viewkeeper.plan.fitting import Observation, fitted
from viewkeeper.plan.methods import PROPERTY, Method
from viewkeeper.plan.prices import BELIEVED, Rates, Sizes, loads_of
from viewkeeper.results import ViewRefresh
from viewkeeper.sql.quoting import quote
from viewkeeper.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Shape:
    """A table to calibrate with: its rows, and how many columns it has beside its key and its group."""

    rows: int
    columns: int


SHAPES = (Shape(50_000, 1), Shape(500_000, 8), Shape(2_500_000, 2))
_ROWS_OF_A_GROUP = 2
_CHANGED = (0.002, 0.03, 0.2)
"""Shares of the rows that are changed at once: without the last one, what a changed row takes is lost in the
noise."""
_INSERTED = 0.03


def calibrate(
    warehouse: Warehouse, shapes: Sequence[Shape] = SHAPES, tell: Callable[[str], object] = lambda said: None
) -> Rates:
    """Measure, and let the warehouse choose by what was found from now on."""
    with _workshop(warehouse) as workshop:
        found: list[Observation] = []
        for at, shape in enumerate(shapes):
            tell(f"{shape.rows:,} rows of {2 + shape.columns} columns")
            found += _Bench(workshop, shape).observations(warm_up=at == 0)
    rates = fitted(BELIEVED, found)
    warehouse.rates = rates
    return rates


@contextmanager
def _workshop(warehouse: Warehouse) -> Iterator[Warehouse]:
    """A warehouse beside the user's, on the same session and catalog, that leaves nothing behind."""
    namespace = f"_vk_calibration_{uuid.uuid4().hex[:8]}"
    with (
        tempfile.TemporaryDirectory() as folder,
        warehouse.beside(namespace, sqlite_url(Path(folder) / "ledger.db")) as workshop,
    ):
        try:
            yield workshop
        finally:
            for view in reversed(workshop.views()):
                workshop.sql(f"DROP MATERIALIZED VIEW {view}")
            spark = workshop.spark
            for table in spark.sql("SHOW TABLES").collect():
                spark.sql(f"DROP TABLE {quote(table['tableName'])} PURGE")
            spark.sql(f"DROP NAMESPACE {quote(warehouse.catalog)}.{quote(namespace)}")


class _Bench:
    """One shape: a table, and for each method a view that is kept by it."""

    def __init__(self, warehouse: Warehouse, shape: Shape) -> None:
        self._wh = warehouse
        self._shape = shape
        self._table = f"t_{shape.rows}_{shape.columns}"
        self._names = f"names_{shape.rows}_{shape.columns}"
        self._groups = shape.rows // _ROWS_OF_A_GROUP
        self._changes = 0
        self._gone = self._gone_before = 0
        self._views: dict[str, Method] = {}

    def observations(self, *, warm_up: bool) -> Iterator[Observation]:
        self._create()
        if warm_up:
            self._change(_CHANGED[0])
            self._all_measured()
        for share in _CHANGED:
            self._change(share)
            yield from self._all_measured()
        self._insert(_INSERTED)
        for view, method in self._views.items():
            if method in (Method.SDBATCH, Method.GENINSTALL):
                yield from self._measured(view, method)

    def _all_measured(self) -> list[Observation]:
        return [each for view, method in self._views.items() for each in self._measured(view, method)]

    def _create(self) -> None:
        spark, shape = self._wh.spark, self._shape
        values = ", ".join(f"v{at} DECIMAL(12,2)" for at in range(shape.columns))
        spark.sql(
            f"CREATE TABLE {self._table} (k BIGINT NOT NULL, g BIGINT, {values}) USING iceberg TBLPROPERTIES "
            "('format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
            "'write.update.mode' = 'merge-on-read')"
        )
        spark.sql(f"ALTER TABLE {self._table} SET IDENTIFIER FIELDS k")
        self._append(0, shape.rows)
        self._create_names()
        sums = ", ".join(f"sum(v{at}) AS s{at}" for at in range(shape.columns))
        shown = ", ".join(f"v{at}" for at in range(shape.columns))
        groups = f"SELECT g, count(*) AS n, {sums} FROM {self._table} GROUP BY g"
        bag = f"SELECT k, g, {shown} FROM {self._table} WHERE v0 >= 0"
        join = f"SELECT k, name, {shown} FROM {self._table} JOIN {self._names} ON g = id"
        for kind, query, methods in (
            ("g", groups, (Method.SDCURSOR, Method.SDBATCH, Method.SDOVERWRITE, Method.FULLRECOMP)),
            ("b", bag, (Method.GENINSTALL, Method.KEYINSTALL, Method.FULLRECOMP)),
            ("j", join, (Method.GENINSTALL, Method.FULLRECOMP)),
        ):
            for method in methods:
                view = f"{self._table}_{kind}_{method.value}"
                pinned = "auto" if method is Method.FULLRECOMP else method.value
                self._wh.sql(
                    f"CREATE MATERIALIZED VIEW {view} TBLPROPERTIES ('{PROPERTY}' = '{pinned}') "
                    f"WITH NO DATA AS {query}"
                )
                self._views[view] = method
        self._wh.refresh()

    def _create_names(self) -> None:
        """A table to join with, which never changes: a name for each group."""
        self._wh.spark.sql(
            f"CREATE TABLE {self._names} USING iceberg AS "
            f"SELECT id, concat('group ', id) AS name FROM range({self._groups})"
        )

    def _append(self, first: int, rows: int) -> None:
        """Rows of random groups; beyond the first ones, half of the groups are new."""
        values = ", ".join(
            f"CAST(pmod(xxhash64(id, {at}), 1000000) / 100 AS DECIMAL(12,2))"
            for at in range(self._shape.columns)
        )
        group = f"pmod(xxhash64(id), {self._groups})"
        if first:
            group += f" + CASE WHEN id % 2 = 0 THEN {first} ELSE 0 END"
        self._wh.spark.sql(
            f"INSERT INTO {self._table} SELECT id, {group}, {values} FROM range({first}, {first + rows})"
        )

    def _change(self, share: float) -> None:
        """Of the changed rows a third each is inserted, updated and deleted."""
        self._changes += 1
        parts = round(3 / share)
        lot = f"pmod(xxhash64(k, {self._changes}), {parts})"
        self._wh.spark.sql(f"DELETE FROM {self._table} WHERE {lot} = 0")
        self._wh.spark.sql(f"UPDATE {self._table} SET v0 = v0 + 1 WHERE {lot} = 1")
        self._insert(share / 3)
        self._gone_before, self._gone = self._gone, self._gone + round(self._shape.rows * share * 2 / 3)

    def _insert(self, share: float) -> None:
        first = self._shape.rows * (self._changes + 10)
        self._append(first, round(self._shape.rows * share))

    def _measured(self, view: str, method: Method) -> tuple[Observation, ...]:
        full = method is Method.FULLRECOMP
        (found,) = self._wh.refresh(view, policy="full" if full else "incremental").views
        sizes = self._sizes(found, groups="_g_" in view, joins="_j_" in view)
        loads = tuple(loads_of(method, sizes))
        if full:
            return (Observation(loads, found.compute_seconds + found.install_seconds),)
        computes = tuple(load for load in loads if not load.installs)
        installs = tuple(load for load in loads if load.installs)
        return (
            Observation(computes, found.compute_seconds),
            Observation(installs, found.install_seconds),
        )

    def _sizes(self, found: ViewRefresh, *, groups: bool, joins: bool) -> Sizes:
        shape = self._shape
        joined = float(self._groups) if joins else 0.0
        value = width("decimal(12,2)")
        row = width("bigint") + shape.columns * value
        name = width("bigint") + width("string")
        deleting = found.deleted + found.updated > 0
        # Deleted rows are found among those of their files; what they are joined with is read whole.
        read = (shape.rows if deleting else 0.0), joined
        return Sizes(
            base_rows=shape.rows + joined,
            base_bytes=shape.rows * row + joined * name,
            work_rows=sum(read),
            work_bytes=read[0] * row + read[1] * name,
            changed=found.inserted + found.deleted + found.updated,
            stored_rows=self._groups if groups else shape.rows,
            stored_width=2 * width("bigint") + shape.columns * (width("decimal(22,2)") if groups else value),
            inserted=found.inserted,
            deleted=found.deleted,
            updated=found.updated,
            grouped=groups,
            joined_rows=sum(rows for rows in (shape.rows, joined) if rows > SMALL_ROWS) if joins else 0.0,
            partners=1 if joins else 0,
            passed_over=self._gone_before if deleting else 0.0,
        )
