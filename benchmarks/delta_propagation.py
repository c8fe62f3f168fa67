"""The experiments of the delta-propagation paper (Lee, Son, Kim; CIKM 2001, Section 5), on Spark.

The view joins CUSTOMER, ORDERS, LINEITEM, SUPPLIER, NATION and REGION. *changes* (its Figure 4): 2 to
10 % of every relation changed; *sizes* (Figure 5): databases of 50 to 200 %, 10 % changed; *three*: 1 % of
customer, orders and lineitem, the rest unchanged. Half of the changed rows are deleted, as many inserted.

Each round applies a change afresh and then times one way to compute the view's delta, from extracted changes;
two rounds warm up, the median of the others counts. The expression with all terms, which has 63 when
all relations changed, takes part in one round. Recomputing is the query itself, written into the storage.
What the ways are estimated to read, and to add up in the end, stands beside what they took, and the rank
correlation of both below. *alone* is the expression without what comes after it, whichever it is: its rows
are produced, and neither added up nor kept. *touched rows* is no expression: the rows that a change touches
are made anew (KEYREPLACE), as in a view that no other reads where most of its tables changed. Instead of
their change the stored rows are deleted by their keys, so that what computing and installing take together is
compared, too (*installed*).

    python benchmarks/delta_propagation.py --save
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

import report
import tpch
import viewkeeper as vk
from viewkeeper.algebra.relations import Aggregate, Filter
from viewkeeper.execute.executor import Executor
from viewkeeper.install.counts import Counts
from viewkeeper.plan.steps import ComputeBag

VIEW = "six_way"
SLOW = "all terms"
WARM_UP = 2
"""Rounds: in the first ones the planner learns how large the deltas of parts are, by counting them."""
QUICK_ROUNDS = 3
CHANGED_PERCENT = (2, 4, 6, 8, 10)
SCALES = (0.5, 1.0, 1.5, 2.0)
TOUCHED = "touched rows"
BY_DELTA = vk.Method.GENINSTALL
WAYS = {
    "optimal": vk.Options(joins=vk.Joins.OPTIMAL, install=BY_DELTA, stage_extracts=True),
    "n-term": vk.Options(joins=vk.Joins.N_TERM, install=BY_DELTA, stage_extracts=True),
    SLOW: vk.Options(joins=vk.Joins.ALL_TERMS, install=BY_DELTA, stage_extracts=True),
    TOUCHED: vk.Options(install=vk.Method.KEYREPLACE, stage_extracts=True),
}
UPDATES = {
    "customer": ("c_custkey", "c_name = concat(substr(c_name, 1, 18), '{batch}')"),
    "orders": ("o_orderkey", "o_orderdate = date_add(o_orderdate, 1)"),
    "lineitem": ("l_orderkey, l_linenumber", "l_quantity = l_quantity + 1"),
    "supplier": ("s_suppkey", "s_name = concat(substr(s_name, 1, 18), '{batch}')"),
}
"""The key of each large table, and a change to a column that the view shows."""
NEWCOMERS = {
    "nation": ("n_nationkey", "n_nationkey, n_name, n_regionkey, n_comment", "{key}, 'NOWHERE', 0, ''"),
    "region": ("r_regionkey", "r_regionkey, r_name, r_comment", "{key}, 'NOWHERE', ''"),
}
"""The key of each small table, its columns, and a row of it."""
UNUSED_KEYS = 1_000

TITLES = {
    "changes": "all six relations changed",
    "sizes": "databases of 50 to 200 %, 10 % of every relation changed",
    "three": "1 % of customer, orders and lineitem changed",
}
THREE = ("customer", "orders", "lineitem")


def change(spark: SparkSession, tables: Sequence[str], percent: float, batch: int) -> None:
    """Update half as many rows of each table: each is deleted and inserted. Of the two tables that have but a
    few rows, some per cent are none: in them a row comes and goes to which no other refers."""
    for table in tables:
        if table in NEWCOMERS:
            key, columns, values = NEWCOMERS[table]
            spark.sql(f"DELETE FROM {table} WHERE {key} >= {UNUSED_KEYS}")
            row = values.format(key=UNUSED_KEYS + batch)
            spark.sql(f"INSERT INTO {table} ({columns}) VALUES ({row})")
            continue
        key, update = UPDATES[table]
        lot = f"pmod(xxhash64({key}, {batch}), {round(200 / percent)}) = 0"
        spark.sql(f"UPDATE {table} SET {update.format(batch=batch)} WHERE {lot}")


@dataclass
class Timed:
    """What one way was estimated to read and to add up, and the seconds that it took: all of it, and its
    expression alone."""

    work: int | None
    seconds: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    installed: list[float] = field(default_factory=list)
    """With installing."""


@contextmanager
def _timing_expressions(taken: list[float]) -> Iterator[None]:
    """Runs each expression once alone, before it is run to be installed."""
    usual = Executor._compute_bag

    def timed(executor: Executor, step: ComputeBag) -> Counts:
        summed = step.relation
        assert isinstance(summed, Filter) and isinstance(summed.child, Aggregate)
        started = time.monotonic()
        rows = executor._rows(executor._session(step.view), summed.child.child)
        rows.write.format("noop").mode("overwrite").save()
        taken.append(time.monotonic() - started)
        return usual(executor, step)

    Executor._compute_bag = timed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Executor._compute_bag = usual  # type: ignore[method-assign]


def measure(
    wh: vk.Warehouse, tables: Sequence[str], percent: float, rounds: int, batches: Iterator[int]
) -> dict[str, Timed]:
    """Every way, one after the other in each round."""
    found: dict[str, Timed] = {}
    for round_ in range(WARM_UP + rounds):
        for way, options in WAYS.items():
            if way == SLOW and round_ != WARM_UP:
                continue
            change(wh.spark, tables, percent, next(batches))
            wh.options = options
            (planned,) = wh.plan(policy="incremental").views
            work = sum(told.cost + told.net_cost for told in planned.propagations) or None
            alone: list[float] = []
            with _timing_expressions(alone):
                epoch = wh.refresh(policy="incremental")
            seconds = epoch.seconds["compute"] - epoch.seconds.get("extract", 0.0) - sum(alone)
            timed = found.setdefault(way, Timed(work))
            if round_ >= WARM_UP:
                timed.seconds.append(seconds)
                timed.alone += alone
                timed.installed.append(seconds + epoch.seconds["install"])
            print(
                f"{percent:g} % of {len(tables)} tables, {way}: {seconds:.2f} s, alone {sum(alone):.2f} s, "
                f"installed in {epoch.seconds['install']:.2f} s, {(work or 0) / 1e6:,.0f} MB",
                flush=True,
            )
        started = time.monotonic()
        wh.refresh(policy="full")
        timed = found.setdefault("recompute", Timed(None))
        if round_ >= WARM_UP:
            timed.seconds.append(time.monotonic() - started)
    return found


def row(label: dict[str, object], found: dict[str, Timed]) -> dict[str, object]:
    """One line of a table: seconds, and the megabytes that were to be read."""
    medians = {way: statistics.median(timed.seconds) for way, timed in found.items()}
    alone = {way: statistics.median(found[way].alone) for way in ("optimal", "n-term")}
    whole = {way: statistics.median(found[way].installed) for way in ("optimal", "n-term", TOUCHED)}
    return {
        **label,
        **{way: round(seconds, 2) for way, seconds in medians.items()},
        **{f"{way}, MB": round(timed.work / 1e6) for way, timed in found.items() if timed.work is not None},
        "n-term / optimal": round(medians["n-term"] / medians["optimal"], 2),
        **{f"{way}, alone": round(seconds, 2) for way, seconds in alone.items()},
        "n-term / optimal, alone": round(alone["n-term"] / alone["optimal"], 2),
        **{f"{way}, installed": round(seconds, 2) for way, seconds in whole.items()},
        f"n-term / {TOUCHED}": round(medians["n-term"] / medians[TOUCHED], 2),
        f"n-term / {TOUCHED}, installed": round(whole["n-term"] / whole[TOUCHED], 2),
    }


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's: that of the ranks."""

    def ranks(values: Sequence[float]) -> list[float]:
        ordered = sorted(values)
        return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]

    return statistics.correlation(ranks([one for one, _ in pairs]), ranks([two for _, two in pairs]))


def opened(folder: Path, data: Path, scale: float) -> vk.Warehouse:
    """The tables of one scale, and the view over them."""
    wh = vk.connect(folder / f"scale-{scale:g}")
    tpch.load(wh.spark, tpch.generate(data, scale), "spread")
    wh.sql(f"CREATE MATERIALIZED VIEW {VIEW} AS {tpch.JOIN}")
    return wh


def main() -> None:
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    batches = iter(range(1, 1_000_000))
    rows: dict[str, list[dict[str, object]]] = {"changes": [], "sizes": [], "three": []}
    pairs: list[tuple[float, float]] = []
    measured: dict[tuple[float, float], dict[str, Timed]] = {}
    try:
        for scale in arguments.scales if "sizes" in arguments.experiments else (1.0,):
            wh = opened(folder, arguments.data, scale)
            for experiment, tables, percents in _experiments(arguments, scale):
                for percent in percents:
                    rounds = (
                        max(arguments.rounds, QUICK_ROUNDS) if experiment == "three" else arguments.rounds
                    )
                    # A database of 100 % with 10 % changed belongs to two experiments.
                    found = measured.get((scale, percent)) or measure(wh, tables, percent, rounds, batches)
                    if tables == tpch.TABLES:
                        measured[scale, percent] = found
                    label: dict[str, object] = {"scale": scale, "changed %": percent}
                    rows[experiment].append(row(label, found))
                    rows[experiment].sort(key=lambda each: (each["scale"], each["changed %"]))
                    pairs += [
                        (timed.work, statistics.median(timed.seconds))
                        for timed in found.values()
                        if timed.work is not None
                    ]
                    print(report.table(rows[experiment]), flush=True)
                    if arguments.save:
                        save(experiment, rows[experiment])
            exact = all(check.ok for check in wh.verify())
            print(f"scale {scale:g}: {'exact' if exact else 'WRONG'}", flush=True)
            assert exact
            wh.close()
            shutil.rmtree(folder / f"scale-{scale:g}")
        rank = rank_correlation(pairs)
        told = f"Rank correlation of estimated work and time, over {len(pairs)} runs: {rank:.2f}."
        print(told)
        for experiment, found_rows in rows.items() if arguments.save else ():
            if found_rows:
                save(experiment, found_rows, told)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save(experiment: str, rows: Sequence[dict[str, object]], *remarks: str) -> None:
    """The table, and a drawing of it."""
    name, title = f"delta_propagation-{experiment}", f"Delta propagation: {TITLES[experiment]}"
    report.save(name, title, rows, *remarks)
    if len(rows) > 1:
        along = (
            ("scale", "scale")
            if experiment == "sizes"
            else ("changed %", "per cent of every relation changed")
        )
        report.plot(name, title, rows, along, {**dict.fromkeys(WAYS, "-"), "recompute": "--"})


def _experiments(
    arguments: argparse.Namespace, scale: float
) -> Iterator[tuple[str, Sequence[str], Sequence[float]]]:
    wanted = arguments.experiments
    if scale == 1.0 and "three" in wanted:
        yield "three", THREE, (1,)
    if scale == 1.0 and "changes" in wanted:
        yield "changes", tpch.TABLES, arguments.percents
    if "sizes" in wanted:
        yield "sizes", tpch.TABLES, (10,)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--experiments",
        nargs="+",
        choices=("changes", "sizes", "three"),
        default=["changes", "sizes", "three"],
    )
    parser.add_argument("--scales", type=float, nargs="+", default=list(SCALES))
    parser.add_argument("--percents", type=float, nargs="+", default=list(CHANGED_PERCENT))
    return report.arguments(parser)


if __name__ == "__main__":
    main()
