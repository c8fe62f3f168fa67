"""The conditions under which a query reads its tables."""

from __future__ import annotations

from collections.abc import Iterator

from viewkeeper.algebra.relations import Filter, Join, Relation, Scan, children
from viewkeeper.algebra.scalars import Scalar, column, compose


def conditions_alone(relation: Join, at: int) -> Filter | None:
    """A table that is joined, under the conditions that concern it alone; ``None`` if there are none."""
    child = relation.inputs[at]
    own = [each for each in relation.conjuncts if each.columns and each.columns <= set(child.columns)]
    if not own or not isinstance(child, Scan):
        return None
    predicate = own[0]
    for each in own[1:]:
        predicate = compose(predicate, " AND ", each)
    return Filter(child, predicate)


def conditions_on_tables(relation: Relation | None) -> Iterator[Filter]:
    """Every table that is read under conditions of its own, with these."""
    if relation is None:
        return
    if isinstance(relation, Filter) and is_on_table(relation):
        yield relation
        return
    for at, child in enumerate(children(relation)):
        alone = conditions_alone(relation, at) if isinstance(relation, Join) else None
        if alone is not None:
            yield alone
        else:
            yield from conditions_on_tables(child)


def stored_predicate(relation: Filter) -> tuple[Scan, Scalar]:
    """Such a table, and its conditions in terms of the columns as they are stored: the same for all views."""
    predicate, below = relation.predicate, relation.child
    while isinstance(below, Filter):
        predicate, below = compose(predicate, " AND ", below.predicate), below.child
    assert isinstance(below, Scan), "asked of tables only"
    return below, predicate.substitute({field.name: column(field.stored) for field in below.fields})


def is_on_table(relation: Filter) -> bool:
    """Whether it is a table that is read under these conditions."""
    below = relation.child
    while isinstance(below, Filter):
        below = below.child
    return isinstance(below, Scan)
