"""Reads what PostgreSQL's logical decoding writes: transactions in the order in which they committed.

The messages of the plugin ``pgoutput``, protocol version 1 (PostgreSQL's manual, *Logical Replication Message
Formats*), without streaming and two-phase commits: what is read is committed, and whole. Pure: bytes in,
values out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Final

from viewkeeper.errors import SourceError

_UINT16: Final = struct.Struct("!H")
_UINT32: Final = struct.Struct("!I")
_INT64: Final = struct.Struct("!q")
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=timezone.utc)


class _Unchanged(Enum):
    TOAST = "unchanged"

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged.TOAST
"""Stands for a large value that an UPDATE did not touch: the log does not hold it."""

Value = str | None | _Unchanged
Tuple = tuple[Value, ...]


class Identity(Enum):
    """What the log holds of a row that is updated or deleted."""

    DEFAULT = "d"
    """Its primary key."""
    NOTHING = "n"
    FULL = "f"
    """The whole row."""
    INDEX = "i"
    """The columns of a unique index."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the log describes it."""

    id: int
    namespace: str
    name: str
    identity: Identity
    columns: tuple[tuple[str, int, bool], ...]
    """Name, type and whether it belongs to the identity, of each."""


class Operation(Enum):
    """What happened to a row, or to all of them."""

    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"
    TRUNCATE = "T"


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change. ``old``: the row before, or its key with NULLs beside it; ``new``: the row after."""

    operation: Operation
    relation: Relation
    old: Tuple | None = None
    new: Tuple | None = None
    whole_old: bool = False
    """Whether ``old`` is the whole row."""


@dataclass(slots=True)
class Transaction:
    """A committed transaction. ``end`` is the position behind it."""

    xid: int
    committed_at: datetime
    end: int = 0
    changes: list[RowChange] = field(default_factory=list)
    stands_for: set[int] = field(default_factory=set)
    """The transactions that it is made of, where it is more than one."""


def lsn_text(position: int) -> str:
    """A position in the log, as PostgreSQL writes it.

    >>> lsn_text(0x16B3748)
    '0/16B3748'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    """The position that a text names.

    >>> lsn_of("1/0") == 1 << 32
    True
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


class Decoder:
    """Decodes messages one after the other; tables are described before they are first mentioned."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}
        self._open: Transaction | None = None

    def transactions(self, messages: Iterable[bytes]) -> Iterator[Transaction]:
        """Whole transactions only: one that is cut off is an error, and so is a change outside of one."""
        for message in messages:
            try:
                done = self._take(_Reader(message))
            except (ValueError, OverflowError) as error:  # no text, no time, no identity that there is
                raise _broken(str(error)) from None
            if done is not None:
                yield done
        if self._open is not None:
            raise _broken("the log ends within a transaction")

    def _take(self, message: _Reader) -> Transaction | None:
        kind = message.char()
        match kind:
            case "B":
                if self._open is not None:
                    raise _broken("a transaction begins within another")
                message.int64()
                committed_at = _EPOCH + timedelta(microseconds=message.int64())
                self._open = Transaction(message.uint32(), committed_at)
            case "C":
                done = self._current()
                message.skip(1 + 8)
                done.end = message.int64()
                message.skip(8)
                self._open = None
                return done
            case "R":
                relation = _relation(message)
                self._relations[relation.id] = relation
            case "I":
                relation = self._relation(message)
                message.expect("N")
                self._change(RowChange(Operation.INSERT, relation, new=message.tuple()))
            case "U":
                self._change(self._update(message))
            case "D":
                relation = self._relation(message)
                kind = message.char()
                if kind not in "KO":
                    raise _broken(f"a delete with {kind!r}")
                old = message.tuple()
                self._change(RowChange(Operation.DELETE, relation, old=old, whole_old=kind == "O"))
            case "T":
                count = message.uint32()
                message.skip(1)
                for _ in range(count):
                    self._change(RowChange(Operation.TRUNCATE, self._relation(message)))
            case "Y" | "O" | "M":
                pass  # types, origins and messages of users say nothing of rows
            case _:
                raise _broken(f"a message of kind {kind!r}")
        return None

    def _update(self, message: _Reader) -> RowChange:
        relation = self._relation(message)
        old, whole = None, False
        kind = message.char()
        if kind in "KO":
            old, whole = message.tuple(), kind == "O"
            message.expect("N")
        elif kind != "N":
            raise _broken(f"an update with {kind!r}")
        new = message.tuple()
        if old is not None and whole:
            # What was not touched is in the row before, where that is whole.
            new = tuple(
                before if after is UNCHANGED else after for before, after in zip(old, new, strict=True)
            )
        return RowChange(Operation.UPDATE, relation, old, new, whole)

    def _change(self, change: RowChange) -> None:
        for row in (change.old, change.new):
            if row is not None and len(row) != len(change.relation.columns):
                raise _broken(f"a row of {change.relation.name} has {len(row)} values")
        self._current().changes.append(change)

    def _current(self) -> Transaction:
        if self._open is None:
            raise _broken("a change outside of a transaction")
        return self._open

    def _relation(self, message: _Reader) -> Relation:
        number = message.uint32()
        if number not in self._relations:
            raise _broken(f"table {number} is mentioned before it is described")
        return self._relations[number]


class _Reader:
    """Moves along one message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def char(self) -> str:
        if self._at >= len(self._data):
            raise _broken("a message is cut off")
        self._at += 1
        return chr(self._data[self._at - 1])

    def expect(self, kind: str) -> None:
        found = self.char()
        if found != kind:
            raise _broken(f"{found!r} in the place of {kind!r}")

    def uint16(self) -> int:
        return self._unpack(_UINT16)

    def uint32(self) -> int:
        return self._unpack(_UINT32)

    def int64(self) -> int:
        return self._unpack(_INT64)

    def skip(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise _broken("a message is cut off")

    def text(self) -> str:
        """Up to a zero byte."""
        end = self._data.find(0, self._at)
        if end < 0:
            raise _broken("a message is cut off")
        start, self._at = self._at, end + 1
        return self._data[start:end].decode()

    def tuple(self) -> Tuple:
        return tuple([self._value() for _ in range(self.uint16())])

    def _value(self) -> Value:
        kind = self.char()
        if kind == "t":
            size = self.uint32()
            start, self._at = self._at, self._at + size
            if self._at > len(self._data):
                raise _broken("a message is cut off")
            return self._data[start : self._at].decode()
        if kind == "n":
            return None
        if kind == "u":
            return UNCHANGED
        raise _broken(f"a value of kind {kind!r}")

    def _unpack(self, form: struct.Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self._at)
        except struct.error:
            raise _broken("a message is cut off") from None
        self._at += form.size
        return int(value)


def _relation(message: _Reader) -> Relation:
    number, namespace, name = message.uint32(), message.text(), message.text()
    identity = Identity(message.char())
    columns = []
    for _ in range(message.uint16()):
        is_key = message.char() == "\x01"
        column, kind = message.text(), message.uint32()
        message.skip(4)
        columns.append((column, kind, is_key))
    return Relation(number, namespace or "pg_catalog", name, identity, tuple(columns))


def _broken(what: str) -> SourceError:
    return SourceError(
        f"the log of the database cannot be followed: {what}",
        code="VK-LOG-BROKEN",
        hint="Nothing was changed. Declare the source anew: CREATE OR REPLACE SOURCE copies it again.",
    )
