"""The algebra, interpreted: relations as bags in memory, so that rules can be tried thousands of times.

Rows are tuples, a bag counts them. Scalars are evaluated by SQLite, which knows three-valued logic, CASE and
CAST; over small whole numbers it agrees with Spark.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any, TypeAlias

from typing_extensions import assert_never

from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Expand,
    Field,
    Filter,
    Join,
    Nothing,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    UnionAll,
)
from viewkeeper.algebra.scalars import WEIGHT, Scalar

Row: TypeAlias = tuple[Any, ...]
Bag: TypeAlias = "Counter[Row]"
Stored: TypeAlias = Mapping[str, tuple[tuple[str, ...], Bag]]
"""By name (``t@old`` for a table at a version): the columns and the rows."""

_SQLITE = sqlite3.connect(":memory:", cached_statements=5_000)


def scalar_value(scalar: Scalar, columns: tuple[str, ...], row: Row) -> Any:
    """The value of an expression for one row."""
    if scalar.is_column:
        return row[columns.index(next(iter(scalar.columns)))]
    text = "".join(
        part if isinstance(part, str) else f"?{columns.index(part.name) + 1}" for part in scalar.parts
    )
    used = max((columns.index(name) + 1 for name in scalar.columns), default=0)
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
    if call.argument is None:
        return sum(count for _, count in rows)
    found = [(scalar_value(call.argument, columns, row), count) for row, count in rows]
    values = [(value, count) for value, count in found if value is not None]
    if call.function == "count":
        return sum(count for _, count in values)
    if not values:
        return None
    match call.function:
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


def net(delta: Delta, stored: Stored) -> Bag:
    """A delta as a bag with negative counts, nothing being there 0 times."""
    assert delta.relation.columns[-1] == WEIGHT
    result: Bag = Counter()
    for row, count in evaluate(delta.relation, stored).items():
        result[row[:-1]] += row[-1] * count
    return Counter({row: count for row, count in result.items() if count})
