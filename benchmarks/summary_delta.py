"""Figure 10 of the summary-delta paper (Mumick, Quass, Mumick; SIGMOD 1997), on Spark.

The four summary tables of the paper over ``pos``. Panels (a) and (c): 500,000 sales, 1,000 to 10,000 changes;
(b) and (d): 100,000 to 500,000 sales, 10,000 changes. Changes are *update-generating* (as many insertions as
deletions, over existing dates, stores and items) in (a) and (b), *insertion-generating* (new dates) in (c)
and (d). ``--large`` has 5 and 50 million sales and 10,000 changes.

Each round applies as many changes afresh and then times one way to bring all four views up to date; one round
warms up, the median of the others counts. Extraction is staged, and told apart.

    python benchmarks/summary_delta.py --save
    python benchmarks/summary_delta.py --large --save
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import report
import viewkeeper as vk
from viewkeeper.cli.retail import DAYS, VIEWS, Retail

PAPER_VIEWS = ("SID_sales", "sCD_sales", "SiC_sales", "sR_sales")
WARM_UP = 1
CHANGES = (1_000, 2_500, 5_000, 7_500, 10_000)
SALES = (100_000, 200_000, 300_000, 400_000, 500_000)
LARGE = (5_000_000, 50_000_000)
SERIES = {
    "propagate, lattice": "-",
    "propagate, alone": ":",
    "maintain, lattice": "-",
    "rematerialise": "--",
    "counting": "-.",
}
"""What the figure shows, each with its style of line."""


@dataclass(frozen=True)
class Way:
    """One way to bring the views up to date."""

    name: str
    options: vk.Options
    policy: str


WAYS = (
    Way("lattice", vk.Options(vk.Aggregates.LATTICE, stage_extracts=True), "incremental"),
    Way("alone", vk.Options(vk.Aggregates.ALONE, stage_extracts=True), "incremental"),
    Way("rematerialised", vk.Options(vk.Aggregates.LATTICE), "full"),
    Way("counting", vk.Options(vk.Aggregates.COUNTING, stage_extracts=True), "incremental"),
)


@dataclass
class Shop:
    """A warehouse with the four views, and the changes to its sales."""

    wh: vk.Warehouse
    sales: Retail
    batches: int = 0

    @classmethod
    def open(cls, folder: Path, sales: int) -> Shop:
        wh = vk.connect(folder)
        retail = Retail(wh.spark, sales)
        retail.create()
        for name in PAPER_VIEWS:
            wh.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS {VIEWS[name]}")
        wh.refresh()
        return cls(wh, retail)

    def change(self, kind: str, count: int) -> None:
        """So many changes, others in each batch."""
        self.batches += 1
        first = self.sales.rows + self.batches * 1_000_000
        if kind == "insertions":
            self.sales.sell(first, count, str(DAYS + self.batches))
            return
        parts = 2 * self.sales.rows // count
        lot = f"pmod(xxhash64(storeID, itemID, date, qty, price, {self.batches}), {parts})"
        self.wh.spark.sql(f"DELETE FROM pos WHERE {lot} = 0")
        self.sales.sell(first, count // 2, f"(xxhash64(id, 9) & 1073741823) % {DAYS}")

    def measure(self, kind: str, count: int, rounds: int, ways: Sequence[Way]) -> dict[str, dict[str, float]]:
        """The median seconds of each part of each way."""
        taken: dict[str, list[dict[str, float]]] = {way.name: [] for way in ways}
        for round_ in range(WARM_UP + rounds):
            for way in ways:
                self.change(kind, count)
                self.wh.options = way.options
                epoch = self.wh.refresh(policy=way.policy)
                parts = _parts(epoch.seconds)
                if round_ >= WARM_UP:
                    taken[way.name].append(parts)
                shown = ", ".join(f"{part} {seconds:.2f}" for part, seconds in parts.items())
                print(f"{self.sales.rows:,} sales, {count:,} {kind}, {way.name}: {shown}", flush=True)
        return {
            way: {part: statistics.median(each[part] for each in done) for part in done[0]}
            for way, done in taken.items()
        }


def _parts(seconds: dict[str, float]) -> dict[str, float]:
    """Propagate is what is computed from the extracted changes; refresh is the window."""
    extract = seconds.get("extract", 0.0)
    return {
        "observe": seconds.get("observe", 0.0),
        "extract": extract,
        "propagate": max(0.0, seconds.get("compute", 0.0) - extract),
        "refresh": seconds.get("install", 0.0) + seconds.get("publish", 0.0) + seconds.get("finish", 0.0),
    }


def point(shop: Shop, kind: str, count: int, rounds: int, ways: Sequence[Way]) -> dict[str, object]:
    """One row of a panel."""
    found = shop.measure(kind, count, rounds, ways)

    def maintenance(way: str) -> float:
        return found[way]["extract"] + found[way]["propagate"] + found[way]["refresh"]

    row: dict[str, object] = {
        "sales": shop.sales.rows,
        "changes": count,
        "kind": kind,
        "extract": round(found["lattice"]["extract"], 2),
        "propagate, lattice": round(found["lattice"]["propagate"], 2),
        "propagate, alone": round(found["alone"]["propagate"], 2),
        "maintain, lattice": round(maintenance("lattice"), 2),
        "maintain, alone": round(maintenance("alone"), 2),
        "rematerialise": round(maintenance("rematerialised"), 2),
    }
    if "counting" in found:
        row["counting"] = round(maintenance("counting"), 2)
    full, lattice = maintenance("rematerialised"), maintenance("lattice")
    row["ratio"] = round(full / lattice, 2)
    # In the paper the changes are there already.
    row["ratio, changes given"] = round(full / (lattice - found["lattice"]["extract"]), 2)
    return row


def panels(folder: Path, rounds: int) -> dict[str, list[dict[str, object]]]:
    """The four panels of the figure."""
    found: dict[str, list[dict[str, object]]] = {"a": [], "b": [], "c": [], "d": []}
    for sales in SALES:
        shop = Shop.open(folder / f"sales-{sales}", sales)
        for kind, by_sales, by_changes in (("updates", "b", "a"), ("insertions", "d", "c")):
            counts = CHANGES if sales == SALES[-1] else (CHANGES[-1],)
            for count in counts:
                row = point(shop, kind, count, rounds, WAYS)
                found[by_changes] += [row] if sales == SALES[-1] else []
                found[by_sales] += [row] if count == CHANGES[-1] else []
        exact = all(check.ok for check in shop.wh.verify())
        print(f"{sales:,} sales: {'exact' if exact else 'WRONG'}", flush=True)
        assert exact
        shop.wh.close()
    return found


def large(folder: Path, rounds: int, sizes: Sequence[int], ways: Sequence[Way]) -> list[dict[str, object]]:
    """Few changes to many sales."""
    rows = []
    for sales in sizes:
        shop = Shop.open(folder / f"sales-{sales}", sales)
        rows += [point(shop, kind, CHANGES[-1], rounds, ways) for kind in ("updates", "insertions")]
        print(report.table(rows), flush=True)
        exact = all(check.ok for check in shop.wh.verify())
        print(f"{sales:,} sales: {'exact' if exact else 'WRONG'}", flush=True)
        assert exact
        shop.wh.close()
    return rows


def plot(panel: str, rows: Sequence[dict[str, object]]) -> Path:
    """The panel as a drawing beside its table."""
    along = ("changes", "changes of pos") if panel in "ac" else ("sales", "rows of pos")
    title = f"Figure 10 ({panel}): {rows[0]['kind']}"
    return report.plot(f"summary_delta-{panel}", title, rows, along, SERIES)


def main() -> None:
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    try:
        if arguments.large:
            ways = [way for way in WAYS if way.name != "counting" or arguments.counting]
            rows = large(folder, arguments.rounds, arguments.sizes, ways)
            if arguments.save:
                report.save(
                    "summary_delta-large", "Four summary tables over many sales, 10,000 changes", rows
                )
            return
        found = panels(folder, arguments.rounds)
        for panel, rows in found.items():
            print(f"({panel})\n{report.table(rows)}", flush=True)
            if arguments.save:
                report.save(f"summary_delta-{panel}", f"Figure 10 ({panel})", rows)
                plot(panel, rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--large", action="store_true", help="5 and 50 million sales in the place of the figure"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(LARGE))
    parser.add_argument("--counting", action="store_true", help="with --large: the counting algorithm, too")
    return report.arguments(parser)


if __name__ == "__main__":
    main()
