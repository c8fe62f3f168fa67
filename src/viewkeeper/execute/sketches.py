"""Sketches of the values of columns (HyperLogLog): two kilobytes that tell about how many there are, and to
which more can be added without a look at those before. The error is about two percent."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from viewkeeper.sql.quoting import quote

_BUCKETS = 11
"""As a power of two; each takes a byte."""


@dataclass(frozen=True, slots=True)
class Sketched:
    """About how many values a column has; and the sketch as text, where it can be added to."""

    values: int
    sketch: str | None = None


def sketched(
    rows: DataFrame, columns: Sequence[str], before: Mapping[str, str] | None = None
) -> dict[str, Sketched]:
    """What these columns hold, in the rows and in the sketches ``before``; one job."""
    if not columns:
        return {}
    known = before or {}
    aggregates = [f"{_added(_sketch(name), known.get(name))} AS s{at}" for at, name in enumerate(columns)]
    asked = [f"struct(s{at} AS sketch, hll_sketch_estimate(s{at}) AS values)" for at in range(len(columns))]
    found = rows.selectExpr(*aggregates).selectExpr(*asked).collect()[0]
    return {
        column: Sketched(int(each[1]), base64.b64encode(each[0]).decode())
        for column, each in zip(columns, found, strict=True)
    }


def _sketch(column: str) -> str:
    """Of hashes, as sketches take few types; without NULL, which joins nothing."""
    return f"hll_sketch_agg(IF({quote(column)} IS NULL, NULL, xxhash64({quote(column)})), {_BUCKETS})"


def _added(sketch: str, before: str | None) -> str:
    if before is None:
        return sketch
    return f"hll_union({sketch}, X'{base64.b64decode(before, validate=True).hex()}')"
