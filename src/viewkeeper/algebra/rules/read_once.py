"""What a change narrows is read once: how it was before follows from how it is now, and from its change.

    R ⋉ K = (R′ ⋉ K) − (ΔR ⋉ K)

R′ ⋉ K is staged: the rows of the affected keys, of which there are few if there are few keys. Reading a small
table a second time is quicker than staging.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from viewkeeper.algebra.deltas import Delta, apply, change_between, keys_of, negated
from viewkeeper.algebra.relations import (
    Aggregate,
    Distinct,
    Filter,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Staged,
    Window,
    children,
    map_children,
    scans,
)
from viewkeeper.algebra.rules.leaves import Leaves, new, old
from viewkeeper.algebra.rules.restrict import restrict
from viewkeeper.algebra.scalars import WEIGHT, Column, keep

LARGE_ROWS = 1_000_000

_UNCOMPARABLE = ("map", "variant", "json")
"""Words of expressions that may make a map or a variant, which Spark cannot group, and so not take away."""


def change_of(relation: Relation, leaves: Leaves) -> Delta:
    """+R_new − R_old: for a relation that was narrowed to what a change touches."""
    seen: dict[Relation, tuple[Relation, Relation]] = {}
    before, after = _states(relation, leaves, seen)
    return change_between(before, after)


def keyed_change(
    relation: Aggregate | Distinct | Window,
    change: Delta,
    keys: Iterable[str],
    what: str,
    leaves: Leaves,
) -> Delta:
    """+ω(R_new ⋉ K) − ω(R_old ⋉ K), with K the keys that occur in the change of the rows R below."""
    child = relation.child
    if not (_is_large(child, leaves) and _is_comparable(child)):
        touched = restrict(child, leaves.share(keys_of(change, keys), what))
        return change_of(replace(relation, child=touched), leaves)
    staged = Delta(_of_any_size(leaves.share(change.relation, "changed rows")))
    touched = restrict(child, leaves.share(keys_of(staged, keys), what))
    after = _of_any_size(leaves.share(new(touched, leaves), "rows of what is affected"))
    before = apply(after, negated(staged))
    return change_between(replace(relation, child=before), replace(relation, child=after))


def _states(
    relation: Relation, leaves: Leaves, seen: dict[Relation, tuple[Relation, Relation]]
) -> tuple[Relation, Relation]:
    """The relation before and after the change. A narrowed table that occurs again is not read again."""
    if relation not in seen:
        scan = _narrowed(relation)
        if scan is not None and _is_large(scan, leaves):
            seen[relation] = _staged_states(relation, scan, leaves)
        elif isinstance(relation, Scan):
            seen[relation] = old(relation, leaves), new(relation, leaves)
        else:
            below = {child: _states(child, leaves, seen) for child in children(relation)}
            before, after = (
                map_children(relation, lambda child, side=side: below[child][side])  # type: ignore[misc]
                for side in (0, 1)
            )
            seen[relation] = before, after
    return seen[relation]


def _staged_states(relation: Relation, scan: Scan, leaves: Leaves) -> tuple[Relation, Relation]:
    after = _of_any_size(leaves.share(new(relation, leaves), "rows of what is affected"))
    change = leaves.delta(scan)
    if change is None:
        return after, after
    return apply(after, negated(Delta(_along(relation, change.relation)))), after


def _narrowed(relation: Relation) -> Scan | None:
    """The table, if the relation is no more than its rows of some keys."""
    match relation:
        case SemiJoin(anti=False) if not scans(relation.keys):
            return _table(relation.child)
        case Filter():
            return _narrowed(relation.child)
        case _:
            return None


def _table(relation: Relation) -> Scan | None:
    match relation:
        case Scan():
            return relation
        case Filter():
            return _table(relation.child)
        case SemiJoin(anti=False) if not scans(relation.keys):
            return _table(relation.child)
        case _:
            return None


def _along(relation: Relation, change: Relation) -> Relation:
    """The change of a table, narrowed as the table is."""
    match relation:
        case Filter() | SemiJoin():
            return replace(relation, child=_along(relation.child, change))
        case _:
            return Project(change, keep((*relation.columns, WEIGHT)))


def _is_large(relation: Relation, leaves: Leaves) -> bool:
    return sum(leaves.size(scan) or 0 for scan in scans(relation)) >= LARGE_ROWS


def _is_comparable(relation: Relation) -> bool:
    """Whether rows can be taken away by their values; columns of tables that cannot be compared are refused
    when a view is defined."""
    if isinstance(relation, Project):
        parts = (part for item in relation.items for part in item.scalar.parts)
        text = " ".join(part.lower() for part in parts if not isinstance(part, Column))
        if any(word in text for word in _UNCOMPARABLE):
            return False
    return all(_is_comparable(child) for child in children(relation))


def _of_any_size(shared: Relation) -> Relation:
    """What is shared are keys or groups of changed rows as a rule, which are as few as those; not so here."""
    return replace(shared, rows=None) if isinstance(shared, Staged) else shared
