"""Summary-deltas: what a change does to the groups of an aggregate (Mumick et al. 1997, Section 4).

Propagate (4.1)     sd = γ_{keys; Σ contribution}(π_{keys, contributions}(ΔR))
Refresh   (4.2)     T  = γ_{keys; combine}((V_old ⋉ sd) ⊎ sd)

where a row of weight w contributes w to COUNT(*), w to COUNT(e) unless e is NULL, and e·w to SUM(e). T holds
the touched groups as they will be, with an operation each: I(nsert), U(pdate), D(elete), and the identity of
the stored row. When a function cannot be combined, T is computed from the new rows of the touched groups
instead (affected keys).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.algebra.aggregates import GROUP_COUNT, Combine, Kept
from viewkeeper.algebra.deltas import Delta, keys_of
from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter, Project, Relation, UnionAll
from viewkeeper.algebra.rules.affected_keys import restrict
from viewkeeper.algebra.rules.leaves import Leaves, new
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, keep, words

OPERATION = "_vk_op"
ROW = "_vk_row"
"""The identity of a stored group, by which it is found again when it is installed."""
_IS = "_vk_is"

_NO_ROW = words("CAST(NULL AS BIGINT)")
_COUNT_ROWS = Kept(AggregateCall(GROUP_COUNT, "count", None), Combine.ADD)


@dataclass(frozen=True, slots=True)
class Groups:
    """An aggregate as it is stored: its input, its keys, what is kept, and the stored type of each column."""

    child: Relation
    keys: tuple[str, ...]
    kept: tuple[Kept, ...]
    types: tuple[tuple[str, str], ...]

    @property
    def all_kept(self) -> tuple[Kept, ...]:
        return (_COUNT_ROWS, *self.kept)

    @property
    def rows(self) -> Aggregate:
        """The stored rows, computed from the input."""
        return Aggregate(self.child, self.keys, tuple(kept.call for kept in self.all_kept))

    def type_of(self, name: str) -> str:
        return dict(self.types)[name]


def is_self_maintainable(kept: Sequence[Kept], *, insert_only: bool) -> bool:
    """Definition 3.1: whether stored values and changes alone give the new values."""
    allowed = {Combine.ADD, Combine.LEAST, Combine.GREATEST} if insert_only else {Combine.ADD}
    return all(each.combine in allowed for each in kept)


def summary_delta(groups: Groups, change: Delta) -> Relation:
    """sd: the net change of every group that the change touches (prepare-changes, then aggregate)."""
    prepared = Project(
        change.relation,
        (*keep(groups.keys), *(Named(kept.name, _contribution(kept)) for kept in groups.all_kept)),
    )
    return Aggregate(prepared, groups.keys, tuple(_combining(kept) for kept in groups.all_kept))


def _contribution(kept: Kept) -> Scalar:
    weight, argument = column(WEIGHT), kept.call.argument
    if argument is None:
        return weight
    if kept.combine is not Combine.ADD:
        return argument
    if kept.call.function == "count":
        return compose("CASE WHEN ", argument, " IS NULL THEN 0 ELSE ", weight, " END")
    return compose(argument, " * ", weight)


def _combining(kept: Kept) -> AggregateCall:
    match kept.combine:
        case Combine.ADD:
            return AggregateCall(kept.name, "sum", column(kept.name))
        case Combine.LEAST:
            return AggregateCall(kept.name, "min", column(kept.name))
        case Combine.GREATEST | Combine.RECOMPUTE:
            # A recomputed value stands in one row only; max picks it and passes over the NULLs.
            return AggregateCall(kept.name, "max", column(kept.name))


def touched_by_summary_delta(groups: Groups, stored: Relation, sd: Relation) -> Relation:
    """T from the stored groups, with their identity, and ``sd``, which is read twice: share it first."""
    touched = restrict(stored, Project(sd, keep(groups.keys))) if groups.keys else stored
    names = [kept.name for kept in groups.all_kept]
    both = UnionAll(
        (
            Project(touched, (*keep(groups.keys), *keep(names), *keep([ROW]))),
            Project(sd, (*keep(groups.keys), *keep(names), Named(ROW, _NO_ROW))),
        )
    )
    calls = (*(_combining(kept) for kept in groups.all_kept), AggregateCall(ROW, "max", column(ROW)))
    is_there = compose(column(GROUP_COUNT), " <> 0") if groups.keys else words("true")
    return _with_operation(groups, Aggregate(both, groups.keys, calls), is_there)


def touched_by_recomputing(groups: Groups, stored: Relation, change: Delta, leaves: Leaves) -> Relation:
    """T from the new rows of the touched groups."""
    after = new(groups.child, leaves)
    touched = stored
    if groups.keys:
        keys = leaves.share(keys_of(change, groups.keys), "affected groups")
        after, touched = restrict(after, keys), restrict(stored, keys)
    fresh = Aggregate(after, groups.keys, groups.rows.calls)
    names = [kept.name for kept in groups.all_kept]
    nothing = tuple(Named(name, words(f"CAST(NULL AS {groups.type_of(name)})")) for name in names)
    both = UnionAll(
        (
            Project(touched, (*keep(groups.keys), *nothing, *keep([ROW]), Named(_IS, words("0")))),
            Project(fresh, (*keep(groups.keys), *keep(names), Named(ROW, _NO_ROW), Named(_IS, words("1")))),
        )
    )
    calls = tuple(AggregateCall(name, "max", column(name)) for name in (*names, ROW, _IS))
    return _with_operation(groups, Aggregate(both, groups.keys, calls), compose(column(_IS), " = 1"))


def _with_operation(groups: Groups, combined: Relation, is_there: Scalar) -> Relation:
    """Adds the operation, gives each value its stored type, and drops groups that never were."""
    operation = compose(
        "CASE WHEN ", column(ROW), " IS NOT NULL THEN CASE WHEN ", is_there, " THEN 'U' ELSE 'D' END"
        " WHEN ", is_there, " THEN 'I' END",
    )  # fmt: skip
    values = tuple(Named(kept.name, _final(kept, groups)) for kept in groups.all_kept)
    result = Project(combined, (*keep(groups.keys), *values, *keep([ROW]), Named(OPERATION, operation)))
    return Filter(result, compose(column(OPERATION), " IS NOT NULL"))


def _final(kept: Kept, groups: Groups) -> Scalar:
    value = compose("CAST(", column(kept.name), f" AS {groups.type_of(kept.name)})")
    if kept.counter is None:
        return value
    return compose("CASE WHEN ", column(kept.counter), " > 0 THEN ", value, " END")
