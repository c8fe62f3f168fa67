"""How wide the texts are that views read of tables they join: what reading a row costs depends on it.

The metadata of a source's files tells it; no row is read. The ledger keeps it with the rows that the table
had, and it is asked for again when the table has doubled, or halved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from viewkeeper.algebra.provenance import joined_tables
from viewkeeper.algebra.reading_costs import is_of_any_length
from viewkeeper.distinct_values import FEWEST
from viewkeeper.execute.engine import Engine
from viewkeeper.ledger.records import SourceObservation
from viewkeeper.plan.situation import Situation

_KEPT = "widths"
_OUTGROWN = 2.0


@dataclass(frozen=True, slots=True)
class TextWidths:
    """About how many bytes a row took of some columns of any length, when the table had so many rows; 0 where
    nobody knows."""

    rows: int
    columns: Mapping[str, float] = field(default_factory=dict)

    def is_outgrown(self, rows: int) -> bool:
        """Whether the table has doubled or halved since."""
        return not self.rows / _OUTGROWN <= rows <= self.rows * _OUTGROWN

    @classmethod
    def from_json(cls, kept: Any) -> TextWidths | None:
        """What the ledger has; ``None`` if it is nothing of the kind, and then measured anew."""
        try:
            widths = cls(int(kept["rows"]), {name: float(width) for name, width in kept["columns"].items()})
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return None
        return widths if all(width >= 0 for width in widths.columns.values()) else None


def measure_missing(
    engine: Engine, situation: Situation, known: Mapping[str, TextWidths]
) -> dict[str, TextWidths]:
    """What is known of each source, and what was never measured, or too long ago."""
    found = dict(known)
    for table, wanted in _columns_of_any_length(situation).items():
        rows, version = situation.rows.get(table), situation.versions.get(table)
        if not rows or version is None:
            continue
        before = known.get(table)
        if before is None or before.is_outgrown(rows):
            before = TextWidths(rows)
        missing = sorted(wanted - set(before.columns))
        if missing:
            measured = dict.fromkeys(missing, 0.0) | engine.widths(table, version, missing)
            found[table] = TextWidths(before.rows, {**before.columns, **measured})
    return found


def with_widths(situation: Situation, known: Mapping[str, TextWidths]) -> Situation:
    """The situation, with the widths of columns."""
    return replace(situation, widths={table: widths.columns for table, widths in known.items()})


def kept_widths(observations: Mapping[str, SourceObservation]) -> dict[str, TextWidths]:
    """What the ledger has of each source."""
    kept = {table: TextWidths.from_json(seen.details.get(_KEPT)) for table, seen in observations.items()}
    return {table: widths for table, widths in kept.items() if widths is not None}


def details(widths: TextWidths | None) -> dict[str, Any]:
    """For the ledger, with the version that a source was seen at."""
    return {} if widths is None else {_KEPT: asdict(widths)}


def _columns_of_any_length(situation: Situation) -> dict[str, set[str]]:
    """Which such columns are read of each table that views join, where it matters."""
    found: dict[str, set[str]] = defaultdict(set)
    for view in situation.views:
        if view.analysis.relation is not None:
            for scan in joined_tables(view.analysis.relation, FEWEST):
                types = situation.types.get(scan.table, {})
                read = {each.stored for each in scan.fields}
                found[scan.table] |= {each for each in read if is_of_any_length(types.get(each, ""))}
    return found
