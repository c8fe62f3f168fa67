"""Any sequence of changes to a table, against a plain model that makes them one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.errors import SourceError
from viewkeeper.sources.net_changes import NetChanges
from viewkeeper.sources.pgoutput import UNCHANGED, Identity, Operation, Relation, RowChange, Tuple

COLUMNS = ("id", "part", "name", "big")
KEY = ("part", "id")
Row = tuple[str | None, ...]
Key = tuple[str | None, ...]


def relation(names: Iterable[str] = ("more", "big", "name", "part", "id")) -> Relation:
    """As the log describes the table: in another order, with a column that is not ours."""
    return Relation(1, "shop", "t", Identity.DEFAULT, tuple((name, 25, name in KEY) for name in names))


def logged(row: Mapping[str, object] | None) -> Tuple | None:
    """A row as the log has it, in its order."""
    if row is None:
        return None
    return tuple(row.get(name) for name, _, _ in relation().columns)  # type: ignore[return-value]


def change(
    operation: Operation, old: Mapping[str, object] | None, new: Mapping[str, object] | None
) -> RowChange:
    return RowChange(operation, relation(), logged(old), logged(new))


class Act(Enum):
    INSERT = "insert"
    UPDATE = "update"
    MOVE = "move"
    DELETE = "delete"
    TRUNCATE = "truncate"


ACTS = st.tuples(
    st.sampled_from([*Act, Act.INSERT, Act.UPDATE, Act.MOVE, Act.DELETE]),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
)
"""What to do, to which of the rows, which place it goes to, and whether its large value is touched."""


@dataclass
class Keyed:
    """The table as the database has it; what is done to it is told as the log would."""

    rows: dict[Key, dict[str, str | None]]
    told: list[RowChange] = field(default_factory=list)
    count: int = 0

    def act(self, act: Act, which: int, where: int, touches: bool) -> None:
        places = [(part, number) for part in ("a", None) for number in ("1", "2", "3")]
        free = [place for place in places if place not in self.rows]
        taken = sorted(self.rows, key=str)
        if act is Act.TRUNCATE:
            self.rows.clear()
            self.told.append(change(Operation.TRUNCATE, None, None))
        elif act is Act.INSERT and free:
            place = free[where % len(free)]
            self.rows[place] = self._row(place)
            self.told.append(change(Operation.INSERT, None, self.rows[place]))
        elif act is Act.DELETE and taken:
            place = taken[which % len(taken)]
            self.told.append(change(Operation.DELETE, _key_of(self.rows.pop(place)), None))
        elif act in (Act.UPDATE, Act.MOVE) and taken:
            place = taken[which % len(taken)]
            before = self.rows.pop(place)
            moves = act is Act.MOVE and free
            after = self._row(free[where % len(free)] if moves else place)
            if not touches:
                after["big"] = before["big"]
            self.rows[(after["part"], after["id"])] = after
            new = after if touches else {**after, "big": UNCHANGED}
            self.told.append(change(Operation.UPDATE, _key_of(before) if moves else None, new))

    def _row(self, place: Key) -> dict[str, str | None]:
        self.count += 1
        big = None if self.count % 4 == 0 else f"big {self.count}"
        return {"part": place[0], "id": place[1], "name": f"n{self.count}", "big": big}


def _key_of(row: Mapping[str, object]) -> dict[str, object]:
    return {name: row[name] for name in KEY}


def state(rows: Mapping[Key, Mapping[str, str | None]]) -> dict[Key, Row]:
    return {key: tuple(row[name] for name in COLUMNS) for key, row in rows.items()}


def brought_up(seen: Mapping[Key, Row], net: NetChanges) -> dict[Key, Row]:
    """What was seen, without the keys that were touched, and with the last state of each."""
    found = {} if net.truncated else {key: row for key, row in seen.items() if key not in net.keys}
    for key, touched in net.keys.items():
        if touched.row is not None:
            known = (
                seen[touched.was][at] if value is UNCHANGED else value for at, value in enumerate(touched.row)
            )
            found[key] = tuple(known)  # type: ignore[arg-type]
    return found


@settings(max_examples=300)
@given(st.lists(ACTS, max_size=6), st.lists(st.lists(ACTS, max_size=6), max_size=4))
def test_the_last_states_of_touched_keys_bring_what_was_seen_to_what_is_there(
    before: list[tuple[Act, int, int, bool]], transactions: list[list[tuple[Act, int, int, bool]]]
) -> None:
    table = Keyed({})
    for act in before:
        table.act(*act)
    seen = state(table.rows)
    net = NetChanges(COLUMNS, KEY)
    for transaction in transactions:
        table.told = []
        for act in transaction:
            table.act(*act)
        net.take(table.told)
    assert brought_up(seen, net) == state(table.rows)
    if net.truncated:
        assert UNCHANGED not in {value for each in net.keys.values() for value in each.row or ()}
    if net.is_empty:
        assert seen == state(table.rows)


def test_a_row_that_moves_on_and_on_is_filled_from_where_it_was_seen() -> None:
    def row(number: str, name: str) -> dict[str, object]:
        return {"id": number, "part": "a", "name": name, "big": UNCHANGED}

    def key(number: str) -> dict[str, object]:
        return {"id": number, "part": "a"}

    net = NetChanges(COLUMNS, KEY)
    net.take([change(Operation.UPDATE, key("1"), row("2", "moved"))])
    net.take([change(Operation.UPDATE, None, row("2", "touched"))])
    net.take([change(Operation.UPDATE, key("2"), row("3", "moved again"))])
    # What comes to its places later is another row.
    whole = {**row("1", "new"), "big": "other"}
    net.take([change(Operation.INSERT, None, whole), change(Operation.UPDATE, None, row("1", "x"))])
    seen = {("a", "1"): ("1", "a", "n", "large")}
    assert brought_up(seen, net) == {
        ("a", "1"): ("1", "a", "x", "other"),
        ("a", "3"): ("3", "a", "moved again", "large"),
    }


@given(st.lists(ACTS, max_size=6), st.lists(st.lists(ACTS, max_size=6), max_size=4))
def test_without_a_key_signed_rows_add_up(
    before: list[tuple[Act, int, int, bool]], transactions: list[list[tuple[Act, int, int, bool]]]
) -> None:
    there: list[dict[str, str | None]] = []

    def act(act: Act, which: int, where: int, null: bool) -> list[RowChange]:
        # Few values: the same row comes several times.
        row = {"id": str(where), "part": None if null else "a", "name": "n", "big": None}
        if act is Act.TRUNCATE:
            there.clear()
            return [change(Operation.TRUNCATE, None, None)]
        if act is Act.INSERT:
            there.append(row)
            return [change(Operation.INSERT, None, row)]
        if not there:
            return []
        old = there.pop(which % len(there))
        if act is Act.DELETE:
            return [change(Operation.DELETE, old, None)]
        there.append(row)
        return [change(Operation.UPDATE, old, row)]

    def bag() -> Counter[Row]:
        return Counter(tuple(row[name] for name in COLUMNS) for row in there)

    for each in before:
        act(*each)
    seen = bag()
    net = NetChanges(COLUMNS, ())
    for transaction in transactions:
        net.take([told for each in transaction for told in act(*each)])
    found: Counter[Tuple] = Counter() if net.truncated else Counter(seen)
    found.update(net.rows)
    assert {row: count for row, count in found.items() if count} == bag()
    assert net.is_empty == (not net.truncated and seen == bag())


def test_what_cancels_out_is_nothing() -> None:
    row = {"id": "1", "part": "a", "name": "n", "big": None}
    net = NetChanges(COLUMNS, ())
    assert net.is_empty
    net.take([change(Operation.INSERT, None, row), change(Operation.DELETE, row, None)])
    assert net.is_empty


@pytest.mark.parametrize("key", [KEY, ()])
def test_a_truncate_of_an_empty_table_is_not_nothing(key: tuple[str, ...]) -> None:
    """What was seen may have rows that the log does not mention."""
    net = NetChanges(COLUMNS, key)
    net.take([change(Operation.TRUNCATE, None, None)])
    assert not net.is_empty


@pytest.mark.parametrize("key", [KEY, ()])
def test_a_column_that_is_gone_is_named(key: tuple[str, ...]) -> None:
    told = RowChange(Operation.INSERT, relation(("id", "part", "big")), new=("1", "a", None))
    with pytest.raises(SourceError) as refused:
        NetChanges(COLUMNS, key).take([told])
    assert refused.value.code == "VK-SOURCE-CHANGED"
    assert "column name of shop.t was dropped" in refused.value.message
