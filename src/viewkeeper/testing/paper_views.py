"""The views and tables of a warehouse on paper: a retail one, and as many views as asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.define.definitions import Expectation, OnViolation
from viewkeeper.sql.quoting import ident

TABLES: Mapping[str, str] = {
    "pos": "storeID INT, itemID INT, date DATE, qty INT, price DECIMAL(8,2)",
    "stores": "storeID INT, city STRING, region STRING",
    "items": "itemID INT, name STRING, category STRING, cost DECIMAL(8,2)",
}
ROWS = {"pos": 5_000_000, "stores": 100, "items": 5_000}


@dataclass(frozen=True, slots=True)
class PaperView:
    """A view to define: its query, and the columns and types that Spark would say it has."""

    name: str
    query: str
    columns: str
    comment: str | None = None
    expectations: tuple[Expectation, ...] = ()


RETAIL: tuple[PaperView, ...] = (
    PaperView(
        "SID_sales",
        "SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity\n"
        "FROM pos\nGROUP BY storeID, itemID, date",
        "storeID INT, itemID INT, date DATE, TotalCount BIGINT, TotalQuantity BIGINT",
        "Sales by store, item and day",
        (Expectation("positive_quantity", "TotalQuantity > 0"),),
    ),
    PaperView(
        "sCD_sales",
        "SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity\n"
        "FROM pos, stores\nWHERE pos.storeID = stores.storeID\nGROUP BY city, date",
        "city STRING, date DATE, TotalCount BIGINT, TotalQuantity BIGINT",
    ),
    PaperView(
        "SiC_sales",
        "SELECT storeID, category, COUNT(*) AS TotalCount, MIN(date) AS EarliestSale\n"
        "FROM pos, items\nWHERE pos.itemID = items.itemID\nGROUP BY storeID, category",
        "storeID INT, category STRING, TotalCount BIGINT, EarliestSale DATE",
    ),
    PaperView(
        "sR_sales",
        "SELECT region, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity\n"
        "FROM pos, stores\nWHERE pos.storeID = stores.storeID\nGROUP BY region",
        "region STRING, TotalCount BIGINT, TotalQuantity BIGINT",
    ),
    PaperView(
        "sales_in_full",
        "SELECT pos.date, stores.city, items.category, pos.qty, pos.price\n"
        "FROM pos\nJOIN stores ON pos.storeID = stores.storeID\nJOIN items ON pos.itemID = items.itemID",
        "date DATE, city STRING, category STRING, qty INT, price DECIMAL(8,2)",
        None,
        (Expectation("has_a_price", "price IS NOT NULL", OnViolation.FAIL_EPOCH),),
    ),
    PaperView(
        "city_totals",
        "SELECT city, COUNT(*) AS Days, SUM(TotalCount) AS TotalCount\nFROM sCD_sales\nGROUP BY city",
        "city STRING, Days BIGINT, TotalCount BIGINT",
    ),
    PaperView(
        "store_tree",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5)\n"
        "SELECT region, n FROM stores, t",
        "region STRING, n INT",
        "Recomputed each time: no rule for recursion",
    ),
)


TOGETHER = 5
"""So many views are refreshed in an epoch of :func:`~viewkeeper.testing.ledgers.paper_ledger`."""


def sales_views(count: int, names: Sequence[str] = ()) -> Iterator[PaperView]:
    """So many views, ``sales_by_0`` and so on; ``names``: of the first. Of five, one is over a join and one
    reads the view before it; the last of all cannot be kept by deltas."""
    given = [*names, *(f"sales_by_{number}" for number in range(len(names), count))][:count]
    for at, name in enumerate(given):
        key, columns, source = "storeID", "storeID INT, n BIGINT, qty BIGINT", "pos"
        if at % TOGETHER == 2:
            key, columns = "category", "category STRING, n BIGINT, qty BIGINT"
            source = "pos JOIN items ON pos.itemID = items.itemID"
        elif at % TOGETHER == TOGETHER - 1:
            source = ident(given[at - 1])
        query = f"SELECT {key}, COUNT(*) AS n, SUM(qty) AS qty FROM {source} GROUP BY {key}"
        if at == count - 1 > 0:
            recursive = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5)"
            query, columns = f"{recursive} SELECT storeID, n, qty FROM pos, t", "storeID INT, n INT, qty INT"
        yield PaperView(name, query, columns, expectations=(Expectation("sold", "qty > 0"),))
