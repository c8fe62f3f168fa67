"""Random expressions and conditions of Spark SQL over given columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

NUMBERS = ("int", "bigint", "decimal", "double")
KINDS = (*NUMBERS, "string", "date", "boolean")

_LITERALS: Mapping[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "-1"),
    "bigint": ("0L", "2L"),
    "decimal": ("0.5", "10.01", "-2.25"),
    "double": ("0.5D", "2D"),
    "string": ("'a'", "'b'", "'AND or --'"),
    "date": ("DATE'2024-01-01'", "DATE'2024-02-29'"),
    "boolean": ("true", "false"),
}

# {0} and {1} are operands of the kind itself, others of the kind they name; the shapes that are easily
# printed back wrong (signs, subtraction, AND within OR) are here on purpose.
_SHAPES: Mapping[str, tuple[str, ...]] = {
    "int": (
        "{0} + 1", "{0} - ({1} - 2)", "-{0}", "abs({0})", "coalesce({0}, 0)", "nullif({0}, 1)",
        "length({string})", "year({date})", "pmod({0}, 2)", "{0} * 2",
        "CASE WHEN {boolean} THEN {0} ELSE {1} END", "if({boolean}, {0}, NULL)",
    ),
    "bigint": ("CAST({int} AS BIGINT)", "{0} + {int}", "coalesce({0}, {int}, 7)", "{0} - {int}", "{0} DIV 2"),
    "decimal": (
        "{0} + 1", "{0} - {1}", "coalesce({0}, 0)", "CAST({int} AS DECIMAL(12,2))", "{0} * 2",
        "round({0}, 1)", "greatest({0}, {1})", "CASE WHEN {boolean} THEN {0} END",
    ),
    "double": ("{int} / 2", "CAST({decimal} AS DOUBLE)", "{0} * 0.5D", "coalesce({0}, 1D)", "abs({0})"),
    "string": (
        "upper({0})", "concat({0}, 'x')", "CAST({int} AS STRING)", "coalesce({0}, 'z')",
        "substring({0}, 1, 1)",
        "CASE {0} WHEN 'a' THEN {1} ELSE 'other' END", "{0} || '-' || {1}", "trim({0})",
    ),
    "date": ("date_add({0}, 1)", "coalesce({0}, DATE'2020-02-02')", "trunc({0}, 'month')", "least({0}, {1})"),
    "boolean": (
        "{int} > {int_literal}", "{int} < 3", "{int} = {int_literal}", "{int} >= {int}", "{string} <> 'b'",
        "{decimal} >= {decimal_literal}", "{decimal} < 500", "{date} < DATE'2024-02-01'", "{date} IS NULL",
        "{int} IS NULL", "{string} IS NOT NULL", "{int} IN (1, 2, NULL)", "{int} BETWEEN 0 AND 2",
        "{string} LIKE '%a%'", "NOT {0}", "{0} AND {1}", "{0} OR {1}", "{0} OR {1}", "{int} <=> {int}",
        "coalesce({0}, true)", "{double} <> 0.5D", "{int} <> {int_literal} AND ({0} OR {1})",
        "{string} IN ('a', '', 'A')", "{bigint} < 3L", "{bigint} IS NOT NULL", "{0} IS NULL",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column that an expression may read: how it is written, and its kind."""

    text: str
    kind: str


class Expressions:
    """Makes up expressions over some columns."""

    def __init__(self, columns: Sequence[Column], random: Random) -> None:
        self._columns = columns
        self._random = random

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the columns have, the more columns the more often."""
        return tuple(column.kind for column in self._columns)

    def of(self, kind: str, depth: int = 2) -> str:
        """An expression of that kind."""
        own = [column.text for column in self._columns if column.kind == kind]
        if own and (depth <= 0 or self._random.random() < 0.5):
            return self._random.choice(own)
        shapes = [shape for shape in _SHAPES[kind] if self._is_grounded(shape, kind)]
        if depth <= 0:
            shapes = [shape for shape in shapes if kind == "boolean" and "{0}" not in shape]
        if not shapes:
            return self._random.choice(_LITERALS[kind])
        literals = {f"{name}_literal": self._random.choice(_LITERALS[name]) for name in KINDS}
        shape = self._random.choice(shapes)
        operands = {name: self._operand(name, depth) for name in KINDS if f"{{{name}}}" in shape}
        own_operands = [self._operand(kind, depth) if f"{{{at}}}" in shape else "" for at in range(2)]
        return shape.format(*own_operands, **operands, **literals)

    def condition(self, depth: int = 2) -> str:
        """A condition, on columns wherever there are any of a kind that can be compared."""
        return self.of("boolean", depth)

    def _is_grounded(self, shape: str, kind: str) -> bool:
        """Whether there are columns for what the shape reads: constants alone make poor tests."""
        read = {name for name in KINDS if f"{{{name}}}" in shape}
        if "{0}" in shape and kind != "boolean":
            read.add(kind)
        return read <= set(self.kinds)

    def _operand(self, kind: str, depth: int) -> str:
        text = self.of(kind, depth - 1)
        return text if text.replace(".", "").replace("_", "").isalnum() else f"({text})"
