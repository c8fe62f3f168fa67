"""What happened in a run: all that the checker may know, and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from viewkeeper.integrate.bags import Bag, Row
from viewkeeper.integrate.errors import IntegrationError
from viewkeeper.integrate.messages import Message, Output, Update, ViewChange
from viewkeeper.integrate.views import JoinView

Event: TypeAlias = tuple[float, Message | Output]


@dataclass(slots=True)
class History:
    """A run, from the contents in the beginning to those in the end."""

    view: JoinView
    contents: Mapping[str, Bag]
    logs: dict[str, list[Update]] = field(default_factory=dict)
    """What each source committed, in its order."""
    delivered: list[Update] = field(default_factory=list)
    """The updates in the order of their arrival."""
    changes: list[ViewChange] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    """What arrived at the warehouse, and what it sent and published."""
    final: dict[str, Bag] = field(default_factory=dict)
    """What the relations hold in the end."""
    halted: IntegrationError | None = None

    updates: int = 0
    queries: int = 0
    messages: int = 0
    """In both directions: updates, queries and answers."""
    tuples: int = 0
    """In all queries together."""
    largest: int = 0
    """Tuples in the largest query."""
    steps: int = 0
    """Changes of the view."""
    waited: float = 0.0
    """From commit to publication, over all updates together."""
    ended: float = 0.0
    rows: dict[Row, int] = field(default_factory=dict)
    """What all changes of the view come to."""

    @property
    def staleness(self) -> float:
        """The mean time from the commit of an update to the view that has it."""
        return self.waited / self.updates if self.updates else 0.0
