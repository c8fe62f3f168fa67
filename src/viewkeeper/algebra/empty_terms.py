"""Terms of a delta expression that must be empty, because of the values that the tables hold.

An inserted parent has no old children: a new order has a number that no old line item refers to, so

    Δorders ⋈ lineitem = ∅

Where one side of an equality has only values beyond those of the other side, no row of the one finds a row
of the other. The least and the greatest value of a column stand in the metadata of a table's files; no row is
read to know them. Where keys do not grow, a foreign key says so, if it is known to have held before: each old
line then refers to an old order, and an order with a new key is none of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from viewkeeper.algebra.expressions import Apart, Node, Tree, changes, members, places
from viewkeeper.algebra.join_sizes import equal_columns
from viewkeeper.algebra.provenance import scan_origin
from viewkeeper.algebra.relations import Aggregate, Distinct, Filter, Join, Project, Relation, Scan, State
from viewkeeper.algebra.scalars import Scalar

Value: TypeAlias = int | Decimal | str | bytes

_WHOLE = frozenset({"int", "bigint"})


@dataclass(frozen=True, slots=True)
class Extent:
    """No value of a column, of this type, is less or greater. Of NULLs it says nothing."""

    type: str
    low: Value
    high: Value

    def is_apart_from(self, other: Extent) -> bool:
        """Whether no value can be in both.

        >>> Extent("int", 1, 5).is_apart_from(Extent("bigint", 6, 9))
        True
        >>> Extent("int", 1, 5).is_apart_from(Extent("bigint", 5, 9))
        False
        >>> Extent("int", 1, 5).is_apart_from(Extent("string", b"6", b"9")), "Spark would cast it"
        (False, 'Spark would cast it')
        """
        if self.type != other.type and not {self.type, other.type} <= _WHOLE:
            return False
        return self.high < other.low or other.high < self.low  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class KeyReference:
    """A foreign key: columns of a table, and those of another one's key that they refer to, as they are
    stored there."""

    child: str
    columns: tuple[str, ...]
    parent: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"foreign key {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class Extents:
    """Of one column of a table that changed: in its rows before and after, and in those that came, if no row
    went. ``None`` where it is not known."""

    before: Extent | None = None
    after: Extent | None = None
    inserted: Extent | None = None
    unreferred: frozenset[KeyReference] = frozenset()
    """Foreign keys by which no row that the child had before refers to a row that came here, when no row
    went; the column belongs to their key."""


ExtentsOf: TypeAlias = Callable[[Scan, str], Extents | None]
"""Of a stored column of a table."""


def plain_equalities(relation: Join) -> Iterator[tuple[str, str]]:
    """The pairs of columns that are set equal, so that NULL equals nothing."""
    for conjunct in relation.conjuncts:
        pair = equal_columns(conjunct)
        if pair is not None and not _is_null_safe(conjunct):
            yield pair


def is_empty(relation: Join, node: Node, at: int, changed: Sequence[bool], extents: ExtentsOf) -> bool:
    """Whether a node's term for its part ``at`` must be: the parts before it are new, those behind it old."""
    deltas = _of_delta(relation, node.parts[at], changed)
    states = _states(node, at)
    return _lies_apart(relation, deltas, states, extents) or (
        _unreferred(relation, deltas, states, changed, extents) is not None
    )


def _states(node: Node, at: int) -> dict[int, State]:
    """In which state a term for the part ``at`` reads the inputs of the other parts."""
    states = {place: State.NEW for part in node.parts[:at] for place in places(members(part))}
    return states | {place: State.OLD for part in node.parts[at + 1 :] for place in places(members(part))}


def _lies_apart(
    relation: Join, deltas: Mapping[str, Relation], states: Mapping[int, State], extents: ExtentsOf
) -> bool:
    """Whether the values that came are all beyond those that they are to be equal to."""
    rows = {name: place for place in states for name in relation.inputs[place].columns}
    for pair in plain_equalities(relation):
        for one, two in (pair, pair[::-1]):
            if one not in deltas or two not in rows:
                continue
            came = _known(deltas[one], one, extents)
            there = _known(relation.inputs[rows[two]], two, extents)
            if came is None or came.inserted is None or there is None:
                continue
            state = states[rows[two]]
            other = there.after if state is State.NEW else there.before
            if other is not None and came.inserted.is_apart_from(other):
                return True
    return False


def _unreferred(
    relation: Join,
    deltas: Mapping[str, Relation],
    states: Mapping[int, State],
    changed: Sequence[bool],
    extents: ExtentsOf,
) -> KeyReference | None:
    """A foreign key by which the rows that came are to be joined with rows of before: the columns of both
    must be set equal pair by pair, and come from one row each."""
    before = [place for place, state in states.items() if state is State.OLD or not changed[place]]
    rows = {name: place for place in before for name in relation.inputs[place].columns}
    joined: dict[tuple[int, Scan, Scan], set[tuple[str, str]]] = defaultdict(set)
    for pair in plain_equalities(relation):
        for one, two in (pair, pair[::-1]):
            if one in deltas and two in rows:
                parent = scan_origin(deltas[one], one)
                child = scan_origin(relation.inputs[rows[two]], two)
                if parent is not None and child is not None:
                    joined[rows[two], parent[0], child[0]].add((parent[1], child[1]))
    for (_, parent_scan, child_scan), pairs in joined.items():
        for key, _ in sorted(pairs):
            known = extents(parent_scan, key)
            for reference in sorted(known.unreferred, key=str) if known is not None else ():
                equal = set(zip(reference.key, reference.columns, strict=True)) <= pairs
                if equal and reference.child == child_scan.table:
                    return reference
    return None


def empty_terms(relation: Join, node: Node, changed: Sequence[bool], extents: ExtentsOf) -> set[int]:
    """The parts of a node, as bit masks, whose terms must be empty; one term stays, so that something is
    computed."""
    terms = [at for at, part in enumerate(node.parts) if changes(part, changed)]
    empty = [at for at in terms if is_empty(relation, node, at, changed, extents)]
    return {members(node.parts[at]) for at in (empty if len(empty) < len(terms) else empty[:-1])}


def left_out(
    relation: Join, tree: Tree, changed: Sequence[bool], extents: ExtentsOf
) -> Iterator[tuple[int, int]]:
    """The terms of a whole tree that must be empty, each as two sets: its part, and the others beside it."""
    if isinstance(tree, int):
        return
    empty = empty_terms(relation, tree, changed, extents)
    yield from ((part, members(tree) ^ part) for part in sorted(empty))
    for part in tree.parts:
        if members(part) not in empty:
            yield from left_out(relation, part, changed, extents)


def checked_references(
    relation: Join, tree: Tree, changed: Sequence[bool], extents: ExtentsOf
) -> Iterator[tuple[int, KeyReference]]:
    """Of the terms that are left out, by their parts, those of which only a foreign key says it."""
    if isinstance(tree, int):
        return
    empty = empty_terms(relation, tree, changed, extents)
    for at, part in enumerate(tree.parts):
        if members(part) not in empty:
            yield from checked_references(relation, part, changed, extents)
            continue
        deltas, states = _of_delta(relation, part, changed), _states(tree, at)
        reference = _unreferred(relation, deltas, states, changed, extents)
        if reference is not None and not _lies_apart(relation, deltas, states, extents):
            yield members(part), reference


def apart(relation: Join, changed: Sequence[bool], extents: ExtentsOf) -> Apart:
    """Which terms of any tree must be empty: Δr ⋈ x = ∅, for each two inputs and both states of x."""
    old, new = ([0] * len(changed) for _ in range(2))
    for one in range(len(changed)):
        for other in range(len(changed)):
            if changed[one] and one != other:
                old[one] |= is_empty(relation, Node((one, other)), 0, changed, extents) << other
                new[one] |= is_empty(relation, Node((other, one)), 1, changed, extents) << other
    return Apart(tuple(old), tuple(new))


def _of_delta(relation: Join, part: Tree, changed: Sequence[bool]) -> dict[str, Relation]:
    """The columns of a part's delta that hold nothing but values of changed rows, and the input of each:
    where only one of the relations changed."""
    inside = [place for place in places(members(part)) if changed[place]]
    if len(inside) != 1 or not _is_by_row(relation.inputs[inside[0]]):
        return {}
    return dict.fromkeys(relation.inputs[inside[0]].columns, relation.inputs[inside[0]])


def _is_by_row(relation: Relation) -> bool:
    """Whether a column that it passes on has in its delta only values that it has in the table's: a join or a
    window brings rows that did not change themselves into it."""
    match relation:
        case Scan():
            return True
        case Filter() | Project() | Distinct() | Aggregate():
            return _is_by_row(relation.child)
        case _:
            return False


def _known(child: Relation, column: str, extents: ExtentsOf) -> Extents | None:
    stored = scan_origin(child, column)
    return None if stored is None else extents(*stored)


def _is_null_safe(conjunct: Scalar) -> bool:
    return any(isinstance(part, str) and "<=>" in part for part in conjunct.parts)
