"""What is read of a replication slot, and how far it is let go to: no transaction is left out between."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from viewkeeper.ledger.records import JsonObject
from viewkeeper.sources.horizons import Horizon
from viewkeeper.sources.pgoutput import lsn_of, lsn_text
from viewkeeper.sources.postgres_capture import LogCapture
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_slot import Slot

EVERYTHING = Horizon("0/400", "100:100:")
"""The log was written up to there; every transaction is seen."""
OURS = [PinnedTable("shop", "t", (), (), oid=1)]


class Log(Slot):
    """A slot on a server that is not there: whole transactions, as many as are asked for."""

    def __init__(self, ends: Sequence[int], written: int, at: int = 0) -> None:
        super().__init__(server(), "slot")
        self.ends, self.written, self.at = ends, written, at

    def _state(self, connection: object) -> tuple[Any, ...]:
        return lsn_text(self.at), "reserved", False, lsn_text(self.written)

    def _peek(
        self, connection: object, now: str | None, of: str = "", most: int | None = None
    ) -> Iterator[bytes]:
        """Like the server: as far as the commit that reaches the position or the number of messages."""
        told = 0
        for end in (end for end in self.ends if end > self.at):
            yield from transaction(end)
            told += len(transaction(end))
            if end >= lsn_of(now or "F/0") or (most is not None and told >= most):
                return

    def _unpublished(self, connection: object) -> None:
        return None

    def _advance(self, connection: object, position: str) -> None:
        self.at = max(self.at, lsn_of(position))


class Shelf(dict[str, JsonObject]):
    """What a source remembers."""

    load = dict.get
    save = dict.__setitem__


def server() -> Any:
    @contextmanager
    def asking() -> Iterator[None]:
        yield

    return SimpleNamespace(asking=asking, source="bank", options=SimpleNamespace(publication=None))


def transaction(end: int) -> list[bytes]:
    """One that truncates a table without columns."""
    relation = b"R" + struct.pack("!I", 1) + b"shop\0t\0d" + struct.pack("!H", 0)
    return [
        b"B" + struct.pack("!qqI", end - 8, 0, 7),
        relation,
        b"T" + struct.pack("!IBI", 1, 0, 1),
        b"C" + struct.pack("!Bqqq", 0, end - 8, end, 0),
    ]


def capture(log: Log) -> LogCapture:
    found = LogCapture(server(), "slot", Shelf())  # type: ignore[arg-type]
    found._slot = log
    return found


def test_more_than_is_read_at_a_time() -> None:
    """The first ones are read, and the slot stays before them until they are published."""
    log = Log([0x100, 0x200, 0x300], written=0x400)
    reading = capture(log)
    assert [each.end for each in reading.read_seen("0/0", OURS, EVERYTHING, most=5)] == [0x100, 0x200]
    reading.rest()
    assert log.at == 0
    assert [each.end for each in reading.read_seen("0/200", OURS, EVERYTHING, most=5)] == [0x300]


def test_a_commit_that_is_written_in_part() -> None:
    """The horizon lies within its record: it is read later, and the slot waits before it."""
    log = Log([0x408], written=0x500)
    reading = capture(log)
    assert reading.read_seen("0/200", OURS, EVERYTHING, most=5) == []
    reading.rest()
    assert log.at <= 0x200
    assert [each.end for each in reading.read_seen("0/200", OURS, Horizon("0/500", "100:100:"))] == [0x408]


def test_an_idle_slot_moves_on_to_the_horizon() -> None:
    """What the ledger has is no reason to stay, where the slot was not told of it."""
    log = Log([0x100], written=0x500)
    reading = capture(log)
    assert reading.read_seen("0/100", OURS, EVERYTHING) == []
    reading.rest()
    assert log.at == 0x400


def test_a_publication_that_tells_of_other_tables_too() -> None:
    """They do not hold the slot back, however many changes of theirs there are."""
    log = Log([0x100, 0x200, 0x300], written=0x400)
    reading, theirs = capture(log), [PinnedTable("shop", "other", (), (), oid=2)]
    for _ in range(2):
        assert reading.read_seen("0/50", theirs, EVERYTHING, most=5) == []
        reading.rest()
    assert log.at == 0x400
