"""What transactions did to one table, taken together.

With a key only the last state of each key matters; a value that the log does not hold (a large one that was
not touched) is the one of the row as it was seen. Without a key rows are signed, and add up in any order
between two TRUNCATEs. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from viewkeeper.errors import SourceError
from viewkeeper.sources.pgoutput import UNCHANGED, Operation, RowChange, Tuple, Value

Key = tuple[Value, ...]


@dataclass(slots=True)
class Touched:
    """The last state of a key; ``row`` is ``None`` when it is gone. ``was`` is the key that the row was seen
    under, if it was."""

    row: Tuple | None
    was: Key


@dataclass(slots=True)
class NetChanges:
    """The changes of a table with these columns. ``key`` is empty where whole rows are told, before and
    after: of a table without one, and by triggers."""

    columns: Sequence[str]
    key: Sequence[str]
    truncated: bool = False
    """Whether nothing that was seen is left."""
    keys: dict[Key, Touched] = field(default_factory=dict)
    """Every key that was touched: whatever was seen under it goes, and its last state comes."""
    rows: Counter[Tuple] = field(default_factory=Counter)

    def take(self, changes: Iterable[RowChange]) -> None:
        """Go through more changes, in order."""
        for change in changes:
            if change.operation is Operation.TRUNCATE:
                self.truncated = True
                self.keys.clear()
                self.rows.clear()
            elif self.key:
                self._take_keyed(change)
            else:
                self._take_row(change)

    @property
    def is_empty(self) -> bool:
        return not (self.truncated or self.keys or any(self.rows.values()))

    def _take_keyed(self, change: RowChange) -> None:
        places = self._places(change)
        old = None if change.old is None else _picked(change.old, places)
        new = None if change.new is None else _picked(change.new, places)
        before = self._key(new if old is None else old)
        if new is None:
            self.keys[before] = Touched(None, before)
            return
        after = self._key(new)
        if change.operation is Operation.INSERT:
            self.keys[after] = Touched(new, after)
            return
        known = self.keys.get(before)
        was = before if known is None else known.was
        if known is not None and known.row is not None:
            new = tuple(a if b is UNCHANGED else b for a, b in zip(known.row, new, strict=True))
        if before != after:
            self.keys[before] = Touched(None, was)
        self.keys[after] = Touched(new, was)

    def _key(self, row: Tuple | None) -> Key:
        assert row is not None, "an update or a delete names its row"
        return tuple(row[self.columns.index(name)] for name in self.key)

    def _take_row(self, change: RowChange) -> None:
        places = self._places(change)
        if change.old is not None:
            self._count(_picked(change.old, places), -1)
        if change.new is not None:
            self._count(_picked(change.new, places), 1)

    def _count(self, row: Tuple, weight: int) -> None:
        self.rows[row] += weight

    def _places(self, change: RowChange) -> list[int]:
        """Where our columns are in the log's rows; a column that came later is not among ours."""
        at = {name: place for place, (name, _, _) in enumerate(change.relation.columns)}
        missing = [name for name in self.columns if name not in at]
        if missing:
            raise SourceError(
                f"column {missing[0]} of {change.relation.namespace}.{change.relation.name} was dropped",
                code="VK-SOURCE-CHANGED",
                hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
            )
        return [at[name] for name in self.columns]


def _picked(row: Tuple, places: Sequence[int]) -> Tuple:
    return tuple(row[place] for place in places)
