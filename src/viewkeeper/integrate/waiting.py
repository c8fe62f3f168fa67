"""Updates that have arrived, and which of them come next.

An update that is a transaction of its own comes as soon as those before it from its source have. One that is
part of a global transaction waits for the other parts, and what its source sends after it waits behind it;
other sources go on. What comes next is a set of updates that is *closed*:

    with an update it has all parts of its transaction, and all that its source sent before it,

and as small as can be: one update, one global transaction, or transactions that two sources saw in opposite
orders, which no order can tell apart and one step must bring in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.integrate.messages import Update

Group: TypeAlias = tuple[Update, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Arrived:
    at: int
    update: Update


class Waiting:
    """The updates that have arrived and were not given out, source by source."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[_Arrived]] = {}
        self._parts: dict[str, dict[str, _Arrived]] = {}
        self._arrived = 0

    def add(self, update: Update) -> None:
        self._arrived += 1
        arrived = _Arrived(self._arrived, update)
        self._queues.setdefault(update.source, deque()).append(arrived)
        if update.transaction:
            self._parts.setdefault(update.transaction.id, {})[update.source] = arrived

    def of(self, source: str) -> Iterator[Update]:
        """The updates of one source, in order."""
        return (arrived.update for arrived in self._queues.get(source, ()))

    def take_first(self, source: str) -> Update:
        """The next update of a source that is no part of a global transaction."""
        arrived = self._queues[source].popleft()
        self._forget_if_empty(source)
        assert arrived.update.transaction is None
        return arrived.update

    def take_next(self) -> Group | None:
        """The group that comes next, if there is one: the first that no smaller one must come before."""
        best: list[_Arrived] | None = None
        for queue in sorted(self._queues.values(), key=lambda queue: queue[0].at):
            group = self._closed(queue[0])
            if group is not None and (best is None or set(group) < set(best)):
                best = group
            if best is not None and len(best) == 1:
                break
        if best is None:
            return None
        for arrived in best:
            self._queues[arrived.update.source].popleft()
            self._forget_if_empty(arrived.update.source)
            if arrived.update.transaction:
                self._parts.pop(arrived.update.transaction.id, None)
        return tuple(arrived.update for arrived in best)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The global transactions of which a part is missing."""
        return tuple(id for id, parts in self._parts.items() if _lacks_some(parts))

    def _closed(self, first: _Arrived) -> list[_Arrived] | None:
        """The smallest closed set with this update, in order of arrival; ``None`` if a part is missing."""
        members: dict[int, _Arrived] = {}
        front = [first]
        while front:
            arrived = front.pop()
            if arrived.at in members:
                continue
            members[arrived.at] = arrived
            transaction = arrived.update.transaction
            if transaction:
                parts = self._parts[transaction.id]
                if not transaction.sources <= parts.keys():
                    return None
                front.extend(parts.values())
            for before in self._queues[arrived.update.source]:
                if before is arrived:
                    break
                front.append(before)
        return [members[at] for at in sorted(members)]

    def _forget_if_empty(self, source: str) -> None:
        if not self._queues[source]:
            del self._queues[source]


def _lacks_some(parts: Mapping[str, _Arrived]) -> bool:
    transaction = next(iter(parts.values())).update.transaction
    return transaction is not None and not transaction.sources <= parts.keys()
