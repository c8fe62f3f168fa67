"""The algebra, interpreted: relations as bags in memory, so that rules can be tried thousands of times.

Rows are tuples, a bag counts them. Scalars are evaluated by SQLite, which knows three-valued logic, CASE and
CAST; over small whole numbers it agrees with Spark.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import and_, or_, xor
from typing import Any, TypeAlias

from typing_extensions import assert_never

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Constant,
    Distinct,
    Exists,
    Expand,
    Field,
    Filter,
    Generate,
    Join,
    Nothing,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    UnionAll,
    Window,
)
from viewkeeper.algebra.scalars import WEIGHT, Scalar

Row: TypeAlias = tuple[Any, ...]
Bag: TypeAlias = "Counter[Row]"
Stored: TypeAlias = Mapping[str, tuple[tuple[str, ...], Bag]]
"""By name (``t@old`` for a table at a version): the columns and the rows."""

_SQLITE = sqlite3.connect(":memory:", cached_statements=5_000)
for _name, _function in {
    "try_add": lambda a, b: a + b,
    "try_subtract": lambda a, b: a - b,
    "try_multiply": lambda a, b: a * b,
    "try_divide": lambda a, b: a / b if b else None,
}.items():
    _SQLITE.create_function(
        _name, 2, lambda a, b, f=_function: None if a is None or b is None else f(a, b), deterministic=True
    )


def scalar_value(scalar: Scalar, columns: tuple[str, ...], row: Row) -> Any:
    """The value of an expression for one row."""
    if scalar.is_column:
        return row[columns.index(next(iter(scalar.columns)))]
    text = "".join(
        part if isinstance(part, str) else f"?{columns.index(part.name) + 1}" for part in scalar.parts
    )
    used = max((columns.index(name) + 1 for name in scalar.columns), default=0)
    text = text.replace(" <=> ", " IS ")
    return _SQLITE.execute(f"SELECT {text}", row[:used]).fetchone()[0]


def evaluate(relation: Relation, stored: Stored) -> Bag:
    """The rows of a relation; those of a delta have their weight as the last value."""
    match relation:
        case Scan():
            raise AssertionError("the rules replace scans by what stands for them")
        case TableAt(table, version, fields):
            return _chosen(stored[f"{table}@{version}"], fields)
        case Staged(name, fields):
            return _chosen(stored[name], fields)
        case Nothing():
            return Counter()
        case Constant(_, text):
            return Counter(_SQLITE.execute(text).fetchall())
        case Filter(child, predicate):
            return Counter(
                {
                    row: count
                    for row, count in evaluate(child, stored).items()
                    if scalar_value(predicate, child.columns, row)
                }
            )
        case Project(child, items):
            result: Bag = Counter()
            for row, count in evaluate(child, stored).items():
                result[tuple(scalar_value(item.scalar, child.columns, row) for item in items)] += count
            return result
        case Join():
            return _joined(relation, stored)
        case OuterJoin():
            return _outer_joined(relation, stored)
        case Exists(child, among):
            others = evaluate(among, stored)
            names = (*child.columns, *among.columns)
            result = Counter()
            for row, count in evaluate(child, stored).items():
                found = any(_all_true(relation.conjuncts, names, (*row, *other)) for other in others)
                if relation.mark is not None:
                    result[(*row, int(found))] += count
                elif found != relation.anti:
                    result[row] += count
            return result
        case Window():
            return _windowed(relation, stored)
        case Generate(child, call):
            result = Counter()
            for row, count in evaluate(child, stored).items():
                times = scalar_value(call, child.columns, row) or 0  # as explode(sequence(1, n)) would
                numbers = range(1, times + 1)
                for number in numbers or ([None] if relation.outer else []):
                    result[(*row, number)] += count
            return result
        case SemiJoin(child, keys, on, anti):
            known = {
                tuple(row[keys.columns.index(theirs)] for _, theirs in on) for row in evaluate(keys, stored)
            }
            mine = [child.columns.index(name) for name, _ in on]
            rows = evaluate(child, stored)
            return Counter(
                {
                    row: count
                    for row, count in rows.items()
                    if (tuple(row[at] for at in mine) in known) != anti
                }
            )
        case UnionAll(inputs):
            result = Counter()
            for each in inputs:
                result.update(evaluate(each, stored))
            return result
        case Distinct(child):
            return Counter(dict.fromkeys(evaluate(child, stored), 1))
        case Aggregate():
            return _aggregated(relation, stored)
        case Expand(child, count_column):
            result = Counter()
            at = child.columns.index(count_column)
            for row, count in evaluate(child, stored).items():
                result[row[:at] + row[at + 1 :]] += count * max(row[at], 0)
            return +result
        case Repeat(child, _, times):
            rows = evaluate(child, stored)
            return Counter({(*row, number): count for row, count in rows.items() for number in range(times)})
        case _:
            assert_never(relation)


def _chosen(table: tuple[tuple[str, ...], Bag], fields: tuple[Field, ...]) -> Bag:
    columns, rows = table
    places = [columns.index(field.stored) for field in fields]
    result: Bag = Counter()
    for row, count in rows.items():
        result[tuple(row[at] for at in places)] += count
    return result


def _joined(relation: Join, stored: Stored) -> Bag:
    result: Bag = Counter()
    for combination in product(*(evaluate(child, stored).items() for child in relation.inputs)):
        row = tuple(value for part, _ in combination for value in part)
        if all(scalar_value(conjunct, relation.columns, row) for conjunct in relation.conjuncts):
            count = 1
            for _, each in combination:
                count *= each
            result[row] += count
    return result


def _all_true(conjuncts: tuple[Scalar, ...], columns: tuple[str, ...], row: Row) -> bool:
    return all(scalar_value(conjunct, columns, row) for conjunct in conjuncts)


def _outer_joined(relation: OuterJoin, stored: Stored) -> Bag:
    left, right = evaluate(relation.left, stored), evaluate(relation.right, stored)
    result: Bag = Counter()
    partnered = set[Row]()
    for mine, count in left.items():
        found = [each for each in right if _all_true(relation.conjuncts, relation.columns, (*mine, *each))]
        partnered |= set(found)
        for theirs in found:
            result[(*mine, *theirs)] += count * right[theirs]
        if not found:
            result[(*mine, *[None] * len(relation.right.columns))] += count
    if relation.full:
        for theirs, count in right.items():
            if theirs not in partnered:
                result[(*[None] * len(relation.left.columns), *theirs)] += count
    return result


def _windowed(relation: Window, stored: Stored) -> Bag:
    """By SQLite's own window functions."""
    columns = relation.child.columns
    rows = list(evaluate(relation.child, stored).elements())
    if not rows:
        return Counter()
    calls = [
        "".join(part if isinstance(part, str) else part.name for part in call.scalar.parts)
        for call in relation.calls
    ]
    marks = ", ".join(f"({', '.join('?' * len(columns))})" for _ in rows)
    text = f"WITH t ({', '.join(columns)}) AS (VALUES {marks}) SELECT {', '.join((*columns, *calls))} FROM t"
    return Counter(_SQLITE.execute(text, [value for row in rows for value in row]).fetchall())


def _aggregated(relation: Aggregate, stored: Stored) -> Bag:
    columns = relation.child.columns
    places = [columns.index(key) for key in relation.keys]
    groups: dict[Row, list[tuple[Row, int]]] = {} if relation.keys else {(): []}
    for row, count in evaluate(relation.child, stored).items():
        groups.setdefault(tuple(row[at] for at in places), []).append((row, count))
    return Counter(
        {
            (*key, *(_called(call, columns, rows) for call in relation.calls)): 1
            for key, rows in groups.items()
        }
    )


def _called(call: AggregateCall, columns: tuple[str, ...], rows: list[tuple[Row, int]]) -> Any:
    if not call.arguments:
        return sum(count for _, count in rows)
    found = [
        (tuple(scalar_value(each, columns, row) for each in call.arguments), count) for row, count in rows
    ]
    there = [(values, count) for values, count in found if None not in values]
    if call.function == "count":
        return sum(count for _, count in there)
    if call.function == "count_if":
        return sum(count for (value,), count in there if value)
    if not there:
        return None
    if call.function in ("corr", "covar_pop", "covar_samp", *_ROOTS, *_ROOTS.values()):
        spread = _spread(call.function, [pair for pair, count in there for _ in range(count)])
        return None if spread is None else round(spread, 6)
    values = [(value, count) for (value,), count in there]
    match call.function:
        case "bool_and":
            return all(value for value, _ in values)
        case "bool_or":
            return any(value for value, _ in values)
        case "bit_and":
            return reduce(and_, (value for value, _ in values))
        case "bit_or":
            return reduce(or_, (value for value, _ in values))
        case "bit_xor":
            return reduce(xor, (value for value, count in values for _ in range(count)))
        case "sum":
            return sum(value * count for value, count in values)
        case "avg":
            return sum(value * count for value, count in values) / sum(count for _, count in values)
        case "min":
            return min(value for value, _ in values)
        case "max":
            return max(value for value, _ in values)
        case other:
            raise AssertionError(f"{other} is not interpreted")


_ROOTS = {"stddev_pop": "var_pop", "stddev_samp": "var_samp"}


def _spread(function: str, rows: list[tuple[Any, ...]]) -> float | None:
    """Variance, covariance and the like."""
    if function in _ROOTS:
        variance = _spread(_ROOTS[function], rows)
        return None if variance is None else math.sqrt(variance)
    n, pairs = len(rows), [(Fraction(row[0]), Fraction(row[-1])) for row in rows]
    means = [sum(side) / n for side in zip(*pairs, strict=True)]

    def co(one: int, other: int) -> Fraction:
        return sum(((p[one] - means[one]) * (p[other] - means[other]) for p in pairs), Fraction(0))

    if function == "corr":
        spread = co(0, 0) * co(1, 1)
        return float(co(0, 1)) / math.sqrt(spread) if n > 1 and spread else None
    below = n - 1 if function.endswith("samp") else n
    return float(co(0, 1) / below) if below else None


def net(delta: Delta, stored: Stored) -> Bag:
    """A delta as a bag with negative counts, nothing being there 0 times."""
    assert delta.relation.columns[-1] == WEIGHT
    result: Bag = Counter()
    for row, count in evaluate(delta.relation, stored).items():
        result[row[:-1]] += row[-1] * count
    return Counter({row: count for row, count in result.items() if count})
