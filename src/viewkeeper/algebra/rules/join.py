"""Inner joins of any number of relations, self joins and non-equi conditions included.

Δ(R₁ ⋈ … ⋈ Rₙ) by a delta expression (:mod:`viewkeeper.algebra.expressions`). The weight of a joined row is
the product of its deltas' weights; but for the (2ⁿ−1)-term expression a term has only one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.deltas import Delta, plus
from viewkeeper.algebra.empty_terms import empty_terms
from viewkeeper.algebra.estimates import delta_size, is_small, join_sizes, size
from viewkeeper.algebra.expressions import Node, Operand, Term, Terms, Tree, changes, members, places
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.reading_costs import SMALL_ROWS
from viewkeeper.algebra.relations import Join, Project, Relation
from viewkeeper.algebra.rules.leaves import Leaves, new, old
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, keep

_AT_WORST = 8.0
"""So many times more than what is worth broadcasting can still be broadcast, if an estimate was wrong."""


def join_delta(relation: Join, deltas: Sequence[Delta | None], leaves: Leaves) -> Delta | None:
    """The sum of the expression's terms, each with its delta first."""
    changed = [delta is not None for delta in deltas]
    if not any(changed):
        return None
    sizes = join_sizes(relation, changed, leaves)
    expression = leaves.expression(relation, sizes)
    join = _JoinDelta(relation, deltas, leaves, sizes)
    if isinstance(expression, Terms):
        return plus(join.term(term) for term in expression.terms)
    return join.of(expression)


@dataclass(frozen=True, slots=True)
class _JoinDelta:
    relation: Join
    deltas: Sequence[Delta | None]
    leaves: Leaves
    sizes: JoinSizes

    def of(self, tree: Tree) -> Delta:
        """Delta(P) = ⊎ᵢ ⋈P₁′ ⋈ … ⋈ Delta(Pᵢ) ⋈ … ⋈ ⋈Pₘ (Definition 3.1)."""
        if isinstance(tree, int):
            delta = self.deltas[tree]
            assert delta is not None, "what did not change has no term"
            return delta
        common = self.leaves.common_delta(self.relation, members(tree))
        if common is not None:
            return Delta(Project(common.relation, keep((*self._columns(tree), WEIGHT))))
        changed = [delta is not None for delta in self.deltas]
        empty = empty_terms(self.relation, tree, changed, self.leaves.extents)
        terms = []
        for at, part in enumerate(tree.parts):
            if not changes(part, changed) or members(part) in empty:
                continue
            others = {
                place: self._new(place) for before in tree.parts[:at] for place in places(members(before))
            }
            others |= {
                place: self._old(place) for after in tree.parts[at + 1 :] for place in places(members(after))
            }
            joined = self._delta_first(part, self.of(part).relation, others)
            terms.append(Delta(Project(joined, keep((*self._columns(tree), WEIGHT)))))
        total = plus(terms)
        assert total is not None
        if members(tree) == (1 << len(self.deltas)) - 1:
            return total
        return self.leaves.part_delta(self.relation, members(tree), total)

    def term(self, term: Term) -> Delta:
        """A term of a flat sum: the first delta joined with all the others, and their weights multiplied."""
        first, *more = (place for place, operand in enumerate(term) if operand is Operand.DELTA)
        others = {}
        for place, operand in enumerate(term):
            if operand is not Operand.DELTA:
                others[place] = self._new(place) if operand is Operand.NEW else self._old(place)
            elif place != first:
                others[place] = self._weighted(place)
        joined = self._delta_first(first, self.of(first).relation, others)
        weight: Scalar = column(WEIGHT)
        for place in more:
            weight = compose(weight, " * ", column(_weight(place)))
        return Delta(Project(joined, (*keep(self.relation.columns), Named(WEIGHT, weight))))

    def _weighted(self, place: int) -> Relation:
        """A delta beside another one, its weight under a name of its own."""
        rows = self.of(place).relation
        return Project(rows, (*keep(rows.columns[:-1]), Named(_weight(place), column(WEIGHT))))

    def _old(self, place: int) -> Relation:
        return old(self.relation.inputs[place], self.leaves)

    def _new(self, place: int) -> Relation:
        child = self.relation.inputs[place]
        return old(child, self.leaves) if self.deltas[place] is None else new(child, self.leaves)

    def _columns(self, tree: Tree) -> list[str]:
        return [name for place in places(members(tree)) for name in self.relation.inputs[place].columns]

    def _delta_first(self, part: Tree, delta: Relation, others: Mapping[int, Relation]) -> Relation:
        """The delta of a part joined with others, from the delta on."""
        chain = Chain(
            self.relation,
            [_is_dimension(size(child, self.leaves)) for child in self.relation.inputs],
            lambda reached, result: self._is_small(part, reached, result),
        )
        inside = self._columns(part) if isinstance(part, Node) else None
        return chain.on(members(part), delta, others, joined=inside)

    def _is_small(self, part: Tree, reached: int, result: Relation) -> bool:
        """Whether Delta(P), joined with what it has reached, is worth broadcasting.

        What was learned of |Delta(P)| is believed, but not without a limit: the next change may be of another
        kind, and should the formula be right after all, then the rows must still fit everywhere.
        """
        inside = members(part)
        if any(size(self.relation.inputs[place], self.leaves) is None for place in places(reached)):
            return False
        if any(delta_size(self.relation.inputs[place], self.leaves) is None for place in places(inside)):
            return False
        grown = self.sizes.growth(inside, reached)
        believed, formula = self.sizes.delta(inside) * grown, self.sizes.uncorrected(inside) * grown
        return is_small(believed, result) and is_small(formula / _AT_WORST, result)


@dataclass(frozen=True, slots=True)
class Chain:
    """A left-deep chain of joins from a few rows on, each saying what is small enough to be broadcast.

    Spark reorders joins little without statistics, and has none of deltas: left alone it would shuffle a
    big table rather than broadcast a few rows. Large tables come first, to stream past the few rows; small
    ones are then broadcast to what comes out. Broadcasting an intermediate result would collect it before
    the next join can begin, so that is done only where two large tables follow each other.
    """

    relation: Join
    small: Sequence[bool]
    """Which inputs are worth broadcasting themselves."""
    few: Callable[[int, Relation], bool]
    """Whether what the chain has made of these inputs (a bit mask) is worth broadcasting."""

    def on(
        self,
        reached: int,
        first: Relation,
        others: Mapping[int, Relation],
        *,
        joined: Collection[str] | None = None,
    ) -> Relation:
        """Of these inputs, which ``first`` stands for, with the others. If they were ``joined`` before,
        conditions on these columns alone were applied then."""
        result = first
        waiting = list(self.relation.conjuncts)
        if joined is not None:
            waiting = [conjunct for conjunct in waiting if not conjunct.columns <= {*joined}]
        for at in join_order(self.relation, list(places(reached)), list(others), self.small):
            available = {*result.columns, *others[at].columns}
            ready = tuple(conjunct for conjunct in waiting if conjunct.columns <= available)
            waiting = [conjunct for conjunct in waiting if not conjunct.columns <= available]
            broadcast = (1,) if self.small[at] else (0,) if self.few(reached, result) else ()
            result = Join((result, others[at]), ready, broadcast)
            reached |= 1 << at
        return result


def _weight(place: int) -> str:
    return f"{WEIGHT}_{place}"


def _is_dimension(rows: int | None) -> bool:
    return rows is not None and rows <= SMALL_ROWS


def join_order(
    relation: Join, first: Sequence[int], others: Sequence[int], small: Sequence[bool]
) -> list[int]:
    """The others, each next one connected to those before it where possible, and the large ones as early as
    that allows."""
    order: list[int] = []
    rest = sorted(others)
    while rest:
        reached = {name for at in (*first, *order) for name in relation.inputs[at].columns}
        connected = [at for at in rest if _connects(relation, at, reached)]
        following = min(connected or rest, key=lambda at: (bool(small) and small[at], at))
        order.append(following)
        rest.remove(following)
    return order


def _connects(relation: Join, at: int, reached: set[str]) -> bool:
    own = set(relation.inputs[at].columns)
    return any(
        conjunct.columns & own and conjunct.columns & reached and conjunct.columns <= own | reached
        for conjunct in relation.conjuncts
    )
