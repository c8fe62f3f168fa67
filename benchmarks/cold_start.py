"""How long commands take that only read the ledger, each a process of its own, started cold.

    python benchmarks/cold_start.py [views] [epochs] [runs]

Prints the median, the quickest and the slowest of the runs, on a ledger of 50 views and 2,000 epochs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main(views: int = 50, epochs: int = 2000, runs: int = 10) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shop"
        init_project(folder, "shop")
        paper_ledger(folder / "warehouse", views, epochs)
        print(f"{views} views, {epochs:,} epochs; {runs} runs, in seconds")
        print(f"{'command':<32} {'median':>7} {'best':>7} {'worst':>7}")
        for arguments in COMMANDS:
            took = measured(arguments, folder, runs)
            best, worst = min(took), max(took)
            print(f"{' '.join(arguments):<32} {statistics.median(took):7.2f} {best:7.2f} {worst:7.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
