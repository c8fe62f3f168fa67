"""What the operands of a delta expression cost to read on Spark, in bytes: the linear metric of Lee et al.
(2001), with the rows of each operand weighed by what is read of them.

Of a table only the columns that the view needs are read, and their types tell about how wide they are; and
only the files that the conditions on it cannot skip. To begin with a table takes time, however little it
holds: its files are looked up, and where it is small, it is broadcast, which is a job. The delta of several
relations is nowhere stored, it only passes through; one that is too large to be broadcast is shuffled:
written, sent and read again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from viewkeeper.algebra.expressions import places
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes

SMALL_VALUES = 8_000_000
"""A delta of at most so many values, which take about 128 MiB, is broadcast to the tables that it is joined
with; Spark has no estimate of its own for deltas. A million keys are sooner sent everywhere than fifteen
million rows shuffled and sorted."""

_SHUFFLED = 3.0
"""Times what it would cost to read it once."""
OPENED = 16.0 * 2**20
"""What could be read while a table is opened: about 50 ms on two cores, at the speed of these costs."""
_PASSED_ON = 0.5
"""Times what it would cost to read it from a table."""
_WEIGHT = 8.0
"""Every row of a delta has one."""

UNKNOWN_WIDTH = 8.0
_WIDTHS = {
    "boolean": 1.0,
    "tinyint": 1.0,
    "smallint": 2.0,
    "int": 4.0,
    "date": 4.0,
    "float": 4.0,
    "string": 20.0,
    "binary": 20.0,
    "varchar": 20.0,
    "char": 20.0,
}
_NESTED = 50.0
_DECIMAL = re.compile(r"decimal\((\d+)")


def is_broadcast(rows: float, columns: int) -> bool:
    """Whether so many rows of so many columns are sent everywhere, and not shuffled."""
    return rows * columns <= SMALL_VALUES


def width(kind: str) -> float:
    """About how many bytes a value of this type takes.

    >>> [width(kind) for kind in ("int", "decimal(12,2)", "decimal(38,2)", "varchar(9)", "array<int>")]
    [4.0, 8.0, 16.0, 20.0, 50.0]
    """
    decimal = _DECIMAL.match(kind)
    if decimal:
        return 8.0 if int(decimal[1]) <= 18 else 16.0
    if "<" in kind:
        return _NESTED
    return _WIDTHS.get(kind.split("(")[0], UNKNOWN_WIDTH)


class ReadingCosts:
    """The sizes of a join as the search and its costs ask for them, in bytes."""

    def __init__(self, sizes: JoinSizes) -> None:
        self._sizes = sizes

    @property
    def changed(self) -> Sequence[bool]:
        return self._sizes.changed

    @cached_property
    def old(self) -> Sequence[float]:
        return [OPENED + _read(each, each.old) * each.width for each in self._sizes.inputs]

    @cached_property
    def new(self) -> Sequence[float]:
        return [OPENED + _read(each, each.new) * each.width for each in self._sizes.inputs]

    def delta(self, relations: int) -> float:
        """Of |Δ(⋈P)| rows, each as wide as those of the relations together."""
        rows = self._sizes.delta(relations)
        inputs = [self._sizes.inputs[place] for place in places(relations)]
        bytes_read = rows * (_WEIGHT + sum(each.width for each in inputs))
        small = is_broadcast(rows, sum(len(each.columns) for each in inputs))
        if not small:
            return bytes_read * _SHUFFLED
        return bytes_read * _PASSED_ON if len(inputs) > 1 else bytes_read


def net_change_cost(sizes: JoinSizes) -> float:
    """Of what comes out in the end, whatever the expression: equal rows are shuffled, and added up."""
    inputs = sizes.inputs
    rows = sizes.delta((1 << len(inputs)) - 1)
    return rows * (_WEIGHT + sum(each.width for each in inputs)) * _SHUFFLED


def _read(table: JoinInput, rows: float) -> float:
    """Of so many rows."""
    return rows if table.read is None else min(rows, table.read)
