"""How a join hangs on one of its relations: by equalities, as a tree, for what touches the rows of that one.

The *centre* is the largest relation that will do. Others hang on it, or on one another, and what hangs on
what is the way from a changed row to the rows of the centre that it touches (:mod:`.touched_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.estimates import column_type, excludes_input, join_sizes
from viewkeeper.algebra.join_sizes import JoinSizes, equal_columns
from viewkeeper.algebra.reading_costs import is_broadcast
from viewkeeper.algebra.relations import Filter, Join, Project, Relation
from viewkeeper.algebra.rules.delta import untouched
from viewkeeper.algebra.rules.leaves import Leaves


@dataclass(frozen=True, slots=True)
class Branch:
    """An input, the equalities by which it hangs on another (whose column comes first), and its branches."""

    place: int
    pairs: tuple[tuple[str, str], ...]
    branches: tuple[Branch, ...]

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
    branches: tuple[Branch, ...]
    changed: tuple[bool, ...]
    sizes: JoinSizes

    @property
    def expected_keys(self) -> dict[tuple[str, ...], float]:
        """About how many keys will be touched, by the columns of the centre."""
        found: dict[tuple[str, ...], float] = {}
        for branch in self.branches:
            names = tuple(theirs for theirs, _ in branch.pairs)
            found[names] = found.get(names, 0.0) + self.sizes.delta(branch.places)
        if self.own:
            found[self.own] = found.get(self.own, 0.0) + self.sizes.delta(1 << self.centre)
        return found

    @property
    def changed_rows(self) -> float:
        """About how many joined rows change: those that come, and those that go."""
        return self.sizes.delta((1 << len(self.join.inputs)) - 1)


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
        not (untouched(child, leaves) or excludes_input(join, at, leaves))
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
    few = all(is_broadcast(rows, len(names)) for names, rows in tree.expected_keys.items())
    return tree if few else None


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
) -> tuple[Branch, ...]:
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

    def grown(at: int) -> tuple[Branch, ...]:
        found = (Branch(other, pairs, grown(other)) for other, pairs in hangs.get(at, {}).items())
        return tuple(branch for branch in found if changed[branch.place] or branch.branches)

    return grown(centre)


def _own(centre: Relation, told: Mapping[str, str], equal: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The columns by which changed rows of the centre are told: those by which it is joined, which leave few
    rows together; else all that are shown."""
    joined = {mine for mine, _ in equal}
    return tuple(name for name in centre.columns if name in told and name in joined) or tuple(
        name for name in centre.columns if name in told
    )


def _all_of(masks: Iterator[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
