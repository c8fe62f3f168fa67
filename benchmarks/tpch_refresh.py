"""The 22 queries of TPC-H as views: incremental against full, per query and share of changed orders.

Orders and lineitems are partitioned by month; orders of the last months come, go and change, with their
lines. In each round every view is refreshed by deltas and then in full, and after another change as it is by
default, each on its own. One round warms up; the median of the others counts. In the first of them the rows
are counted that leave the scans of the source tables, by Spark's event log. ``--together`` refreshes all 22
in one epoch instead.

    python benchmarks/tpch_refresh.py --scale 1 --percents 0.1 1 10 --save
    python benchmarks/tpch_refresh.py --scale 10 --percents 0.1 --together --save
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

import event_log
import report
import tpch
import viewkeeper as vk

QUERIES = {path.stem: path for path in sorted((Path(__file__).parent / "tpch_queries").glob("q*.sql"))}
WARM_UP = 1
WAYS = ("incremental", "full", "auto")
RECENT = {0.1: ("1998-05-01", 300), 1.0: ("1998-05-01", 30), 10.0: ("1996-09-01", 24)}
"""By the share of changed orders: since when orders change, and in how many parts they are taken. The last
three of 80 months hold 3.9 % of the orders, the last 23 of them 29 %."""
CLASSES = {
    "sums of one or two tables": ("q01", "q06", "q12", "q14", "q19"),
    "joins and groups": ("q03", "q05", "q07", "q08", "q09", "q10", "q16", "q18"),
    "EXISTS, IN, outer joins": ("q04", "q13", "q20", "q21"),
    "scalar subqueries": ("q02", "q11", "q15", "q17", "q22"),
}


def change(spark: SparkSession, percent: float, batch: int) -> None:
    """Of eight parts of the recent orders four are copied, two of them deleted and two updated."""
    since, parts = RECENT[percent]
    first = 4 * batch % (parts - 4)
    recent = f"o_orderdate >= DATE'{since}' AND o_orderkey < 1000000000 AND pmod(hash(o_orderkey), {parts})"
    tpch.copy_orders(spark, f"{recent} BETWEEN {first} AND {first + 3}", (batch + 1) * 1_000_000_000)
    tpch.delete_orders(spark, f"{recent} BETWEEN {first} AND {first + 1}")
    tpch.update_orders(spark, f"{recent} BETWEEN {first + 2} AND {first + 3}")


def opened(folder: Path, data: Path, queries: Sequence[str], state: str) -> vk.Warehouse:
    """The tables of one scale, and the views over them."""
    wh = vk.connect(folder)
    tpch.load(wh.spark, data, "recent", tpch.ALL_TABLES)
    for name in queries:
        wh.sql(
            f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('viewkeeper.hidden-state' = '{state}') "
            f"WITH NO DATA AS {QUERIES[name].read_text('utf-8')}"
        )
    wh.refresh()
    return wh


def one_by_one(
    wh: vk.Warehouse, log: Path, percent: float, rounds: int, queries: Sequence[str], batch: int
) -> list[dict[str, object]]:
    """A row for each view."""
    taken: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in queries}
    read: dict[str, dict[str, int]] = {name: {} for name in queries}
    chosen: dict[str, str] = {}
    for round_ in range(WARM_UP + rounds):
        for ways in (WAYS[:2], WAYS[2:]):
            change(wh.spark, percent, batch)
            batch += 1
            for name in queries:
                for way in ways:
                    begun, started = time.time(), time.monotonic()
                    epoch = wh.refresh(name, policy=way)
                    if round_ >= WARM_UP:
                        taken[name][way].append(time.monotonic() - started)
                    if round_ == WARM_UP:
                        read[name][way] = event_log.source_rows(log, begun, time.time(), tpch.ALL_TABLES)
                    if way == "auto":
                        chosen[name] = epoch.view(name).strategy
                    print(f"{percent:g} % {name} {way}: {time.monotonic() - started:.2f} s", flush=True)
    return [_row(percent, name, taken[name], read[name], chosen[name]) for name in queries]


def _row(
    percent: float, name: str, taken: dict[str, list[float]], read: dict[str, int], chosen: str
) -> dict[str, object]:
    medians = {way: statistics.median(taken[way]) for way in WAYS}
    limit = max(1.15 * medians["full"], medians["full"] + 0.5)
    return {
        "changed %": percent,
        "query": name,
        **{way: round(seconds, 2) for way, seconds in medians.items()},
        "full / incremental": round(medians["full"] / medians["incremental"], 2),
        "auto chose": chosen,
        "auto too slow": medians["auto"] > limit,
        "source rows read": f"{read['incremental']:,}",
        "by recomputing": f"{read['full']:,}",
    }


def together(wh: vk.Warehouse, percent: float, rounds: int, batch: int) -> dict[str, object]:
    """All views in one epoch, and all of them recomputed in one."""
    taken: dict[str, list[float]] = defaultdict(list)
    for round_ in range(WARM_UP + rounds):
        change(wh.spark, percent, batch + round_)
        for way in ("auto", "full"):
            started = time.monotonic()
            epoch = wh.refresh(policy=way)
            seconds = time.monotonic() - started
            if round_ >= WARM_UP:
                taken[way].append(seconds)
            kept = sum(view.strategy == "incremental" for view in epoch.views)
            print(f"{percent:g} % together {way}: {seconds:.1f} s, {kept} by deltas", flush=True)
    refresh, full = (statistics.median(taken[way]) for way in ("auto", "full"))
    return {
        "changed %": percent,
        "refresh": round(refresh, 1),
        "full": round(full, 1),
        "ratio": round(full / refresh, 2),
    }


def by_class(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """How many times faster deltas are, by class of query and share: the crossover is where that is 1."""
    result: list[dict[str, object]] = []
    for percent in dict.fromkeys(row["changed %"] for row in rows):
        ratios = {
            name: [
                float(str(row["full / incremental"]))
                for row in rows
                if row["changed %"] == percent and row["query"] in queries
            ]
            for name, queries in CLASSES.items()
        }
        result.append(
            {
                "changed %": percent,
                **{name: round(statistics.median(each), 2) for name, each in ratios.items() if each},
            }
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--percents", type=float, nargs="+", default=list(RECENT), choices=list(RECENT))
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--state", choices=("none", "keep"), default="none", help="keep inner results")
    arguments = report.arguments(parser)
    data = tpch.generate(arguments.data, arguments.scale, tpch.ALL_TABLES)
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    rows: list[dict[str, object]] = []
    try:
        log = event_log.write_to(folder)
        wh = opened(folder / "lake", data, arguments.queries, arguments.state)
        batch = 0
        for percent in arguments.percents:
            if arguments.together:
                rows.append(together(wh, percent, arguments.rounds, batch))
            else:
                rows += one_by_one(wh, log, percent, arguments.rounds, arguments.queries, batch)
            batch += 2 * (WARM_UP + arguments.rounds)
        wrong = [str(check) for check in wh.verify() if not check.ok]
        exact = f"All {len(arguments.queries)} views are exact: {not wrong}. Medians of {arguments.rounds}."
        print(report.table(rows), exact, *wrong, sep="\n")
        _save(rows, exact, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _save(rows: Sequence[dict[str, object]], exact: str, arguments: argparse.Namespace) -> None:
    if not arguments.save:
        return
    what = "together" if arguments.together else "one_by_one"
    kept = arguments.state == "keep"
    name = f"tpch_refresh-{what}-sf{arguments.scale:g}{'-hidden-state' if kept else ''}"
    title = f"TPC-H's 22 queries as views, scale {arguments.scale:g}, {what.replace('_', ' ')}"
    title += ", inner results kept" if kept else ""
    if arguments.together:
        report.save(name, title, rows, exact)
        return
    classes = by_class(rows)
    remark = "How many times faster than recomputing, medians by class of query:\n\n" + report.table(classes)
    report.save(name, title, rows, exact, remark)
    styles = dict(zip(list(classes[0])[1:], ("-", "--", "-.", ":"), strict=False))
    report.plot(name, "times faster than recomputing", classes, ("changed %", "changed orders, %"), styles)


if __name__ == "__main__":
    main()
