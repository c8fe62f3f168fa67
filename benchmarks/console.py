"""How long the server takes for each page of the console, with many views and epochs in the ledger.

    python benchmarks/console.py [--views 100] [--epochs 10000]

The ledger is filled without Spark (:mod:`viewkeeper.testing.ledgers`): real definitions and plans, a refresh
of every view in every epoch. Times are of whole answers, templates and drawings included: the first, and the
median of the others; and the processor time of those, which does not grow when the machine is busy.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from starlette.testclient import TestClient

from report import save, table
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.survey import Survey
from viewkeeper.testing.ledgers import PaperWarehouse
from viewkeeper.testing.paper_views import RETAIL, PaperView
from viewkeeper.web import create_app

LIMIT = 300
"""Milliseconds."""


def many(views: int) -> Iterator[PaperView]:
    """So many views: the retail warehouse again and again."""
    for at in range(views):
        one = RETAIL[at % len(RETAIL)]
        lap = at // len(RETAIL)
        query = one.query.replace("sCD_sales", f"sCD_sales_{lap}") if lap else one.query
        yield replace(one, name=f"{one.name}_{lap}" if lap else one.name, query=query)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=10_000)
    parser.add_argument("--save", action="store_true", help="write what was found to benchmarks/results")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.db"
        with Ledger.open(sqlite_url(file)) as ledger:
            started = time.perf_counter()
            paper = PaperWarehouse(ledger)
            paper.define(list(many(asked.views)))
            paper.lengthen(asked.epochs - 3)
            for _ in range(2):
                paper.pass_day(moved_stores=2)
                paper.refresh()
            filled = time.perf_counter() - started
            size = file.stat().st_size / 1e6
            told = f"{asked.views} views and {asked.epochs:,} epochs: a ledger of {size:,.0f} MB"
            print(f"{told}, filled in {filled:.0f} s")
            rows = measured(ledger, asked.epochs)
    slow = [row["page"] for row in rows if float(str(row["median, ms"])) > LIMIT]
    print(table(rows), f"above {LIMIT} ms: {', '.join(map(str, slow)) or 'none'}", sep="\n\n")
    if asked.save:
        save("console", "Pages of the console", rows, f"{told}. Bar: {LIMIT} ms on the server.")
    return 1 if slow else 0


def measured(ledger: Ledger, epochs: int) -> list[dict[str, object]]:
    with TestClient(create_app(Survey(ledger)), base_url="http://127.0.0.1") as client:
        time.sleep(1)  # nobody opens a page in the second in which the server starts
        return asked_of(client, epochs)


def asked_of(client: TestClient, epochs: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    view = "/views/lake.default.sales_in_full"
    for path in ("/", view, "/epochs", f"/epochs?before={epochs // 2}", f"/epochs/{epochs}", "/sources",
                 "/lattice", "/trees"):  # fmt: skip
        times, worked = [], []
        for _ in range(8):
            begun, busy = time.perf_counter(), time.process_time()
            answer = client.get(path)
            times.append(time.perf_counter() - begun)
            worked.append(time.process_time() - busy)
            assert answer.status_code == 200, path
        shown = {
            "first, ms": times[0],
            "median, ms": statistics.median(times[1:]),
            "processor, ms": statistics.median(worked[1:]),
        }
        rows.append({"page": path, **{name: f"{1000 * seconds:.0f}" for name, seconds in shown.items()}})
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
