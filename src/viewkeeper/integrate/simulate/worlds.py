"""What a run is about: a view, what its relations hold, and what happens to them when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.integrate.bags import Bag, bag
from viewkeeper.integrate.messages import Transaction
from viewkeeper.integrate.views import JoinView, Relation


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction commits at a source. ``transaction``: the global one that it is part of."""

    at: float
    source: str
    changes: Mapping[str, Bag]
    transaction: Transaction | None = None


@dataclass(frozen=True, slots=True)
class World:
    """Commits are in the order of time, and may be made up as they are asked for. Every message takes between
    ``fastest`` and ``slowest``; a channel keeps their order all the same. ``hidden``: so long, at most, do
    commits not show in answers, which then say what they have."""

    view: JoinView
    contents: Mapping[str, Bag]
    commits: Iterable[Commit]
    fastest: float = 1.0
    slowest: float = 1.0
    hidden: float = 0.0


def figure_5(*, keyed: bool = False, one_source: bool = False) -> World:
    """The paper's example: three updates, all on their way before the first query is answered. ``keyed``: the
    view has all columns, and with them the keys that Strobe needs."""
    sources = ["Source 1"] * 3 if one_source else ["Source 1", "Source 2", "Source 3"]
    columns = [("A", "B"), ("B", "D"), ("D", "F")]
    r1, r2, r3 = (
        Relation(f"R{at + 1}", columns[at], sources[at], columns[at] if keyed else ()) for at in range(3)
    )
    return World(
        JoinView((r1, r2, r3), ("A", "B", "D", "F") if keyed else ("D", "F")),
        {
            "R1": bag(r1.columns, (1, 3), (2, 3)),
            "R2": bag(r2.columns, (3, 7)),
            "R3": bag(r3.columns, (5, 6), (7, 8)),
        },
        (
            Commit(0.0, r2.source, {"R2": Bag(r2.columns, {(3, 5): 1})}),
            Commit(0.1, r3.source, {"R3": Bag(r3.columns, {(7, 8): -1})}),
            Commit(0.2, r1.source, {"R1": Bag(r1.columns, {(2, 3): -1})}),
        ),
    )
