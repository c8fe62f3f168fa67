"""How many values the columns have that views join tables by: what the sizes of joins are estimated by.

A source's own statistics tell it where they are of today. Elsewhere it is counted once, roughly, and kept in
the ledger as a sketch. From then on it follows the table: a column with a value for nearly every row grows
with it, another keeps its values. When a tenth more rows have come, their values are added to the sketch,

    sketch(R ⊎ Δ) = sketch(R) ∪ sketch(Δ)

and only they are read. Nothing can be taken from a sketch: when many rows went, or were replaced, all are
counted again; the less often, the more often that told nothing new.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from viewkeeper.algebra.provenance import joined_columns
from viewkeeper.execute.engine import Engine
from viewkeeper.execute.sketches import Sketched
from viewkeeper.ledger.records import SourceObservation
from viewkeeper.plan.situation import Situation, ViewInput
from viewkeeper.sources.contract import ColumnStatistics

_KEPT = "distinct"
FEWEST = 3
"""Of two relations there is only one delta expression."""
_LIKE_A_KEY = 0.5
_CAME = 0.1
_WENT = 0.2
_READ_WHOLE = 1.0
"""Of a source whose rows are only there to be read all of them, as many may come or go."""
_NO_MATTER = 1_000
"""So many rows that came or went make no difference to any plan; unless the table doubles by them."""
_NEW = 0.1
"""A count that differs by less from the one before tells nothing new."""
_MOST_PATIENCE = 4.0

_NUMBERS = ("values", "rows", "came", "went", "growth", "patience")


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """Of one column: about how many values it had, when its table had so many rows, at which version; the
    sketch that tells, if there is one; and what happened to the table since."""

    values: int
    rows: int
    version: str
    sketch: str | None = None
    came: int = 0
    """Rows, beyond those that went with them."""
    went: int = 0
    """Rows that went or were replaced, at most."""
    growth: float = _CAME
    """As many rows may come, as a share of those there were, before their values are added."""
    patience: float = _WENT
    """As many may go before all is counted again."""

    def at(self, rows: int) -> float:
        """About as many as there are now.

        >>> DistinctValues(100, 100, "1").at(150), DistinctValues(7, 100, "1").at(150)
        (150.0, 7.0)
        """
        growth = rows / max(1, self.rows)
        return min(float(rows), self.values * (growth if self.values >= _LIKE_A_KEY * self.rows else 1.0))

    def after(self, came: int, went: int) -> DistinctValues:
        """After a change by which so many rows came and went, at most: by copy-on-write the same ones."""
        return replace(self, came=self.came + max(0, came - went), went=self.went + went)

    def has_grown(self) -> bool:
        """Whether so many rows came that their values are worth adding."""
        return self.came >= self._limit(self.growth)

    def is_doubtful(self) -> bool:
        """Whether so many rows went or were replaced that it is to be counted anew."""
        return self.went >= self._limit(self.patience)

    def _limit(self, share: float) -> float:
        return max(share, min(1.0, _NO_MATTER / max(1, self.rows))) * self.rows


@dataclass(frozen=True, slots=True)
class TableValues:
    """Of some columns of a table, followed up to a version."""

    version: str
    columns: Mapping[str, DistinctValues] = field(default_factory=dict)

    def at(self, rows: int) -> dict[str, float]:
        """About as many as each column has now."""
        return {name: column.at(rows) for name, column in self.columns.items()}

    def followed(self, version: str, change: tuple[int, int] | None) -> TableValues:
        """After a change by which so many rows came and went. Without a change that is known, nothing is."""
        if change is None:
            return TableValues(version)
        return TableValues(version, {name: column.after(*change) for name, column in self.columns.items()})

    def to_json(self) -> dict[str, Any]:
        """As the ledger keeps it."""
        columns = {name: asdict(column) for name, column in self.columns.items()}
        return {"version": self.version, "columns": columns}

    @classmethod
    def from_json(cls, kept: Any) -> TableValues | None:
        """What :meth:`to_json` gave; ``None`` if it is nothing of the kind, and then counted anew."""
        try:
            columns = {name: DistinctValues(**column) for name, column in kept["columns"].items()}
            sane = all(getattr(column, name) >= 0 for column in columns.values() for name in _NUMBERS)
            return cls(kept["version"], columns) if sane else None
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


def count_missing(
    engine: Engine, situation: Situation, known: Mapping[str, TableValues]
) -> dict[str, TableValues]:
    """What is known of each source, brought up to date where much has changed, and what was never counted."""
    found = dict(known)
    for table, wanted in _columns_to_know(situation.views).items():
        rows, version = situation.rows.get(table), situation.versions.get(table)
        if not rows or version is None:  # what it holds when it has rows again, nobody knows
            found.pop(table, None)
            continue
        before = known.get(table, TableValues(version))
        if before.version != version:
            before = before.followed(version, _change(situation, table, before.version))
        found[table] = _up_to_date(engine, table, before, wanted, rows)
    return found


def _up_to_date(engine: Engine, table: str, before: TableValues, wanted: set[str], rows: int) -> TableValues:
    """The values with those of the wanted columns that are missing, have grown, or are doubtful."""
    version, columns = before.version, dict(before.columns)
    grown: dict[str, dict[str, str]] = defaultdict(dict)
    missing = []
    for name in sorted(wanted):
        column = columns.get(name)
        if column is not None and column.has_grown() and column.sketch and not column.is_doubtful():
            grown[column.version][name] = column.sketch
        elif column is None or column.has_grown() or column.is_doubtful():
            missing.append(name)
    for old, sketches in grown.items():
        added = engine.add_values(table, old, version, sketches)
        columns |= {
            name: replace(
                columns[name], values=found.values, rows=rows, version=version, sketch=found.sketch, came=0
            )
            for name, found in added.items()
        }
        missing += sketches.keys() - added.keys()
    told = _told(engine.statistics(table, missing), version) if missing else {}
    columns |= told
    counted = engine.count_values(table, version, [name for name in missing if name not in told])
    for name, found in counted.items():
        columns[name] = _counted(found, rows, version, columns.get(name))
    return TableValues(version, columns)


def _told(statistics: Mapping[str, ColumnStatistics], version: str) -> dict[str, DistinctValues]:
    """By a source's statistics, as far as they are of today."""
    told = {
        name: DistinctValues(each.values, each.rows, version).after(each.came, each.went)
        for name, each in statistics.items()
    }
    return {name: each for name, each in told.items() if not (each.has_grown() or each.is_doubtful())}


def _counted(
    found: Sketched, rows: int, version: str, before: DistinctValues | None = None
) -> DistinctValues:
    """What was counted; if for a doubt that there was no reason for, the next one may be larger."""
    if found.sketch is None:
        return DistinctValues(found.values, rows, version, growth=_READ_WHOLE, patience=_READ_WHOLE)
    patience = _WENT
    if before is not None and before.is_doubtful():
        unchanged = abs(before.at(rows) - found.values) <= _NEW * found.values
        patience = min(_MOST_PATIENCE, 2 * before.patience) if unchanged else _WENT
    return DistinctValues(found.values, rows, version, found.sketch, patience=patience)


def _change(situation: Situation, table: str, version: str) -> tuple[int, int] | None:
    """How many rows came and went since that version, at most: of changes for views that stand elsewhere the
    largest. ``None``: it is not known."""
    now = situation.versions[table]
    if any(name == table for name, _, _ in situation.lost):
        return None
    changes = {
        old: (change.inserted, change.deleted) if change else (0, 0)
        for (name, old, new), change in situation.changes.items()
        if name == table and new == now
    }
    return changes.get(version) or max(changes.values(), key=sum, default=None)


def with_distinct(situation: Situation, known: Mapping[str, TableValues]) -> Situation:
    """The situation, with the values that columns have now."""
    distinct = {
        table: values.at(rows)
        for table, values in known.items()
        if (rows := situation.rows.get(table)) is not None
    }
    return replace(situation, distinct=distinct)


def kept_values(observations: Mapping[str, SourceObservation]) -> dict[str, TableValues]:
    """What the ledger has of each source."""
    kept = {table: TableValues.from_json(seen.details.get(_KEPT)) for table, seen in observations.items()}
    return {table: values for table, values in kept.items() if values is not None}


def details(values: TableValues | None) -> dict[str, Any]:
    """For the ledger, with the version that a source was seen at."""
    return {} if values is None else {_KEPT: values.to_json()}


def _columns_to_know(views: Iterable[ViewInput]) -> dict[str, set[str]]:
    """By which columns views join each table, where it matters how."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for view in views:
        if view.analysis.relation is not None:
            for table, column in joined_columns(view.analysis.relation, FEWEST):
                wanted[table].add(column)
    return wanted
