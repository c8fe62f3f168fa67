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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.algebra.estimates import (
    SMALL_ROWS,
    column_type,
    delta_size,
    excludes_input,
    is_small,
    join_sizes,
    size,
)
from viewkeeper.algebra.join_sizes import JoinSizes, equal_columns, is_strict
from viewkeeper.algebra.reading_costs import is_broadcast
from viewkeeper.algebra.relations import (
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    Staged,
    UnionAll,
)
from viewkeeper.algebra.rules.delta import delta
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


@dataclass(frozen=True, slots=True)
class _Branch:
    """An input, the equalities by which it hangs on another (whose column comes first), and its branches."""

    place: int
    pairs: tuple[tuple[str, str], ...]
    branches: tuple[_Branch, ...]

    @property
    def places(self) -> int:
        """Its inputs, as a bit mask."""
        return 1 << self.place | _all_of(branch.places for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Tree:
    """A join as it hangs on its centre. ``shown``: the centre's columns that the view shows, and as what."""

    join: Join
    centre: int
    shown: Mapping[str, str]
    own: tuple[str, ...]
    """The columns by which changed rows of the centre are told."""
    branches: tuple[_Branch, ...]
    changed: tuple[bool, ...]
    sizes: JoinSizes


def is_joined(relation: Relation) -> bool:
    """Whether a view's rows are those of a join, filtered perhaps, with columns left out or added."""
    return _shown(relation) is not None


def hanging(relation: Relation, leaves: Leaves) -> Tree | None:
    """How the view's join hangs on the largest input that will do; ``None`` where its rows cannot be told by
    keys: what changed hangs on no other, or by columns that the view does not show, or by too many keys."""
    found = _shown(relation)
    if found is None:
        return None
    join, shown = found
    changed = [
        delta_size(child, leaves) != 0 and not excludes_input(join, at, leaves)
        for at, child in enumerate(join.inputs)
    ]
    equal = list(_equal_by_type(join, leaves))
    sizes = join_sizes(join, changed, leaves)
    largest_first = sorted(range(len(changed)), key=lambda at: -sizes.new[at])
    trees = (_hanging_on(centre, join, shown, equal, changed, sizes) for centre in largest_first)
    return next((tree for tree in trees if tree is not None), None)


def _hanging_on(
    centre: int,
    join: Join,
    shown: Mapping[str, str],
    equal: Sequence[tuple[str, str]],
    changed: Sequence[bool],
    sizes: JoinSizes,
) -> Tree | None:
    told = _told(join.inputs[centre], shown, equal)
    branches = _grown(join, centre, told, equal, changed)
    own = _own(join.inputs[centre], told, equal) if changed[centre] else ()
    reached = _all_of(branch.places for branch in branches) | 1 << centre
    if any(has and not reached >> at & 1 for at, has in enumerate(changed)) or (changed[centre] and not own):
        return None
    tree = Tree(join, centre, told, own, branches, tuple(changed), sizes)
    return tree if all(is_broadcast(rows, len(names)) for names, rows in _expected(tree).items()) else None


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
        staged = replace(staged, rows=round(_expected(tree)[names]))
        touched.append(
            TouchedKeys(
                staged, tuple(KeyColumn(name, tree.shown[name], name not in strict) for name in names)
            )
        )
    join = tree.join
    centre = _touched(new(join.inputs[tree.centre], leaves), touched)
    others = {at: new(child, leaves) for at, child in enumerate(join.inputs) if at != tree.centre}
    everything = (1 << len(join.inputs)) - 1

    def few(_: int, result: Relation) -> bool:
        return is_small(tree.sizes.delta(everything), result)

    small = [rows is not None and rows <= SMALL_ROWS for rows in (size(each, leaves) for each in join.inputs)]
    joined = Chain(join, small, few).on(1 << tree.centre, centre, others)
    return Replacement(_over(relation, Project(joined, keep(join.columns))), tuple(touched))


def _shown(relation: Relation) -> tuple[Join, dict[str, str]] | None:
    """The join that a view is made of, and which of its columns are shown as they are, under which names."""
    match relation:
        case Join():
            return relation, {name: name for name in relation.columns}
        case Filter():
            return _shown(relation.child)
        case Project():
            below = _shown(relation.child)
            if below is None:
                return None
            names = {next(iter(item.scalar.columns)): item.name for item in relation.items if item.is_rename}
            return below[0], {name: names[inner] for name, inner in below[1].items() if inner in names}
        case _:
            return None


def _over(relation: Relation, joined: Relation) -> Relation:
    """The view's query over other rows than those of its join."""
    match relation:
        case Filter() | Project():
            return replace(relation, child=_over(relation.child, joined))
        case _:
            return joined


def _equal_by_type(join: Join, leaves: Leaves) -> Iterator[tuple[str, str]]:
    """The columns that the join sets equal, both ways round. Of one type only: '01' = 1 and 1 = '1', so that
    a key of one type may stand for several of the other."""
    owner = {name: child for child in join.inputs for name in child.columns}
    for conjunct in join.conjuncts:
        pair = equal_columns(conjunct)
        if pair is None or owner[pair[0]] is owner[pair[1]]:
            continue
        kinds = {column_type(owner[name], name, leaves) for name in pair}
        if len(kinds) == 1 and None not in kinds:
            yield pair
            yield pair[::-1]


def _told(centre: Relation, shown: Mapping[str, str], equal: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The centre's columns that the view shows, themselves or by what they are equal to."""
    found = {name: shown[name] for name in centre.columns if name in shown}
    for mine, theirs in equal:
        if mine in centre.columns and theirs in shown:
            found.setdefault(mine, shown[theirs])
    return found


def _grown(
    join: Join,
    centre: int,
    told: Mapping[str, str],
    equal: Sequence[tuple[str, str]],
    changed: Sequence[bool],
) -> tuple[_Branch, ...]:
    """What hangs on the centre, as near to it as possible; branches on which nothing changed are left out."""
    free = set(range(len(join.inputs))) - {centre}
    hangs: dict[int, dict[int, tuple[tuple[str, str], ...]]] = {}
    reached = [centre]
    for at in reached:
        usable = set(told) if at == centre else set(join.inputs[at].columns)
        for other in sorted(free):
            pairs: dict[str, str] = {}
            for mine, theirs in equal:
                if mine in usable and theirs in join.inputs[other].columns and theirs not in pairs.values():
                    pairs.setdefault(mine, theirs)
            if pairs:
                hangs.setdefault(at, {})[other] = tuple(pairs.items())
                free.remove(other)
                reached.append(other)

    def grown(at: int) -> tuple[_Branch, ...]:
        found = (_Branch(other, pairs, grown(other)) for other, pairs in hangs.get(at, {}).items())
        return tuple(branch for branch in found if changed[branch.place] or branch.branches)

    return grown(centre)


def _own(centre: Relation, told: Mapping[str, str], equal: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The columns by which changed rows of the centre are told: those by which it is joined, which leave few
    rows together; else all that are shown."""
    joined = {mine for mine, _ in equal}
    return tuple(name for name in centre.columns if name in told and name in joined) or tuple(
        name for name in centre.columns if name in told
    )


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


def _keys(tree: Tree, branch: _Branch, leaves: Leaves) -> Relation | None:
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


def _expected(tree: Tree) -> dict[tuple[str, ...], float]:
    """About how many keys there are, by the columns of the centre."""
    found: dict[tuple[str, ...], float] = {}
    for branch in tree.branches:
        names = tuple(theirs for theirs, _ in branch.pairs)
        found[names] = found.get(names, 0.0) + tree.sizes.delta(branch.places)
    if tree.own:
        found[tree.own] = found.get(tree.own, 0.0) + tree.sizes.delta(1 << tree.centre)
    return found


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


def _all_of(masks: Iterator[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
