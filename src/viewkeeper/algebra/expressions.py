"""Delta expressions of a many-way join, as values (Lee et al. 2001, Sections 1 and 3).

With R′ for the new state of R:

    (2ⁿ−1)-term [BLT86], (1)     one term for every non-empty set of inputs: their deltas, joined with the
                                 old states of the others
    delta expression, Def. 3.1   Delta(P) = ⊎ᵢ ⋈P₁′ ⋈ … ⋈ ⋈Pᵢ₋₁′ ⋈ Delta(Pᵢ) ⋈ ⋈Pᵢ₊₁ ⋈ … ⋈ ⋈Pₘ
                                 for a partition P₁ … Pₘ of P; Delta({R}) = ΔR
    n-term [GMS93], (2)          the delta expression whose parts are all single relations

A delta expression is a tree, its delta propagation tree. A relation that did not change has no term of its
own, but is an operand of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Protocol, TypeAlias


class Operand(Enum):
    """What stands for one input in one term."""

    OLD = "old"
    NEW = "new"
    DELTA = "delta"


Term: TypeAlias = tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """A sum of terms, each with an operand for every input; more than one may be a delta."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a delta propagation tree: its parts, in the order in which they are brought up to date."""

    parts: tuple[Tree, ...]


Tree: TypeAlias = "int | Node"
"""A relation, by its place among the inputs, or a node."""

Expression: TypeAlias = Terms | Node


@dataclass(frozen=True, slots=True)
class Apart:
    """Of each relation, as bit masks, those in which no changed row of it finds a row: as they were, and as
    they are now."""

    old: tuple[int, ...]
    new: tuple[int, ...]

    def __bool__(self) -> bool:
        return any(self.old) or any(self.new)


class Sizes(Protocol):
    """What expressions are priced by."""

    @property
    def changed(self) -> Sequence[bool]:
        """Which inputs changed."""

    @property
    def old(self) -> Sequence[float]:
        """|R|: what it costs to read each input as it was."""

    @property
    def new(self) -> Sequence[float]:
        """|R′|: what it costs to read each input as it is now."""

    def delta(self, relations: int) -> float:
        """|Δ(⋈P)| of a set of inputs, as a bit mask. Must depend on the set alone."""


def n_term(relations: int) -> Node:
    """The n-term expression.

    >>> drawn(n_term(3))
    '(R1, R2, R3)'
    """
    return Node(tuple(range(relations)))


def all_terms(changed: Sequence[bool]) -> Terms:
    """The (2ⁿ−1)-term expression, n being the inputs that changed.

    >>> [[operand.value for operand in term] for term in all_terms([True, False, True]).terms]
    [['delta', 'old', 'old'], ['old', 'old', 'delta'], ['delta', 'old', 'delta']]
    """
    states = [(Operand.OLD, Operand.DELTA) if each else (Operand.OLD,) for each in reversed(changed)]
    terms = [term[::-1] for term in product(*states) if Operand.DELTA in term]
    return Terms(tuple(sorted(terms, key=lambda term: term.count(Operand.DELTA))))


def members(tree: Tree) -> int:
    """The relations below a node, as a bit mask."""
    if isinstance(tree, int):
        return 1 << tree
    mask = 0
    for part in tree.parts:
        mask |= members(part)
    return mask


def places(mask: int) -> Iterator[int]:
    """The inputs of a bit mask, in order.

    >>> list(places(0b1011))
    [0, 1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def changes(tree: Tree, changed: Sequence[bool]) -> bool:
    """Whether anything below a node changed."""
    return any(changed[place] for place in places(members(tree)))


def accesses(
    expression: Expression,
    changed: Sequence[bool],
    without: Collection[int] = (),
    given: Collection[int] = (),
) -> list[int]:
    """How often each relation is read, its delta apart. ``without``: parts whose terms are left out;
    ``given``: sets whose delta is there already, so that nothing is read for it.

    In a tree that is, on the way from the relation to the root, the number of changed siblings of each node
    (Section 3.2). Figure 1 (a), and (b), which is the n-term expression:

    >>> accesses(Node((Node((Node((0, 1)), 2, Node((3, 4)))), 5)), [True] * 6)
    [4, 4, 3, 4, 4, 1]
    >>> accesses(n_term(6), [True] * 6)
    [5, 5, 5, 5, 5, 5]
    >>> accesses(all_terms([True] * 6), [True] * 6)
    [31, 31, 31, 31, 31, 31]

    With Δ(R1 ⋈ R2) given:

    >>> accesses(Node((Node((0, 1)), 2)), [True] * 3, given=[0b011])
    [1, 1, 1]
    """
    if isinstance(expression, Terms):
        columns = zip(*expression.terms, strict=True)
        return [sum(operand is not Operand.DELTA for operand in column) for column in columns]
    counts = [0] * len(changed)
    _count(expression, changed, without, given, counts)
    return counts


def _count(
    tree: Tree,
    changed: Sequence[bool],
    without: Collection[int],
    given: Collection[int],
    counts: list[int],
) -> None:
    if isinstance(tree, int) or members(tree) in given:
        return
    terms = [changes(part, changed) and members(part) not in without for part in tree.parts]
    for part, has_term in zip(tree.parts, terms, strict=True):
        for place in places(members(part)):
            counts[place] += sum(terms) - has_term
        if has_term:
            _count(part, changed, without, given, counts)


def cost(
    expression: Expression, sizes: Sizes, given: Collection[int] = (), without: Collection[int] = ()
) -> float:
    """The work under the linear metric: what all the operands of all the terms hold (expression (9)).

    ``given``: sets whose delta is there already. ``without``: parts whose terms are left out.
    """
    if isinstance(expression, Terms):
        return sum(_operand(each, at, sizes) for term in expression.terms for at, each in enumerate(term))
    if members(expression) in given:
        return 0.0
    total = 0.0
    for at, part in enumerate(expression.parts):
        if changes(part, sizes.changed) and members(part) not in without:
            total += sizes.delta(members(part))
            total += sum(_read(before, sizes.new) for before in expression.parts[:at])
            total += sum(_read(behind, sizes.old) for behind in expression.parts[at + 1 :])
            total += cost(part, sizes, given, without) if isinstance(part, Node) else 0.0
    return total


def _operand(operand: Operand, place: int, sizes: Sizes) -> float:
    match operand:
        case Operand.DELTA:
            return sizes.delta(1 << place)
        case Operand.OLD:
            return sizes.old[place]
        case Operand.NEW:
            return sizes.new[place]


def _read(tree: Tree, reading: Sequence[float]) -> float:
    return sum(reading[place] for place in places(members(tree)))


def drawn(tree: Tree, names: Sequence[str] = ()) -> str:
    """A tree on one line."""
    if isinstance(tree, int):
        return names[tree] if names else f"R{tree + 1}"
    return f"({', '.join(drawn(part, names) for part in tree.parts)})"
