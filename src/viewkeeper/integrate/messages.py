"""What passes between the sources, an algorithm and the view.

A source numbers what it sends, updates and answers alike, from 1 on and without a gap. A channel keeps the
order (Section 2), so an answer contains every update that came before it, and none that comes after it. Where
the transport knows better which updates an answer contains, the answer says so itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from viewkeeper.integrate.bags import Bag, Row, match, picker
from viewkeeper.integrate.views import Relation

UpdateId: TypeAlias = tuple[str, int]
"""A source, and the number under which it sent the update."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A global transaction: an id that sources share, and which of the view's sources take part."""

    id: str
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class Update:
    """What one transaction did at one source: the changes of each relation, as one unit."""

    source: str
    sequence: int
    changes: Mapping[str, Bag]
    transaction: Transaction | None = None

    @property
    def id(self) -> UpdateId:
        return self.source, self.sequence


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a query asked for, read from one state of the source.

    ``contains``: which updates of this source, by their numbers, are in that state. An update whose change of
    the view was published before the query was sent must be. ``None``: all that came before the answer, and
    no other. SWEEP and Nested SWEEP can tell these apart; the others rely on the order.
    """

    source: str
    sequence: int
    query: int
    rows: Bag
    contains: frozenset[int] | None = None

    def has(self, update: UpdateId) -> bool:
        """Whether an update of this source that has arrived is in the answer."""
        return self.contains is None or update[1] in self.contains


@dataclass(frozen=True, slots=True)
class Mark:
    """A source says how many messages it has sent, so that the loss of the last one is noticed too."""

    source: str
    sequence: int


Message: TypeAlias = Update | Answer | Mark


@dataclass(frozen=True, slots=True)
class Query:
    """Join a partial result with a relation as it is now. A source that should not be sent all of it may look
    up ``keys`` in the ``shared`` columns, and whoever sent the query joins what comes back."""

    number: int
    relation: Relation
    partial: Bag

    @property
    def source(self) -> str:
        return self.relation.source

    @property
    def shared(self) -> tuple[str, ...]:
        return match(self.partial.columns, self.relation.columns).shared

    @property
    def keys(self) -> frozenset[Row]:
        """The values of the shared columns that have a chance: NULL equals nothing."""
        pick = picker(self.partial.columns, self.shared)
        return frozenset(key for key in map(pick, self.partial.rows) if None not in key)

    @property
    def tuples(self) -> int:
        """The size of the message."""
        return len(self.partial.rows)


@dataclass(frozen=True, slots=True)
class Term:
    """± R₁ ⋈ … ⋈ ΔRᵢ ⋈ … ⋈ Rₙ: the relations that are replaced by changes; the others are as they are."""

    sign: int
    changes: Mapping[str, Bag]


@dataclass(frozen=True, slots=True)
class SumQuery:
    """A sum of terms, asked of one source that has all the relations and evaluates it at once."""

    number: int
    source: str
    terms: tuple[Term, ...]

    @property
    def tuples(self) -> int:
        """The size of the message."""
        return sum(len(change.rows) for term in self.terms for change in term.changes.values())


@dataclass(frozen=True, slots=True)
class Compensation:
    """What was taken out of an answer, as an error of these updates; nobody need act on it."""

    query: int
    relation: str
    partial: Bag
    updates: tuple[UpdateId, ...]
    changes: Bag
    error: Bag


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The next change of the view, and the updates that it brings in; to be published in one step."""

    updates: tuple[UpdateId, ...]
    rows: Bag


Output: TypeAlias = Query | SumQuery | Compensation | ViewChange
