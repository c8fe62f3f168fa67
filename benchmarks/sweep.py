"""Table 1 of the SWEEP paper (Agrawal, El Abbadi, Singh, Yurek; SIGMOD 1997), measured in the simulator.

*table*: messages and rows per update of each algorithm, beside what the paper says; *load*: messages and
staleness against the rate of updates, with drawings; *large*: up to 1,000 sources or a million updates, at
most ten million messages a run. A chain of relations, one per source, each with ``VALUES`` rows that find one
partner on either side; a third of the updates insert, a third delete, a third modify. A message takes 0.5 to
1.5, one on average, and times are counted in that; the rate is that of all sources together. Every run is
compared with the view from scratch, and runs of the table are checked for the level that they kept.

    python benchmarks/sweep.py --save
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import report
from viewkeeper.integrate.algorithms import ALGORITHMS
from viewkeeper.integrate.bags import Bag, bag
from viewkeeper.integrate.machine import Machine
from viewkeeper.integrate.simulate.checker import level_of
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.simulate.lattice import evaluate
from viewkeeper.integrate.simulate.simulation import simulate
from viewkeeper.integrate.simulate.worlds import Commit, World
from viewkeeper.integrate.sweep import Sweep
from viewkeeper.integrate.views import JoinView, Relation

Row = dict[str, object]

VALUES = 4
PIPELINE = 1_000

PARTS = ("table", "load", "large")
TABLE_SOURCES = (3, 5, 8)
TABLE_UPDATES = 200
TABLE_RATE = 0.1
LOAD_RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
LOAD_UPDATES = 1_000

PAPER = {
    "eca": ("strong", "O(1)", "remote compensation, quadratic message size, requires quiescence"),
    "strobe": ("strong", "O(n)", "unique key assumption, requires quiescence"),
    "c-strobe": ("complete", "O(n!)", "unique key assumption, not scalable"),
    "sweep": ("complete", "O(n)", "local compensation"),
    "nested-sweep": ("strong", "O(n)", "local compensation, requires non-interference"),
}
"""Consistency, message cost per update, and comments."""

WAYS: Mapping[str, Callable[[JoinView, Bag], Machine]] = {
    **{name: ALGORITHMS[name].make for name in PAPER},
    "sweep, parallel": lambda view, _: Sweep(view, parallel=True),
    "sweep, pipelined": lambda view, _: Sweep(view, parallel=True, pipeline=PIPELINE),
}


@dataclass(frozen=True)
class Chain:
    """R₀(a₀, a₁, p₀) ⋈ R₁(a₁, a₂, p₁) ⋈ …: a world that is made up as it goes."""

    sources: int
    updates: int
    rate: float
    one_source: bool = False
    wide: bool = True
    """Whether the view has all keys."""
    modify: float = 1 / 3
    """The share of the updates that modify a row."""
    values: int = VALUES

    def world(self, seed: int) -> World:
        relations = tuple(
            Relation(
                f"r{at}",
                (f"a{at}", f"a{at + 1}", f"p{at}"),
                "s" if self.one_source else f"s{at}",
                (f"a{at}",),
            )
            for at in range(self.sources)
        )
        keys = tuple(f"a{at}" for at in range(self.sources)) if self.wide else ("a0",)
        view = JoinView(relations, (*keys, f"p{self.sources - 1}"))
        contents = {
            each.name: bag(each.columns, *((value, value, 0) for value in range(self.values)))
            for each in relations
        }
        return World(view, contents, self._commits(relations, Random(seed)), fastest=0.5, slowest=1.5)

    def _commits(self, relations: Sequence[Relation], random: Random) -> Iterator[Commit]:
        # As many inserts as deletes in the long run, so (1 + modify) / 2 of the values are there.
        modified = 2 * self.modify / (1 + self.modify)
        held: list[dict[int, int]] = [dict.fromkeys(range(self.values), 0) for _ in relations]
        at = 0.0
        for number in range(1, self.updates + 1):
            at += random.expovariate(self.rate)
            place = random.randrange(len(relations))
            value = random.randrange(self.values)
            rows = held[place]
            changes: dict[tuple[int, int, int], int] = {}
            if value in rows:
                changes[value, value, rows.pop(value)] = -1
                if random.random() < modified:
                    rows[value] = number
                    changes[value, value, number] = 1
            else:
                rows[value] = number
                changes[value, value, number] = 1
            relation = relations[place]
            yield Commit(at, relation.source, {relation.name: Bag(relation.columns, dict(changes))})


LARGE = (
    Chain(1_000, 500, rate=0.1, wide=False, modify=1.0),
    Chain(5, 1_000_000, rate=1.0, wide=False),
)

TITLES = {
    "sweep-table-1": (
        "Table 1 of the SWEEP paper: what it says, and what the simulator found",
        f"{TABLE_UPDATES} updates at a rate of {TABLE_RATE}: ten message times between two. Queries are per "
        "update; rows, the largest query and staleness (message times from commit to view) are those of "
        f"n = {TABLE_SOURCES[-1]}. *found* is the least level that the checker found in the three runs.",
        "SWEEP sends n − 1 queries for each update, Nested SWEEP at most as many. Strobe asks for inserts "
        "only; a modification is a delete and an insert. C-Strobe's compensating queries ask compensating "
        "queries. ECA asks once, whatever happens; its queries grow instead.",
    ),
    "sweep-eca": (
        "ECA: the largest query when all updates interfere, three relations",
        "Twice as many updates, about four times as many rows.",
    ),
    "sweep-queries": (
        "Queries per update",
        f"5 sources, {LOAD_UPDATES:,} updates; the rate is in updates per message time.",
    ),
    "sweep-staleness": (
        "Staleness: message times from commit to view",
        f"5 sources, {LOAD_UPDATES:,} updates; the rate is in updates per message time. One sweep at a time "
        "takes 2 (n − 1) = 8 message times: beyond a rate of 1/8 updates come faster than SWEEP keeps up "
        "with, and its queue grows until they end. Strobe waits for a pause, and soon there is none before "
        "the run ends, which is the sooner the higher the rate. Nested SWEEP takes its queue along, up to "
        "100 updates at a time, and pipelined SWEEP has none.",
    ),
    "sweep-large": (
        "Many sources, and many updates",
        "Every run was right in the end. Seconds are of one core.",
    ),
}
"""By the name of the file: a title, and what there is to say."""


def run(way: str, chain: Chain, seed: int = 1, *, keep: bool = False) -> History:
    """A run, which must be right in the end."""
    world = chain.world(seed)
    before = evaluate(world.view, world.contents)
    history = simulate(world, WAYS[way](world.view, before), seed, keep=keep)
    if history.halted:
        raise history.halted
    after = before.plus(Bag(before.columns, history.rows))
    assert after == evaluate(world.view, history.final), f"{way} is wrong"
    return history


def table() -> list[Row]:
    """Table 1: what the paper says, and what was found at a rate at which updates interfere."""
    rows = []
    for name in PAPER:
        consistency, cost, comment = PAPER[name]
        row: Row = {"algorithm": name, "consistency": consistency, "messages": cost}
        levels = set()
        for sources in TABLE_SOURCES:
            chain = Chain(sources, TABLE_UPDATES, TABLE_RATE, one_source=ALGORITHMS[name].needs_one_source)
            history = run(name, chain, keep=True)
            levels.add(level_of(history))
            row[f"queries, n = {sources}"] = f"{history.queries / history.updates:.2f}"
        row["rows in a query"] = f"{history.tuples / history.queries:.2f}"
        row["largest"] = history.largest
        row["staleness"] = f"{history.staleness:.0f}"
        row["found"] = str(min(levels))
        row["comments of the paper"] = comment
        rows.append(row)
        print(row, flush=True)
    return rows


def eca_sizes() -> list[Row]:
    """How ECA's queries grow with the updates that interfere: all come before the first answer."""
    rows: list[Row] = []
    for updates in (1, 2, 4, 8, 16, 32, 64):
        history = run("eca", Chain(3, updates, rate=1e6, one_source=True))
        rows.append({"interfering updates": updates, "rows in the largest query": history.largest})
    return rows


def load() -> dict[str, list[Row]]:
    """Queries per update, and staleness, by the rate of updates."""
    found: dict[str, list[Row]] = {"queries": [], "staleness": []}
    for rate in LOAD_RATES:
        queries: Row = {"rate": rate}
        staleness: Row = {"rate": rate}
        for way in WAYS:
            history = run(way, Chain(5, LOAD_UPDATES, rate, one_source=way == "eca"))
            queries[way] = round(history.queries / history.updates, 2)
            staleness[way] = round(history.staleness, 1)
        found["queries"].append(queries)
        found["staleness"].append(staleness)
        print(queries, staleness, flush=True)
    return found


def large() -> list[Row]:
    """Many sources, or many updates."""
    rows: list[Row] = []
    for way in ("sweep, pipelined", "nested-sweep"):
        for chain in LARGE:
            started = time.process_time()
            history = run(way, chain)
            seconds = time.process_time() - started
            rows.append(
                {
                    "algorithm": way,
                    "sources": chain.sources,
                    "updates": f"{chain.updates:,}",
                    "rate": chain.rate,
                    "messages": f"{history.messages:,}",
                    "queries per update": f"{history.queries / history.updates:.2f}",
                    "changes of the view": f"{history.steps:,}",
                    "staleness": f"{history.staleness:,.1f}",
                    "seconds": f"{seconds:.0f}",
                    "µs per message": f"{seconds / history.messages * 1e6:.1f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def draw(name: str, label: str, rows: Sequence[Row]) -> Path:
    """The ways as lines over the rate, both on logarithmic scales."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for way, style in zip(WAYS, ("-", "--", ":", "-", "-.", "--", "-."), strict=True):
        axes.plot([row["rate"] for row in rows], [row[way] for row in rows], style, marker="o", label=way)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("updates per message time, 5 sources")
    axes.set_ylabel(label)
    figure.legend(loc="outside right upper")
    target = report.RESULTS / f"{name}.svg"
    figure.savefig(target)
    return target


def measure(part: str, *, save: bool) -> None:
    match part:
        case "table":
            found = {"sweep-table-1": table(), "sweep-eca": eca_sizes()}
        case "load":
            found = {f"sweep-{figure}": rows for figure, rows in load().items()}
        case _:
            found = {"sweep-large": large()}
    for name, rows in found.items():
        title, *remarks = TITLES[name]
        print(f"{title}\n{report.table(rows)}", flush=True)
        if save:
            report.save(name, title, rows, *remarks)
            if part == "load":
                draw(name, title, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = report.arguments(parser)
    for part in arguments.parts:
        measure(part, save=arguments.save)


if __name__ == "__main__":
    main()
