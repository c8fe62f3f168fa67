"""The experiments of the WHIPS paper (Labio et al., VLDB 2000, Figures 13 to 32), on Spark and Iceberg.

``L`` is lineitem, of which an update ratio of 1 to 10 % changes: each changed row is deleted and inserted.
Series over the ratio have TPC-H scale 0.1 (0.36 for Figures 29 and 30), ``--scale 1`` has that for all of
them; series over the size have scales 0.04 to 0.36, and as many changed rows in each. A figure's view is
made, kept by each way in turn, every time after a fresh change, and dropped again; one round warms up, the
median of the others counts. Before that what was changed is compacted.

    python benchmarks/whips.py --save
    python benchmarks/whips.py --figures 20 24 --scale 1
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import report
import tpch
import viewkeeper as vk
from viewkeeper.execute.installing import Installed, Installing
from viewkeeper.plan.steps import ComputeBag

RATIOS = (1, 2.5, 5, 7.5, 10)
SCALES = (0.04, 0.12, 0.2, 0.28, 0.36)
FIXED = 0.36
"""Per cent of the lines at scale 1 that change, where the number of changed rows is fixed: about 2.6 MB."""
COPIES = (1, 2, 3, 4, 5)
WARM_UP = 1

LINES = "SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, l_extendedprice FROM {lines}"
V_LARGE = "SELECT l_orderkey, COUNT(*) AS n, SUM(l_quantity) AS qty FROM lineitem GROUP BY l_orderkey"
V_SMALL = "SELECT l_linenumber, COUNT(*) AS n, SUM(l_quantity) AS qty FROM lineitem GROUP BY l_linenumber"
LO_1 = (
    "SELECT l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, "
    "l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, "
    "l_comment, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, "
    "o_shippriority, o_comment FROM lines_view JOIN orders ON l_orderkey = o_orderkey"
)
LO_2 = "SELECT l_partkey, o_orderdate FROM lines_view JOIN orders ON l_orderkey = o_orderkey"
Q10_FROM = (
    "FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey "
    "JOIN nation ON c_nationkey = n_nationkey WHERE l_returnflag = 'R'"
)
V_SFWG = (
    "SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, "
    f"c_address, c_phone {Q10_FROM} GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address"
)
V_SFW = f"SELECT l_orderkey, l_linenumber, c_custkey, l_extendedprice, n_name {Q10_FROM}"

OTHER_PART = "l_partkey = l_partkey + IF(l_partkey % 2 = 0, 1, -1)"
"""All that LO_2 shows of a line is its part."""
OTHER_PRICE = "l_extendedprice = l_extendedprice + 0.01"
"""V_SFW and V_SFWG show no quantity."""

CNT = "TBLPROPERTIES ('viewkeeper.representation' = 'cnt')"
DUP = "TBLPROPERTIES ('viewkeeper.representation' = 'dup')"
APPEND = "TBLPROPERTIES ('viewkeeper.install' = 'sdappend')"


@dataclass(frozen=True)
class Way:
    """One way to keep a figure's view: how it is defined, and by which method it is refreshed."""

    name: str
    clauses: str = ""
    method: vk.Method | None = None
    policy: str = "incremental"
    by_value: bool = False
    """Look rows up by all their columns, and do not try their hash before."""
    maintained: bool = False
    """Rewrite its files afterwards, and count that, too."""


AGGREGATES = (
    Way("FULLRECOMP", policy="full"),
    Way("SDCURSOR", method=vk.Method.SDCURSOR),
    Way("SDBATCH", method=vk.Method.SDBATCH),
    Way("SDOVERWRITE", method=vk.Method.SDOVERWRITE),
    Way("SDAPPEND", APPEND),
)


@dataclass
class Taken:
    """Seconds of one refresh."""

    compute: float
    install: float

    @property
    def total(self) -> float:
        return self.compute + self.install


@dataclass
class Lake:
    """The tables of one scale, with every line so many times in ``lines``, and the changes to them."""

    wh: vk.Warehouse
    rounds: int
    batches: int = 0
    changed: set[str] = field(default_factory=set)
    """Since they were last compacted."""
    found: dict[tuple[object, ...], Taken] = field(default_factory=dict)
    """What was measured already: some figures show two sides of the same runs."""

    @classmethod
    def open(cls, folder: Path, data: Path, scale: float, copies: int, rounds: int) -> Lake:
        wh = vk.connect(folder / f"scale-{scale:g}-{copies}")
        files = tpch.generate(data, scale)
        keys = {"lineitem": ("l_orderkey", "l_linenumber"), "orders": ("o_orderkey",)}
        for table in ("customer", "nation", "orders", "lineitem"):
            tpch.load_keyed(wh.spark, files, table, keys.get(table, ()))
        if copies > 1:
            wh.spark.sql(
                "CREATE TABLE lines USING iceberg TBLPROPERTIES ('format-version' = '3', "
                "'write.update.mode' = 'merge-on-read') AS SELECT lineitem.* FROM lineitem "
                f"LATERAL VIEW explode(sequence(1, {copies})) AS copy"
            )
        return cls(wh, rounds)

    def tidy(self) -> None:
        """Compact the tables that were changed. Whoever changes a tenth of a table again and again does that,
        too: else it would soon hold more deleted rows than others, and each refresh would read them."""
        for table in self.changed:
            options = "map('rewrite-all', 'true')"
            self.wh.spark.sql(
                f"CALL lake.system.rewrite_data_files(table => 'default.{table}', options => {options})"
            )
        self.changed.clear()

    def change(self, table: str, percent: float, also: Sequence[str] = ()) -> None:
        """Change the quantity of so many lines, and what else is to be set; all copies of a line alike."""
        self.batches += 1
        self.changed.add(table)
        lot = f"pmod(xxhash64(l_orderkey, l_linenumber, {self.batches}), 10000) < {round(100 * percent)}"
        values = ", ".join(("l_quantity = l_quantity + 1", *also))
        self.wh.spark.sql(f"UPDATE {table} SET {values} WHERE {lot}")

    def measure(
        self, query: str, percent: float, ways: Sequence[Way], table: str = "lineitem", upper: str = ""
    ) -> dict[str, Taken]:
        """The medians of each way. ``upper``: a view that reads this one, and is timed in its place."""
        for way in ways:
            asked = (query, percent, way, table, upper)
            if asked not in self.found:
                self.found[asked] = self._measure(*asked)
        return {way.name: self.found[query, percent, way, table, upper] for way in ways}

    def _measure(self, query: str, percent: float, way: Way, table: str, upper: str) -> Taken:
        self.tidy()
        self.wh.sql(f"CREATE MATERIALIZED VIEW lines_view {way.clauses} AS {query}")
        if upper:
            self.wh.sql(f"CREATE MATERIALIZED VIEW upper_view AS {upper}")
        self.wh.options = vk.Options(install=way.method)
        taken = []
        for _ in range(WARM_UP + self.rounds):
            self.change(table, percent, (OTHER_PART if upper else OTHER_PRICE,))
            with _looking_up() if way.by_value else nullcontext():
                epoch = self.wh.refresh(policy=way.policy)
            timed = next(
                each for each in epoch.views if each.view.endswith("upper_view" if upper else "lines_view")
            )
            seconds = Taken(timed.compute_seconds or 0.0, timed.install_seconds or 0.0)
            if way.maintained:
                seconds.install += _seconds(lambda: self.wh.maintain("lines_view"))
            taken.append(seconds)
            print(f"  {way.name}, {percent:g} %: {seconds.compute:.2f} + {seconds.install:.2f} s", flush=True)
        assert all(check.ok for check in self.wh.verify())
        if upper:
            self.wh.sql("DROP MATERIALIZED VIEW upper_view")
        self.wh.sql("DROP MATERIALIZED VIEW lines_view")
        kept = taken[WARM_UP:]
        return Taken(
            statistics.median(each.compute for each in kept), statistics.median(each.install for each in kept)
        )


@dataclass
class Bench:
    """Opens lakes, each once, and remembers where."""

    folder: Path
    data: Path
    rounds: int
    scale: float | None
    open_lakes: dict[tuple[float, int], Lake] = field(default_factory=dict)
    found: dict[tuple[float, int], dict[tuple[object, ...], Taken]] = field(default_factory=dict)

    def lake(self, scale: float, copies: int = 1) -> Lake:
        """Only one is open at a time: Spark has one session."""
        key = (scale, copies)
        if key not in self.open_lakes:
            for other in self.open_lakes.values():
                other.wh.close()
            self.open_lakes.clear()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.open_lakes[key] = Lake.open(self.folder, self.data, scale, copies, self.rounds)
            self.open_lakes[key].found = self.found.setdefault(key, {})
        return self.open_lakes[key]

    def usual(self, scale: float = 0.1) -> float:
        return scale if self.scale is None else self.scale

    def by_ratio(self, scale: float, copies: int = 1) -> Iterator[tuple[dict[str, object], Lake, float]]:
        for ratio in RATIOS:
            yield {"update ratio %": ratio}, self.lake(self.usual(scale), copies), ratio

    def by_size(self, copies: int = 1) -> Iterator[tuple[dict[str, object], Lake, float]]:
        for scale in SCALES:
            yield {"scale": scale}, self.lake(scale, copies), FIXED / scale


Row = dict[str, object]
Series = Iterator[tuple[Row, Lake, float]]


def aggregate(query: str, series: Series, *, install_only: bool = False) -> list[Row]:
    """Figures 20 to 27: total seconds, or those of the install phase of the two that have one."""
    ways = [way for way in AGGREGATES if not install_only or way.name in ("SDCURSOR", "SDBATCH", "SDAPPEND")]
    return [
        {**label, **{name: round(t.install if install_only else t.total, 2) for name, t in found.items()}}
        for label, lake, percent in series
        for found in [lake.measure(query, percent, ways)]
    ]


def installs(query: str, ways: Sequence[Way], series: Series, table: str = "lineitem") -> list[Row]:
    """Figures 13 to 18 and 28: seconds of the install phase."""
    return [
        {**label, **{name: round(taken.install, 2) for name, taken in found.items()}}
        for label, lake, percent in series
        for found in [lake.measure(query.format(lines=table), percent, ways, table)]
    ]


def ratios(series: Series) -> list[Row]:
    """Figures 29 to 32: both phases, and their ratio."""
    rows = []
    for label, lake, percent in series:
        grouped = lake.measure(V_SFWG, percent, [Way("SFWG", method=vk.Method.SDBATCH)])["SFWG"]
        plain = lake.measure(V_SFW, percent, [Way("SFW", method=vk.Method.KEYINSTALL)])["SFW"]
        rows.append(
            {
                **label,
                "compute V_SFWG": round(grouped.compute, 2),
                "install V_SFWG": round(grouped.install, 2),
                "compute V_SFW": round(plain.compute, 2),
                "install V_SFW": round(plain.install, 2),
                "ratio V_SFWG": round(grouped.compute / grouped.install, 1),
                "ratio V_SFW": round(plain.compute / plain.install, 1),
            }
        )
    return rows


def derived(bench: Bench) -> list[Row]:
    """Figure 19: seconds to compute the deltas of two views over L, 5 % of it changed."""
    rows = []
    for copies in COPIES:
        lake = bench.lake(bench.usual(), copies)
        table = "lines" if copies > 1 else "lineitem"
        row: Row = {"copies": copies}
        for name, upper in (("LO_1", LO_1), ("LO_2", LO_2)):
            ways = [Way("DUP", DUP), Way("CNT", CNT)]
            found = lake.measure(f"SELECT * FROM {table}", 5, ways, table, upper)
            row |= {f"{name}, {way}": round(taken.compute, 2) for way, taken in found.items()}
        rows.append(row)
    return rows


UNDER_CNT = (Way("one MERGE", CNT, vk.Method.SDCURSOR), Way("delete, insert", CNT, vk.Method.SDBATCH))
UNDER_DUP = (
    Way("KEYINSTALL", DUP, vk.Method.KEYINSTALL),
    Way("GENINSTALL by hash", DUP, vk.Method.GENINSTALL),
    Way("GENINSTALL by value", DUP, vk.Method.GENINSTALL, by_value=True),
)
BOTH = (Way("DUP", DUP, vk.Method.GENINSTALL), Way("CNT", CNT))
LAYOUTS = (
    Way("kept sorted", "CLUSTER BY (l_orderkey)", vk.Method.GENINSTALL),
    Way("not sorted", "", vk.Method.GENINSTALL),
    Way("rebuilt afterwards", "CLUSTER BY (l_orderkey)", vk.Method.GENINSTALL, maintained=True),
)

FIGURES: dict[int, tuple[str, Callable[[Bench], list[Row]]]] = {
    13: ("GENINSTALL under CNT, install", lambda b: installs(LINES, UNDER_CNT, b.by_ratio(0.1))),
    14: ("GENINSTALL under CNT, install", lambda b: installs(LINES, UNDER_CNT, b.by_size())),
    15: ("KEYINSTALL and GENINSTALL under DUP", lambda b: installs(LINES, UNDER_DUP, b.by_ratio(0.1))),
    16: ("DUP and CNT, no copies, install", lambda b: installs(LINES, BOTH, b.by_ratio(0.1))),
    17: ("DUP and CNT, 3 copies, install", lambda b: installs(LINES, BOTH, b.by_ratio(0.1, 3), "lines")),
    18: ("DUP and CNT, 3 copies, install", lambda b: installs(LINES, BOTH, b.by_size(3), "lines")),
    19: ("DUP and CNT, computing derived deltas", derived),
    20: ("V_large, total", lambda b: aggregate(V_LARGE, b.by_ratio(0.1))),
    21: ("V_large, install", lambda b: aggregate(V_LARGE, b.by_ratio(0.1), install_only=True)),
    22: ("V_large, total", lambda b: aggregate(V_LARGE, b.by_size())),
    23: ("V_large, install", lambda b: aggregate(V_LARGE, b.by_size(), install_only=True)),
    24: ("V_small, total", lambda b: aggregate(V_SMALL, b.by_ratio(0.1))),
    25: ("V_small, install", lambda b: aggregate(V_SMALL, b.by_ratio(0.1), install_only=True)),
    26: ("V_small, total", lambda b: aggregate(V_SMALL, b.by_size())),
    27: ("V_small, install", lambda b: aggregate(V_SMALL, b.by_size(), install_only=True)),
    28: ("layout kept or rebuilt, install", lambda b: installs(LINES, LAYOUTS, b.by_ratio(0.1))),
    29: (
        "V_SFWG and V_SFW, both phases and their ratio (with Figure 30)",
        lambda b: ratios(b.by_ratio(0.36)),
    ),
    31: ("V_SFWG and V_SFW, both phases and their ratio (with Figure 32)", lambda b: ratios(b.by_size())),
}


@contextmanager
def _looking_up() -> Iterator[None]:
    """Makes GENINSTALL look rows up by value, as it does where copies of a row stay."""
    usual = Installing.run

    def looking_up(
        installing: Installing, find_victims: Callable[[ComputeBag], None], *, by_value: bool = False
    ) -> Installed:
        return usual(installing, find_victims, by_value=True)

    Installing.run = looking_up  # type: ignore[method-assign]
    try:
        yield
    finally:
        Installing.run = usual  # type: ignore[method-assign]


def _seconds(act: Callable[[], object]) -> float:
    started = time.monotonic()
    act()
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", type=int, nargs="+", choices=list(FIGURES), default=list(FIGURES))
    parser.add_argument("--scale", type=float, help="of the series over the update ratio")
    arguments = report.arguments(parser)
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    bench = Bench(folder, arguments.data, arguments.rounds, arguments.scale)
    try:
        for figure in arguments.figures:
            title, run = FIGURES[figure]
            print(f"Figure {figure}: {title}", flush=True)
            rows = run(bench)
            print(report.table(rows), flush=True)
            if arguments.save:
                save(figure, title, rows, arguments.scale)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save(figure: int, title: str, rows: Sequence[Row], scale: float | None) -> None:
    """The table, and a drawing of it."""
    name = f"whips-{figure}" + (f"-scale-{scale:g}" if scale else "")
    report.save(name, f"Figure {figure}: {title}", rows, "Seconds, medians; every view was exact.")
    (along, *series) = rows[0]
    drawn = {each: "-" for each in series if not each.startswith("ratio")}
    report.plot(name, f"Figure {figure}: {title}", rows, (along, along), drawn)


if __name__ == "__main__":
    main()
