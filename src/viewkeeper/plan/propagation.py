"""The delta expression that was chosen for a join, and what it was chosen by: to be run, and to be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from viewkeeper.algebra.expressions import (
    Apart,
    Expression,
    Node,
    Terms,
    Tree,
    accesses,
    all_terms,
    changes,
    cost,
    members,
    n_term,
    places,
)
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.reading_costs import ReadingCosts, net_change_cost
from viewkeeper.algebra.search import find_optimal
from viewkeeper.errors import RefreshError
from viewkeeper.plan.situation import Counted, Joins

MOST_CHANGED = 8
"""Of more relations, the expression with all terms is too long to be planned."""


@dataclass(frozen=True, slots=True)
class Propagation:
    """A join's delta expression: the bytes that it reads, beside those of the n-term one, and the estimated
    rows of the delta of each set of relations in it (sets as bit masks)."""

    inputs: tuple[str, ...]
    changed: tuple[bool, ...]
    expression: Expression
    how: str
    cost: int
    n_term_cost: int
    rows: tuple[tuple[int, int], ...]
    uncorrected: tuple[tuple[int, int], ...] = ()
    """The same rows, without the corrections of earlier epochs."""
    common: tuple[int, ...] = ()
    """The sets whose delta is computed once for several views."""
    counted: tuple[tuple[int, int], ...] = ()
    """What they held the last time that they were counted, before this epoch."""
    left_out: tuple[tuple[int, int], ...] = ()
    """The terms that must be empty: of a part's delta, and of the others beside it."""
    net_cost: int = 0
    """What it costs to add up the rows that come out, the same for every expression."""
    counting: tuple[tuple[int, str], ...] = ()
    """The sets whose delta is, or is all that goes into, a result of the epoch, and its name: where its rows
    are counted, they are those of the set. If there are two, the last one says it best."""
    checked: tuple[tuple[int, str], ...] = ()
    """Of the parts whose terms are left out, those of which a foreign key says it."""

    def name(self, relations: int) -> str:
        """What these inputs are called together."""
        return " ⋈ ".join(self.inputs[place] for place in places(relations))

    def lines(self, actual: Mapping[int, int] = MappingProxyType({})) -> Iterator[str]:
        """The delta propagation tree, as it is drawn in the paper, but lying on its side; after the epoch
        with the ``actual`` rows of the sets that were counted in it."""
        beside = f"; by the n-term expression {in_bytes(self.n_term_cost)}"
        read = f"{self.how}: about {in_bytes(self.cost)} read"
        yield read + (beside if self.cost != self.n_term_cost else "")
        if isinstance(self.expression, Node):
            yield from self._drawn(self.expression, actual, "", "")
        for part, others in self.left_out:
            reference = dict(self.checked).get(part)
            why = "whose values lie apart"
            if reference is not None:
                why = f"new keys have no old children ({reference}, checked)"
            yield f"left out: Δ({self.name(part)}) ⋈ {self.name(others)}, {why}"
        left_out = [part for part, _ in self.left_out]
        counts = accesses(self.expression, self.changed, left_out, self.common)
        told = ", ".join(f"{name} {count}" for name, count in zip(self.inputs, counts, strict=True))
        yield f"read {told} times; n − 1 is {len(self.inputs) - 1}"

    def _drawn(self, tree: Tree, actual: Mapping[int, int], first: str, rest: str) -> Iterator[str]:
        mask = members(tree)
        name = self.name(mask)
        if not changes(tree, self.changed):
            yield f"{first}{name}, unchanged"
            return
        name = f"Δ({name})" if isinstance(tree, Node) else f"Δ{name}"
        told = f"{first}{name}  about {dict(self.rows)[mask]:,} rows"
        before = dict(self.counted).get(mask)
        if mask in actual:
            told += f", {actual[mask]:,} in that epoch"
        elif before is not None:
            told += f", {before:,} when last counted"
        yield told + (", computed once for several views" if mask in self.common else "")
        # How a common part is computed is not for this view to say.
        parts = tree.parts if isinstance(tree, Node) and mask not in self.common else ()
        for at, part in enumerate(parts, 1):
            last = at == len(parts)
            branch, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
            yield from self._drawn(part, actual, rest + branch, rest + trunk)


def propagation(
    sizes: JoinSizes,
    joins: Joins,
    given: frozenset[int] = frozenset(),
    counted: Mapping[str, Counted] | None = None,
    left_out: Callable[[Node], Iterable[tuple[int, int]]] = lambda _: (),
    apart: Apart | None = None,
) -> Propagation:
    """The expression for a join of these sizes, when some deltas are there already, and others were counted
    before. ``left_out`` tells the terms of a tree that must be empty, ``apart`` those of any tree."""
    flat, reading = n_term(len(sizes.inputs)), ReadingCosts(sizes)

    def reads(tree: Node, given: frozenset[int] = frozenset()) -> float:
        return cost(tree, reading, given, [part for part, _ in left_out(tree)])

    expression: Expression
    match joins:
        case Joins.OPTIMAL:
            found = find_optimal(reading, given=given, apart=apart)
            expression, how = found.tree, "the best of all delta expressions"
            if not found.exact:
                # Too many for the search to know of the terms that must be empty.
                expression = min((found.tree, flat), key=lambda tree: reads(tree, given))
                how = "a good delta expression"
        case Joins.N_TERM:
            expression, how = flat, "the n-term expression"
        case Joins.ALL_TERMS:
            _refuse_many_terms(sum(sizes.changed))
            expression, how = all_terms(sizes.changed), "the expression with all terms"
    sets, known = _sets(expression), counted or {}
    empty = tuple(left_out(expression)) if isinstance(expression, Node) else ()
    return Propagation(
        tuple(each.name for each in sizes.inputs),
        sizes.changed,
        expression,
        how,
        round(cost(expression, reading, given, [part for part, _ in empty])),
        round(reads(flat)),
        tuple((mask, round(sizes.delta(mask))) for mask in sets),
        tuple((mask, round(sizes.uncorrected(mask))) for mask in sets),
        tuple(sorted(given)),
        tuple((mask, known[sizes.name(mask)].actual) for mask in sets if sizes.name(mask) in known),
        empty,
        round(net_change_cost(sizes)),
    )


def _refuse_many_terms(changed: int) -> None:
    """With every relation more the terms double, and each is a join of all the relations."""
    if changed > MOST_CHANGED:
        raise RefreshError(
            f"all terms of a join of which {changed} relations changed are {2**changed - 1:,}",
            code="VK-TOO-MANY-TERMS",
            hint=f"Take 'optimal' or 'n-term'; 'all terms' is for {MOST_CHANGED} changed relations at most.",
        )


def _sets(tree: Expression | Tree) -> list[int]:
    if isinstance(tree, Terms):
        return [(1 << len(tree.terms[0])) - 1]
    parts = tree.parts if isinstance(tree, Node) else ()
    return [members(tree), *(mask for part in parts for mask in _sets(part))]


def in_bytes(size: float) -> str:
    """
    >>> in_bytes(512), in_bytes(310_400_000), in_bytes(7_200_000_000)
    ('512 bytes', '310 MB', '7.2 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.{0 if size >= 10 * factor else 1}f} {unit}"
    return f"{size:.0f} bytes"
