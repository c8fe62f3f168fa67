"""Summary-deltas: what a change does to the groups of an aggregate (Mumick et al. 1997, Section 4).

Propagate (4.1)     pc = π_{keys, contributions}(ΔR)           prepare-changes
                    sd = γ_{keys; Σ contribution}(pc)          the summary-delta
Refresh   (4.2)     T  = γ_{keys; combine}((V_old ⋉ sd) ⊎ sd)  the touched groups, as they will be

A row of weight w contributes w to COUNT(*), w to COUNT(e) unless e is NULL, e·w to SUM(e). What deletions can
take back only by looking at the rest of the group (MIN, say) is kept apart in sd: the extremum of the
insertions, and that of the deletions. For that the change must be net, else a row that came and went would
count as an insertion; so rows that cancel out are removed first.

T has an operation for each group: I(nsert), U(pdate), D(elete), or R(ecompute) where what went was the
stored extremum itself and nothing as good came in (Figure 8, with the test of weakly minimal changes in 4.3:
δt.m = t.m; but NULL + δ is δ, and COUNT(e) becomes 0, not NULL). Groups marked R are then computed from the
new rows. When a function cannot be combined at all, every touched group is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.algebra.aggregates import GROUP_COUNT, Combine, Kept
from viewkeeper.algebra.deltas import Delta, keys_of
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Filter,
    Project,
    Relation,
    SemiJoin,
    UnionAll,
)
from viewkeeper.algebra.rules.leaves import Leaves, new
from viewkeeper.algebra.rules.restrict import restrict
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, keep, words

OPERATION = "_vk_op"
ROW = "_vk_row"
"""The identity of a stored group, by which it is found again when it is installed."""
_IS = "_vk_is"

_NO_ROW = words("CAST(NULL AS BIGINT)")
_COUNT_ROWS = Kept(AggregateCall(GROUP_COUNT, "count"), Combine.ADD)


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


def can_combine(kept: Sequence[Kept]) -> bool:
    """Whether stored values and a summary-delta give the new values, but for some groups at the worst."""
    return all(each.combine.survives_insertions for each in kept)


def is_self_maintainable(kept: Sequence[Kept], *, insert_only: bool) -> bool:
    """Definition 3.1: whether stored values and changes alone always give the new values."""
    return can_combine(kept) and (insert_only or not fragile(kept))


def fragile(kept: Sequence[Kept]) -> list[Kept]:
    """What may have to be recomputed after deletions."""
    return [each for each in kept if not each.combine.survives_deletions]


# Propagate.


def prepare_changes(groups: Groups, change: Delta, *, insert_only: bool) -> Relation:
    """pc: the keys and what each changed row contributes; where deletions are to be told from insertions,
    of the net change."""
    rows = column(WEIGHT)
    contributions = [Named(kept.name, _contributed(kept, rows)) for kept in groups.all_kept]
    prepared = Project(change.relation, (*keep(groups.keys), *contributions))
    return net_changes(groups, prepared, insert_only=insert_only)


def net_changes(groups: Groups, prepared: Relation, *, insert_only: bool) -> Relation:
    """pc with the extrema of insertions and deletions apart, of what does not cancel out."""
    may_go = [] if insert_only else fragile(groups.kept)
    if not may_go:
        return prepared
    extrema = [kept.name for kept in may_go]
    sums = tuple(_combining(kept) for kept in groups.all_kept if kept not in may_go)
    net = Aggregate(prepared, (*groups.keys, *extrema), sums)
    came, went = compose(column(GROUP_COUNT), " > 0"), compose(column(GROUP_COUNT), " < 0")
    apart = [Named(name, compose("CASE WHEN ", came, " THEN ", column(name), " END")) for name in extrema]
    apart += [
        Named(gone(name), compose("CASE WHEN ", went, " THEN ", column(name), " END")) for name in extrema
    ]
    return Project(net, (*keep(groups.keys), *keep(call.name for call in sums), *apart))


def summary_delta(groups: Groups, prepared: Relation, *, insert_only: bool) -> Relation:
    """sd: the net change of every group that the prepared changes touch."""
    calls = [_combining(kept) for kept in groups.all_kept]
    if not insert_only:
        calls += [
            AggregateCall(gone(kept.name), kept.combine.function, (column(gone(kept.name)),))
            for kept in fragile(groups.kept)
        ]
    return Aggregate(prepared, groups.keys, tuple(calls))


def gone(name: str) -> str:
    """The column of a summary-delta that holds what the deletions took, of this kept column."""
    return f"{name}_gone"


def _contributed(kept: Kept, rows: Scalar) -> Scalar:
    return contribution(kept, *kept.call.arguments, rows=rows) if kept.call.arguments else rows


def contribution(kept: Kept, argument: Scalar, *, rows: Scalar) -> Scalar:
    """What so many rows contribute that have this value; to an extremum the value itself."""
    match kept.combine:
        case Combine.ADD if kept.call.function == "count":
            return compose("CASE WHEN ", argument, " IS NULL THEN 0 ELSE ", rows, " END")
        case Combine.ADD:
            return compose(argument, " * ", rows)
        case Combine.XOR:
            return odd_times(argument, rows)
        case _:
            return argument


def odd_times(value: Scalar, times: Scalar) -> Scalar:
    """Of a XOR of so many equal values: the value, or 0 in its type; NULL where it is NULL."""
    none = compose(value, " - ", value)
    return compose("CASE WHEN ", times, " % 2 <> 0 THEN ", value, " ELSE ", none, " END")


def _combining(kept: Kept) -> AggregateCall:
    return AggregateCall(kept.name, kept.combine.function, (column(kept.name),))


# Refresh.


def touched_by_summary_delta(
    groups: Groups,
    stored: Relation,
    sd: Relation,
    *,
    insert_only: bool,
    few: bool = False,
    remembered: bool = False,
    counts: bool = False,
) -> Relation:
    """T from the stored groups, with their identity, and ``sd``.

    ``sd`` is read twice, so share it first; unless the stored groups are ``few``: then all of them are
    combined with it, and those that it does not touch are left out afterwards. ``remembered``: T also tells
    what each group was (:func:`groups_before`); ``counts``: at least how many rows it had.
    """
    few = few and bool(groups.keys)
    touched = restrict(stored, Project(sd, keep(groups.keys))) if groups.keys and not few else stored
    may_go = [] if insert_only else fragile(groups.kept)
    names = [kept.name for kept in groups.all_kept]
    told = groups.all_kept if remembered else (_COUNT_ROWS,) if counts else ()
    old = (*told, *(kept for kept in may_go if kept not in told))
    before = [Named(_was(kept), column(kept.name)) for kept in old]
    before += [_null(groups, kept, name) for kept in may_go for name in (_came(kept), gone(kept.name))]
    change = [_null(groups, kept, _was(kept)) for kept in old]
    change += [
        Named(name, column(source))
        for kept in may_go
        for name, source in ((_came(kept), kept.name), (gone(kept.name), gone(kept.name)))
    ]
    if few:
        before.append(Named(_IS, words("0")))
        change.append(Named(_IS, words("1")))
    both = UnionAll(
        (
            Project(touched, (*keep(groups.keys), *keep(names), *before, *keep([ROW]))),
            Project(sd, (*keep(groups.keys), *keep(names), *change, Named(ROW, _NO_ROW))),
        )
    )
    apart = [AggregateCall(_was(kept), "max", (column(_was(kept)),)) for kept in old]  # the only one there is
    apart += [
        AggregateCall(name, kept.combine.function, (column(name),))
        for kept in may_go
        for name in (_came(kept), gone(kept.name))
    ]
    calls = [*(_combining(kept) for kept in groups.all_kept), *apart, _any_row()]
    if few:
        calls.append(AggregateCall(_IS, "max", (column(_IS),)))
    is_there = compose(column(GROUP_COUNT), " <> 0") if groups.keys else words("true")
    lost = [_lost(kept) for kept in may_go]
    combined: Relation = Aggregate(both, groups.keys, tuple(calls))
    if few:
        combined = Filter(combined, compose(column(_IS), " = 1"))
    return _with_operation(groups, combined, is_there, lost, [_was(kept) for kept in told])


def groups_before(groups: Groups, touched: Relation) -> Relation:
    """The touched groups as they were, from T that tells it: those that were there at all."""
    there = Filter(touched, compose(column(ROW), " IS NOT NULL"))
    return Project(
        there, (*keep(groups.keys), *(Named(kept.name, column(_was(kept))) for kept in groups.all_kept))
    )


def rows_that_came(*, in_parts: bool) -> str:
    """How many rows came into all groups of a T that ``counts``, if none went."""
    before = "0" if in_parts else f"coalesce(sum({_was(_COUNT_ROWS)}), 0)"  # parts were nothing before
    return f"coalesce(sum({GROUP_COUNT}), 0) - {before}"


def _was(kept: Kept) -> str:
    return f"{kept.name}_was"


def _came(kept: Kept) -> str:
    return f"{kept.name}_came"


def _null(groups: Groups, kept: Kept, name: str) -> Named:
    return Named(name, words(f"CAST(NULL AS {groups.type_of(kept.name)})"))


def _any_row() -> AggregateCall:
    return AggregateCall(ROW, "max", (column(ROW),))


def _lost(kept: Kept) -> Scalar:
    """Whether a stored value is no longer right, and the summary-delta cannot tell the new one."""
    went, was, came = column(gone(kept.name)), column(_was(kept)), column(_came(kept))
    assert kept.counter is not None
    some_left = compose(column(kept.counter), " > 0")
    match kept.combine:
        case Combine.LEAST:
            gone_extremum = compose(
                went, " = ", was, " AND ", compose("coalesce(", came, " > ", was, ", true)")
            )
        case Combine.GREATEST:
            gone_extremum = compose(
                went, " = ", was, " AND ", compose("coalesce(", came, " < ", was, ", true)")
            )
        case _:
            gone_extremum = compose(went, " IS NOT NULL")
    return compose(some_left, " AND ", gone_extremum)


def marked_keys(groups: Groups, draft: Relation) -> Relation | None:
    """The keys of the groups that are marked R; ``None`` where the only group has no key."""
    return Project(_marked(draft), keep(groups.keys)) if groups.keys else None


def recomputed(groups: Groups, draft: Relation, fresh: Relation) -> Relation:
    """T when some groups of the draft are marked R: these from ``fresh``, the others as they are."""
    others = Filter(draft, compose(column(OPERATION), " <> 'R'"))
    again = _replaced(groups, _marked(draft), fresh)
    return UnionAll((Project(others, keep(again.columns)), again))


def _marked(draft: Relation) -> Relation:
    return Filter(draft, compose(column(OPERATION), " = 'R'"))


def groups_from_rows(groups: Groups, keys: Relation | None, leaves: Leaves) -> Relation:
    """The groups of these keys as they will be, computed from the rows: γ(R_new ⋉ K)."""
    after = new(groups.child, leaves)
    return Aggregate(after if keys is None else restrict(after, keys), groups.keys, groups.rows.calls)


def groups_after(groups: Groups, stored: Relation, touched: Relation) -> Relation:
    """(V ▷ T) ⊎ σ_{≠D}(T): all groups as they will be, from the stored ones, with their identity, and T."""
    columns = keep((*groups.keys, *(kept.name for kept in groups.all_kept)))
    others = SemiJoin(stored, Project(touched, keep([ROW])), ((ROW, ROW),), anti=True)
    remaining = Filter(touched, compose(column(OPERATION), " <> 'D'"))
    return UnionAll((Project(others, columns), Project(remaining, columns)))


def touched_by_recomputing(groups: Groups, stored: Relation, change: Delta, leaves: Leaves) -> Relation:
    """T from the new rows of all the touched groups."""
    if not groups.keys:
        return _replaced(groups, stored, groups_from_rows(groups, None, leaves))
    keys = leaves.share(keys_of(change, groups.keys), "affected groups")
    return _replaced(groups, restrict(stored, keys), groups_from_rows(groups, keys, leaves))


def _replaced(groups: Groups, touched: Relation, fresh: Relation) -> Relation:
    """The fresh groups in the place of the touched ones, whose identity they take."""
    names = [kept.name for kept in groups.all_kept]
    nothing = tuple(Named(name, words(f"CAST(NULL AS {groups.type_of(name)})")) for name in names)
    both = UnionAll(
        (
            Project(touched, (*keep(groups.keys), *nothing, *keep([ROW]), Named(_IS, words("0")))),
            Project(fresh, (*keep(groups.keys), *keep(names), Named(ROW, _NO_ROW), Named(_IS, words("1")))),
        )
    )
    calls = tuple(AggregateCall(name, "max", (column(name),)) for name in (*names, ROW, _IS))
    return _with_operation(groups, Aggregate(both, groups.keys, calls), compose(column(_IS), " = 1"))


def _with_operation(
    groups: Groups,
    combined: Relation,
    is_there: Scalar,
    lost: Sequence[Scalar] = (),
    more: Sequence[str] = (),
) -> Relation:
    """Adds the operation, gives each value its stored type, and drops groups that never were; ``more`` stays
    as it is."""
    update = words("'U'")
    for each in lost:
        update = compose("CASE WHEN ", each, " THEN 'R' ELSE ", update, " END")
    operation = compose(
        "CASE WHEN ", column(ROW), " IS NOT NULL THEN CASE WHEN ", is_there, " THEN ", update, " ELSE 'D' END"
        " WHEN ", is_there, " THEN 'I' END",
    )  # fmt: skip
    values = tuple(Named(kept.name, _final(kept, groups)) for kept in groups.all_kept)
    result = Project(
        combined, (*keep(groups.keys), *values, *keep([ROW]), Named(OPERATION, operation), *keep(more))
    )
    return Filter(result, compose(column(OPERATION), " IS NOT NULL"))


def as_stored(groups: Groups, combined: Relation) -> Relation:
    """Combined values as the storage has them: in its types, and NULL where nothing was counted."""
    values = tuple(Named(kept.name, _final(kept, groups)) for kept in groups.all_kept)
    return Project(combined, (*keep(groups.keys), *values))


# Parts: the summary-deltas themselves are stored, and combined by whoever reads them.


def adds_up(groups: Groups) -> bool:
    """Whether a group is the sum of its parts, deletions among them."""
    return all(each.combine.survives_deletions for each in groups.kept)


def as_parts(groups: Groups, sd: Relation) -> Relation:
    """T of a summary-delta whose rows are stored as they are: all of them are new."""
    values = [compose("CAST(", column(name), f" AS {groups.type_of(name)})") for name in _names(groups)]
    named = map(Named, _names(groups), values)
    return Project(sd, (*keep(groups.keys), *named, Named(ROW, _NO_ROW), Named(OPERATION, words("'I'"))))


def folded(groups: Groups, parts: Relation) -> Relation:
    """γ_{keys; ⊕ of each kept value}(parts): the groups, as they would be stored whole."""
    combined = Aggregate(parts, groups.keys, tuple(_combining(kept) for kept in groups.all_kept))
    whole = as_stored(groups, combined)
    return Filter(whole, compose(column(GROUP_COUNT), " <> 0")) if groups.keys else whole


def _names(groups: Groups) -> list[str]:
    return [kept.name for kept in groups.all_kept]


def _final(kept: Kept, groups: Groups) -> Scalar:
    value = compose("CAST(", column(kept.name), f" AS {groups.type_of(kept.name)})")
    if kept.counter is None:
        return value
    return compose("CASE WHEN ", column(kept.counter), " > 0 THEN ", value, " END")
