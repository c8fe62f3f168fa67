"""What a change touches is replaced: joined rows that show a key of it go, and are made anew in one pass.

One relation of a join is its *centre* C, a large one. The others hang on it, or on one another, by
equalities. A row of C is *touched* if it changed itself, or if it may have got or lost a partner:

    T(c)  =  c.a ∈ K(R) for an R that hangs on C by C.a = R.b, or c.k ∈ π_k(ΔC)
    K(R)  =  π_b(ΔR) ∪ π_b(R′ ⋉ K(S)) for each S that hangs on R

Where T is false, neither c nor anything that it is joined with has changed. So, if V shows the columns a
and k,

    V′ = σ_¬T(V) ⊎ σ_T(C′) ⋈ R₁′ ⋈ … ⋈ Rₙ′

for any columns, be they keys or not. What hangs on what is a tree; further conditions only leave rows out.
This is no delta expression (Lee et al. 2001): what goes is not computed, as the storage tells it. C is read
once, however many relations changed, where the best expression reads it for each part of its tree, and no
rows are added up. It pays where most of them changed. What comes and goes is not told row by row, so that
views which others read are not kept in this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.algebra.estimates import is_small, size
from viewkeeper.algebra.join_sizes import is_strict
from viewkeeper.algebra.reading_costs import SMALL_ROWS
from viewkeeper.algebra.relations import (
    Distinct,
    Filter,
    OuterJoin,
    Project,
    Relation,
    Staged,
    UnionAll,
)
from viewkeeper.algebra.rules.delta import delta
from viewkeeper.algebra.rules.hanging import Branch, Tree
from viewkeeper.algebra.rules.join import Chain
from viewkeeper.algebra.rules.leaves import Leaves, new
from viewkeeper.algebra.rules.restrict import restrict
from viewkeeper.algebra.scalars import Named, Scalar, column, compose, keep, words


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of touched keys, the view's column that shows it, and whether NULL is a key, too: not where an
    equality leaves such rows out."""

    name: str
    shown: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class TouchedKeys:
    """Keys of rows that may have changed, staged."""

    keys: Staged
    columns: tuple[KeyColumn, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """σ_T of the new state, and what tells the stored rows that go: those that have one of these keys."""

    rows: Relation
    keys: tuple[TouchedKeys, ...]


def replacement(relation: Relation, tree: Tree, leaves: Leaves) -> Replacement | None:
    """The rows to be replaced; ``None`` when nothing changed."""
    sets = _key_sets(tree, leaves)
    if not sets:
        return None
    strict = {name for conjunct in tree.join.conjuncts if is_strict(conjunct) for name in conjunct.columns}
    touched = []
    for names, parts in sets.items():
        keys: Relation = Distinct(UnionAll(tuple(parts)) if len(parts) > 1 else parts[0])
        for name in names:
            if name in strict:
                keys = Filter(keys, compose(column(name), " IS NOT NULL"))
        staged = leaves.share(keys, f"touched {', '.join(names)}")
        assert isinstance(staged, Staged)
        staged = replace(staged, rows=round(tree.expected_keys[names]))
        touched.append(
            TouchedKeys(
                staged, tuple(KeyColumn(name, tree.shown[name], name not in strict) for name in names)
            )
        )
    join = tree.join
    centre = _touched(new(join.inputs[tree.centre], leaves), touched)
    others = {at: new(child, leaves) for at, child in enumerate(join.inputs) if at != tree.centre}

    def few(_: int, result: Relation) -> bool:
        return is_small(tree.changed_rows, result)

    small = [rows is not None and rows <= SMALL_ROWS for rows in (size(each, leaves) for each in join.inputs)]
    joined = Chain(join, small, few).on(1 << tree.centre, centre, others)
    return Replacement(_over(relation, Project(joined, keep(join.columns))), tuple(touched))


def _over(relation: Relation, joined: Relation) -> Relation:
    """The view's query over other rows than those of its join."""
    match relation:
        case Filter() | Project():
            return replace(relation, child=_over(relation.child, joined))
        case _:
            return joined


def _key_sets(tree: Tree, leaves: Leaves) -> dict[tuple[str, ...], list[Relation]]:
    """π_a of what changed, by the columns a of the centre."""
    sets: dict[tuple[str, ...], list[Relation]] = {}
    for branch in tree.branches:
        keys = _keys(tree, branch, leaves)
        if keys is not None:
            sets.setdefault(keys.columns, []).append(keys)
    change = delta(tree.join.inputs[tree.centre], leaves) if tree.own else None
    if change is not None:
        sets.setdefault(tree.own, []).append(Project(change.relation, keep(tree.own)))
    return sets


def _keys(tree: Tree, branch: Branch, leaves: Leaves) -> Relation | None:
    """K(R), under the names that its columns have where it hangs."""
    child = tree.join.inputs[branch.place]
    own = tuple(mine for _, mine in branch.pairs)
    change = delta(child, leaves) if tree.changed[branch.place] else None
    parts: list[Relation] = [] if change is None else [Project(change.relation, keep(own))]
    for below in branch.branches:
        keys = _keys(tree, below, leaves)
        if keys is not None:
            parts.append(Project(restrict(new(child, leaves), Distinct(keys)), keep(own)))
    if not parts:
        return None
    all_parts = UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]
    return Project(all_parts, tuple(Named(theirs, column(mine)) for theirs, mine in branch.pairs))


def _touched(centre: Relation, touched: Sequence[TouchedKeys]) -> Relation:
    """σ_T(C): by one look-up, or by as many as there are sets of keys, past which the rows stream."""
    if len(touched) == 1:
        return restrict(centre, touched[0].keys)
    rows, marks = centre, list[Scalar]()
    for at, each in enumerate(touched):
        names = {key.name: f"_vk_key_{at}_{key.name}" for key in each.columns}
        mark = f"_vk_touched_{at}"
        keys = Project(
            each.keys,
            (*(Named(new, column(old)) for old, new in names.items()), Named(mark, words("true"))),
        )
        on = tuple(
            compose(column(key.name), " <=> " if key.nullable else " = ", column(names[key.name]))
            for key in each.columns
        )
        rows = OuterJoin(rows, keys, on, broadcast=True)
        marks.append(compose(column(mark), " IS NOT NULL"))
    condition = marks[0]
    for mark_ in marks[1:]:
        condition = compose(condition, " OR ", mark_)
    return Project(Filter(rows, condition), keep(centre.columns))
