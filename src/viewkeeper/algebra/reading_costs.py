"""What the operands of a delta expression cost to read on Spark, in bytes: the linear metric of Lee et al.
(2001), with the rows of each operand weighed by what is read of them.

Of a table only the columns that the view needs are read, and their types tell about how wide they are (texts
may take more than that: so says the metadata of files); and only the files that the conditions on it cannot
skip. To begin with a table takes time, however little it holds: its files are looked up, and where it is
small, it is broadcast, which is a job. The delta of several relations is nowhere stored, it only passes
through; one that is too large to be broadcast is shuffled: written, sent and read again.

And so is what it is joined with, unless that is small. It depends on the term, not on the operand alone: R
is shuffled in the terms whose delta Δ(⋈P) is too large. To remain a sum over operands, with |Δ(⋈P)|
depending on P alone, it is charged to every access of R, by the share of the other changed relations whose
own deltas are too large. For the n-term expression that is exact (R and R′ being about the same), for it
reads R once beside each of these deltas; for a tree it is as long as a joined delta is too large where its
parts are. One that outgrows its parts is thought too cheap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from viewkeeper.algebra.expressions import places
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes

SMALL_VALUES = 8_000_000
"""A delta of at most so many values, which take about 128 MiB, is broadcast to the tables that it is joined
with; Spark has no estimate of its own for deltas. A million keys are sooner sent everywhere than fifteen
million rows shuffled and sorted."""

SMALL_ROWS = 200_000
"""A table of at most so many rows is broadcast to a delta, whatever is known of the delta."""

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
_OF_ANY_LENGTH = ("string", "binary")
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


def is_of_any_length(kind: str) -> bool:
    """Whether values of this type may take far more than is thought, which files then tell."""
    return kind in _OF_ANY_LENGTH


class ReadingCosts:
    """The sizes of a join as the search and its costs ask for them, in bytes."""

    def __init__(self, sizes: JoinSizes) -> None:
        self._sizes = sizes
        self._deltas: dict[int, float] = {}

    @property
    def changed(self) -> Sequence[bool]:
        return self._sizes.changed

    @cached_property
    def old(self) -> Sequence[float]:
        return [self._access(place, each.old) for place, each in enumerate(self._sizes.inputs)]

    @cached_property
    def new(self) -> Sequence[float]:
        return [self._access(place, each.new) for place, each in enumerate(self._sizes.inputs)]

    def _access(self, place: int, rows: float) -> float:
        """To read an input once, of so many rows, and to shuffle it beside what is too large."""
        here = self._sizes.inputs[place]
        read = _read(here, rows) * here.width
        beside = [large for at, large in self._shuffled.items() if at != place]
        share = sum(beside) / len(beside) if beside and here.new > SMALL_ROWS else 0.0
        return OPENED + read * (1 + (_SHUFFLED - 1) * share)

    @cached_property
    def _shuffled(self) -> Mapping[int, bool]:
        """Of each input that changed, whether its delta is too large to be broadcast."""
        inputs = enumerate(self._sizes.inputs)
        return {
            place: not is_broadcast(self._sizes.delta(1 << place), len(each.columns))
            for place, each in inputs
            if self.changed[place]
        }

    def delta(self, relations: int) -> float:
        """Of |Δ(⋈P)| rows, each as wide as those of the relations together."""
        known = self._deltas.get(relations)
        if known is None:
            known = self._deltas[relations] = self._delta(relations)
        return known

    def _delta(self, relations: int) -> float:
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
