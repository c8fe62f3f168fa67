"""Result tables: Markdown with the machine, the versions and the date they were measured with."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows as a Markdown table."""
    if not rows:
        return ""
    columns = list(rows[0])
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(str(row[column]) for column in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def save(name: str, title: str, rows: Sequence[dict[str, object]], *remarks: str) -> Path:
    """Write the table under benchmarks/results, and what there is to say of it."""
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{name}.md"
    parts = (f"# {title}", conditions(), table(rows), *remarks)
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"written: {target}")
    return target


def plot(
    name: str,
    title: str,
    rows: Sequence[dict[str, object]],
    along: tuple[str, str],
    series: Mapping[str, str],
) -> Path:
    """Seconds as a drawing beside the table. ``along``: a column, and what to call it; ``series``: columns,
    each with its style of line."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    column, label = along
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for each, style in series.items():
        axes.plot([row[column] for row in rows], [row[each] for row in rows], style, marker="o", label=each)
    axes.set_xlabel(label)
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend()
    target = RESULTS / f"{name}.svg"
    figure.savefig(target)
    return target


def conditions() -> str:
    """What the figures depend on."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (
        f"{date.today().isoformat()}; {os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.machine()}; "
        f"Python {platform.python_version()}, pyspark {version('pyspark')}, iceberg-spark-runtime 1.12.0, "
        f"viewkeeper {version('viewkeeper')}."
    )


def arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line, with where data is made and whether results are kept, as all benchmarks have them."""
    parser.add_argument("--data", type=Path, default=Path(".cache/benchmarks"))
    parser.add_argument("--save", action="store_true", help="write what was found to benchmarks/results")
    given = parser.parse_args()
    given.data = given.data.absolute()
    given.data.mkdir(parents=True, exist_ok=True)
    return given
