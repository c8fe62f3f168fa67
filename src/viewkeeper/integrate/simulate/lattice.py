"""The states of several sources: so many of its updates has each committed, and what the view is then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from math import prod
from typing import TypeAlias

from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.messages import Update
from viewkeeper.integrate.routes import Routes
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.views import JoinView

Vector: TypeAlias = tuple[int, ...]
"""The number of updates of each source, in the order of the view's sources."""

Value: TypeAlias = frozenset[tuple[Row, int]]
"""What a view holds, to be compared."""


def evaluate(view: JoinView, contents: Mapping[str, Bag]) -> Bag:
    """The view over these contents of its relations, from scratch."""
    first = view.relations[0].name
    others = (contents[name] for name in Routes(view).from_(first))
    return view.finish(reduce(Bag.join, others, contents[first]))


class Lattice:
    """All states that the sources of a run were in, or could have been seen in."""

    def __init__(self, history: History) -> None:
        self._view = history.view
        self._logs = [history.logs[source] for source in history.view.sources]
        self._place = {source: at for at, source in enumerate(history.view.sources)}
        self._at = {relation.name: self._place[relation.source] for relation in history.view.relations}
        self._states = {
            relation.name: _states(
                history.contents[relation.name], relation.name, history.logs[relation.source]
            )
            for relation in history.view.relations
        }
        self._values: dict[Vector, Value] = {}

    @property
    def bottom(self) -> Vector:
        return (0,) * len(self._logs)

    @property
    def top(self) -> Vector:
        return tuple(map(len, self._logs))

    @property
    def size(self) -> int:
        return prod(len(log) + 1 for log in self._logs)

    def value(self, vector: Vector) -> Value:
        """What the view is in this state."""
        if vector not in self._values:
            contents = {name: states[vector[self._at[name]]] for name, states in self._states.items()}
            self._values[vector] = as_value(evaluate(self._view, contents).rows)
        return self._values[vector]

    def after(self, vector: Vector, update: Update) -> Vector | None:
        """The state that an update leads to; ``None`` if it is not the next one of its source."""
        at = self._place[update.source]
        log = self._logs[at]
        if vector[at] == len(log) or log[vector[at]] != update:
            return None
        return (*vector[:at], vector[at] + 1, *vector[at + 1 :])

    def is_whole(self, vector: Vector) -> bool:
        """Whether no global transaction is there in part."""
        parts: dict[str, list[bool]] = {}
        for log, count in zip(self._logs, vector, strict=True):
            for at, update in enumerate(log):
                if update.transaction:
                    parts.setdefault(update.transaction.id, []).append(at < count)
        return all(all(there) or not any(there) for there in parts.values())

    def all_values(self) -> dict[Value, list[Vector]]:
        """Every whole state, by what the view is in it. What states have in common is joined once."""
        found: dict[Value, list[Vector]] = {}
        route = (self._view.relations[0].name, *Routes(self._view).from_(self._view.relations[0].name))
        for vector, joined in self._joined(route, {}, None):
            if self.is_whole(vector):
                found.setdefault(as_value(self._view.finish(joined).rows), []).append(vector)
        return found

    def _joined(
        self, route: tuple[str, ...], chosen: dict[int, int], joined: Bag | None
    ) -> Iterator[tuple[Vector, Bag]]:
        if not route:
            assert joined is not None
            yield tuple(chosen[at] for at in range(len(self._logs))), joined
            return
        name, *rest = route
        at = self._at[name]
        for count in [chosen[at]] if at in chosen else range(len(self._logs[at]) + 1):
            state = self._states[name][count]
            more = state if joined is None else joined.join(state)
            yield from self._joined(tuple(rest), {**chosen, at: count}, more)


def as_value(rows: Mapping[Row, int]) -> Value:
    """Rows and their multiplicities, as one value."""
    return frozenset(rows.items())


def _states(contents: Bag, name: str, log: list[Update]) -> list[Bag]:
    """The relation in the beginning, and after each update of its source."""
    states = [contents]
    for update in log:
        change = update.changes.get(name)
        states.append(states[-1] if change is None else states[-1].plus(change))
    return states
