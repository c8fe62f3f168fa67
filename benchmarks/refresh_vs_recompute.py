"""A refresh against a full recompute, both measured from source delta to publish, in one warm session.

Per pattern and view, each round: change about 1 % of the orders with their lineitems, time
``wh.refresh(view)``, then ``wh.refresh(view, policy="full")``. Two rounds warm up, the median of the others
counts. Then ``verify``.

    python benchmarks/refresh_vs_recompute.py --scale 1 --patterns append recent spread
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import report
import tpch
import viewkeeper as vk

VIEWS = {"by_order": tpch.GROUP_BY, "six_way": tpch.JOIN}
WARM_UP = 2
PHASES = ("observe", "extract", "compute", "install", "publish", "finish")


def main() -> None:
    arguments = _arguments()
    data = tpch.generate(arguments.data, arguments.scale)
    rows = []
    for pattern in arguments.patterns:
        folder = Path(tempfile.mkdtemp(prefix=f"viewkeeper-{pattern}-", dir=arguments.data))
        try:
            rows += measure(folder, data, pattern, arguments.rounds, arguments.views)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(report.table(rows), flush=True)
    if arguments.save:
        some = "" if set(arguments.patterns) == set(tpch.PATTERNS) else "-" + "-".join(arguments.patterns)
        name = f"refresh_vs_recompute-sf{arguments.scale:g}{some}"
        report.save(name, f"Refresh against recompute, TPC-H scale {arguments.scale:g}, 1 % changed", rows)


def measure(folder: Path, data: Path, pattern: str, rounds: int, views: list[str]) -> list[dict[str, object]]:
    """One row per view."""
    wh = vk.connect(folder)
    tpch.load(wh.spark, data, pattern)
    for name in views:
        wh.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    timings: dict[str, dict[str, list[tuple[float, dict[str, float], str]]]] = {
        name: {"refresh": [], "full": []} for name in views
    }
    for round_ in range(WARM_UP + rounds):
        tpch.change(wh.spark, pattern, round_)
        for name in views:
            for kind, policy in (("refresh", None), ("full", "full")):
                started = time.monotonic()
                epoch = wh.refresh(name, policy=policy)
                seconds = time.monotonic() - started
                done = epoch.view(name)
                parts = {phase: epoch.seconds.get(phase, 0.0) for phase in PHASES}
                timings[name][kind].append((seconds, parts, done.strategy))
                shown = " ".join(f"{phase} {value:.2f}" for phase, value in parts.items())
                print(
                    f"{pattern} {name} round {round_}: {kind} {seconds:.2f} s "
                    f"({done.strategy}, {done.delta_rows} rows; {shown})",
                    flush=True,
                )
    exact = {check.view.rsplit(".", 1)[-1]: check.ok for check in wh.verify()}
    wh.close()
    return [_row(pattern, name, timings[name], exact=exact[name]) for name in views]


def _row(
    pattern: str, view: str, timings: dict[str, list[tuple[float, dict[str, float], str]]], *, exact: bool
) -> dict[str, object]:
    refreshes, fulls = timings["refresh"][WARM_UP:], timings["full"][WARM_UP:]
    refresh = statistics.median(seconds for seconds, _, _ in refreshes)
    full = statistics.median(seconds for seconds, _, _ in fulls)
    phases = {phase: statistics.median(parts[phase] for _, parts, _ in refreshes) for phase in PHASES}
    return {
        "pattern": pattern,
        "view": view,
        "full s": round(full, 2),
        "refresh s": round(refresh, 2),
        "ratio": round(full / refresh, 2),
        **{phase: round(seconds, 2) for phase, seconds in phases.items()},
        "strategy": "/".join(sorted({strategy for _, _, strategy in refreshes})),
        "exact": exact,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patterns", nargs="+", default=list(tpch.PATTERNS), choices=tpch.PATTERNS)
    parser.add_argument("--views", nargs="+", default=list(VIEWS), choices=list(VIEWS))
    return report.arguments(parser)


if __name__ == "__main__":
    main()
    print(json.dumps({"done": True}))
