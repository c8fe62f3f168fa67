"""Which group of a view has a sum that its type cannot hold: asked when Spark has said that some sum
overflows, but not which."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from viewkeeper.algebra.aggregates import Kept
from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter
from viewkeeper.algebra.rules.leaves import new
from viewkeeper.algebra.scalars import column, compose
from viewkeeper.plan.draft import Draft
from viewkeeper.plan.situation import Situation, ViewInput
from viewkeeper.sql.printer import print_relation

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class OverflowSearch:
    """A query for one such group: its keys by the user's names, and the sums, as floating-point numbers."""

    query: str
    keys: Mapping[str, str]
    limits: Mapping[str, float]

    def told(self, row: Mapping[str, object]) -> str:
        """The column and the group that a row of the answer speaks of."""
        sums = {name: row[name] for name in self.limits}
        name = next(
            name
            for name, value in sums.items()
            if isinstance(value, float) and abs(value) >= self.limits[name]
        )
        group = ", ".join(f"{shown} = {row[key]}" for key, shown in self.keys.items())
        return f"column {name} in the group {group}" if group else f"column {name}"


def overflow_search(view: ViewInput, versions: Mapping[str, str | None]) -> OverflowSearch | None:
    """How to find the group; ``None`` when the view keeps no sums, or does not read its sources itself."""
    groups = view.layout.groups
    if groups is None or not set(view.analysis.tables) <= versions.keys():
        return None
    shown = {name: item.name for item in view.layout.present for name in item.scalar.columns}
    sums: list[tuple[str, Kept, float]] = []
    for kept in groups.kept:
        limit = _limit(groups.type_of(kept.name))
        if kept.call.function == "sum" and limit is not None:
            sums.append((shown.get(kept.name, kept.name), kept, limit))
    if not sums:
        return None
    leaves = Draft(Situation((view,), versions, {})).leaves(view)
    calls = [
        AggregateCall(name, "sum", (compose("CAST(", kept.call.arguments[0], " AS DOUBLE)"),))
        for name, kept, _ in sums
    ]
    totals = Aggregate(new(groups.child, leaves), groups.keys, tuple(calls))
    too_large = [compose("abs(", column(name), f") >= {limit!r}") for name, _, limit in sums]
    query = print_relation(Filter(totals, reduce(lambda one, other: compose(one, " OR ", other), too_large)))
    keys = {key: shown.get(key, key) for key in groups.keys}
    return OverflowSearch(
        f"SELECT * FROM (\n{query}\n) LIMIT 1", keys, {name: limit for name, _, limit in sums}
    )


def _limit(kind: str) -> float | None:
    """What a sum of this type stays below.

    >>> _limit("bigint") == 2.0**63, _limit("decimal(7,2)"), _limit("double")
    (True, 100000.0, None)
    """
    if kind == "bigint":
        return 2.0**63
    decimal = _DECIMAL.fullmatch(kind)
    return float(10 ** (int(decimal[1]) - int(decimal[2]))) if decimal else None
