"""Is the choice right? Every way to refresh a view, over a grid of cases, beside the one that is chosen.

Eight views, two sizes, four changes: 64 cases. In each, every method that suits the view has a copy of the
view of its own, and so has the refresh as it is by default, which chooses by calibrated prices and by nothing
but its own history. After each change all copies are refreshed, one by one, another one first each time: the
first to see a change finds its metadata unread. A case is right if what was chosen is within 10 % of the
best, or within 0.2 s. Beside it stand the paper's rules of thumb (Labio et al. 2000, Sections 4.1.3 and
4.2.3). Calibration sees none of these views.

It takes more than an hour. With ``--save`` each case is written down when it is done, in
``results/choice.jsonl``, and a later run goes on behind the last one, with the prices of the first.

    python benchmarks/choice.py --save
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import report
import viewkeeper as vk
from viewkeeper.calibrating import calibrate
from viewkeeper.plan.prices import Rates, rates_as_json, rates_of_json
from whips import Q10_FROM, V_SFW, V_SFWG, Lake

CHANGED_PERCENT = (0.1, 1, 5, 20)
SCALES = (0.1, 0.36)
WARM_UP = 1
FULL = "fullrecomp"
GROUPS = (vk.Method.SDCURSOR, vk.Method.SDBATCH, vk.Method.SDOVERWRITE)
AMOUNTS = tuple(f"{each} = {each} + 0.01" for each in ("l_extendedprice", "l_tax", "l_discount"))
"""Every view shows some of them."""
KEYED = (vk.Method.KEYINSTALL, vk.Method.GENINSTALL)
BAG = (vk.Method.GENINSTALL,)


@dataclass(frozen=True)
class Case:
    """A view: its query, the methods that suit it, and the copies of each line."""

    name: str
    query: str
    methods: tuple[vk.Method, ...]
    copies: int = 1
    few_groups: bool = False


CASES = (
    Case(
        "per order",
        "SELECT l_orderkey, COUNT(*) AS n, SUM(l_tax) AS tax FROM lineitem GROUP BY l_orderkey",
        GROUPS,
    ),
    Case(
        "per part",
        "SELECT l_partkey, SUM(l_quantity) AS qty, MAX(l_shipdate) AS last FROM lineitem GROUP BY l_partkey",
        GROUPS,
    ),
    Case(
        "per mode",
        "SELECT l_shipmode, AVG(l_discount) AS discount, COUNT(*) AS n FROM lineitem GROUP BY l_shipmode",
        GROUPS,
        few_groups=True,
    ),
    Case("per customer", V_SFWG, GROUPS),
    Case(
        "per priority",
        f"SELECT o_orderpriority, n_name, SUM(l_quantity) AS qty {Q10_FROM} GROUP BY o_orderpriority, n_name",
        GROUPS,
        few_groups=True,
    ),
    Case("lines", "SELECT l_orderkey, l_linenumber, l_quantity, l_shipmode FROM lineitem", KEYED),
    Case("returned", V_SFW, KEYED),
    Case("copies", "SELECT l_partkey, l_quantity, l_shipmode FROM lines", BAG, copies=3),
)


def rule_of_thumb(case: Case, percent: float, scale: float) -> str:
    """What the paper's guidelines say."""
    if case.methods != GROUPS:
        return vk.Method.GENINSTALL.value
    if case.few_groups:
        return vk.Method.SDBATCH.value
    if percent >= 10:
        return vk.Method.SDOVERWRITE.value
    return (vk.Method.SDCURSOR if percent < 1 and scale >= 0.3 else vk.Method.SDBATCH).value


def measure(lake: Lake, case: Case, percent: float, rounds: int) -> tuple[dict[str, float], str, float]:
    """The median seconds of each method; what was chosen most often, and the median of that."""
    table = "lines" if case.copies > 1 else "lineitem"
    taken: dict[str, list[float]] = {method.value: [] for method in case.methods} | {FULL: [], "auto": []}
    chosen: list[str] = []
    lake.tidy()
    for way in taken:
        lake.wh.sql(f"CREATE MATERIALIZED VIEW by_{way} AS {case.query}")
    for round_ in range(WARM_UP + rounds):
        lake.change(table, percent, AMOUNTS)
        for way in _rotated(list(taken), round_):
            is_auto, is_full = way == "auto", way == FULL
            lake.wh.options = vk.Options(install=None if is_auto or is_full else vk.Method(way))
            policy = "auto" if is_auto else "full" if is_full else "incremental"
            started = time.monotonic()
            epoch = lake.wh.refresh(f"by_{way}", policy=policy)
            seconds = time.monotonic() - started
            if round_ >= WARM_UP:
                taken[way].append(seconds)
                if is_auto:
                    (refreshed,) = epoch.views
                    assert refreshed.delta_rows, "what changes is what the view shows"
                    chosen.append(FULL if refreshed.strategy == "full" else refreshed.method)
    assert all(check.ok for check in lake.wh.verify())
    for way in taken:
        lake.wh.sql(f"DROP MATERIALIZED VIEW by_{way}")
    medians = {way: statistics.median(each) for way, each in taken.items()}
    return medians, statistics.mode(chosen), medians.pop("auto")


def _rotated(ways: list[str], round_: int) -> list[str]:
    first = round_ % len(ways)
    return ways[first:] + ways[:first]


def is_right(medians: dict[str, float], method: str) -> bool:
    best = min(medians.values())
    return medians[method] <= max(1.1 * best, best + 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--scales", type=float, nargs="+", default=list(SCALES))
    parser.add_argument("--percents", type=float, nargs="+", default=list(CHANGED_PERCENT))
    arguments = report.arguments(parser)
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    book = Book(report.RESULTS / "choice.jsonl" if arguments.save else None)
    try:
        for scale in arguments.scales:
            for copies in sorted({case.copies for case in CASES}):
                cases = [
                    (case, percent)
                    for case in CASES
                    for percent in arguments.percents
                    if case.copies == copies
                    and (not arguments.cases or case.name in arguments.cases)
                    and not book.has(case, scale, percent)
                ]
                if not cases:
                    continue
                lake = Lake.open(folder, arguments.data, scale, copies, arguments.rounds)
                lake.wh.rates = book.rates(lake.wh)
                for case, percent in cases:
                    book.add(row(case, scale, percent, *measure(lake, case, percent, arguments.rounds)))
                lake.wh.close()
        remarks = told(book.rows)
        print(report.table(book.rows), *remarks, sep="\n\n")
        if arguments.save:
            report.save("choice", "The choice of a method", book.rows, *remarks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Book:
    """What was measured, case by case; kept in a file, if there is one, so that another run can go on."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text("utf-8").splitlines() if file is not None and file.exists() else []
        found = [json.loads(line) for line in lines]
        self._rates = next((each["rates"] for each in found if "rates" in each), None)
        self.rows: list[dict[str, object]] = [each for each in found if "rates" not in each]

    def has(self, case: Case, scale: float, percent: float) -> bool:
        """Whether this case was measured."""
        wanted = (case.name, scale, percent)
        return any((each["view"], each["scale"], each["changed %"]) == wanted for each in self.rows)

    def rates(self, wh: vk.Warehouse) -> Rates:
        """The prices of the first run."""
        if self._rates is None:
            self._rates = rates_as_json(calibrate(wh))
            self._write({"rates": self._rates})
        return rates_of_json(self._rates)

    def add(self, row: dict[str, object]) -> None:
        print(row, flush=True)
        self.rows.append(row)
        self._write(row)

    def _write(self, line: dict[str, object]) -> None:
        if self._file is not None:
            self._file.parent.mkdir(exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def row(
    case: Case, scale: float, percent: float, medians: dict[str, float], chosen: str, auto: float
) -> dict[str, object]:
    """One line of the table; methods that do not suit the view are left open."""
    methods = dict.fromkeys((*(each.value for each in (*GROUPS, *KEYED)), FULL), "")
    thumb = rule_of_thumb(case, percent, scale)
    return {
        "view": case.name,
        "scale": scale,
        "changed %": percent,
        **methods,
        **{way: f"{seconds:.2f}" for way, seconds in medians.items()},
        "best": f"{min(medians.values()):.2f}",
        "chosen": chosen,
        "chosen, s": f"{medians[chosen]:.2f}",
        "right": is_right(medians, chosen),
        "as run": f"{auto:.2f}",
        "rule of thumb": thumb,
        "rule, s": f"{medians[thumb]:.2f}",
        "rule right": is_right(medians, thumb),
    }


def told(rows: Sequence[dict[str, object]]) -> list[str]:
    def seconds(row: dict[str, object], column: str) -> float:
        return float(str(row[column]))

    def total(column: str) -> float:
        return sum(seconds(each, column) for each in rows)

    def share(column: str) -> float:
        return sum(bool(each[column]) for each in rows) / len(rows)

    best = total("best")
    late = [
        seconds(each, "as run") - max(1.15 * seconds(each, FULL), seconds(each, FULL) + 0.5) for each in rows
    ]
    worst = max(late)
    return [
        f"{len(rows)} cases. Chosen by price: right in {share('right'):.0%}, "
        f"all together {total('chosen, s') / best:.3f} times the best.",
        f"By the paper's rules of thumb: right in {share('rule right'):.0%}, "
        f"{total('rule, s') / best:.3f} times the best.",
        f"Under auto no refresh took longer than 1.15 times recomputing, or 0.5 s: {worst <= 0} "
        f"(by {worst:.2f} s at most).",
    ]


if __name__ == "__main__":
    main()
