"""Predicates that let Iceberg skip the files which did not change.

A filter on ``_file`` says exactly which files are wanted, but Iceberg plans by column bounds only and
would open every file to apply it. So we add what it does plan by: for the one or two columns that tell
the wanted files apart best, the ranges of values that the wanted files hold. The predicate is true for
every row of a wanted file, NULLs included; it never decides about a row, only about files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from viewkeeper.algebra.empty_terms import Extent, Value
from viewkeeper.sql.quoting import literal, quote

MOST_RANGES: Final = 32
"""More ranges than this are joined into wider ones, so that the predicate stays readable."""
WORTHWHILE: Final = 0.8
"""A predicate must spare at least a fifth of the rows that would be read without it."""

_DECIMAL = re.compile(r"decimal\(\d+,\d+\)\Z")
_FOUR_DIGIT_YEAR = re.compile(r"\d{4}-")
_HARMLESS = re.compile(r"[^\x00-\x1f\x7f$\ud800-\udfff]*\Z")


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column whose bounds can be written into a predicate. Floating point is left out: NaN has no place
    between bounds."""

    name: str
    type: str

    @staticmethod
    def suits(name: str, type_: str) -> bool:
        plain = type_ in ("int", "bigint", "date", "timestamp", "timestamp_ntz", "string")
        # readable_metrics names nested fields "a.b": a top-level column with a dot cannot be told from one
        return "." not in name and (plain or _DECIMAL.match(type_) is not None)

    def text(self, bound: str) -> str:
        """SQL that turns a bound into the text from which :meth:`key` and :meth:`literal` start."""
        # a timestamp as text would depend on the session's time zone
        return (
            f"CAST(unix_micros({bound}) AS STRING)"
            if self.type == "timestamp"
            else f"CAST({bound} AS STRING)"
        )

    def key(self, text: str) -> Value | None:
        """The bound as a value that sorts as Iceberg sorts; ``None`` if it cannot be used."""
        match self.type:
            case "int" | "bigint" | "timestamp":
                return int(text)
            case "date" | "timestamp_ntz":
                return text if _FOUR_DIGIT_YEAR.match(text) else None
            case "string":
                return text.encode() if _HARMLESS.match(text) else None
            case _:
                return Decimal(text)

    def literal(self, key: Value) -> str:
        match self.type:
            case "timestamp":
                return f"timestamp_micros({key!s})"
            case "string":
                assert isinstance(key, bytes)
                return literal(key.decode())
            case _:
                return f"CAST('{key!s}' AS {self.type.upper()})"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a file's metadata says of one column."""

    low: str | None
    high: str | None
    nulls: int | None
    values: int | None

    @property
    def only_nulls(self) -> bool:
        return self.nulls is not None and self.nulls == self.values


@dataclass(frozen=True, slots=True)
class BoundedFile:
    """A data file as the pruner sees it; ``bounds`` has one entry per column, in the columns' order."""

    rows: int
    bounds: tuple[Bounds, ...]


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The values of one column that the wanted files hold."""

    column: BoundColumn
    index: int
    ranges: tuple[tuple[Value, Value], ...]
    nulls: bool

    def may_hold(self, file: BoundedFile) -> bool:
        """Whether Iceberg would have to open this file."""
        bounds = file.bounds[self.index]
        if self.nulls and bounds.nulls != 0:
            return True
        if bounds.only_nulls:
            return False
        span = _span(self.column, bounds)
        return span is None or any(low <= span[1] and span[0] <= high for low, high in self.ranges)  # type: ignore[operator]

    def sql(self) -> str:
        name = quote(self.column.name)
        terms = [
            f"{name} BETWEEN {self.column.literal(low)} AND {self.column.literal(high)}"
            for low, high in self.ranges
        ]
        if self.nulls:
            terms.append(f"{name} IS NULL")
        return "(" + " OR ".join(terms) + ")"


def pruning_predicate(
    wanted: Sequence[BoundedFile], live: Sequence[BoundedFile], columns: Sequence[BoundColumn]
) -> str | None:
    """The predicate for reading the ``wanted`` files among ``live`` ones; ``None`` if it would not pay."""
    candidates = [
        found for index, column in enumerate(columns) if (found := _ranges(column, index, wanted)) is not None
    ]
    opened = list(live)
    chosen: list[_Ranges] = []
    for _ in range(2):
        rest = [candidate for candidate in candidates if candidate not in chosen]
        if not rest:
            break
        best = min(rest, key=lambda ranges: _rows(filter(ranges.may_hold, opened)))
        still_opened = [file for file in opened if best.may_hold(file)]
        if _rows(still_opened) > WORTHWHILE * _rows(opened):
            break
        chosen.append(best)
        opened = still_opened
    return " AND ".join(ranges.sql() for ranges in chosen) if chosen else None


def _rows(files: Iterable[BoundedFile]) -> int:
    return sum(file.rows for file in files)


def extent(column: BoundColumn, index: int, files: Iterable[BoundedFile]) -> Extent | None:
    """Between which values a column lies in all of these files; ``None`` if one of them does not tell."""
    spans = _spans(column, index, files)
    if not spans:
        return None
    return Extent(column.type, min(low for low, _ in spans), max(high for _, high in spans))


def _spans(column: BoundColumn, index: int, files: Iterable[BoundedFile]) -> list[tuple[Value, Value]] | None:
    """The least and the greatest value in each of these files; ``None`` if one of them does not tell."""
    spans: list[tuple[Value, Value]] = []
    for file in files:
        if file.bounds[index].only_nulls:
            continue
        span = _span(column, file.bounds[index])
        if span is None:
            return None
        spans.append(span)
    return spans


def _span(column: BoundColumn, bounds: Bounds) -> tuple[Value, Value] | None:
    low = column.key(bounds.low) if bounds.low is not None else None
    high = column.key(bounds.high) if bounds.high is not None else None
    return None if low is None or high is None else (low, high)


def _ranges(column: BoundColumn, index: int, wanted: Sequence[BoundedFile]) -> _Ranges | None:
    spans = _spans(column, index, wanted)
    nulls = any(file.bounds[index].nulls != 0 for file in wanted)
    if spans is None or not (spans or nulls):
        return None
    return _Ranges(column, index, _join(spans), nulls)


def _join(spans: list[tuple[Value, Value]]) -> tuple[tuple[Value, Value], ...]:
    """Overlapping ranges joined; at most ``MOST_RANGES`` remain."""
    joined: list[tuple[Value, Value]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:  # type: ignore[operator]
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    size = -(-len(joined) // MOST_RANGES) or 1
    return tuple(
        (group[0][0], group[-1][1]) for group in (joined[i : i + size] for i in range(0, len(joined), size))
    )
