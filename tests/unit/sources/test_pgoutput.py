"""The decoder of PostgreSQL's log, on messages that are built by hand as its manual lays them out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import SourceError
from viewkeeper.sources.pgoutput import UNCHANGED, Decoder, Identity, Operation, Transaction

MICROSECONDS = 757_382_400_000_000
"""From the start of 2000 to that of 2024."""
COLUMNS = (("id", 23, True), ("name", 25, False), ("big", 25, False))


def text(word: str) -> bytes:
    return word.encode() + b"\0"


def row(*values: object) -> bytes:
    """Texts, ``None`` and ``UNCHANGED``."""
    told = {None: b"n", UNCHANGED: b"u"}
    parts = (
        b"t" + struct.pack("!I", len(value.encode())) + value.encode()
        if isinstance(value, str)
        else told[value]  # type: ignore[index]
        for value in values
    )
    return struct.pack("!H", len(values)) + b"".join(parts)


def begin(xid: int = 7) -> bytes:
    return b"B" + struct.pack("!qqI", 0x50, MICROSECONDS, xid)


def commit(end: int = 0x60) -> bytes:
    return b"C" + struct.pack("!Bqqq", 0, 0x50, end, MICROSECONDS)


def relation(
    number: int = 1,
    name: str = "t",
    columns: Sequence[tuple[str, int, bool]] = COLUMNS,
    namespace: str = "shop",
    identity: str = "d",
) -> bytes:
    listed = b"".join(
        struct.pack("!B", is_key) + text(column) + struct.pack("!Ii", kind, -1)
        for column, kind, is_key in columns
    )
    head = struct.pack("!I", number) + text(namespace) + text(name) + identity.encode()
    return b"R" + head + struct.pack("!H", len(columns)) + listed


def insert(*values: object, table: int = 1) -> bytes:
    return b"I" + struct.pack("!I", table) + b"N" + row(*values)


def update(new: bytes, old: bytes = b"", kind: bytes = b"", table: int = 1) -> bytes:
    return b"U" + struct.pack("!I", table) + kind + old + b"N" + new


def delete(*values: object, kind: bytes = b"K", table: int = 1) -> bytes:
    return b"D" + struct.pack("!I", table) + kind + row(*values)


def truncate(*tables: int) -> bytes:
    return b"T" + struct.pack(f"!IB{len(tables)}I", len(tables), 0, *tables)


def decode(*messages: bytes) -> list[Transaction]:
    return list(Decoder().transactions(messages))


def changes(*messages: bytes, columns: Sequence[tuple[str, int, bool]] = COLUMNS) -> list[tuple[object, ...]]:
    """What one transaction over one table did."""
    (found,) = decode(begin(), relation(columns=columns), *messages, commit())
    return [(each.operation, each.old, each.new, each.whole_old) for each in found.changes]


def broken(*messages: bytes) -> str:
    with pytest.raises(SourceError) as refused:
        decode(*messages)
    assert refused.value.code == "VK-LOG-BROKEN"
    assert "CREATE OR REPLACE SOURCE" in (refused.value.hint or "")
    return refused.value.message


def test_a_transaction_has_its_number_its_time_and_the_position_behind_it() -> None:
    first, second = decode(begin(7), commit(0x60), begin(8), commit(0x1_0000_0000))
    assert (first.xid, first.end, first.changes) == (7, 0x60, [])
    assert first.committed_at == datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert (second.xid, second.end) == (8, 1 << 32)


def test_a_table_is_described() -> None:
    (found,) = decode(begin(), relation(identity="f"), insert("1", None, "x"), commit())
    (change,) = found.changes
    assert change.relation.columns == COLUMNS
    assert change.relation.identity is Identity.FULL
    assert (change.relation.id, change.relation.namespace, change.relation.name) == (1, "shop", "t")


def test_a_table_without_a_namespace_is_one_of_the_catalog() -> None:
    (found,) = decode(begin(), relation(namespace=""), insert("1", None, None), commit())
    assert found.changes[0].relation.namespace == "pg_catalog"


def test_a_table_may_be_described_anew_and_outlives_the_transaction() -> None:
    wider = (*COLUMNS, ("more", 25, False))
    first, second = decode(
        begin(), relation(), insert("1", "a", "x"), relation(columns=wider), insert("2", "b", "y", "z"),
        commit(), begin(), insert("3", "c", "z", None), commit(),
    )  # fmt: skip
    assert [len(each.relation.columns) for each in first.changes] == [3, 4]
    assert second.changes[0].relation.columns == wider


def test_rows_come_and_go() -> None:
    assert changes(
        insert("1", 'ä, "b"\n', None),
        insert("2", "", "x"),
        delete("1", None, None),
        delete("2", "", "x", kind=b"O"),
    ) == [
        (Operation.INSERT, None, ("1", 'ä, "b"\n', None), False),
        (Operation.INSERT, None, ("2", "", "x"), False),
        (Operation.DELETE, ("1", None, None), None, False),
        (Operation.DELETE, ("2", "", "x"), None, True),
    ]


def test_an_update_tells_the_row_before_as_far_as_the_table_lets_it() -> None:
    new = row("1", "b", "x")
    assert changes(
        update(new),
        update(new, row("9", None, None), b"K"),
        update(new, row("1", "a", "x"), b"O"),
    ) == [
        (Operation.UPDATE, None, ("1", "b", "x"), False),
        (Operation.UPDATE, ("9", None, None), ("1", "b", "x"), False),
        (Operation.UPDATE, ("1", "a", "x"), ("1", "b", "x"), True),
    ]


def test_what_was_not_touched_comes_from_a_row_before_that_is_whole() -> None:
    new = row("1", "b", UNCHANGED)
    assert changes(
        update(new),
        update(new, row("9", None, None), b"K"),
        update(new, row("1", "a", "long"), b"O"),
        update(new, row("1", "a", None), b"O"),
    ) == [
        (Operation.UPDATE, None, ("1", "b", UNCHANGED), False),
        (Operation.UPDATE, ("9", None, None), ("1", "b", UNCHANGED), False),
        (Operation.UPDATE, ("1", "a", "long"), ("1", "b", "long"), True),
        (Operation.UPDATE, ("1", "a", None), ("1", "b", None), True),
    ]


def test_one_truncate_empties_several_tables() -> None:
    (found,) = decode(begin(), relation(1, "t"), relation(2, "u"), relation(3, "v"), truncate(3, 1), commit())
    assert [(each.operation, each.relation.name) for each in found.changes] == [
        (Operation.TRUNCATE, "v"),
        (Operation.TRUNCATE, "t"),
    ]


def test_types_origins_and_messages_say_nothing_of_rows() -> None:
    others = (
        b"Y" + struct.pack("!I", 99) + text("shop") + text("mood"),
        b"O" + struct.pack("!q", 5) + text("elsewhere"),
        b"M" + struct.pack("!Bq", 1, 5) + text("prefix") + struct.pack("!I", 2) + b"hi",
    )
    assert changes(*others, insert("1", "a", "x"), *others) == [
        (Operation.INSERT, None, ("1", "a", "x"), False)
    ]


EVERY_KIND = {
    "begin": ((), begin()),
    "relation": ((begin(),), relation()),
    "insert": ((begin(), relation()), insert("1", None, "name")),
    "update": ((begin(), relation()), update(row("1", UNCHANGED, "x"))),
    "update of a key": ((begin(), relation()), update(row("1", "a", "x"), row("9", None, None), b"K")),
    "update of a whole row": ((begin(), relation()), update(row("1", "a", "x"), row("1", "b", "y"), b"O")),
    "delete": ((begin(), relation()), delete("1", None, None)),
    "truncate": ((begin(), relation(1), relation(2)), truncate(1, 2)),
    "commit": ((begin(),), commit()),
}
"""What has to come before a message, and the message."""


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_message_that_is_cut_off_anywhere_is_told(kind: str) -> None:
    before, message = EVERY_KIND[kind]
    for size in range(len(message)):
        after = [] if message[:1] in (b"B", b"C") else [commit()]
        assert broken(*before, message[:size], *after), f"{size} bytes of {len(message)}"


@given(st.sampled_from(sorted(EVERY_KIND)), st.data())
def test_a_byte_that_is_not_what_it_should_be_is_read_or_told_but_never_crashes(
    kind: str, data: st.DataObject
) -> None:
    before, message = EVERY_KIND[kind]
    at = data.draw(st.integers(0, len(message) - 1))
    changed = message[:at] + data.draw(st.binary(min_size=1, max_size=1)) + message[at + 1 :]
    try:
        decode(*before, changed, *([] if kind in ("begin", "commit") else [commit()]))
    except SourceError as error:
        assert error.code == "VK-LOG-BROKEN"


@pytest.mark.parametrize("message", [insert("1", "a", "x"), delete("1", None, None), truncate(1)])
def test_a_change_outside_of_a_transaction_is_told(message: bytes) -> None:
    assert "outside of a transaction" in broken(relation(), message)
    assert "outside of a transaction" in broken(begin(), relation(), commit(), message)


def test_transactions_begin_and_end_one_after_the_other() -> None:
    assert "within another" in broken(begin(), begin())
    assert "ends within a transaction" in broken(begin(), relation(), insert("1", "a", "x"))
    assert "outside of a transaction" in broken(commit())


@pytest.mark.parametrize(
    "message",
    [
        insert("1", "a", "x", table=2),
        update(row("1", "a", "x"), table=2),
        delete("1", None, None, table=2),
        truncate(1, 2),
    ],
)
def test_a_table_that_was_not_described_is_told_by_its_number(message: bytes) -> None:
    assert "table 2 is mentioned before it is described" in broken(begin(), relation(), message, commit())


@pytest.mark.parametrize("kind", ["S", "P", "X", "\0", "ÿ"])
def test_kinds_that_there_are_not_in_this_version_are_told(kind: str) -> None:
    assert f"a message of kind {kind!r}" in broken(begin(), kind.encode("latin-1") + b"\0" * 20)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"I" + struct.pack("!I", 1) + b"K" + row("1", "a", "x"), id="insert of a key"),
        pytest.param(b"U" + struct.pack("!I", 1) + b"X" + row("1", "a", "x"), id="update of nothing known"),
        pytest.param(
            b"U" + struct.pack("!I", 1) + b"K" + row("1", "a", "x") + b"K" + row("1", "a", "x"),
            id="update without the row after",
        ),
        pytest.param(b"D" + struct.pack("!I", 1) + b"N" + row("1", "a", "x"), id="delete of a new row"),
        pytest.param(b"I" + struct.pack("!I", 1) + b"N" + struct.pack("!H", 1) + b"b", id="binary value"),
        pytest.param(insert("1", "a"), id="too few values"),
        pytest.param(insert("1", "a", "x", "y"), id="too many values"),
        pytest.param(update(row("1", "a", UNCHANGED), row("1"), b"O"), id="row before is shorter"),
        pytest.param(relation(identity="z"), id="unknown identity"),
    ],
)
def test_what_does_not_fit_is_told(message: bytes) -> None:
    assert broken(begin(), relation(), message, commit())
