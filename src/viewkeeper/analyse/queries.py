"""From the tree of a query to the algebra's normal form.

One SELECT becomes, from the inside out: Join or Filter (FROM, WHERE), Aggregate over a projection of its
keys and arguments (GROUP BY), Filter (HAVING), Project (the select list), Distinct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.relations import Distinct, Relation, UnionAll
from viewkeeper.algebra.scalars import Named, Scalar, column
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.expressions import Lookup, Parts, Reader, dotted
from viewkeeper.analyse.from_clause import (
    Built,
    Cte,
    Environment,
    FromReader,
    column_lookup,
    only,
)
from viewkeeper.analyse.grouping import Grouping, has_aggregate
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Names, Output, Scope
from viewkeeper.analyse.tidy import project

_MEANINGLESS = ("order", "sort", "cluster", "distribute", "hint", "windows")
"""Clauses that say nothing about which rows there are: order without LIMIT, placement, hints, and windows
that a window function would have to use."""


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
                return self._union(node, environment)
            case exp.SetOperation():
                raise self._reader.stop(ReasonCode.SET_OPERATION, node, type(node).__name__.upper())
            case exp.Subquery():
                only(self._reader, node, "this", "with_", "alias", *_MEANINGLESS)
                return self.read(node.this, environment)
            case exp.Values():
                raise self._reader.stop(ReasonCode.NO_TABLE, node, "VALUES")
            case _:
                raise self._reader.not_understood(node)

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

    def _select(self, node: exp.Select, environment: Environment) -> Built:
        allowed = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")
        only(self._reader, node, *allowed, *_MEANINGLESS)
        inputs = self._from.read(node, environment)
        if node.args.get("where") is not None:
            inputs = inputs.where(self._from.conjuncts(node.args["where"].this, inputs.scope))
        items = self._items(node, inputs.scope)
        relation, having = inputs.relation(), node.args.get("having")
        nodes = [item.node for item in items if item.node is not None]
        if node.args.get("group") is not None or any(map(has_aggregate, nodes)):
            grouping = Grouping(self._reader, self._names, inputs.scope, node.args.get("group"), items)
            relation, scalars = grouping.build(relation, having)
        elif having is not None:
            raise self._reader.not_understood(having, "HAVING without GROUP BY")
        else:
            scalars = self._scalars(items, inputs.scope)
        built = self._projected(relation, items, scalars)
        distinct = node.args.get("distinct")
        if distinct is None:
            return built
        only(self._reader, distinct)
        kept = project(built.relation, [Named(out.column, column(out.column)) for out in built.outputs])
        return Built(Distinct(kept), built.outputs)

    def _items(self, node: exp.Select, scope: Scope) -> list[SelectItem]:
        items: list[SelectItem] = []
        for item in node.expressions:
            if isinstance(item, exp.Star):
                items += self._star(item, scope.visible, scope)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                items += self._qualified_star(item, scope)
            elif isinstance(item, exp.Alias):
                items.append(SelectItem(item.alias, item.this))
            elif isinstance(item, exp.Aliases):
                raise self._reader.stop(ReasonCode.LATERAL_VIEW, item, "a function with several columns")
            else:
                items.append(SelectItem(self._given_name(item), item))
        return items

    def _given_name(self, node: exp.Expr) -> str | None:
        """The name that Spark gives to an expression without an alias, where that is a plain name."""
        while isinstance(node, exp.Paren) or (isinstance(node, exp.Cast) and _is_cast_of_column(node)):
            node = node.this
        identifier: exp.Expr | None = None
        if isinstance(node, exp.Column):
            identifier = dotted(node)[-1]
        elif isinstance(node, exp.Dot):
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

    def _scalars(self, items: Sequence[SelectItem], scope: Scope) -> list[Scalar]:
        aliases: dict[str, Scalar] = {}
        scalars: list[Scalar] = []
        for item in items:
            if item.node is None:
                scalars.append(_star_column(item))
                continue
            lookup = lateral_lookup(column_lookup(scope), aliases, scope)
            scalar = self._reader.scalar(item.node, lookup, scope.names() | aliases.keys())
            scalars.append(scalar)
            if item.name is not None:
                aliases.setdefault(scope.fold(item.name), scalar)
        return scalars

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

    def _union(self, node: exp.Union, environment: Environment) -> Built:
        only(self._reader, node, "this", "expression", "distinct", "with_", *_MEANINGLESS)
        branches = [self.read(side, environment) for side in (node.this, node.expression)]
        first = branches[0]
        if any(len(branch.outputs) != len(first.outputs) for branch in branches):
            raise self._reader.not_understood(node, "UNION of different numbers of columns")
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


def lateral_lookup(columns: Lookup, aliases: dict[str, Scalar], scope: Scope) -> Lookup:
    """Columns first, then what stands to the left in the same select list, as Spark does."""

    def lookup(parts: Sequence[str]) -> tuple[Parts, int] | None:
        found = columns(parts)
        if found is not None:
            return found
        alias = aliases.get(scope.fold(parts[0]))
        if alias is None:
            return None
        return (alias.parts if alias.is_column else ("(", *alias.parts, ")")), 1

    return lookup


def _star_column(item: SelectItem) -> Scalar:
    assert item.output is not None
    return column(item.output.column)


def _is_cast_of_column(node: exp.Cast) -> bool:
    inner = node.this
    return isinstance(inner, exp.Column | exp.Dot | exp.Paren | exp.Cast)


def _renamed(relation: Relation, outputs: Sequence[Output], names: Sequence[str]) -> Relation:
    return project(
        relation,
        [Named(name, column(output.column)) for name, output in zip(names, outputs, strict=True)],
    )
