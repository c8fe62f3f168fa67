"""Filter, project, union, repeat, generate, expand: linear, so applied to a delta as to a relation.

    Δ(σ R) = σ ΔR        Δ(π R) = π ΔR        Δ(R ⊎ S) = ΔR ⊎ ΔS        Δ(n × R) = n × ΔR

π keeps duplicates, so it neither merges nor splits rows; the weight passes through. A generator makes the
same rows of a row wherever that stands; where a column counts a row's copies, the weight is multiplied by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.deltas import Delta, plus
from viewkeeper.algebra.relations import Expand, Filter, Generate, Project, Repeat, UnionAll
from viewkeeper.algebra.scalars import WEIGHT, Named, column, compose, keep


def filter_delta(relation: Filter, child: Delta | None) -> Delta | None:
    """Δ(σ R) = σ ΔR."""
    return None if child is None else Delta(Filter(child.relation, relation.predicate))


def project_delta(relation: Project, child: Delta | None) -> Delta | None:
    """Δ(π R) = π ΔR."""
    return None if child is None else Delta(Project(child.relation, (*relation.items, *keep([WEIGHT]))))


def repeat_delta(relation: Repeat, child: Delta | None) -> Delta | None:
    """Δ(n × R) = n × ΔR."""
    if child is None:
        return None
    repeated = Repeat(child.relation, relation.number, relation.times)
    return Delta(Project(repeated, keep((*relation.columns, WEIGHT))))


def generate_delta(relation: Generate, child: Delta | None) -> Delta | None:
    """Δ(μ R) = μ ΔR: LATERAL VIEW."""
    if child is None:
        return None
    generated = Generate(child.relation, relation.call, relation.names, relation.outer)
    return Delta(Project(generated, keep((*relation.columns, WEIGHT))))


def expand_delta(relation: Expand, child: Delta | None) -> Delta | None:
    """Each copy counts: the weight of a row times its copies, if there are any."""
    if child is None:
        return None
    copies = column(relation.count)
    there = Filter(child.relation, compose(copies, " > 0"))
    weight = compose(column(WEIGHT), " * ", copies)
    return Delta(Project(there, (*keep(relation.columns), Named(WEIGHT, weight))))


def union_delta(relation: UnionAll, inputs: Sequence[Delta | None]) -> Delta | None:
    """Δ(R ⊎ S) = ΔR ⊎ ΔS. A delta's columns stand in the order of its relation's."""
    ordered = [
        None if child is None else Delta(Project(child.relation, keep((*relation.columns, WEIGHT))))
        for child in inputs
    ]
    return plus(ordered)
