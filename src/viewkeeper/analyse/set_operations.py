"""INTERSECT and EXCEPT, with and without ALL: every row with how often each side has it.

    R ∩ S = σ_{r>0 ∧ s>0} γ(R ⊎ S)        R − S = σ_{r>0 ∧ s=0} γ(R ⊎ S)

where r and s count how often R and S have the row. With ALL a row is there min(r, s) times, or r − s times.
NULL is a value like any other. The union gives the columns the types that Spark gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Expand, Filter, Project, Relation, UnionAll
from viewkeeper.algebra.scalars import Named, Scalar, column, compose, keep, words
from viewkeeper.analyse.scopes import Names


@dataclass(frozen=True, slots=True)
class Counted:
    """The rows of both sides, each once, and the columns that count them."""

    relation: Aggregate
    columns: tuple[str, ...]
    left: str
    right: str
    copies: str


def counted_sides(left: Relation, right: Relation, names: Names) -> Counted:
    """γ(R ⊎ S) with both counts; the sides have the same columns."""
    columns = left.columns
    mine, theirs, copies = (names.fresh(wish) for wish in ("in_first", "in_second", "copies"))
    union = UnionAll((_tagged(left, mine, theirs, "1", "0"), _tagged(right, mine, theirs, "0", "1")))
    calls = tuple(
        AggregateCall(names.fresh(f"{name}_sum"), "sum", (column(name),)) for name in (mine, theirs)
    )
    return Counted(Aggregate(union, columns, calls), columns, calls[0].name, calls[1].name, copies)


def intersect(sides: Counted, *, distinct: bool) -> Relation:
    """INTERSECT: the rows of both."""
    if distinct:
        return _those(sides, compose(column(sides.left), " > 0 AND ", column(sides.right), " > 0"))
    return _copied(sides, compose("least(", column(sides.left), ", ", column(sides.right), ")"))


def subtract(sides: Counted, *, distinct: bool) -> Relation:
    """EXCEPT: the rows of the first without those of the second."""
    if distinct:
        return _those(sides, compose(column(sides.left), " > 0 AND ", column(sides.right), " = 0"))
    return _copied(sides, compose(column(sides.left), " - ", column(sides.right)))


def _tagged(side: Relation, mine: str, theirs: str, one: str, other: str) -> Relation:
    return Project(side, (*keep(side.columns), Named(mine, words(one)), Named(theirs, words(other))))


def _those(sides: Counted, condition: Scalar) -> Relation:
    return Project(Filter(sides.relation, condition), keep(sides.columns))


def _copied(sides: Counted, times: Scalar) -> Relation:
    rows = Project(sides.relation, (*keep(sides.columns), Named(sides.copies, times)))
    return Expand(rows, sides.copies)
