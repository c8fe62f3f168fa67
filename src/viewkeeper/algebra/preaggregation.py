"""Changes of a fact table, aggregated before they are joined with dimensions (Mumick et al. 1997, 4.1.3).

With f the table that changed and D the ones that it is joined with, which did not:

    γ_{keys}(Δf ⋈ D) = γ_{keys}(γ_{k}(Δf) ⋈ D)      k: what keys, conditions and aggregates need of f beside D

That is an edge of the lattice (see :mod:`viewkeeper.algebra.lattice`) from a view over f alone, which nobody
stores, to the view in question; so its summary-delta is derived as along any other edge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from viewkeeper.algebra.lattice import Edge, derives
from viewkeeper.algebra.relations import Filter, Project, Relation, Scan, scans
from viewkeeper.algebra.scalars import Named, Scalar, column, keep
from viewkeeper.algebra.stars import Star, qualified, star_of, table_of, tables_of
from viewkeeper.algebra.summary_delta import Groups


@dataclass(frozen=True, slots=True)
class Preaggregation:
    """The view over the fact table alone, and the edge from it."""

    upper: Groups
    edge: Edge


def preaggregation(groups: Groups, fact: str) -> Preaggregation | None:
    """How to aggregate the changes of this table first; ``None`` where the view is no star with joins."""
    star = star_of(groups)
    if star is None or len(star.tables) < 2 or fact not in star.tables:
        return None
    scan = next(each for each in scans(groups.child) if each.table == fact)
    upper = _upper(groups, star, scan)
    above = star_of(upper, star.meaning)
    edge = None if above is None else derives(("", star), (fact, above))
    return None if edge is None else Preaggregation(upper, edge)


def _upper(groups: Groups, star: Star, scan: Scan) -> Groups:
    fact = scan.table
    here = {qualified(fact, field.stored): column(field.name) for field in scan.fields}
    own = [condition for condition in star.conditions if tables_of(condition) == {fact}]
    across = star.conditions - set(own)
    kept = [
        replace(each, call=replace(each.call, arguments=tuple(a.substitute(here) for a in arguments)))
        for each, arguments in star.kept.values()
        if arguments and all(tables_of(argument) <= {fact} for argument in arguments)
    ]
    needed = [*star.keys.values(), *across, *_mixed(star, fact)]
    keys = {f"_vk_k{at}": key for at, key in enumerate(_parts(needed, star, fact))}
    child: Relation = scan
    for condition in own:
        child = Filter(child, condition.substitute(here))
    arguments = sorted({name for each in kept for name in each.call.columns})
    items = (*(Named(name, key.substitute(here)) for name, key in keys.items()), *keep(arguments))
    types = tuple((name, kind) for name, kind in groups.types if name in {each.name for each in kept})
    return Groups(Project(child, items), tuple(keys), tuple(kept), types)


def _mixed(star: Star, fact: str) -> list[Scalar]:
    """The arguments that speak of other tables as well."""
    return [
        argument
        for _, arguments in star.kept.values()
        for argument in arguments
        if not tables_of(argument) <= {fact}
    ]


def _parts(needed: list[Scalar], star: Star, fact: str) -> list[Scalar]:
    """The keys of the upper view: whole keys over the fact table alone, and its columns in anything else."""
    whole = set(star.keys.values())
    parts: dict[Scalar, None] = {}
    for scalar in needed:
        if tables_of(scalar) == {fact} and scalar in whole:
            parts[scalar] = None
        else:
            parts.update((column(name), None) for name in sorted(scalar.columns) if table_of(name) == fact)
    return list(parts)
