"""A graph of 20 views in four levels over TPC-H, refreshed together, beside recomputing all of them.

The *recent* pattern of :mod:`tpch`: about 1 % of the orders change, with their lines, in the last months of
tables that are partitioned by month. Warm, in one run: six rounds warm up, the median of the others counts;
in the first ones the JVM compiles more than it computes (9 of 15 seconds of CPU in the second, 3 of 9 in the
eighth). How often source tables are scanned is counted from Spark's event log, and set beside what the plan
says.

    python benchmarks/vdag.py --save
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import event_log
import report
import tpch
import viewkeeper as vk

WARM_UP = 6
VIEWS = {
    # Over the sources.
    "order_lines": "SELECT o_orderkey, o_custkey, o_orderdate, l_linenumber, l_suppkey, l_quantity, "
    "l_extendedprice, l_discount FROM orders JOIN lineitem ON o_orderkey = l_orderkey",
    "open_orders": "SELECT o_orderkey, o_custkey, o_orderdate, o_totalprice FROM orders "
    "WHERE o_orderstatus = 'O'",
    "customers_by_nation": "SELECT n_name, c_mktsegment, COUNT(*) AS n FROM customer JOIN nation "
    "ON c_nationkey = n_nationkey GROUP BY n_name, c_mktsegment",
    "part_sales": "SELECT l_partkey, SUM(l_quantity) AS qty, COUNT(*) AS n FROM lineitem GROUP BY l_partkey",
    "supplier_sales": "SELECT l_suppkey, SUM(l_extendedprice) AS price, COUNT(*) AS n FROM lineitem "
    "GROUP BY l_suppkey",
    "by_order": tpch.GROUP_BY,
    "orders_by_day": "SELECT o_orderdate, COUNT(*) AS n, SUM(o_totalprice) AS price FROM orders "
    "GROUP BY o_orderdate",
    "ship_modes": "SELECT l_shipmode, l_returnflag, COUNT(*) AS n, SUM(l_quantity) AS qty FROM lineitem "
    "GROUP BY l_shipmode, l_returnflag",
    # Over those.
    "revenue_by_customer": "SELECT o_custkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, "
    "COUNT(*) AS n FROM order_lines GROUP BY o_custkey",
    "revenue_by_day": "SELECT o_orderdate, SUM(l_extendedprice) AS price, COUNT(*) AS n FROM order_lines "
    "GROUP BY o_orderdate",
    "discounts": "SELECT l_discount, COUNT(*) AS n, SUM(l_quantity) AS qty FROM order_lines "
    "GROUP BY l_discount",
    "sales_by_nation": "SELECT n_name, SUM(price) AS price, SUM(n) AS n FROM supplier_sales "
    "JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey GROUP BY n_name",
    "large_orders": "SELECT l_orderkey, quantity, price FROM by_order WHERE quantity > 250",
    "open_by_customer": "SELECT o_custkey, COUNT(*) AS n, SUM(o_totalprice) AS price FROM open_orders "
    "GROUP BY o_custkey",
    "orders_by_month": "SELECT year(o_orderdate) AS y, month(o_orderdate) AS m, SUM(n) AS n, "
    "SUM(price) AS price FROM orders_by_day GROUP BY year(o_orderdate), month(o_orderdate)",
    # Over those.
    "customer_revenue": "SELECT c_custkey, c_name, c_mktsegment, revenue, n FROM revenue_by_customer "
    "JOIN customer ON o_custkey = c_custkey",
    "revenue_by_month": "SELECT year(o_orderdate) AS y, month(o_orderdate) AS m, SUM(price) AS price "
    "FROM revenue_by_day GROUP BY year(o_orderdate), month(o_orderdate)",
    "large_order_details": "SELECT o_orderkey, o_orderpriority, quantity, price FROM large_orders "
    "JOIN orders ON l_orderkey = o_orderkey",
    # And over those.
    "revenue_by_segment": "SELECT c_mktsegment, SUM(revenue) AS revenue, SUM(n) AS n FROM customer_revenue "
    "GROUP BY c_mktsegment",
    "large_by_priority": "SELECT o_orderpriority, COUNT(*) AS n, SUM(quantity) AS qty "
    "FROM large_order_details GROUP BY o_orderpriority",
}


def planned_scans(plan: vk.Plan) -> Counter[str]:
    """How often the statements of a plan read each source table."""
    text = json.dumps(plan.to_json())
    found: Counter[str] = Counter()
    for table in tpch.TABLES:
        tagged = rf'"\$": "TableAt", "table": "lake\.(?:`default`|default)\.{table}"'
        written = rf"FROM `lake`\.`default`\.`{table}`"
        found[table] = len(re.findall(tagged, text)) + len(re.findall(written, text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = report.arguments(parser)
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    log = event_log.write_to(folder)
    try:
        run(folder, log, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, log: Path, arguments: argparse.Namespace) -> None:
    wh = vk.connect(folder / "lake")
    tpch.load(wh.spark, tpch.generate(arguments.data, arguments.scale), "recent")
    for name, query in VIEWS.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS {query}")
    wh.refresh()
    taken: dict[str, list[float]] = {"refresh": [], "recompute": []}
    planned, counted, chosen = Counter[str](), Counter[str](), Counter[str]()
    for round_ in range(WARM_UP + arguments.rounds):
        tpch.change(wh.spark, "recent", round_)
        planned = planned_scans(wh.plan())
        started = time.time()
        seconds, epoch = timed(wh.refresh)
        counted = event_log.counted_scans(log, started, time.time(), tpch.TABLES)
        chosen = Counter(view.strategy for view in epoch.views)
        full, _ = timed(lambda: wh.refresh(policy="full"))
        print(f"round {round_}: refresh {seconds:.2f} s ({dict(chosen)}), recompute {full:.2f} s", flush=True)
        if round_ >= WARM_UP:
            taken["refresh"].append(seconds)
            taken["recompute"].append(full)
    assert all(check.ok for check in wh.verify())
    refresh, recompute = (statistics.median(taken[each]) for each in ("refresh", "recompute"))
    rows: list[dict[str, object]] = [
        {
            "scale": arguments.scale,
            "views": len(VIEWS),
            "refresh": round(refresh, 2),
            "recompute": round(recompute, 2),
            "times faster": round(recompute / refresh, 2),
        }
    ]
    scans = "Scans of source tables in the last refresh, planned and counted: " + ", ".join(
        f"{table} {planned[table]} and {counted[table]}" for table in tpch.TABLES
    )
    print(report.table(rows), scans, sep="\n\n")
    if arguments.save:
        strategies = f"Strategies of the last refresh: {dict(chosen)}. Every view was exact."
        report.save("vdag", "A graph of 20 views in four levels", rows, strategies, scans + ".")
    wh.close()


def timed(act: Callable[[], vk.Epoch]) -> tuple[float, vk.Epoch]:
    started = time.monotonic()
    epoch = act()
    return time.monotonic() - started, epoch


if __name__ == "__main__":
    main()
