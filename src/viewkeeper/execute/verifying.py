"""The oracle: a view against its query, as bags, both ways.

One pass: the query's rows count +1, the view's −1; what does not cancel out is missing or extra. Where a
DOUBLE column differs, rows are compared again within a relative 1e-9: sums of floating-point numbers depend
on the order of addition.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

TOLERANCE = "1e-9"


def compare(
    session: SparkSession, columns: Sequence[tuple[str, str]], query: str, view: str
) -> tuple[int, int]:
    """How many rows of the query the view lacks, and how many it has too many. Both are SELECTs with
    the columns in this order."""
    names = [f"c{at}" for at in range(len(columns))]
    listed = ", ".join(names)
    comparable = ", ".join(
        f"{_comparable(name, kind)} AS {name}" for name, (_, kind) in zip(names, columns, strict=True)
    )
    difference = (
        f"SELECT {listed}, sum(w) AS w FROM (\n"
        f"SELECT {comparable}, CAST(1 AS BIGINT) AS w FROM ({query}\n) AS q({listed})\n"
        f"UNION ALL\n"
        f"SELECT {comparable}, CAST(-1 AS BIGINT) AS w FROM ({view}\n) AS v({listed})\n"
        f") GROUP BY {listed} HAVING sum(w) <> 0"
    )
    counted = session.sql(
        f"SELECT coalesce(sum(CASE WHEN w > 0 THEN w END), 0), coalesce(-sum(CASE WHEN w < 0 THEN w END), 0) "
        f"FROM ({difference})"
    ).collect()[0]
    missing, extra = int(counted[0]), int(counted[1])
    inexact = [name for name, (_, kind) in zip(names, columns, strict=True) if kind in ("double", "float")]
    if inexact and missing and extra:
        within = _pairs_within_tolerance(session, difference, names, inexact)
        return missing - within, extra - within
    return missing, extra


def _pairs_within_tolerance(
    session: SparkSession, difference: str, names: Sequence[str], inexact: Sequence[str]
) -> int:
    """How many of the differing rows pair up when doubles may differ a little."""
    exact = [name for name in names if name not in inexact]
    partition = ", ".join(exact) or "1"
    order = ", ".join(inexact)
    side = (
        "SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS i FROM "
        "(SELECT * FROM d LATERAL VIEW explode(sequence(1, abs(w))) AS n WHERE w {sign} 0)"
    )
    missing = side.format(partition=partition, order=order, sign=">")
    extra = side.format(partition=partition, order=order, sign="<")
    same = [f"m.{name} <=> e.{name}" for name in (*exact, "i")]
    close = [
        f"(m.{name} <=> e.{name} OR abs(m.{name} - e.{name}) "
        f"<= {TOLERANCE} * greatest(abs(m.{name}), abs(e.{name})))"
        for name in inexact
    ]
    on = " AND ".join((*same, *close))
    row = session.sql(
        f"WITH d AS ({difference}) SELECT count(*) FROM ({missing}) AS m JOIN ({extra}) AS e ON {on}"
    ).collect()[0]
    return int(row[0])


def _comparable(name: str, kind: str) -> str:
    """Spark groups neither maps nor variants; their text with sorted entries stands for them."""
    if kind.startswith("map<"):
        return f"to_json(array_sort(map_entries({name})))"
    if "map<" in kind or "variant" in kind:
        return f"to_json({name})"
    return name
