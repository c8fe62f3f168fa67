"""PostgreSQL's types, and how their texts become Spark's values.

Values travel as the texts that PostgreSQL writes, and Spark casts them: with its ANSI mode a value that has
no place in the type is an error, never NULL or another value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

_SAME: Final = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double precision": "double",
    "date": "date",
    "timestamp without time zone": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
    "boolean": "boolean",
    "bytea": "binary",
}
_TEXTS: Final = (
    "text", "character varying", "character", "name", "uuid", "json", "jsonb",
    "time without time zone", "time with time zone",
)  # fmt: skip
_WHOLE: Final = ("smallint", "integer", "bigint")
_UNBOUNDED_NUMERIC: Final = (38, 18)
_NUMERIC = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_LENGTH = re.compile(r"\(\d+\)")


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type as ``format_type`` names it, and Spark's for it."""

    name: str
    spark: str

    @property
    def is_array(self) -> bool:
        return self.name.endswith("[]")

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.name in _WHOLE

    @property
    def is_text(self) -> bool:
        """Whether its values are texts of any length, compared as they stand."""
        return self.name == "text" or (self.name.startswith("character varying") and not self.is_array)

    @property
    def element(self) -> PostgresType:
        """The type of an array's values."""
        return PostgresType(self.name.removesuffix("[]"), self.spark[len("array<") : -1])

    def value(self, text: str) -> str:
        """Spark's expression for a value, given one for its text."""
        if self.is_array:
            parsed = f"from_json({text}, 'array<string>', map('mode', 'FAILFAST'))"
            values = f"transform({parsed}, _vk_e -> {self.element.value('_vk_e')})"
            told = f"concat('an array of several dimensions, or that does not begin at 1: ', {text})"
            return (
                f"CASE WHEN {text} IS NULL THEN NULL WHEN startswith({text}, '[') THEN {values} "
                f"ELSE raise_error({told}) END"
            )
        if self.spark == "string":
            return text
        if self.spark == "binary":
            return f"unhex(substr({text}, 3))"
        if self.spark.startswith("decimal("):
            scale = int(self.spark[:-1].split(",")[1])
            if "(" not in self.name:
                # Without a declared scale there may be more digits than fit, and a cast would round them.
                told = f"concat('more than {scale} digits behind the point: ', {text})"
                text = f"CASE WHEN {_fraction(text)} <= {scale} THEN {text} ELSE raise_error({told}) END"
        if self.spark == "date":
            # A cast would not look at what stands behind the day.
            told = f"concat('a date before Christ: ', {text})"
            text = f"CASE WHEN endswith({text}, ' BC') THEN raise_error({told}) ELSE {text} END"
        return f"CAST({text} AS {self.spark})"

    def as_text(self, column: str) -> str:
        """PostgreSQL's expression for the text of a value, as :meth:`value` takes it."""
        if self.is_array:
            # The texts of its values, as JSON; an array of another shape as it is, which is no JSON array.
            texts = f"json_agg({self.element.as_text('_vk_e')} ORDER BY _vk_at)"
            values = f"unnest({column}) WITH ORDINALITY AS _vk_u(_vk_e, _vk_at)"
            odd = f"array_ndims({column}) > 1 OR array_lower({column}, 1) <> 1"
            return (
                f"CASE WHEN {column} IS NULL THEN NULL WHEN {odd} THEN 'array ' || {column}::text "
                f"ELSE (SELECT coalesce({texts}, '[]')::text FROM {values}) END"
            )
        if self.name.startswith("character("):
            return f"textin(bpcharout({column}))"  # a cast would cut the blanks off
        return f"{column}::text"


def _fraction(text: str) -> str:
    """How many digits a number has behind its point, but for zeros at the end."""
    behind = f"CASE WHEN instr({text}, '.') > 0 THEN substring_index({text}, '.', -1) ELSE '' END"
    return f"length(rtrim('0', {behind}))"


def spark_type(name: str, *, is_enum: bool = False) -> PostgresType | None:
    """Spark's type for one of PostgreSQL's; ``None`` if there is none that holds every value.

    >>> spark_type("numeric(10,2)").spark, spark_type("character varying(20)").spark
    ('decimal(10,2)', 'string')
    >>> spark_type("integer[]").spark, spark_type("interval"), spark_type("numeric(60,2)")
    ('array<int>', None, None)
    """
    if name.endswith("[]"):
        element = spark_type(name.removesuffix("[]"), is_enum=is_enum)
        return None if element is None else PostgresType(name, f"array<{element.spark}>")
    bare = _LENGTH.sub("", name).strip()
    if is_enum or bare in _TEXTS:
        return PostgresType(name, "string")
    if bare in _SAME:
        return PostgresType(name, _SAME[bare])
    numeric = _NUMERIC.fullmatch(name)
    if numeric is None:
        return None
    precision, scale = _UNBOUNDED_NUMERIC
    if numeric[1] is not None:
        precision, scale = int(numeric[1]), int(numeric[2])
    fits = precision <= 38 and 0 <= scale <= precision
    return PostgresType(name, f"decimal({precision},{scale})") if fits else None


def array_as_json(text: str) -> str:
    """PostgreSQL's text of an array of one dimension, as JSON.

    >>> array_as_json('{1,NULL,"a,b","say \\\\"hi\\\\"",plain}')
    '["1", null, "a,b", "say \\\\"hi\\\\"", "plain"]'
    >>> array_as_json("{}")
    '[]'
    """
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(f"not an array: {text[:50]}")
    items: list[str | None] = []
    at, end = 1, len(text) - 1
    while at < end:
        if text[at] == '"':
            item, at = _quoted(text, at + 1)
            items.append(item)
        else:
            stop = text.find(",", at)
            stop = end if stop < 0 else stop
            word = text[at:stop]
            if "{" in word:
                raise ValueError("arrays of arrays are not supported")
            items.append(None if word == "NULL" else word)
            at = stop
        at += 1  # the comma
    return json.dumps(items)


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What stands between quotes, and where it ends."""
    found = []
    while text[at] != '"':
        if text[at] == "\\":
            at += 1
        found.append(text[at])
        at += 1
    return "".join(found), at + 1
