"""Aggregate functions: what is kept for each, and how insertions and deletions combine.

Gray's classes as used in the summary-delta paper (Mumick et al. 1997, Section 3.1): a *distributive*
function is kept as it is, an *algebraic* one as the distributive ones it is made of, and what cannot be
maintained from deltas is recomputed for the groups touched.

| function | kept as | on insertions | on deletions |
|---|---|---|---|
| COUNT(*), COUNT(e) | itself | add | add |
| SUM(e), exact | itself and COUNT(e) | add | add; NULL again when COUNT(e) = 0 |
| AVG(e), exact | SUM(e) and COUNT(e) | add | add |
| MIN(e), MAX(e) | itself | least, greatest | recompute the group |
| SUM(e), AVG(e) of floating point | itself | recompute the group, so that it never drifts | likewise |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from viewkeeper.algebra.relations import AggregateCall
from viewkeeper.algebra.scalars import Scalar, column, compose

GROUP_COUNT = "_vk_count"
"""COUNT(*) of the group, kept beside every aggregate: a group is gone when it reaches 0."""

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)\Z")

# e·w is a decimal of p + 21 digits; beyond 38 Spark would round its scale in silence.
_WIDEST_WEIGHTED_DECIMAL = 17
# Σe / COUNT(e) must carry enough digits to be rounded to AVG's scale just once.
_WIDEST_AVERAGED_DECIMAL = 15


class Combine(Enum):
    """How the kept value of a group and that of its changes make the new one."""

    ADD = "add"
    LEAST = "least"
    GREATEST = "greatest"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class Kept:
    """A column kept for a group: the call that computes it from rows, and how it combines.

    ``counter`` names the kept COUNT(e) that tells when a SUM(e) is NULL.
    """

    call: AggregateCall
    combine: Combine
    counter: str | None = None

    @property
    def name(self) -> str:
        return self.call.name


@dataclass(slots=True)
class Keeping:
    """Collects what must be kept for a list of calls; equal needs share one column."""

    argument_type: Callable[[Scalar], str]
    kept: dict[str, Kept] = field(default_factory=dict)
    values: dict[str, Scalar] = field(default_factory=dict)
    """For each call of the query: its value as an expression over kept columns."""

    def add(self, call: AggregateCall) -> None:
        """Keep what this call needs."""
        match call.function, call.argument:
            case "count", None:
                self.values[call.name] = column(GROUP_COUNT)
            case "count", Scalar() as argument:
                self.values[call.name] = column(self._count(argument))
            case "sum", Scalar() as argument:
                self.values[call.name] = column(self._sum(call, argument))
            case "avg", Scalar() as argument:
                self.values[call.name] = self._average(call, argument)
            case "min", _:
                self.values[call.name] = column(self._keep(call, Combine.LEAST))
            case "max", _:
                self.values[call.name] = column(self._keep(call, Combine.GREATEST))
            case _:
                self.values[call.name] = column(self._keep(call, Combine.RECOMPUTE))

    def _keep(self, call: AggregateCall, combine: Combine, counter: str | None = None) -> str:
        for name, kept in self.kept.items():
            if (kept.call.function, kept.call.argument) == (call.function, call.argument):
                return name
        name = f"_vk_{call.function}_{len(self.kept) + 1}"
        self.kept[name] = Kept(AggregateCall(name, call.function, call.argument), combine, counter)
        return name

    def _count(self, argument: Scalar) -> str:
        return self._keep(AggregateCall("", "count", argument), Combine.ADD)

    def _sum(self, call: AggregateCall, argument: Scalar) -> str:
        if not adds_exactly(self.argument_type(argument)):
            return self._keep(call, Combine.RECOMPUTE)
        return self._keep(call, Combine.ADD, self._count(argument))

    def _average(self, call: AggregateCall, argument: Scalar) -> Scalar:
        kind = self.argument_type(argument)
        decimal = _DECIMAL.match(kind)
        if kind in _INTEGERS:
            # Spark sums integers for AVG in floating point, which does not overflow; nor does this.
            wide = compose("CAST(", argument, " AS DECIMAL(38,0))")
            total = self._sum_of(AggregateCall("", "sum", wide), argument)
            return _guarded(self._count(argument), compose("CAST(", column(total), " AS DOUBLE)"))
        if decimal and int(decimal[1]) <= _WIDEST_AVERAGED_DECIMAL:
            total = self._sum_of(AggregateCall("", "sum", argument), argument)
            precision, scale = int(decimal[1]) + 4, int(decimal[2]) + 4
            quotient = _guarded(self._count(argument), column(total))
            return compose("CAST(", quotient, f" AS DECIMAL({precision},{scale}))")
        return column(self._keep(call, Combine.RECOMPUTE))

    def _sum_of(self, call: AggregateCall, counted: Scalar) -> str:
        return self._keep(call, Combine.ADD, self._count(counted))


def _guarded(count: str, total: Scalar) -> Scalar:
    """total / count, NULL for no values (ANSI division by zero is an error)."""
    return compose("CASE WHEN ", column(count), " > 0 THEN ", total, " / ", column(count), " END")


def adds_exactly(kind: str) -> bool:
    """Whether sums over this type can be kept by adding and subtracting.

    >>> [adds_exactly(kind) for kind in ("int", "decimal(15,2)", "decimal(38,2)", "double")]
    [True, True, False, False]
    """
    decimal = _DECIMAL.match(kind)
    return kind in _INTEGERS or (decimal is not None and int(decimal[1]) <= _WIDEST_WEIGHTED_DECIMAL)


def is_reproducible(call: AggregateCall, kind: str) -> bool:
    """Whether computing it twice over the same rows gives the same bits, whatever the order of the rows."""
    return call.function not in ("sum", "avg") or kind in _INTEGERS or _DECIMAL.match(kind) is not None


def keep_for(
    calls: tuple[AggregateCall, ...], argument_type: Callable[[Scalar], str]
) -> tuple[tuple[Kept, ...], Mapping[str, Scalar]]:
    """What is kept for these calls, beside ``_vk_count``; and each call's value over what is kept."""
    keeping = Keeping(argument_type)
    for call in calls:
        keeping.add(call)
    return tuple(keeping.kept.values()), keeping.values
