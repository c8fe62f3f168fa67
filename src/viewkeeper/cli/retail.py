"""The retail warehouse of the summary-delta paper (Mumick, Quass, Mumick; SIGMOD 1997, section 2 and
Figure 1): sales at the points of sale, stores, items, and four summary tables over them.

The data is made by Spark and is the same on every machine: each value is a hash of the row's number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS: dict[str, str] = {
    "SID_sales": """
        SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM pos
        GROUP BY storeID, itemID, date""",
    "sCD_sales": """
        SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM pos, stores
        WHERE pos.storeID = stores.storeID
        GROUP BY city, date""",
    "SiC_sales": """
        SELECT storeID, category, COUNT(*) AS TotalCount, MIN(date) AS EarliestSale,
               SUM(qty) AS TotalQuantity
        FROM pos, items
        WHERE pos.itemID = items.itemID
        GROUP BY storeID, category""",
    "sR_sales": """
        SELECT region, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM pos, stores
        WHERE pos.storeID = stores.storeID
        GROUP BY region""",
    # Not in the paper: a view on a view.
    "city_totals": """
        SELECT city, COUNT(*) AS Days, SUM(TotalCount) AS TotalCount, SUM(TotalQuantity) AS TotalQuantity
        FROM sCD_sales
        GROUP BY city""",
}

DAYS = 100
STORES = 100
CITIES = 20
REGIONS = 5
CATEGORIES = 10
_FIRST_DAY = "DATE'2026-01-01'"

# Row-level changes write delete files instead of rewriting whole data files.
_TABLE = (
    "USING iceberg {partitioning} TBLPROPERTIES ('format-version' = '3', "
    "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read', 'write.distribution-mode' = 'none')"
)


@dataclass(frozen=True, slots=True)
class Retail:
    """The source tables, ``rows`` sales of them, in the session's current namespace."""

    spark: SparkSession
    rows: int

    @property
    def items(self) -> int:
        """So many that a store sells an item about ten times a day, as in the paper's estimates."""
        return max(CATEGORIES, self.rows // (10 * DAYS * STORES))

    @property
    def rows_per_day(self) -> int:
        return self.rows // DAYS

    def create(self) -> None:
        """Make the tables and fill them with ``DAYS`` days of sales."""
        for name, columns, partitioning in (
            ("pos", "storeID INT, itemID INT, date DATE, qty INT, price DECIMAL(8, 2)", "(months(date))"),
            ("stores", "storeID INT, city STRING, region STRING", ""),
            ("items", "itemID INT, name STRING, category STRING, cost DECIMAL(8, 2)", ""),
        ):
            clause = _TABLE.format(partitioning=f"PARTITIONED BY {partitioning}" if partitioning else "")
            self.spark.sql(f"CREATE TABLE {name} ({columns}) {clause}")
        self._fill("stores", STORES, f"CAST(id AS INT), {_city('id')}, {_region('id')}")
        self._fill(
            "items",
            self.items,
            f"CAST(id AS INT), concat('item ', id), concat('category ', id % {CATEGORIES}), "
            "CAST(1 + id % 90 AS DECIMAL(8, 2))",
        )
        self.sell(0, self.rows, f"id * {DAYS} DIV {self.rows}")

    def pass_day(self, day: int) -> None:
        """The changes of the ``day``-th day (1, 2, …): its sales; some sales of the week before returned;
        some of their quantities corrected; and a store that moves to another city."""
        self.sell(self.rows + (day - 1) * self.rows_per_day, self.rows_per_day, str(DAYS - 1 + day))
        first, last = DAYS - 8 + day, DAYS - 2 + day
        week = f"date BETWEEN date_add({_FIRST_DAY}, {first}) AND date_add({_FIRST_DAY}, {last})"
        lot = f"pmod(hash(storeID, itemID, date, qty, price, {day}), 100)"
        self.spark.sql(f"DELETE FROM pos WHERE {week} AND {lot} = 0")
        self.spark.sql(f"UPDATE pos SET qty = qty + 1 WHERE {week} AND {lot} = 1")
        mover, city = (7 * day) % STORES, (7 * day + 3) % CITIES
        place = f"city = {_city(str(city))}, region = {_region(str(city))}"
        self.spark.sql(f"UPDATE stores SET {place} WHERE storeID = {mover}")

    def sell(self, first: int, count: int, day: str) -> None:
        """Insert sales; ``day`` is the number of the day as an expression over the row's ``id``."""
        columns = (
            f"CAST({_lot('id', 1)} % {STORES} AS INT), CAST({_lot('id', 2)} % {self.items} AS INT), "
            f"date_add({_FIRST_DAY}, CAST({day} AS INT)), CAST(1 + {_lot('id', 3)} % 9 AS INT), "
            f"CAST(0.99 + {_lot('id', 4)} % 80 AS DECIMAL(8, 2))"
        )
        self.spark.sql(f"INSERT INTO pos SELECT {columns} FROM range({first}, {first + count})")

    def _fill(self, table: str, count: int, columns: str) -> None:
        self.spark.sql(f"INSERT INTO {table} SELECT {columns} FROM range(0, {count}, 1, 1)")


def _lot(number: str, seed: int) -> str:
    """A number without sign that looks random and is always the same for a row."""
    return f"(xxhash64({number}, {seed}) & 1073741823)"


def _city(number: str) -> str:
    return f"concat('city ', {number} % {CITIES})"


def _region(number: str) -> str:
    """Every city lies in one region: city determines region, as in the paper."""
    return f"concat('region ', ({number} % {CITIES}) % {REGIONS})"
