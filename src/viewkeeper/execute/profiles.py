"""What is found out about a staged result once it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, DecimalType, IntegralType, StringType

from viewkeeper.algebra.relations import Field, TableAt
from viewkeeper.algebra.sharpening import Keys, Profile
from viewkeeper.session import rows_read
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import quote

_ORDERED = (IntegralType, DecimalType, DateType, StringType)
"""What Spark and Iceberg order alike, and whose values reach Spark as they came: not floating-point numbers
(NaN, −0), nor timestamps, which Python shifts by the machine's zone."""
_LISTED = 200
"""Iceberg compares a file's bounds with each of so many values; of a longer list it keeps every file."""
_LONGEST = 200
"""Longer texts are no bounds: they would only be carried around."""
_SPARED = 2
"""With a condition, what is left may take so many times as long to read (seen with 60 million line items)."""


def profile(rows: DataFrame, columns: Sequence[str], *, few: bool = False) -> Profile:
    """One pass over the rows, which also computes them if they were not yet. Of a result that is expected to
    hold ``few`` rows, the values of the columns, too."""
    types = {entry.name: entry.dataType for entry in rows.schema} if columns else {}
    ordered = [column for column in columns if isinstance(types[column], _ORDERED)]
    asked = (f.min, f.max, f.collect_set) if few else (f.min, f.max)
    found = rows.agg(
        f.count(f.lit(1)),
        *(f.count(quote(column)) for column in columns),
        *(f.struct(*(function(quote(column)) for function in asked)) for column in ordered),
    ).collect()[0]
    total, counts, answers = int(found[0]), found[1 : 1 + len(columns)], found[1 + len(columns) :]
    never_null = tuple(column for column, count in zip(columns, counts, strict=True) if count == total)
    keys = {
        column: _keys(*answer)
        for column, answer in zip(ordered, answers, strict=True)
        if total and column in never_null and _are_short(*answer[:2])
    }
    return Profile(total, never_null, keys)


def spares(session: SparkSession, table: TableAt, stored: str, keys: Keys) -> bool:
    """Whether the files of a table that lie outside this range of a stored column are worth a condition."""
    if table.rows is None:
        return True
    searched = print_relation(replace(table, fields=(Field(stored, stored),)))
    within = f"{searched}\nWHERE {quote(stored)} BETWEEN :least AND :most"
    left = rows_read(session, within, {"least": keys.least, "most": keys.most})
    return left is None or _SPARED * left <= table.rows


def _keys(least: Any, most: Any, values: Sequence[Any] = ()) -> Keys:
    return Keys(least, most, tuple(sorted(values)) if len(values) <= _LISTED else ())


def _are_short(*ends: object) -> bool:
    return all(not isinstance(end, str) or len(end) <= _LONGEST for end in ends)
