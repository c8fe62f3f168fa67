"""From the tree of a query to the algebra's normal form.

One SELECT becomes, from the inside out: Join or Filter (FROM, WHERE), Aggregate over a projection of its
keys and arguments (GROUP BY), Filter (HAVING), Window, Project (the select list), Distinct; LIMIT is a Filter
over the number that each row has in the order. Subqueries inside expressions are joined where these stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import Distinct, Relation, UnionAll
from viewkeeper.algebra.scalars import Named, Scalar, column
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.clock import clock_read, time_filtered
from viewkeeper.analyse.constants import constant
from viewkeeper.analyse.expressions import Lookup, Parts, Reader, dotted, whole_number
from viewkeeper.analyse.from_clause import Cte, Environment, FromReader
from viewkeeper.analyse.functions import GENERATORS
from viewkeeper.analyse.generators import Generators
from viewkeeper.analyse.grouping import Grouping, Replaced, has_aggregate
from viewkeeper.analyse.inputs import Built, Inputs, alias_lookup, column_lookup, inputs_of, only
from viewkeeper.analyse.limits import is_limited, limited, ordered_by
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Ambiguous, Names, Output, Scope
from viewkeeper.analyse.set_operations import counted_sides, intersect, subtract
from viewkeeper.analyse.subqueries import Block, Condition, Subqueries, has_subquery, unwrapped
from viewkeeper.analyse.tidy import project
from viewkeeper.analyse.time_windows import TimeWindows
from viewkeeper.analyse.windows import Windows, direction, named_windows

_MEANINGLESS = ("order", "sort", "cluster", "distribute", "hint", "windows")
"""Clauses that say nothing about which rows there are: order without LIMIT, placement, hints, and windows
that a window function would have to use."""
_CLAUSES = (
    *("expressions", "from_", "joins", "laterals", "where", "group", "having", "distinct", "with_"),
    *("limit", "offset"),
)
_SIDES = ("this", "expression", "distinct", "with_", "limit", "offset")


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One column of a select list: an expression, or a column that a star stands for."""

    name: str | None
    node: exp.Expr | None
    output: Output | None = None


class QueryReader:
    """Reads the queries of one text."""

    def __init__(
        self,
        reader: Reader,
        resolve: Callable[[tuple[str, ...]], TableInfo | None],
        names: Names,
        *,
        case_sensitive: bool,
    ) -> None:
        self._reader = reader
        self._names = names
        self._from = FromReader(reader, resolve, names, case_sensitive, self.read)

    def read(self, node: exp.Expr, environment: Environment) -> Built:
        """The query as a relation."""
        environment = self._with(node, environment)
        match node:
            case exp.Select():
                return self._select(node, environment)
            case exp.Union():
                built = self._union(node, environment)
            case exp.SetOperation():
                built = self._set_operation(node, environment)
            case exp.Subquery():
                only(self._reader, node, "this", "with_", "alias", "limit", "offset", *_MEANINGLESS)
                built = self.read(node.this, environment)
            case exp.Values():
                only(self._reader, node, "expressions", "alias")
                built = constant(self._reader, self._names, node)
            case _:
                raise self._reader.not_understood(node)
        if not is_limited(node):
            return built
        return limited(built, self._order_of_outputs(node, built), node, self._reader, self._names)

    def _with(self, node: exp.Expr, environment: Environment) -> Environment:
        clause = node.args.get("with_")
        if clause is None:
            return environment
        if clause.args.get("recursive"):
            raise self._reader.stop(ReasonCode.RECURSIVE_CTE, clause)
        only(self._reader, clause, "expressions")
        for cte in clause.expressions:
            only(self._reader, cte, "this", "alias")
            alias = cte.args["alias"]
            columns = tuple(name.name for name in alias.args.get("columns") or ())
            environment = {**environment, alias.name.lower(): Cte(cte.this, columns, environment)}
        return environment

    # One SELECT

    def block(self, select: exp.Select, environment: Environment, outer: Scope | None) -> Block:
        """FROM and WHERE. Conditions that read columns of ``outer`` are kept apart."""
        only(self._reader, select, *_CLAUSES, *_MEANINGLESS)
        if outer is not None and any(
            _generator(SelectItem(None, each.unalias()))[0] for each in select.expressions
        ):
            raise self._reader.stop(ReasonCode.SUBQUERY_EXPRESSION, select)
        inputs = self._from.read(select, environment, outer)
        where = select.args.get("where")
        if where is None:
            return Block(select, environment, inputs, ())
        correlated: list[Condition] = []
        waiting: list[exp.Expr] = []
        timed: list[exp.Expr] = []
        available = {name for relation in inputs.relations for name in relation.columns}
        for node in self._from.operands_of_and(where.this):
            if has_subquery(node):
                (waiting if clock_read(node) is None else timed).append(node)
                continue
            scalar = self._over_rows(node, inputs.scope)
            if scalar.columns <= available:
                inputs = inputs.where([scalar])
            else:
                correlated.append(self._condition(node, scalar, inputs.scope, available))
        for node in timed:  # when it is known what is joined
            filtered = time_filtered(inputs, node, self._reader, self._names, self._from.resolve)
            inputs = inputs if filtered is None else filtered
            waiting += [node] if filtered is None else []
        if waiting:
            inputs = self._with_subqueries(inputs, environment, waiting)
        return Block(select, environment, inputs, tuple(correlated))

    def _condition(self, node: exp.Expr, scalar: Scalar, scope: Scope, available: set[str]) -> Condition:
        """An equality between a column inside and one outside, if both are known to have one type: to group
        by the one is to group by the other only then."""
        if isinstance(node, exp.EQ | exp.NullSafeEQ):
            operator = "=" if isinstance(node, exp.EQ) else "<=>"
            sides = [self._over_rows(each, scope) for each in (node.this, node.expression)]
            kinds = {self._from.kinds.get(next(iter(each.columns), "")) for each in sides if each.is_column}
            if all(each.is_column for each in sides) and len(kinds) == 1 and None not in kinds:
                for inner, outer in (sides, sides[::-1]):
                    if inner.columns <= available and not outer.columns & available:
                        return Condition(scalar, outer, inner, operator)
        return Condition(scalar)

    def _with_subqueries(
        self, inputs: Inputs, environment: Environment, conditions: Sequence[exp.Expr]
    ) -> Inputs:
        """WHERE, as far as it is about subqueries."""
        scope = inputs.scope
        subqueries = Subqueries(self._reader, self._names, self, environment, scope)
        relation = inputs.relation()
        rest: list[Scalar] = []
        for node in conditions:
            if not subqueries.condition(node, lambda each: self._over_rows(each, scope)):
                rest.append(self._over_rows(node, scope, subqueries))
            relation = subqueries.attach(relation)
        return inputs_of(relation, scope).where(rest)

    def is_grouped(self, block: Block) -> bool:
        """Whether it aggregates."""
        nodes = [item.node for item in self._items(block.select, block.inputs.scope)]
        clauses = (block.select.args.get(key) for key in ("group", "having"))
        return any(each is not None for each in clauses) or any(
            has_aggregate(node) for node in nodes if node is not None
        )

    def selected(self, block: Block) -> list[Scalar]:
        """What it selects, row by row."""
        scope = block.inputs.scope
        return self._scalars(self._items(block.select, scope), scope, lambda *_: None)

    def grouped(
        self, block: Block, relation: Relation, keys: Sequence[Scalar]
    ) -> tuple[Relation, list[Scalar], list[str]]:
        """Its groups, by these keys as well."""
        select, scope = block.select, block.inputs.scope
        items = self._items(select, scope)
        grouping = Grouping(self._reader, self._names, scope, select.args.get("group"), items, more_keys=keys)
        built, scalars = grouping.build(relation, select.args.get("having"))
        return built, scalars, grouping.more_keys

    def _select(self, node: exp.Select, environment: Environment) -> Built:
        block = self.block(node, environment, None)
        having = node.args.get("having")
        inputs = TimeWindows(self._reader, self._names, self._from.kinds).windowed(block.inputs, node)
        inputs, items = self._generated(inputs, self._items(node, inputs.scope))
        order = self._order(node, items, inputs.scope)
        shown = len(items)
        items = [*items, *order.hidden]
        scope = inputs.scope
        subqueries = Subqueries(self._reader, self._names, self, environment, scope)
        windows = Windows(self._reader, self._names, named_windows(node))

        def replaced(inner: exp.Expr, read: Callable[..., Scalar]) -> Scalar | None:
            found = windows.replace(inner, read)
            return subqueries.replace(inner, read) if found is None else found

        nodes = [item.node for item in items if item.node is not None]
        if node.args.get("group") is not None or any(map(has_aggregate, nodes)):
            grouping = Grouping(self._reader, self._names, scope, node.args.get("group"), items, replaced)
            relation, scalars = grouping.build(inputs.relation(), having, subqueries.attach)
        elif having is not None:
            raise self._reader.not_understood(having, "HAVING without GROUP BY")
        else:
            scalars = self._scalars(items, scope, replaced)
            relation = subqueries.attach(inputs.relation())
        used = frozenset[str]().union(*(scalar.columns for scalar in scalars))
        relation = windows.over(relation, used)
        built = self._projected(relation, items, scalars)
        distinct = node.args.get("distinct")
        if distinct is not None:
            only(self._reader, distinct)
            if order.hidden:
                raise self._reader.not_understood(node, "ORDER BY with DISTINCT")
            kept = project(built.relation, [Named(out.column, column(out.column)) for out in built.outputs])
            built = Built(Distinct(kept), built.outputs)
        if not is_limited(node):
            return built
        outputs = built.outputs
        ordered = [(outputs[at].column, down) for at, down in order.by]
        return limited(Built(built.relation, outputs[:shown]), ordered, node, self._reader, self._names)

    def _over_rows(self, node: exp.Expr, scope: Scope, subqueries: Subqueries | None = None) -> Scalar:
        """An expression over the rows of FROM."""

        def stand_in(inner: exp.Expr) -> Scalar | None:
            if subqueries is None:
                return None
            return subqueries.replace(inner, lambda each: self._over_rows(each, scope, subqueries))

        return self._reader.scalar(node, column_lookup(scope), scope.names(), stand_in)

    def _generated(self, inputs: Inputs, items: list[SelectItem]) -> tuple[Inputs, list[SelectItem]]:
        """A generator in the select list, as if it were a lateral view."""
        result: list[SelectItem] = []
        for item in items:
            called, wishes = _generator(item)
            if called is None:
                result.append(item)
                continue
            scope = inputs.scope
            call = self._reader.scalar(called, column_lookup(scope), scope.names(), aggregate=called)
            known = len(scope.visible)
            inputs = Generators(self._reader, self._names).generated(inputs, called, call, wishes)
            result += [SelectItem(each.name, None, each) for each in inputs.scope.visible[known:]]
        return inputs, result

    # ORDER BY … LIMIT

    def _order(self, node: exp.Select, items: Sequence[SelectItem], scope: Scope) -> _Order:
        """By which columns a limited SELECT is ordered: those that it shows, or others beside them."""
        by: list[tuple[int, str]] = []
        hidden: list[SelectItem] = []
        if not is_limited(node):
            return _Order((), ())
        for each in ordered_by(node):
            at = self._place(each.this, items, scope)
            if at is None:
                at = len(items) + len(hidden)
                hidden.append(SelectItem(None, each.this))
            by.append((at, direction(each)))
        return _Order(tuple(by), tuple(hidden))

    def _place(self, node: exp.Expr, items: Sequence[SelectItem], scope: Scope) -> int | None:
        """Which item of the select list is meant, if one is: its number, its name."""
        number = whole_number(node)
        if number is not None:
            if not 1 <= number <= len(items):
                raise self._reader.not_understood(node)
            return number - 1
        if isinstance(node, exp.Column) and len(dotted(node)) == 1:
            named = [
                at
                for at, item in enumerate(items)
                if item.name and scope.fold(item.name) == scope.fold(node.name)
            ]
            return named[0] if named else None
        if any(self._has_two_meanings(each, items, scope) for each in node.find_all(exp.Column)):
            raise self._reader.not_understood(node)
        return None

    def _has_two_meanings(self, reference: exp.Column, items: Sequence[SelectItem], scope: Scope) -> bool:
        """Whether it could be the column of FROM or that of the select list, and these differ."""
        name = reference.parts[0].name
        shown = [item for item in items if item.name and scope.fold(item.name) == scope.fold(name)]
        if all(item.node is None or _is_itself(item, scope) for item in shown):
            return False
        try:
            return len(shown) > 1 or scope.resolve([part.name for part in dotted(reference)]) is not None
        except Ambiguous:
            return True

    def _order_of_outputs(self, node: exp.Expr, built: Built) -> list[tuple[str, str]]:
        items = [SelectItem(output.name, None, output) for output in built.outputs]
        scope = Scope((), built.outputs)
        found: list[tuple[str, str]] = []
        for each in ordered_by(node):
            at = self._place(each.this, items, scope)
            if at is None:
                raise self._reader.not_understood(each.this)
            found.append((built.outputs[at].column, direction(each)))
        return found

    def _items(self, node: exp.Select, scope: Scope) -> list[SelectItem]:
        items: list[SelectItem] = []
        for item in node.expressions:
            if isinstance(item, exp.Star):
                items += self._star(item, scope.visible, scope)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                items += self._qualified_star(item, scope)
            elif isinstance(item, exp.Alias):
                items.append(SelectItem(item.alias, item.this))
            else:
                items.append(SelectItem(self._given_name(item), item))
        return items

    def _given_name(self, node: exp.Expr) -> str | None:
        """The name that Spark gives to an expression without an alias, where that is a plain name."""
        node = unwrapped(node)
        if isinstance(node, exp.Cast) and isinstance(unwrapped(node.this), exp.Column | exp.Dot):
            node = unwrapped(node.this)
        identifier: exp.Expr | None = None
        if isinstance(node, exp.Column):
            identifier = dotted(node)[-1]
        elif isinstance(node, exp.Dot) and _is_chain(node):
            identifier = node.expression
        where = span(node)
        signed = where is not None and self._reader.text.word(where[0]) in ("+", "-")
        return identifier.name if isinstance(identifier, exp.Identifier) and not signed else None

    def _qualified_star(self, node: exp.Column, scope: Scope) -> list[SelectItem]:
        qualifier = [part.name for part in node.parts[:-1]]
        origins = scope.qualified(qualifier)
        if len(origins) != 1:
            raise self._reader.stop(ReasonCode.STRUCT_STAR, node, ".".join([*qualifier, "*"]))
        return self._star(node.this, origins[0].outputs, scope)

    def _star(self, star: exp.Expr, outputs: Sequence[Output], scope: Scope) -> list[SelectItem]:
        only(self._reader, star, "except_")
        left_out = set[str]()
        for name in star.args.get("except_") or ():
            if (isinstance(name, exp.Column) and len(name.parts) > 1) or isinstance(name, exp.Dot):
                raise self._reader.not_understood(star, "EXCEPT with a qualified name")
            left_out.add(scope.fold(name.name))
        return [
            SelectItem(output.name, None, output)
            for output in outputs
            if output.name is None or scope.fold(output.name) not in left_out
        ]

    def _scalars(self, items: Sequence[SelectItem], scope: Scope, replaced: Replaced) -> list[Scalar]:
        aliases: dict[str, Scalar] = {}
        scalars: list[Scalar] = []
        for item in items:
            if item.node is None:
                scalars.append(_star_column(item))
                continue
            scalar = self._item(item.node, scope, aliases, replaced)
            scalars.append(scalar)
            if item.name is not None:
                aliases.setdefault(scope.fold(item.name), scalar)
        return scalars

    def _item(self, node: exp.Expr, scope: Scope, aliases: dict[str, Scalar], replaced: Replaced) -> Scalar:
        """An expression of the select list, which may use what stands to the left of it."""
        around = scope.outer
        inside = lateral_lookup(column_lookup(replace(scope, outer=None)), aliases, scope)

        def lookup(parts: Sequence[str]) -> tuple[Parts, int] | None:
            found = inside(parts)
            return found if found is not None or around is None else column_lookup(around)(parts)

        known = scope.names() | aliases.keys()

        def read(inner: exp.Expr, function: exp.Expr | None = None) -> Scalar:
            return self._reader.scalar(inner, lookup, known, stand_in, aggregate=function)

        def stand_in(inner: exp.Expr) -> Scalar | None:
            return replaced(inner, read)

        return read(node)

    def _projected(self, relation: Relation, items: Sequence[SelectItem], scalars: Sequence[Scalar]) -> Built:
        named: list[Named] = []
        outputs: list[Output] = []
        taken: set[str] = set()
        for item, scalar in zip(items, scalars, strict=True):
            name = next(iter(scalar.columns)) if scalar.is_column else ""
            if not name or name in taken:
                name = self._names.fresh(item.name or "column")
            taken.add(name)
            named.append(Named(name, scalar))
            outputs.append(Output(item.name, name))
        if all(item.scalar == column(item.name) for item in named):
            # Nothing is computed: the outputs alone say which columns are meant, and under which names.
            return Built(relation, tuple(outputs))
        return Built(project(relation, named), tuple(outputs))

    # Set operations

    def _union(self, node: exp.Union, environment: Environment) -> Built:
        only(self._reader, node, *_SIDES, *_MEANINGLESS)
        first, *_ = branches = self._branches(node, environment)
        names = [self._names.fresh(output.name or "column") for output in first.outputs]
        inputs: list[Relation] = []
        for branch in branches:
            if isinstance(branch.relation, UnionAll) and branch is first:
                inputs += [_renamed(part, branch.outputs, names) for part in branch.relation.inputs]
            else:
                inputs.append(_renamed(branch.relation, branch.outputs, names))
        outputs = tuple(Output(out.name, name) for out, name in zip(first.outputs, names, strict=True))
        union = UnionAll(tuple(inputs))
        return Built(Distinct(union) if node.args.get("distinct") else union, outputs)

    def _set_operation(self, node: exp.SetOperation, environment: Environment) -> Built:
        """INTERSECT and EXCEPT."""
        only(self._reader, node, *_SIDES, *_MEANINGLESS)
        first, second = self._branches(node, environment)
        names = [self._names.fresh(output.name or "column") for output in first.outputs]
        left, right = (_renamed(each.relation, each.outputs, names) for each in (first, second))
        outputs = tuple(Output(out.name, name) for out, name in zip(first.outputs, names, strict=True))
        counted = counted_sides(left, right, self._names)
        combined = intersect if isinstance(node, exp.Intersect) else subtract
        return Built(combined(counted, distinct=bool(node.args.get("distinct"))), outputs)

    def _branches(self, node: exp.SetOperation, environment: Environment) -> list[Built]:
        branches = [self.read(side, environment) for side in (node.this, node.expression)]
        if len(branches[0].outputs) != len(branches[1].outputs):
            raise self._reader.not_understood(node, f"{node.key.upper()} of different numbers of columns")
        return branches


@dataclass(frozen=True, slots=True)
class _Order:
    """The places of the items by which rows are ordered, each with its direction, and those items that the
    select list does not show."""

    by: tuple[tuple[int, str], ...]
    hidden: tuple[SelectItem, ...]


def _is_itself(item: SelectItem, scope: Scope) -> bool:
    """Whether an item of the select list is the very column of FROM that has its name."""
    if item.name is None or not isinstance(item.node, exp.Column):
        return False
    parts = [part.name for part in dotted(item.node)]
    try:
        named, meant = scope.resolve([item.name]), scope.resolve(parts)
    except Ambiguous:
        return False
    return named is not None and meant is not None and meant == (named[0], len(parts))


def _generator(item: SelectItem) -> tuple[exp.Expr | None, list[str]]:
    """The generator that an item of the select list calls, and the names of its columns."""
    node, wishes = item.node, [item.name] if item.name else []
    if isinstance(node, exp.Aliases):
        node, wishes = node.this, [each.name for each in node.expressions]
    if isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS:
        return node, wishes
    return None, []


def lateral_lookup(columns: Lookup, aliases: dict[str, Scalar], scope: Scope) -> Lookup:
    """Columns first, then what stands to the left in the same select list, as Spark does."""

    def lookup(parts: Sequence[str]) -> tuple[Parts, int] | None:
        found = columns(parts)
        if found is not None:
            return found
        return alias_lookup(aliases, scope, parts)

    return lookup


def _star_column(item: SelectItem) -> Scalar:
    assert item.output is not None
    return column(item.output.column)


def _is_chain(node: exp.Expr) -> bool:
    """Whether names follow each other, and nothing else."""
    while isinstance(node, exp.Dot):
        node = node.this
    return isinstance(node, exp.Column | exp.Identifier)


def _renamed(relation: Relation, outputs: Sequence[Output], names: Sequence[str]) -> Relation:
    return project(
        relation,
        [Named(name, column(output.column)) for name, output in zip(names, outputs, strict=True)],
    )
