"""What a view that is defined anew can keep of what it holds, without computing it from its sources.

If the new query selects what the old one did, or less of it, under whatever names and in whatever order, then
its rows are made of the stored ones:

    π_new(R) = π(π_old(R)),   where every column of the new list is one of the old
    γ_K(R) with some of the aggregates, or all of them under other names: the groups are the same

Aggregates that are new are computed alone, from the tables as they were when the stored groups were, so that
there are as many groups, and each finds its own:

    γ_{K; old, new}(R) = γ_{K; old}(R) ⋈_K γ_{K; new}(R)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.aggregates import GROUP_COUNT
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Join,
    Leaf,
    Project,
    Relation,
    Scan,
    map_leaves,
    scans,
)
from viewkeeper.algebra.scalars import Named, Scalar, column, compose, keep
from viewkeeper.algebra.summary_delta import Groups
from viewkeeper.analyse.tidy import prune
from viewkeeper.library import KnownView
from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.drift import compare_schemas

_AGAIN = "_vk_again"

AsRecorded = Callable[[Scan], Relation | None]
"""The rows of a table as they were when what is stored was computed; ``None`` if they cannot be read."""


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """Rows that are made of stored ones, and whether anything in them has to be computed."""

    rows: Relation
    filled_up: bool = False


def rows_carried_over(
    before: KnownView, after: KnownView, stored: Relation, recorded: AsRecorded
) -> CarriedOver | None:
    """The rows of the new definition as they are to be stored, made of those that are; ``None`` if they
    cannot be."""
    if before.definition.session != after.definition.session or not _same_sources(before, after):
        return None
    if set(after.definition.looked_at) - set(before.definition.looked_at):
        return None  # what is expected now was not looked at when these rows came
    old, new = before.layout, after.layout
    if old.rows is None or new.rows is None or old.counted or new.counted or new.in_parts:
        return None
    if old.is_plain_bag and new.is_plain_bag:
        rows = _bag(before, after, stored)
    elif old.groups is not None and new.groups is not None:
        rows = _groups(old.groups, new.groups, old.whole(stored), recorded)
    else:
        return None
    return None if rows is None else replace(rows, rows=new.as_stored(rows.rows))


def _same_sources(before: KnownView, after: KnownView) -> bool:
    """Whether the tables are those that the rows came from, and the columns that are read what they were."""
    for table, facts in after.sources.items():
        known = before.sources.get(table)
        if known is None or known["identity"] is None or known["identity"] != facts["identity"]:
            return False
        then, now = ([SourceColumn(*column) for column in each["columns"]] for each in (known, facts))
        if not set(facts["used"]) <= {column.name for column in then}:
            return False  # the rows came when there was another column of that name, or none
        if compare_schemas(then, now, facts["used"]) is not None:
            return False
    return True


def _bag(before: KnownView, after: KnownView, stored: Relation) -> CarriedOver | None:
    assert before.analysis.relation is not None
    assert after.analysis.relation is not None
    old, old_items = _top(before.analysis.relation)
    new, new_items = _top(after.analysis.relation)
    names: dict[Scalar, str] = {}
    for item in old_items:
        names.setdefault(item.scalar, item.name)
    if not _same_rows(old, new) or any(item.scalar not in names for item in new_items):
        return None
    kinds = dict(zip(before.layout.columns, before.layout.types, strict=True))
    wanted = dict(zip(after.layout.columns, after.layout.types, strict=True))
    if any(kinds[names[item.scalar]] != wanted[item.name] for item in new_items):
        return None
    items = tuple(Named(item.name, column(names[item.scalar])) for item in new_items)
    return CarriedOver(Project(stored, items))


def _groups(old: Groups, new: Groups, stored: Relation, recorded: AsRecorded) -> CarriedOver | None:
    old_base, old_columns = _inputs(old)
    new_base, new_columns = _inputs(new)
    if not _same_rows(old_base, new_base):
        return None
    keys = {old_columns[key]: key for key in old.keys}
    if {new_columns[key] for key in new.keys} != set(keys):
        return None
    calls = {_call(kept.call, old_columns): kept.name for kept in old.all_kept}
    made = {key: keys[new_columns[key]] for key in new.keys}
    made |= {
        kept.name: calls[call] for kept in new.all_kept if (call := _call(kept.call, new_columns)) in calls
    }
    if any(old.type_of(known) != new.type_of(name) for name, known in made.items() if name != GROUP_COUNT):
        return None
    carried = Project(stored, tuple(Named(name, column(known)) for name, known in made.items()))
    added = tuple(kept.call for kept in new.kept if kept.name not in made)
    if not added:
        return CarriedOver(carried)
    if len(added) == len(new.kept):
        return None  # nothing is kept but how many rows the groups have
    rows = _filled_up(new, carried, added, recorded)
    return None if rows is None else CarriedOver(rows, filled_up=True)


def _filled_up(
    groups: Groups, carried: Relation, added: tuple[AggregateCall, ...], recorded: AsRecorded
) -> Relation | None:
    """The groups with aggregates that are new in them."""
    needed = {*groups.keys, *(name for call in added for name in call.columns)}
    rows = prune(groups.child, needed)
    tables = {scan: recorded(scan) for scan in scans(rows)}
    if None in tables.values():
        return None

    def as_it_was(leaf: Leaf) -> Relation:
        return (tables[leaf] if isinstance(leaf, Scan) else None) or leaf

    alone = Aggregate(map_leaves(rows, as_it_was), groups.keys, added)
    again = {key: f"{key}{_AGAIN}" for key in groups.keys}
    beside = (*(Named(name, column(key)) for key, name in again.items()), *keep(call.name for call in added))
    same = tuple(compose(column(key), " <=> ", column(name)) for key, name in again.items())
    joined = Join((carried, Project(alone, beside)), same)
    return Project(joined, keep((*carried.columns, *(call.name for call in added))))


def _call(call: AggregateCall, columns: Mapping[str, Scalar]) -> tuple[object, ...]:
    """What an aggregate computes, whatever it is called."""
    return (call.function, *(scalar.substitute(columns) for scalar in call.reads))


def _inputs(groups: Groups) -> tuple[Relation, Mapping[str, Scalar]]:
    """What is grouped, below the expressions that keys and arguments are, and those."""
    base, items = _top(groups.child)
    return base, {item.name: item.scalar for item in items}


def _top(relation: Relation) -> tuple[Relation, tuple[Named, ...]]:
    """A relation without the projection on top of it, and that."""
    if isinstance(relation, Project):
        return relation.child, relation.items
    return relation, keep(relation.columns)


def _same_rows(old: Relation, new: Relation) -> bool:
    """Whether they have the same rows, but for columns that only one of them has."""
    both = set(old.columns) & set(new.columns)
    return old == new or prune(old, both) == prune(new, both)
