"""Relations without the columns that nobody reads and the projections that do nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from typing_extensions import assert_never

from viewkeeper.algebra.relations import (
    Aggregate,
    Constant,
    Distinct,
    Exists,
    Expand,
    Filter,
    Generate,
    Join,
    Moment,
    Nothing,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    TimeFilter,
    UnionAll,
    Window,
)
from viewkeeper.algebra.scalars import Named, column, keep


def project(child: Relation, items: Iterable[Named]) -> Relation:
    """π, merged with a projection right below where one of the two only renames; none if it would keep
    every column as it is."""
    items = tuple(items)
    if all(item.is_rename and item.scalar == column(item.name) for item in items) and (
        tuple(item.name for item in items) == child.columns
    ):
        return child
    if isinstance(child, Project):
        renames = all(item.is_rename for item in items)
        if renames or all(item.is_rename for item in child.items):
            below = {item.name: item.scalar for item in child.items}
            # A rename takes the whole expression over; only inside a larger one does it need parentheses.
            merged = tuple(
                Named(
                    item.name,
                    below[next(iter(item.scalar.columns))]
                    if item.is_rename
                    else item.scalar.substitute(below),
                )
                for item in items
            )
            return project(child.child, merged)
    return Project(child, items)


def named(relation: Relation, items: tuple[Named, ...]) -> Relation:
    """The relation with its columns chosen and renamed, as deep down as that can be done: a renaming above
    δ, ⊎ or γ would hide from the planner what is at the top."""
    if tuple(next(iter(item.scalar.columns)) for item in items) != relation.columns:
        return project(relation, items)
    match relation:
        case Distinct():
            return Distinct(named(relation.child, items))
        case UnionAll():
            return UnionAll(tuple(named(child, items) for child in relation.inputs))
        case Aggregate() if all(item.name == key for item, key in zip(items, relation.keys, strict=False)):
            fresh = [item.name for item in items[len(relation.keys) :]]
            calls = tuple(replace(call, name=name) for call, name in zip(relation.calls, fresh, strict=True))
            return Aggregate(relation.child, relation.keys, calls)
        case _:
            return project(relation, items)


def prune(relation: Relation, needed: Iterable[str]) -> Relation:
    """The relation with the needed columns, and at most those others that it cannot do without."""
    wanted = frozenset(needed)
    match relation:
        case Scan():
            fields = tuple(field for field in relation.fields if field.name in wanted)
            return Scan(relation.table, fields, relation.state)
        case Filter():
            return Filter(prune(relation.child, wanted | relation.predicate.columns), relation.predicate)
        case TimeFilter():
            return replace(relation, child=prune(relation.child, wanted | relation.predicate.columns))
        case Project():
            items = tuple(item for item in relation.items if item.name in wanted)
            read = frozenset[str]().union(*(item.scalar.columns for item in items))
            return project(prune(relation.child, read), items)
        case Join():
            read = wanted.union(*(conjunct.columns for conjunct in relation.conjuncts))
            return Join(tuple(prune(child, read) for child in relation.inputs), relation.conjuncts)
        case OuterJoin():
            read = wanted.union(*(conjunct.columns for conjunct in relation.conjuncts))
            return replace(relation, left=prune(relation.left, read), right=prune(relation.right, read))
        case Exists():
            read = wanted.union(*(conjunct.columns for conjunct in relation.conjuncts))
            return replace(relation, child=prune(relation.child, read), among=prune(relation.among, read))
        case Window():
            calls = tuple(call for call in relation.calls if call.name in wanted)
            read = wanted.union(relation.keys, *(call.scalar.columns for call in calls))
            child = prune(relation.child, read)
            return Window(child, relation.keys, calls) if calls else child
        case Generate():
            return replace(relation, child=prune(relation.child, wanted | relation.call.columns))
        case Expand():
            return replace(relation, child=prune(relation.child, wanted | {relation.count}))
        case UnionAll():
            columns = [name for name in relation.columns if name in wanted]
            return UnionAll(tuple(project(prune(child, columns), keep(columns)) for child in relation.inputs))
        case Distinct():
            child = prune(relation.child, relation.child.columns)
            return Distinct(project(child, keep(relation.child.columns)))
        case Aggregate():
            kept = tuple(call for call in relation.calls if call.name in wanted)
            if not relation.keys and not kept:
                kept = relation.calls[:1]  # it is the call that makes one row of many
            read = frozenset(relation.keys).union(*(call.columns for call in kept))
            return Aggregate(prune(relation.child, read), relation.keys, kept)
        case Repeat():
            child = prune(relation.child, wanted - {relation.number})
            return Repeat(child, relation.number, relation.times)
        case TableAt() | Staged() | Nothing() | Constant() | Moment() | SemiJoin():
            return relation  # the planner makes these, but for constants, which are as they are
        case _:
            assert_never(relation)
