"""Aggregate functions: what is kept for each, and how insertions and deletions combine.

Gray's classes as used in the summary-delta paper (Mumick et al. 1997, Section 3.1): a *distributive* function
is kept as it is, an *algebraic* one as the distributive ones it is made of, a *holistic* one as its value,
which is computed anew for every group touched. Each function stands once, in ``FUNCTIONS``:

| kept | beside it | on insertions | on deletions |
|---|---|---|---|
| COUNT(*), COUNT(e) | | add | subtract |
| SUM(e), exact | COUNT(e) | add | subtract; NULL again when COUNT(e) = 0 |
| BIT_XOR(e) | COUNT(e) | xor | xor |
| MIN(e), MAX(e) | COUNT(e) | least, greatest | recompute the groups whose extremum went |
| BIT_AND(e), BIT_OR(e) | COUNT(e) | and, or | recompute the groups that lost a value |
| SUM(e) of floating point, holistic ones | | recompute the groups touched | likewise |

AVG is SUM and COUNT; BOOL_AND and COUNT_IF are counts; the variance, covariance and correlation of whole
numbers and short decimals are n, Σx, Σx², Σxy, all exact. Where Spark computes in floating point, sums depend
on the order of addition, so they are never added up over time: they would drift.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from viewkeeper.algebra.relations import AggregateCall
from viewkeeper.algebra.scalars import Scalar, column, compose

GROUP_COUNT = "_vk_count"
"""COUNT(*) of the group, kept beside every aggregate: a group is gone when it reaches 0."""

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)\Z")

# e·w is a decimal of p + 21 digits. Beyond 38 Spark takes digits from behind the point, in silence, but it
# leaves six of them; what no longer fits before it is an error.
_WIDEST_WEIGHTED_DECIMAL = 17
_SCALE_THAT_STAYS = 6
# Σe / COUNT(e) must carry enough digits to be rounded to AVG's scale just once.
_WIDEST_AVERAGED_DECIMAL = 15
# (Σe)² of a billion values must fit into 38 digits.
_WIDEST_SQUARED_DECIMAL = 10


class Class(Enum):
    """Gray's classes (Section 3.1)."""

    DISTRIBUTIVE = "distributive"
    ALGEBRAIC = "algebraic"
    HOLISTIC = "holistic"


class Combine(Enum):
    """How the kept value of a group and that of its changes make the new one."""

    ADD = "sum"
    XOR = "bit_xor"
    LEAST = "min"
    GREATEST = "max"
    ALL_BITS = "bit_and"
    ANY_BIT = "bit_or"
    RECOMPUTE = "recompute"

    @property
    def function(self) -> str:
        """The aggregate that combines partial values. A recomputed value stands in one row only; max picks
        it and passes over the NULLs."""
        return "max" if self is Combine.RECOMPUTE else self.value

    @property
    def survives_deletions(self) -> bool:
        """Whether deletions can be combined like insertions."""
        return self in (Combine.ADD, Combine.XOR)

    @property
    def survives_insertions(self) -> bool:
        return self is not Combine.RECOMPUTE


@dataclass(frozen=True, slots=True)
class Kept:
    """A column kept for a group: the call that computes it from rows, and how it combines.

    ``counter`` names the kept COUNT(e) that tells when the value over no values is NULL.
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
        keep = _as_it_is if call.written is not None else FUNCTIONS[call.function].keep
        self.values[call.name] = keep(self, call)

    def keep(self, call: AggregateCall, combine: Combine, counter: str | None = None) -> str:
        """The name of the column that keeps this call."""
        for name, kept in self.kept.items():
            if _same(kept.call, call):
                return name
        name = f"_vk_{call.function}_{len(self.kept) + 1}"
        new = AggregateCall(name, call.function, call.arguments, call.written)
        self.kept[name] = Kept(new, combine, counter)
        return name

    def count(self, argument: Scalar) -> str:
        """COUNT(e)."""
        return self.keep(AggregateCall("", "count", (argument,)), Combine.ADD)

    def sum(self, argument: Scalar, counted: Scalar) -> str:
        """SUM(e), which is NULL when no value of ``counted`` is left."""
        return self.keep(AggregateCall("", "sum", (argument,)), Combine.ADD, self.count(counted))

    def types(self, call: AggregateCall) -> list[str]:
        return [self.argument_type(argument) for argument in call.arguments]


def _same(one: AggregateCall, other: AggregateCall) -> bool:
    return (one.function, one.arguments, one.written) == (other.function, other.arguments, other.written)


# How each function is kept: the columns, and its value as an expression over them.


def _as_it_is(keeping: Keeping, call: AggregateCall) -> Scalar:
    return column(keeping.keep(call, Combine.RECOMPUTE))


def _count(keeping: Keeping, call: AggregateCall) -> Scalar:
    return column(keeping.count(*call.arguments) if call.arguments else GROUP_COUNT)


def _count_if(keeping: Keeping, call: AggregateCall) -> Scalar:
    return column(keeping.count(_one_if("", *call.arguments)))


def _one_if(negated: str, condition: Scalar) -> Scalar:
    return compose(f"CASE WHEN {negated}", condition, " THEN 1 END")


def _sum(keeping: Keeping, call: AggregateCall) -> Scalar:
    (argument,) = call.arguments
    if not adds_exactly(*keeping.types(call)):
        return _as_it_is(keeping, call)
    return column(keeping.sum(argument, argument))


def _average(keeping: Keeping, call: AggregateCall) -> Scalar:
    (argument,), (kind,) = call.arguments, keeping.types(call)
    decimal = _DECIMAL.match(kind)
    if kind in _INTEGERS:
        # Spark sums integers for AVG in floating point, which does not overflow; nor does this.
        total = keeping.sum(compose("CAST(", argument, " AS DECIMAL(38,0))"), argument)
        return _if_any(keeping.count(argument), compose("CAST(", column(total), " AS DOUBLE)"))
    if decimal and int(decimal[1]) <= _WIDEST_AVERAGED_DECIMAL:
        total = keeping.sum(argument, argument)
        precision, scale = int(decimal[1]) + 4, int(decimal[2]) + 4
        quotient = _if_any(keeping.count(argument), column(total))
        return compose("CAST(", quotient, f" AS DECIMAL({precision},{scale}))")
    return _as_it_is(keeping, call)


def _if_any(count: str, total: Scalar) -> Scalar:
    """total / count, NULL for no values (ANSI division by zero is an error)."""
    return compose("CASE WHEN ", column(count), " > 0 THEN ", total, " / ", column(count), " END")


def _combined(combine: Combine) -> Callable[[Keeping, AggregateCall], Scalar]:
    def keep(keeping: Keeping, call: AggregateCall) -> Scalar:
        return column(keeping.keep(call, combine, keeping.count(*call.arguments)))

    return keep


def _every(keeping: Keeping, call: AggregateCall) -> Scalar:
    """BOOL_AND(e): no value is false."""
    (argument,) = call.arguments
    false = keeping.count(_one_if("NOT ", argument))
    return compose(
        "CASE WHEN ", column(keeping.count(argument)), " > 0 THEN ", column(false), " = 0 END"
    )  # fmt: skip


def _some(keeping: Keeping, call: AggregateCall) -> Scalar:
    """BOOL_OR(e): some value is true."""
    (argument,) = call.arguments
    true = keeping.count(_one_if("", argument))
    return compose("CASE WHEN ", column(keeping.count(argument)), " > 0 THEN ", column(true), " > 0 END")


@dataclass(frozen=True, slots=True)
class _Moments:
    """n, Σx, Σy, Σx², Σy² and Σxy of the rows where x and y are there, in whole units of their last digit."""

    keeping: Keeping
    pair: tuple[Scalar, Scalar]
    scales: tuple[int, int]

    @property
    def n(self) -> Scalar:
        return column(self.keeping.count(self._unit(0)))

    def co(self, one: int, other: int) -> Scalar:
        """n·Σab − Σa·Σb: n² times the covariance of a and b, exact if it has at most 38 digits."""
        a, b = self._unit(one), self._unit(other)
        n, ab = self.n, column(self.keeping.sum(compose(a, " * ", b), a))
        sum_a, sum_b = column(self.keeping.sum(a, a)), column(self.keeping.sum(b, a))
        exact = compose(
            "try_subtract(try_multiply(", n, ", ", ab, "), try_multiply(", sum_a, ", ", sum_b, "))"
        )
        rough = compose(
            "CAST(", n, " AS DOUBLE) * ", ab, " - CAST(", sum_a, " AS DOUBLE) * ", sum_b
        )  # fmt: skip
        digits = self.scales[one] + self.scales[other]
        return compose("coalesce(CAST(", exact, " AS DOUBLE), ", rough, f") / 1e{digits}")

    def _unit(self, which: int) -> Scalar:
        here, there = self.pair[which], self.pair[1 - which]
        whole = here if not self.scales[which] else compose(here, f" * {10 ** self.scales[which]}")
        whole = compose("CAST(", whole, f" AS DECIMAL({_WIDEST_SQUARED_DECIMAL},0))")
        if here == there:
            return whole
        return compose("CASE WHEN ", there, " IS NOT NULL THEN ", whole, " END")


def _moments(keeping: Keeping, call: AggregateCall) -> _Moments | None:
    """What variance and covariance are made of, if the arguments can be added up exactly."""
    scales = [_scale_of_squared(kind) for kind in keeping.types(call)]
    if None in scales:
        return None
    known = [scale for scale in scales if scale is not None]
    return _Moments(keeping, (call.arguments[0], call.arguments[-1]), (known[0], known[-1]))


def _scale_of_squared(kind: str) -> int | None:
    """The digits after the point, if squares of such values can be added up exactly."""
    decimal = _DECIMAL.match(kind)
    if decimal and int(decimal[1]) < _WIDEST_SQUARED_DECIMAL:
        return int(decimal[2])
    return 0 if kind in _INTEGERS - {"bigint"} else None


def _covariance(*, sample: bool, root: bool = False) -> Callable[[Keeping, AggregateCall], Scalar]:
    """Of one argument, the variance; its square root is the standard deviation."""

    def keep(keeping: Keeping, call: AggregateCall) -> Scalar:
        moments = _moments(keeping, call)
        if moments is None:
            return _as_it_is(keeping, call)
        n, fewest = moments.n, 1 if sample else 0
        both = compose("CAST(", n, " AS DOUBLE) * ", compose(n, f" - {fewest}"))
        value = compose(moments.co(0, 1), " / ", both)
        if root:
            value = compose("sqrt(", value, ")")
        return compose("CASE WHEN ", n, f" > {fewest} THEN ", value, " END")

    return keep


def _correlation(keeping: Keeping, call: AggregateCall) -> Scalar:
    moments = _moments(keeping, call)
    if moments is None:
        return _as_it_is(keeping, call)
    spread = compose("sqrt(", moments.co(0, 0), ") * sqrt(", moments.co(1, 1), ")")
    value = compose("try_divide(", moments.co(0, 1), ", ", spread, ")")
    return compose("CASE WHEN ", moments.n, " > 1 THEN ", value, " END")


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: its class, how it is kept, and over which arguments it gives the same bits
    whatever the order of the rows."""

    kind: Class
    keep: Callable[[Keeping, AggregateCall], Scalar]
    arguments: int | None = 1
    """How many; ``None``: as the user wrote them, they are not looked into."""
    reproducible: Callable[[str], bool] = lambda _: True


def _is_exact(kind: str) -> bool:
    # An interval day to second is a number of microseconds, one of years and months a number of months.
    return kind in _INTEGERS or _DECIMAL.match(kind) is not None or kind.startswith("interval ")


def _never(_: str) -> bool:
    return False


def _holistic(reproducible: Callable[[str], bool] = lambda _: True) -> Function:
    return Function(Class.HOLISTIC, _as_it_is, None, reproducible)


_D, _A = Class.DISTRIBUTIVE, Class.ALGEBRAIC
_VARIANCE = {
    "var_pop": _covariance(sample=False),
    "var_samp": _covariance(sample=True),
    "stddev_pop": _covariance(sample=False, root=True),
    "stddev_samp": _covariance(sample=True, root=True),
}
_TWO_ARGUMENTS = {
    "covar_pop": _covariance(sample=False),
    "covar_samp": _covariance(sample=True),
    "corr": _correlation,
}

FUNCTIONS: Mapping[str, Function] = {
    "count": Function(_D, _count),
    "count_if": Function(_D, _count_if),
    "sum": Function(_D, _sum, reproducible=_is_exact),
    "min": Function(_D, _combined(Combine.LEAST)),
    "max": Function(_D, _combined(Combine.GREATEST)),
    "bit_and": Function(_D, _combined(Combine.ALL_BITS)),
    "bit_or": Function(_D, _combined(Combine.ANY_BIT)),
    "bit_xor": Function(_D, _combined(Combine.XOR)),
    "bool_and": Function(_A, _every),
    "bool_or": Function(_A, _some),
    "avg": Function(_A, _average, reproducible=_is_exact),
    **{name: Function(_A, keep, reproducible=_never) for name, keep in _VARIANCE.items()},
    **{name: Function(_A, keep, 2, reproducible=_never) for name, keep in _TWO_ARGUMENTS.items()},
    **{
        name: _holistic()
        for name in (
            *("approx_count_distinct", "collect_list", "collect_set", "listagg", "median", "mode"),
            *("percentile", "percentile_cont", "percentile_disc", "regr_count"),
        )
    },
    **{
        name: _holistic(_never)
        for name in (
            *("kurtosis", "skewness", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope"),
            *("regr_sxx", "regr_sxy", "regr_syy"),
        )
    },
}
"""Every aggregate that is kept by deltas, under its one name here."""

ALIASES: Mapping[str, str] = {
    "mean": "avg",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "variance": "var_samp",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "array_agg": "collect_list",
    "string_agg": "listagg",
}
"""Other names that Spark has for some of them."""

SAME_WITH_DISTINCT = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "collect_set"})
"""Functions of the set of their values: how often one occurs makes no difference."""


def adds_exactly(kind: str) -> bool:
    """Whether sums over this type can be kept by adding and subtracting.

    >>> [adds_exactly(kind) for kind in ("int", "decimal(15,9)", "decimal(38,4)", "decimal(38,9)", "double")]
    [True, True, True, False, False]
    """
    decimal = _DECIMAL.match(kind)
    if decimal is None:
        return kind in _INTEGERS
    precision, scale = int(decimal[1]), int(decimal[2])
    return precision <= _WIDEST_WEIGHTED_DECIMAL or scale <= _SCALE_THAT_STAYS


def is_reproducible(call: AggregateCall, kinds: Sequence[str]) -> bool:
    """Whether computing it twice over the same rows gives the same bits, whatever the order of the rows.

    ``kinds`` are the types of what the call reads: its arguments, or its own where it is written out.
    """
    return all(FUNCTIONS[call.function].reproducible(kind) for kind in kinds)


def may_be_made_of_sums(call: AggregateCall) -> bool:
    """Whether it is one of the functions that Spark works out in floating point, and that are made of exact
    sums where their arguments allow it."""
    return call.written is None and call.function in ("avg", *_VARIANCE, *_TWO_ARGUMENTS)


def is_made_of_exact_sums(call: AggregateCall, kinds: Sequence[str]) -> bool:
    """Whether the arguments, of these types, do. Spark adds up whole numbers for AVG in floating point, which
    is exact but for large ones."""
    if call.function == "avg":
        return list(kinds) == ["bigint"]
    return may_be_made_of_sums(call) and None not in map(_scale_of_squared, kinds)


def keep_for(
    calls: tuple[AggregateCall, ...], argument_type: Callable[[Scalar], str]
) -> tuple[tuple[Kept, ...], Mapping[str, Scalar]]:
    """What is kept for these calls, beside ``_vk_count``; and each call's value over what is kept."""
    keeping = Keeping(argument_type)
    for call in calls:
        keeping.add(call)
    return tuple(keeping.kept.values()), keeping.values
