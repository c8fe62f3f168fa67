"""Removing rows by the key of a relation, from a view that has the keys of all (Section 3, on Strobe)."""

from __future__ import annotations

from collections.abc import Collection

from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.bags import Bag, Row, picker
from viewkeeper.integrate.views import JoinView, Relation


def require_keys(view: JoinView, algorithm: str) -> None:
    """Refuse a view in which a row of a relation cannot be found again."""
    if not view.is_keyed:
        raise DefinitionError(
            f"{algorithm} needs a key of every relation, and all of them in the view",
            code="VK-SWEEP-KEYS",
            hint="SWEEP and Nested SWEEP need no keys.",
        )


def keys_of(relation: Relation, rows: Collection[Row]) -> frozenset[Row]:
    """The keys of these rows of the relation."""
    return frozenset(map(picker(relation.columns, relation.key), rows))


def without_keys(bag: Bag, relation: Relation, keys: Collection[Row]) -> Bag:
    """The rows that were not made of these rows of the relation."""
    pick = picker(bag.columns, relation.key)
    return Bag(bag.columns, {row: count for row, count in bag.rows.items() if pick(row) not in keys})


def deleted(rows: Bag) -> Bag:
    """The rows that went, each once."""
    return Bag(rows.columns, {row: 1 for row, count in rows.rows.items() if count < 0})


def inserted(rows: Bag) -> Bag:
    """The rows that came, each once."""
    return Bag(rows.columns, {row: 1 for row, count in rows.rows.items() if count > 0})
