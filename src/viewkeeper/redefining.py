"""What a view that is defined anew can keep of what it holds, without computing it from its sources.

If the new query selects what the old one did, or less of it, under whatever names and in whatever order, then
its rows are made of the stored ones:

    π_new(R) = π(π_old(R)),   where every column of the new list is one of the old
    γ_K(R) with some of the aggregates, or all of them under other names: the groups are the same
"""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.algebra.aggregates import GROUP_COUNT
from viewkeeper.algebra.relations import AggregateCall, Project, Relation
from viewkeeper.algebra.scalars import Named, Scalar, column, keep
from viewkeeper.algebra.summary_delta import Groups
from viewkeeper.analyse.tidy import prune
from viewkeeper.library import KnownView
from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.drift import compare_schemas


def rows_carried_over(before: KnownView, after: KnownView, stored: Relation) -> Relation | None:
    """The rows of the new definition as they are to be stored, made of those that are; ``None`` if they
    cannot be."""
    if before.definition.session != after.definition.session or not _same_sources(before, after):
        return None
    if set(after.definition.looked_at) - set(before.definition.looked_at):
        return None  # what is expected now was not looked at when these rows came
    old, new = before.layout, after.layout
    if old.rows is None or new.rows is None or old.counted or new.counted or new.in_parts:
        return None
    if old.groups is None and new.groups is None:
        rows = _bag(before, after, stored)
    elif old.groups is not None and new.groups is not None:
        rows = _groups(old.groups, new.groups, old.whole(stored))
    else:
        return None
    return None if rows is None else new.as_stored(rows)


def _same_sources(before: KnownView, after: KnownView) -> bool:
    """Whether the tables are those that the rows came from, and the columns that are read what they were."""
    for table, facts in after.sources.items():
        known = before.sources.get(table)
        if known is None or known["identity"] is None or known["identity"] != facts["identity"]:
            return False
        then, now = ([SourceColumn(*column) for column in each["columns"]] for each in (known, facts))
        if compare_schemas(then, now, facts["used"]) is not None:
            return False
    return True


def _bag(before: KnownView, after: KnownView, stored: Relation) -> Relation | None:
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
    return Project(stored, tuple(Named(item.name, column(names[item.scalar])) for item in new_items))


def _groups(old: Groups, new: Groups, stored: Relation) -> Relation | None:
    old_base, old_columns = _inputs(old)
    new_base, new_columns = _inputs(new)
    if not _same_rows(old_base, new_base):
        return None
    keys = {old_columns[key]: key for key in old.keys}
    calls = {_call(kept.call, old_columns): kept.name for kept in old.all_kept}
    made: dict[str, str] = {}
    for key in new.keys:
        if new_columns[key] not in keys:
            return None
        made[key] = keys[new_columns[key]]
    if {made[key] for key in new.keys} != set(old.keys):
        return None
    for kept in new.all_kept:
        known = calls.get(_call(kept.call, new_columns))
        if known is None:
            return None
        made[kept.name] = known
    if any(old.type_of(known) != new.type_of(name) for name, known in made.items() if name != GROUP_COUNT):
        return None
    return Project(stored, tuple(Named(name, column(known)) for name, known in made.items()))


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
    """Whether the new relation is the old one without columns that it does not read."""
    return old == new or (set(new.columns) <= set(old.columns) and prune(old, new.columns) == new)
