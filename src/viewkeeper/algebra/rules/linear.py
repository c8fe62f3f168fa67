"""Filter, project, union and repeat: linear operators, which apply to a delta as to a relation.

    Δ(σ R) = σ ΔR        Δ(π R) = π ΔR        Δ(R ⊎ S) = ΔR ⊎ ΔS        Δ(n × R) = n × ΔR

π keeps duplicates, so it neither merges nor splits rows; the weight passes through.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.deltas import Delta, plus
from viewkeeper.algebra.relations import Filter, Project, Repeat, UnionAll
from viewkeeper.algebra.scalars import WEIGHT, keep


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


def union_delta(relation: UnionAll, inputs: Sequence[Delta | None]) -> Delta | None:
    """Δ(R ⊎ S) = ΔR ⊎ ΔS. A delta's columns stand in the order of its relation's."""
    ordered = [
        None if child is None else Delta(Project(child.relation, keep((*relation.columns, WEIGHT))))
        for child in inputs
    ]
    return plus(ordered)
