"""What is found out about a staged result once it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, DateType, DecimalType, IntegralType, StringType

from viewkeeper.algebra.relations import Field, Filter, TableAt
from viewkeeper.algebra.sharpening import Keys, Parameters, Profile, among
from viewkeeper.session import rows_read
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import quote

_ORDERED = (IntegralType, DecimalType, DateType)
"""What Spark and Iceberg order alike, and whose values reach Spark as they came: not floating-point numbers
(NaN, −0), nor timestamps, which Python shifts by the machine's zone."""
_LISTED = 2_000
"""More keys than these hardly leave a file out that their range does not. (A bloom filter is of use for far
fewer: it takes about one in a hundred for what it holds.)"""
_LONGEST = 200
"""Longer texts are no bounds: they would only be carried around."""
_NOT_TEXT = "\ufffd"
"""What Python is given for bytes that are no UTF-8: a text with it may be another one."""
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
"""Under this name Spark remembers the declared type of a CHAR or VARCHAR."""
_SPARED = 2
"""With a condition, what is left may take so many times as long to read (seen with 60 million line items)."""


def profile(rows: DataFrame, columns: Sequence[str], *, few: bool = False) -> Profile:
    """One pass over the rows, which also computes them if they were not yet. Of a result that is expected to
    hold ``few`` rows, the values of the columns, too; NULL is none of them."""
    types = {entry.name: entry.dataType for entry in rows.schema} if columns else {}
    ordered = [column for column in columns if _is_ordered(types[column])]
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
        if answer[0] is not None and _are_usable(*answer[:2])
    }
    return Profile(total, never_null, keys)


@dataclass(frozen=True, slots=True)
class SearchedTables:
    """What a session tells of stored tables before they are searched, without a job."""

    session: SparkSession

    def holds_texts(self, table: TableAt, stored: str) -> bool:
        """Not those under a collation, nor those of a declared length, which may be padded to be compared."""
        (column,) = self.session.sql(print_relation(_only(table, stored))).schema.fields
        return column.dataType == StringType() and _LENGTH not in column.metadata

    def spares(self, table: TableAt, stored: str, keys: Keys) -> bool:
        """Whether the files that are left out are worth a condition."""
        if table.rows is None:
            return True
        parameters = Parameters()
        within = print_relation(Filter(_only(table, stored), among(stored, keys, parameters)))
        left = rows_read(self.session, within, parameters.values)
        return left is None or _SPARED * left <= table.rows


def _only(table: TableAt, stored: str) -> TableAt:
    return replace(table, fields=(Field(stored, stored),))


def _keys(least: Any, most: Any, values: Sequence[Any] = ()) -> Keys:
    listed = len(values) <= _LISTED and _are_usable(*values)
    return Keys(least, most, tuple(sorted(values)) if listed else ())


def _is_ordered(kind: DataType) -> bool:
    """Texts are, too, unless they have a collation."""
    return isinstance(kind, _ORDERED) or kind == StringType()


def _are_usable(*values: object) -> bool:
    """Whether texts among these are short, and as they are in Spark."""
    texts = [value for value in values if isinstance(value, str)]
    return all(len(text) <= _LONGEST and _NOT_TEXT not in text for text in texts)
