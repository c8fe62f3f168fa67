"""What is found out about a staged result once it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, DecimalType, IntegralType, StringType

from viewkeeper.algebra.sharpening import Profile
from viewkeeper.sql.quoting import quote

_ORDERED = (IntegralType, DecimalType, DateType, StringType)
"""What Spark and Iceberg order alike, and whose values reach Spark as they came: not floating-point numbers
(NaN, −0), nor timestamps, which Python shifts by the machine's zone."""
_LONGEST = 200
"""Longer texts are no bounds: they would only be carried around."""


def profile(rows: DataFrame, columns: Sequence[str]) -> Profile:
    """One pass over the rows, which also computes them if they were not yet."""
    types = {entry.name: entry.dataType for entry in rows.schema} if columns else {}
    ordered = [column for column in columns if isinstance(types[column], _ORDERED)]
    found = rows.agg(
        f.count(f.lit(1)).alias("rows"),
        f.array(*(f.count(quote(column)) for column in columns)).alias("counts"),
        *(end(quote(column)) for column in ordered for end in (f.min, f.max)),
    ).collect()[0]
    total, counts, ends = int(found[0]), found[1], found[2:]
    never_null = tuple(column for column, count in zip(columns, counts, strict=True) if count == total)
    ranges = {
        column: (ends[2 * at], ends[2 * at + 1])
        for at, column in enumerate(ordered)
        if total and column in never_null
    }
    return Profile(total, never_null, {each: ends for each, ends in ranges.items() if _are_short(ends)})


def _are_short(ends: tuple[Any, Any]) -> bool:
    return all(not isinstance(end, str) or len(end) <= _LONGEST for end in ends)
