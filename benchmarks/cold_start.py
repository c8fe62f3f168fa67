"""How long commands take that only read the ledger, each a process of its own, started cold.

    python benchmarks/cold_start.py [--views 50] [--epochs 2000] [--runs 10]

Prints the median, the quickest and the slowest of the runs, on a ledger of 50 views and 2,000 epochs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import save, table
from viewkeeper.define.template import init_project
from viewkeeper.testing.ledgers import paper_ledger

COMMANDS = (
    ["--help"],
    ["status"],
    ["history"],
    ["plan", "--stored"],
    ["explain", "sales_by_4", "--stored"],
    ["lattice", "show"],
)


def measured(arguments: list[str], folder: Path, runs: int) -> list[float]:
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "viewkeeper", *arguments], cwd=folder, check=True, capture_output=True
        )
        took.append(time.perf_counter() - began)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--views", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--save", action="store_true", help="write what was found to benchmarks/results")
    asked = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shop"
        init_project(folder, "shop")
        paper_ledger(folder / "warehouse", asked.views, asked.epochs)
        for arguments in COMMANDS:
            took = measured(arguments, folder, asked.runs)
            shown = {"median, s": statistics.median(took), "best": min(took), "worst": max(took)}
            command = f"viewkeeper {' '.join(arguments)}"
            rows.append({"command": command, **{name: f"{each:.2f}" for name, each in shown.items()}})
    told = f"{asked.views} views, {asked.epochs:,} epochs; {asked.runs} runs, each a process of its own."
    print(table(rows), told, sep="\n\n")
    if asked.save:
        save("cold_start", "Commands that need no Spark", rows, told)


if __name__ == "__main__":
    main()
