"""The oracle: a view against its query, as bags, both ways.

One pass: the query's rows count +1, the view's −1; what does not cancel out is missing or extra. Where a
DOUBLE column differs, rows are compared again within a relative 1e-9 (an absolute one near zero): sums of
floating-point numbers depend on the order of addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

TOLERANCE = "1e-9"
TOGETHER = 8
"""So many views are compared by one Spark query: small ones cost little more than one of them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two SELECTs that should give the same rows, their columns (names and types) in the same order."""

    columns: Sequence[tuple[str, str]]
    query: str
    view: str

    @property
    def names(self) -> list[str]:
        return [f"c{at}" for at in range(len(self.columns))]

    @property
    def inexact(self) -> list[str]:
        """The columns in which a small difference is none."""
        return [
            name
            for name, (_, kind) in zip(self.names, self.columns, strict=True)
            if kind in ("double", "float")
        ]


def compare_all(session: SparkSession, comparisons: Sequence[Comparison]) -> list[tuple[int, int]]:
    """Of each: how many rows of the query the view lacks, and how many it has too many."""
    found: list[tuple[int, int]] = []
    for start in range(0, len(comparisons), TOGETHER):
        chunk = comparisons[start : start + TOGETHER]
        counts = {row[0]: (int(row[1]), int(row[2])) for row in session.sql(_counts(chunk)).collect()}
        found += [_within_tolerance(session, each, *counts[at]) for at, each in enumerate(chunk)]
    return found


def _counts(comparisons: Sequence[Comparison]) -> str:
    return "\nUNION ALL\n".join(
        f"SELECT {at}, coalesce(sum(CASE WHEN w > 0 THEN w END), 0), "
        f"coalesce(-sum(CASE WHEN w < 0 THEN w END), 0)\nFROM ({_difference(comparison)})"
        for at, comparison in enumerate(comparisons)
    )


def _difference(comparison: Comparison) -> str:
    """The rows that do not cancel out, and how often (below 0: too many in the view)."""
    names = comparison.names
    listed = ", ".join(names)
    comparable = ", ".join(
        f"{_comparable(name, kind)} AS {name}"
        for name, (_, kind) in zip(names, comparison.columns, strict=True)
    )
    return (
        f"SELECT {listed}, sum(w) AS w FROM (\n"
        f"SELECT {comparable}, CAST(1 AS BIGINT) AS w FROM ({comparison.query}\n) AS q({listed})\n"
        f"UNION ALL\n"
        f"SELECT {comparable}, CAST(-1 AS BIGINT) AS w FROM ({comparison.view}\n) AS v({listed})\n"
        f") GROUP BY {listed} HAVING sum(w) <> 0"
    )


def _within_tolerance(
    session: SparkSession, comparison: Comparison, missing: int, extra: int
) -> tuple[int, int]:
    if comparison.inexact and missing and extra:
        return _not_close(session, comparison)
    return missing, extra


def _not_close(session: SparkSession, comparison: Comparison) -> tuple[int, int]:
    """The rows that are missing and extra when doubles may differ a little.

    The difference is read once only: computed twice, it may be another one. Rows that agree in all else are
    put in order, and the first is compared with the first.
    """
    inexact = comparison.inexact
    exact = [name for name in comparison.names if name not in inexact]
    row = f"struct({', '.join(inexact)})"
    copies = f"flatten(collect_list(array_repeat({row}, CAST(abs(w) AS INT))) FILTER (WHERE w {{sign}} 0))"
    close = " AND ".join(
        f"(p.m.{name} <=> p.e.{name} OR abs(p.m.{name} - p.e.{name}) "
        f"<= {TOLERANCE} * greatest(1D, abs(p.m.{name}), abs(p.e.{name})))"
        for name in inexact
    )
    grouped = f" GROUP BY {', '.join(exact)}" if exact else ""
    found = session.sql(
        f"SELECT coalesce(sum(size(m) - paired), 0), coalesce(sum(size(e) - paired), 0) FROM (\n"
        f"SELECT m, e, size(filter(arrays_zip(m, e), p -> p.m IS NOT NULL AND p.e IS NOT NULL AND {close}))"
        f" AS paired FROM (\n"
        f"SELECT sort_array({copies.format(sign='>')}) AS m, sort_array({copies.format(sign='<')}) AS e\n"
        f"FROM ({_difference(comparison)}){grouped}))"
    ).collect()[0]
    return int(found[0]), int(found[1])


def _comparable(name: str, kind: str) -> str:
    """Spark groups neither maps nor variants; their text with sorted entries stands for them."""
    if kind.startswith("map<"):
        return f"to_json(array_sort(map_entries({name})))"
    if "map<" in kind or "variant" in kind:
        return f"to_json({name})"
    return name
