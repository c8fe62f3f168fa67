"""How many values the columns have that views join tables by, and how wide their texts are: what the sizes of
joins are estimated by.

A source's own statistics tell it where there are any. Elsewhere it is counted once, roughly, and kept in the
ledger with the rows that the table had. From then on it follows the table: a column with a value for nearly
every row grows with it, another keeps its values. When the table has doubled, or halved, it is counted again.
The width of texts is taken from the metadata of files, on the same occasions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.algebra.provenance import joined_columns, joined_tables
from viewkeeper.algebra.reading_costs import is_of_any_length
from viewkeeper.execute.engine import Engine
from viewkeeper.ledger import Ledger
from viewkeeper.plan.situation import Situation, ViewInput

_KEPT = "distinct"
_FEWEST = 3
"""Of two relations there is only one delta expression."""
_LIKE_A_KEY = 0.5
_OUTGROWN = 2.0


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """Of some columns of a table, when it had so many rows. ``widths``: about how many bytes a row took of
    columns of any length, 0 where nobody knows."""

    rows: int
    columns: Mapping[str, int]
    widths: Mapping[str, float] = field(default_factory=dict)

    def at(self, rows: int) -> dict[str, float]:
        """About as many as there are now.

        >>> DistinctValues(100, {"id": 100, "color": 7}).at(150)
        {'id': 150.0, 'color': 7.0}
        """
        growth = rows / max(1, self.rows)
        return {
            column: min(float(rows), values * (growth if values >= _LIKE_A_KEY * self.rows else 1.0))
            for column, values in self.columns.items()
        }

    def is_outgrown(self, rows: int) -> bool:
        return not self.rows / _OUTGROWN <= rows <= self.rows * _OUTGROWN

    def to_json(self) -> dict[str, Any]:
        """As the ledger keeps it."""
        return {"rows": self.rows, "columns": dict(self.columns), "widths": dict(self.widths)}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> DistinctValues:
        """What :meth:`to_json` gave."""
        return cls(kept["rows"], kept["columns"], kept.get("widths", {}))


def count_missing(
    engine: Engine, situation: Situation, known: Mapping[str, DistinctValues]
) -> dict[str, DistinctValues]:
    """What is known of each source, and what of it was never counted before, or too long ago."""
    found = dict(known)
    long = _columns_of_any_length(situation)
    for table, wanted in _columns_to_know(situation.views).items():
        rows, version = situation.rows.get(table), situation.versions.get(table)
        if not rows or version is None:
            continue
        before = known.get(table)
        if before is None or before.is_outgrown(rows):
            before = DistinctValues(rows, {})
        missing = sorted(wanted - set(before.columns))
        unmeasured = sorted(long[table] - set(before.widths))
        if missing or unmeasured:
            there = {column: round(values) for column, values in before.at(rows).items()}
            counted = engine.distinct(table, version, missing) if missing else {}
            widths = dict.fromkeys(unmeasured, 0.0) | engine.widths(table, version, unmeasured)
            found[table] = DistinctValues(rows, {**there, **counted}, {**before.widths, **widths})
    return found


def with_distinct(situation: Situation, known: Mapping[str, DistinctValues]) -> Situation:
    """The situation, with the values that columns have now."""
    distinct = {
        table: values.at(rows)
        for table, values in known.items()
        if (rows := situation.rows.get(table)) is not None
    }
    widths = {table: values.widths for table, values in known.items()}
    return replace(situation, distinct=distinct, widths=widths)


def kept_values(ledger: Ledger) -> dict[str, DistinctValues]:
    """What the ledger has of each source."""
    return {
        table: DistinctValues.from_json(seen.details[_KEPT])
        for table, seen in ledger.observations().items()
        if _KEPT in seen.details
    }


def details(values: DistinctValues | None) -> dict[str, Any]:
    """For the ledger, with the version that a source was seen at."""
    return {} if values is None else {_KEPT: values.to_json()}


def _columns_to_know(views: Iterable[ViewInput]) -> dict[str, set[str]]:
    """By which columns views join each table, where it matters how."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for view in views:
        if view.analysis.relation is not None:
            for table, column in joined_columns(view.analysis.relation, _FEWEST):
                wanted[table].add(column)
    return wanted


def _columns_of_any_length(situation: Situation) -> dict[str, set[str]]:
    """Which such columns are read of each table that views join, where it matters."""
    found: dict[str, set[str]] = defaultdict(set)
    for view in situation.views:
        if view.analysis.relation is not None:
            for scan in joined_tables(view.analysis.relation, _FEWEST):
                types = situation.types.get(scan.table, {})
                read = {each.stored for each in scan.fields}
                found[scan.table] |= {each for each in read if is_of_any_length(types.get(each, ""))}
    return found
