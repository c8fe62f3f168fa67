"""Which level of consistency a run has kept, decided from its history (Section 2; Zhuge et al. 1996).

A state of the sources is a vector: so many of its updates has each source committed. The states form a
lattice, and the view has a value V(v) in each. With S₀, S₁, … for the states that the view was published in:

    convergent            the last Sₖ is V(all updates)
    weakly consistent     and for every Sₖ there is a vector with V(v) = Sₖ
    strongly consistent   and there are such vectors with v₀ ≤ v₁ ≤ …
    complete              and each transaction has a vector of its own, in the order of delivery

A vector that has a global transaction in part is no state. With global transactions the order of delivery
says little, and any order that all sources agree with will do.

An algorithm says which updates each change brings in. If that proves a level, well and good: V is evaluated
here, from scratch. If it does not, the algorithm is not believed, and the whole lattice is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from viewkeeper.errors import ViewkeeperError
from viewkeeper.integrate.bags import add_to
from viewkeeper.integrate.levels import Level
from viewkeeper.integrate.messages import Update
from viewkeeper.integrate.simulate.history import History
from viewkeeper.integrate.simulate.lattice import Lattice, Value, Vector, as_value, evaluate

MOST_STATES = 200_000
"""A lattice with more is not searched."""


def level_of(history: History) -> Level:
    """The highest level that the run has kept."""
    lattice = Lattice(history)
    states = _published(history)
    if states[-1] != lattice.value(lattice.top):
        return Level.NONE
    if _is_complete(history, lattice, states):
        return Level.COMPLETE
    if _proves(_claimed(history, lattice), lattice, states):
        return Level.STRONG
    places = _places(lattice)
    if _can_be_in_order(lattice.bottom, states, places):
        return Level.STRONG
    return Level.WEAK if all(state in places for state in states) else Level.CONVERGENT


def is_in_order(history: History) -> bool:
    """Whether a run that was halted has published nothing but states of the sources, in order."""
    lattice = Lattice(history)
    states = _published(history)
    if _proves(_claimed(history, lattice), lattice, states):
        return True
    return _can_be_in_order(lattice.bottom, states, _places(lattice))


def _published(history: History) -> list[Value]:
    """The states of the view, from the first on."""
    rows = dict(evaluate(history.view, history.contents).rows)
    states = [as_value(rows)]
    for change in history.changes:
        add_to(rows, change.rows.rows)
        states.append(as_value(rows))
    return states


def _claimed(history: History, lattice: Lattice) -> list[Vector] | None:
    """The vectors that the changes claim to lead to; ``None`` if they are none, or no states."""
    updates = {update.id: update for log in history.logs.values() for update in log}
    steps = [[updates[id] for id in change.updates if id in updates] for change in history.changes]
    path = _path(lattice, (sorted(step, key=lambda update: update.sequence) for step in steps))
    return path if path is not None and all(map(lattice.is_whole, path)) else None


def _path(lattice: Lattice, steps: Iterable[Iterable[Update]]) -> list[Vector] | None:
    """Where steps of several updates lead to; ``None`` if a source did not go that way."""
    path = [lattice.bottom]
    for step in steps:
        vector = path[-1]
        for update in step:
            after = lattice.after(vector, update)
            if after is None:
                return None
            vector = after
        path.append(vector)
    return path


def _proves(path: Sequence[Vector] | None, lattice: Lattice, states: Sequence[Value]) -> bool:
    return path is not None and list(map(lattice.value, path)) == states


def _is_complete(history: History, lattice: Lattice, states: Sequence[Value]) -> bool:
    if not any(update.transaction for update in history.delivered):
        path = _path(lattice, ([update] for update in history.delivered))
        return path is not None and path[-1] == lattice.top and _proves(path, lattice, states)
    path = _claimed(history, lattice)
    if path is None or path[-1] != lattice.top or not _proves(path, lattice, states):
        return False
    updates = {update.id: update for update in history.delivered}
    return all(_is_one_step([updates[id] for id in change.updates]) for change in history.changes)


def _is_one_step(updates: Sequence[Update]) -> bool:
    """Whether these updates cannot be told apart: from each of them, what must not come after it and what
    must come with it lead to all the others."""
    for update in updates:
        together = [update]
        for each in together:
            together += [
                other
                for other in updates
                if other not in together
                and (
                    (other.source == each.source and other.sequence < each.sequence)
                    or (other.transaction is not None and other.transaction == each.transaction)
                )
            ]
        if len(together) < len(updates):
            return False
    return len(updates) > 0


def _places(lattice: Lattice) -> dict[Value, list[Vector]]:
    if lattice.size > MOST_STATES:
        raise ViewkeeperError(
            f"the sources have {lattice.size:,} states together, which are too many to search",
            code="VK-SWEEP-UNDECIDED",
            hint="Simulate fewer updates or fewer sources.",
        )
    return lattice.all_values()


def _can_be_in_order(bottom: Vector, states: Sequence[Value], places: dict[Value, list[Vector]]) -> bool:
    """Whether there are vectors v₀ ≤ v₁ ≤ … for the states. Of those that can be reached at each step the
    smallest are enough."""
    front = [bottom]
    for state in states:
        reached = [v for v in places.get(state, ()) if any(_is_below(u, v) for u in front)]
        front = []
        for vector in sorted(reached, key=sum):
            if not any(_is_below(smaller, vector) for smaller in front):
                front.append(vector)
        if not front:
            return False
    return True


def _is_below(one: Vector, other: Vector) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))
