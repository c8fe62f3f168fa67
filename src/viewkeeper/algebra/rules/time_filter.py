"""σ under a condition θ that reads the clock: rows come and go as time passes, though nobody touched them.

    Δ(σ_θ(t) R) = σ_θ(t′) ΔR  ⊎  σ_{θ(t′) ∧ ¬θ(t)} R  −  σ_{θ(t) ∧ ¬θ(t′)} R

t and t′ are what the clock showed and what it shows; both are literals, so that of R only the files are read
that hold rows for which it makes a difference: of a window that slides, its two edges.
"""

from __future__ import annotations

from viewkeeper.algebra.deltas import Delta, plus
from viewkeeper.algebra.relations import Filter, IllFormed, Moment, Project, Relation, TimeFilter
from viewkeeper.algebra.rules.leaves import Leaves, new, old
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, compose, keep, words


def time_filter_delta(relation: TimeFilter, child: Delta | None, leaves: Leaves) -> Delta | None:
    """Of the rows that changed those that count now, and of the others those for which time made it so."""
    before, after = (_moment(each(relation.clock, leaves)) for each in (old, new))
    now = relation.at(words(after))
    changed = None if child is None else Delta(Filter(child.relation, now))
    if before == after:
        return changed
    then = relation.at(words(before))
    turned = compose(_turned(relation, now, then), " OR ", _turned(relation, then, now))
    weight = compose("CASE WHEN ", now, " THEN CAST(1 AS BIGINT) ELSE CAST(-1 AS BIGINT) END")
    passed = Filter(old(relation.child, leaves), turned)
    return plus((changed, Delta(Project(passed, (*keep(relation.columns), Named(WEIGHT, weight))))))


def _turned(relation: TimeFilter, true: Scalar, not_true: Scalar) -> Scalar:
    """True under the one, and not under the other: false, or unknown."""
    if relation.lasting:  # never unknown then, so that a plain NOT does, by which files can be skipped
        return compose(true, " AND NOT ", not_true)
    return compose(true, " AND NOT coalesce(", not_true, ", false)")


def _moment(clock: Relation) -> str:
    if not isinstance(clock, Moment):
        raise IllFormed("a clock is bound to a moment")
    return clock.literal
