"""Views that stand in files, over tables that change at random; and which seeds a long run takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from viewkeeper.testing import Case, Cycle, View
from viewkeeper.testing.changes import Changes
from viewkeeper.testing.tables import Table, random_properties


def case_of(path: Path, tables: Sequence[Table], seed: int, cycles: int, rows: int = 8) -> Case:
    """The views of a file: queries, each ending where a line ends in ``;``. All must be kept by deltas."""
    random = Random(seed)
    made = [replace(table, properties=random_properties(random)) for table in tables]
    changes = Changes(made, random, rows)
    setup = changes.fill()
    return Case(setup, _views(path), tuple(Cycle(changes.cycle()) for _ in range(cycles)))


def _views(path: Path) -> tuple[View, ...]:
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("--")]
    queries = [query.strip() for query in "\n".join(lines).split(";\n")]
    return tuple(
        View(f"v{at}", query.removesuffix(";")) for at, query in enumerate(filter(None, queries), start=1)
    )


def long_seeds(usual: str) -> range:
    """Those that ``VIEWKEEPER_SEEDS=1000-1999`` names, or the usual ones."""
    first, last = os.environ.get("VIEWKEEPER_SEEDS", usual).split("-")
    return range(int(first), int(last) + 1)
