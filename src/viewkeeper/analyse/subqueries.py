"""Subqueries inside expressions: EXISTS, IN and scalar ones, taken out of them and joined.

    WHERE EXISTS (SELECT … FROM R WHERE θ)              L ⋉_θ R                     NOT EXISTS: L ▷_θ R
    WHERE x IN (SELECT y FROM R WHERE θ)                L ⋉_{θ ∧ x=y} R
    WHERE x NOT IN (SELECT y FROM R WHERE θ)            L ▷, where no x = y is true or unknown
    x > (SELECT avg(y) FROM R WHERE R.k = L.k)          L ⟕ γ_k(R), and avg(y) where the subquery stood
    a OR EXISTS (…)                                     L with a mark: whether there is a partner

Where a subquery that aggregates is tied to the rows around it by something else than equalities, it is
computed for each combination of the outer columns that occurs (Neumann and Kemper, "Unnesting Arbitrary
Queries", 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Exists,
    Field,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    Staged,
    filled,
)
from viewkeeper.algebra.scalars import Named, Scalar, column, compose
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.from_clause import Environment
from viewkeeper.analyse.inputs import Built, Inputs
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.scopes import Names, Scope

_OUTER = "_vk_outer"
"""Stands for the outer rows in a subquery, until these are known."""
_TOO_MANY = "raise_error('a subquery that stands for one value gave several rows')"
_COUNTING = frozenset({"count", "count_if", "approx_count_distinct", "regr_count"})
_LISTING = frozenset({"collect_list", "collect_set", "array_agg", "histogram_numeric"})

ReadOuter = Callable[[exp.Expr], Scalar]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a subquery that reads columns from around it: as a whole, and as the two sides of an
    equality between the one and the other, if it is that."""

    scalar: Scalar
    outer: Scalar | None = None
    inner: Scalar | None = None
    operator: str = "="

    def tie(self, key: str) -> Scalar:
        """The same equality, for a key that is what the inner side is."""
        assert self.outer is not None
        return compose(self.outer, f" {self.operator} ", column(key))


@dataclass(frozen=True, slots=True)
class Block:
    """FROM and WHERE of a subquery, and the conditions that tie it to what stands around it."""

    select: exp.Select
    environment: Environment
    inputs: Inputs
    correlated: tuple[Condition, ...]

    @property
    def relation(self) -> Relation:
        return self.inputs.relation()


class Queries(Protocol):
    """Reads queries."""

    def read(self, node: exp.Expr, environment: Environment) -> Built:
        """A query that stands for itself."""

    def block(self, select: exp.Select, environment: Environment, outer: Scope | None) -> Block:
        """FROM and WHERE of a query."""

    def is_grouped(self, block: Block) -> bool:
        """Whether it aggregates."""

    def selected(self, block: Block) -> list[Scalar]:
        """What it selects, if it does not aggregate."""

    def grouped(
        self, block: Block, relation: Relation, keys: Sequence[Scalar]
    ) -> tuple[Relation, list[Scalar], list[str]]:
        """Its groups over a relation, by more keys than it has itself: what it selects, and the columns of
        those keys."""


Joined = Callable[[Relation], Relation]
"""What a relation is joined with, or what becomes of it: some subqueries are computed for its rows."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """x IN (SELECT y …): both, and the rows of the subquery."""

    mine: tuple[Scalar, ...]
    theirs: tuple[Scalar, ...]
    among: Joined
    ties: tuple[Scalar, ...]

    @property
    def equal(self) -> tuple[Scalar, ...]:
        pairs = zip(self.mine, self.theirs, strict=True)
        return (*self.ties, *(compose(x, " = ", y) for x, y in pairs))

    @property
    def not_unequal(self) -> tuple[Scalar, ...]:
        """Each x = y is true or unknown."""
        pairs = zip(self.mine, self.theirs, strict=True)
        return (*self.ties, *(compose("coalesce(", x, " = ", y, ", TRUE)") for x, y in pairs))

    def null(self, left: Relation) -> Relation:
        """Those where y is NULL."""
        return Filter(self.among(left), compose(self.theirs[0], " IS NULL"))

    @property
    def only(self) -> Scalar | None:
        """The one x, if it is one."""
        return self.mine[0] if len(self.mine) == 1 else None


@dataclass(slots=True)
class Subqueries:
    """The subqueries of one list of expressions."""

    reader: Reader
    names: Names
    queries: Queries
    environment: Environment
    scope: Scope
    _joined: list[Joined] = field(default_factory=list)

    def attach(self, relation: Relation) -> Relation:
        """The relation with what the expressions need of their subqueries."""
        for join in self._joined:
            relation = join(relation)
        self._joined = []
        return relation

    def replace(self, node: exp.Expr, read: ReadOuter) -> Scalar | None:
        """The value of a subquery, as an expression over what it will be joined with."""
        match node:
            case exp.Not() if isinstance(inner := unwrapped(node.this), exp.In) and _is_subquery(inner):
                return compose("NOT ", self._in(inner, read))
            case exp.In() if _is_subquery(node):
                return self._in(node, read)
            case exp.Exists():
                among, conjuncts = self._partners(node.this)
                return column(self._mark(among, conjuncts))
            case exp.Subquery():
                return self._scalar(node.this)
            case exp.Query():
                return self._scalar(node)
        return None

    def condition(self, node: exp.Expr, read: ReadOuter) -> bool:
        """Take a condition of WHERE that is one subquery and nothing more; whether it was."""
        anti = False
        inner = node
        while isinstance(inner, exp.Not | exp.Paren):
            anti ^= isinstance(inner, exp.Not)
            inner = inner.this
        match inner:
            case exp.Exists():
                among, conjuncts = self._partners(inner.this)
                self._joined.append(lambda left: Exists(left, among(left), conjuncts, anti=anti))
                return True
            case exp.In() if _is_subquery(inner):
                self._in_condition(inner, read, anti=anti)
                return True
        return False

    # IN

    def _in_condition(self, node: exp.In, read: ReadOuter, *, anti: bool) -> None:
        """x IN (…) keeps rows with a partner. x NOT IN (…) keeps a row if no x = y is true or unknown: there
        is no equal y, there is no y that is NULL, and if x is NULL there is no y at all. Of several x each
        may be NULL beside others that are not: then every row is compared, as Spark does itself."""
        found = self._pairs(node, read)
        x = found.only
        conjuncts = found.not_unequal if anti and x is None else found.equal
        self._joined.append(lambda left: Exists(left, found.among(left), conjuncts, anti=anti))
        if anti and x is not None:
            self._joined.append(lambda left: Exists(left, found.null(left), found.ties, anti=True))
            missing = compose(x, " IS NULL")
            some = self._some(found)
            self._joined.append(lambda left: Exists(left, some(left), (*found.ties, missing), anti=True))

    def _in(self, node: exp.In, read: ReadOuter) -> Scalar:
        """x IN (…) beside other conditions, of which it matters only whether they are true: so x IN (…) must
        be, or, under NOT, must neither be true nor unknown. Spark sees it in the same way."""
        negated = self._is_negated(node)
        found = self._pairs(node, read)
        return self._maybe(found) if negated else column(self._mark(found.among, found.equal))

    def _is_negated(self, node: exp.In) -> bool:
        """Whether it stands under an odd number of NOTs. These may be moved inwards, through AND and OR, if a
        condition is made of nothing else. Comparisons tell unknown from false, and so may NOT elsewhere."""
        around = list(_around(node))
        condition = isinstance(around[-1].parent if around else node.parent, exp.Where | exp.Having)
        moves = condition and all(isinstance(each, exp.Not | exp.Paren | exp.Connector) for each in around)
        direct = next((each for each in around if not isinstance(each, exp.Paren)), None)
        for each in around:
            is_not = isinstance(each, exp.Not) and each is not direct
            compares = isinstance(each, exp.Binary | exp.Is) and not isinstance(each, exp.Connector)
            if compares or (is_not and not moves):
                raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, node)
        return sum(isinstance(each, exp.Not) for each in around) % 2 == 1

    def _maybe(self, found: _Pairs) -> Scalar:
        """Whether x IN (…) is true or unknown."""
        x = found.only
        if x is None:
            return column(self._mark(found.among, found.not_unequal))
        equal = self._mark(found.among, found.equal)
        null = self._mark(found.null, found.ties)
        there = self._mark(self._some(found), found.ties)
        return compose(
            "(", column(equal), " OR ", column(null), " OR (", x, " IS NULL AND ", column(there), "))"
        )

    def _pairs(self, node: exp.In, read: ReadOuter) -> _Pairs:
        left, query = node.this, node.args["query"]
        if _is_bare(query.this):
            # IN ((SELECT …)) is a list of one scalar subquery, which of no rows is NULL, and of two an error.
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, node)
        mine = [read(each) for each in (left.expressions if isinstance(left, exp.Tuple) else [left])]
        theirs: list[Scalar] = []
        among, ties = self._partners(query, theirs)
        if len(theirs) != len(mine):
            raise self.reader.not_understood(node)
        return _Pairs(tuple(mine), tuple(theirs), among, ties)

    def _some(self, found: _Pairs) -> Joined:
        """Rows that are there if the subquery has any: one, where it is the same for every row around it."""
        if found.ties:
            return found.among
        rows = self.names.fresh("rows")

        def some(left: Relation) -> Relation:
            counted = Aggregate(found.among(left), (), (AggregateCall(rows, "count"),))
            return Filter(counted, compose(column(rows), " > 0"))

        return some

    # What a subquery is joined with

    def _partners(
        self, node: exp.Expr, selected: list[Scalar] | None = None
    ) -> tuple[Joined, tuple[Scalar, ...]]:
        """The rows of a subquery, and the conditions under which one is a partner; what it selects is added
        to the list, if there is one."""
        query = _bare(node)
        alone = self._alone(query)
        if alone is not None:
            if selected is not None:
                selected += [column(output.column) for output in alone.outputs]
            return lambda _: alone.relation, ()
        select = self._select(query)
        block = self.queries.block(select, self.environment, self.scope)
        if not self.queries.is_grouped(block):
            if selected is not None:
                selected += self.queries.selected(block)
            return lambda _: block.relation, tuple(each.scalar for each in block.correlated)
        if select.args.get("group") is None:
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, select)  # one row, though there is nothing
        relation, scalars, ties = self._for_each(block)
        if selected is not None:
            selected += scalars
        return (lambda left: _with_outer(relation, left)), ties

    def _mark(self, among: Joined, conjuncts: tuple[Scalar, ...]) -> str:
        mark = self.names.fresh("found")
        self._joined.append(lambda left: Exists(left, among(left), conjuncts, mark=mark))
        return mark

    def _alone(self, query: exp.Expr) -> Built | None:
        """The subquery as a query of its own; ``None`` if it is tied to what stands around it."""
        taken = self.names.taken()
        try:
            return self.queries.read(query, self.environment)
        except NotIncremental:
            if not isinstance(query, exp.Select):
                raise
            self.names.forget(taken)
            return None

    def _select(self, query: exp.Expr) -> exp.Select:
        if not isinstance(query, exp.Select) or any(
            query.args.get(key) for key in ("limit", "offset", "with_")
        ):
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, query)
        return query

    # Scalar subqueries

    def _scalar(self, node: exp.Expr) -> Scalar:
        query = _bare(node)
        alone = self._alone(query)
        if alone is not None:
            return self._one_value(alone)
        select = self._select(query)
        block = self.queries.block(select, self.environment, self.scope)
        if not self.queries.is_grouped(block):
            return self._one_value_each(block)
        if select.args.get("group") is not None or select.args.get("having") is not None:
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, node)
        relation, (value,), ties = self._for_each(block)
        self._joined.append(lambda left: OuterJoin(left, _with_outer(relation, left), ties))
        return value.substitute(self._of_nothing(relation, node))

    def _one_value(self, built: Built) -> Scalar:
        """A query that stands for one value, whatever row it is asked for."""
        (output,) = built.outputs
        relation, value = built.relation, column(output.column)
        if not _has_one_row(relation):
            relation, value = self._at_most_one(relation, value, ())
        self._joined.append(lambda left: Join((left, relation), ()))
        return value

    def _one_value_each(self, block: Block) -> Scalar:
        """The one row that has the keys of the row around it, if there is one."""
        if block.select.args.get("distinct") is not None:
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, block.select)
        (selected,) = self.queries.selected(block)
        keys = [self.names.fresh("key") for _ in block.correlated]
        pairs = list(zip(keys, block.correlated, strict=True))
        if any(each.inner is None for each in block.correlated):
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, block.select)
        name = self.names.fresh("value")
        items = [Named(key, each.inner) for key, each in pairs if each.inner is not None]
        rows = Project(block.relation, (*items, Named(name, selected)))
        relation, value = self._at_most_one(rows, column(name), keys)
        ties = tuple(each.tie(key) for key, each in pairs)
        self._joined.append(lambda left: OuterJoin(left, relation, ties))
        return value

    def _at_most_one(self, relation: Relation, value: Scalar, keys: Sequence[str]) -> tuple[Relation, Scalar]:
        """Rows of which there may be one for each key: an error where there are more, as in Spark."""
        one, rows = self.names.fresh("value"), self.names.fresh("rows")
        calls = (AggregateCall(one, "max", (value,)), AggregateCall(rows, "count"))
        several = compose("CASE WHEN ", column(rows), f" > 1 THEN {_TOO_MANY} ELSE ", column(one), " END")
        return Aggregate(relation, tuple(keys), calls), several

    def _for_each(self, block: Block) -> tuple[Relation, list[Scalar], tuple[Scalar, ...]]:
        """A subquery that groups, for each combination of outer values: what it is, what it selects, and what
        ties it to the rows around it."""
        if all(each.inner is not None for each in block.correlated):
            keys = [each.inner for each in block.correlated if each.inner is not None]
            relation, scalars, names = self.queries.grouped(block, block.relation, keys)
            ties = [each.tie(name) for each, name in zip(block.correlated, names, strict=True)]
            return relation, scalars, tuple(ties)
        read = frozenset[str]().union(*(each.scalar.columns for each in block.correlated))
        outer = {name: self.names.fresh(name) for name in sorted(read - set(block.relation.columns))}
        stand_in = Staged(_OUTER, tuple(Field(old, new) for old, new in outer.items()))
        by = {old: column(new) for old, new in outer.items()}
        conditions = tuple(each.scalar.substitute(by) for each in block.correlated)
        joined = Join((stand_in, block.relation), conditions)
        relation, scalars, names = self.queries.grouped(
            block, joined, [column(new) for new in outer.values()]
        )
        ties = [compose(column(old), " <=> ", column(name)) for old, name in zip(outer, names, strict=True)]
        return relation, scalars, tuple(ties)

    def _of_nothing(self, relation: Relation, node: exp.Expr) -> dict[str, Scalar]:
        """What aggregates are for a row to which nothing belongs: counts are 0, and the others NULL."""
        while not isinstance(relation, Aggregate):
            assert isinstance(relation, Project | Filter)
            relation = relation.child
        if any(call.function in _LISTING for call in relation.calls):
            raise self.reader.stop(ReasonCode.SUBQUERY_EXPRESSION, node)
        return {
            call.name: compose("coalesce(", column(call.name), ", 0)")
            for call in relation.calls
            if call.function in _COUNTING
        }


def _is_subquery(node: exp.In) -> bool:
    return node.args.get("query") is not None


def unwrapped(node: exp.Expr) -> exp.Expr:
    """What stands in the parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _around(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions that a subquery stands in, from the inside out."""
    around = node.parent
    while around is not None and not isinstance(around, exp.Query | exp.Where | exp.Having):
        yield around
        around = around.parent


def _with_outer(relation: Relation, left: Relation) -> Relation:
    """The combinations of outer columns that occur, in the place that was kept for them."""

    def occurring(stand_in: Staged) -> Relation:
        items = tuple(Named(each.name, column(each.stored)) for each in stand_in.fields)
        return Distinct(Project(left, items))

    return filled(relation, _OUTER, occurring)


def _has_one_row(relation: Relation) -> bool:
    while isinstance(relation, Project):
        relation = relation.child
    return isinstance(relation, Aggregate) and not relation.keys


def _bare(node: exp.Expr) -> exp.Expr:
    while _is_bare(node):
        node = node.this
    return node


def _is_bare(node: exp.Expr) -> bool:
    """Whether it is a pair of parentheses around a query, and nothing more."""
    around = isinstance(node, exp.Subquery | exp.Paren)
    return around and not any(value for key, value in node.args.items() if key != "this")


def has_subquery(node: exp.Expr) -> bool:
    """Whether a query stands in the expression."""
    return node.find(exp.Query, exp.Exists) is not None
