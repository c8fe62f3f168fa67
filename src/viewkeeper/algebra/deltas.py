"""Deltas: bags of rows with a signed multiplicity, and how they are made and combined.

A delta is a type of its own, so that nobody joins one where a relation is meant. Inside it is a relation
whose last column is the weight ``_vk_w``; an update is −old, +new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Expand,
    Filter,
    IllFormed,
    Project,
    Relation,
    UnionAll,
)
from viewkeeper.algebra.scalars import WEIGHT, Named, column, compose, keep, words


@dataclass(frozen=True, slots=True)
class Delta:
    """ΔR: the rows of ``relation`` without its last column, as often as that column says."""

    relation: Relation

    def __post_init__(self) -> None:
        if self.relation.columns[-1] != WEIGHT:
            raise IllFormed(f"a delta ends in {WEIGHT}, not in {self.relation.columns[-1]}")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.relation.columns[:-1]


def inserted(relation: Relation) -> Delta:
    """+R: every row of R once more."""
    return _signed(relation, "CAST(1 AS BIGINT)")


def deleted(relation: Relation) -> Delta:
    """−R: every row of R once less."""
    return _signed(relation, "CAST(-1 AS BIGINT)")


def _signed(relation: Relation, weight: str) -> Delta:
    return Delta(Project(relation, (*keep(relation.columns), Named(WEIGHT, words(weight)))))


def negated(delta: Delta) -> Delta:
    """−ΔR: what undoes it."""
    undone = Named(WEIGHT, compose("-", column(WEIGHT)))
    return Delta(Project(delta.relation, (*keep(delta.columns), undone)))


def plus(deltas: Iterable[Delta | None]) -> Delta | None:
    """⊎ of deltas; those that are certainly empty are ``None``."""
    present = [delta for delta in deltas if delta is not None]
    if not present:
        return None
    if len(present) == 1:
        return present[0]
    return Delta(UnionAll(tuple(delta.relation for delta in present)))


def consolidate(delta: Delta) -> Delta:
    """The same delta with every row at most once, and never with weight 0.

    γ_{columns; w = Σ w}(ΔR), then σ_{w ≠ 0}. Rows that came and went cancel out.
    """
    summed = Aggregate(delta.relation, delta.columns, (AggregateCall(WEIGHT, "sum", (column(WEIGHT),)),))
    return Delta(Filter(summed, compose(column(WEIGHT), " <> 0")))


def change_between(before: Relation, after: Relation) -> Delta:
    """−before, +after; what is in both cancels out."""
    both = plus((inserted(after), deleted(before)))
    assert both is not None
    return consolidate(both)


def apply(old: Relation, delta: Delta) -> Relation:
    """R_new = R_old ⊎ ΔR, as plain rows."""
    both = plus((inserted(old), delta))
    assert both is not None
    return Expand(consolidate(both).relation, WEIGHT)


def keys_of(delta: Delta, keys: Iterable[str]) -> Relation:
    """The affected keys: every combination of these columns that occurs in the delta, once."""
    return Distinct(Project(delta.relation, keep(keys)))
