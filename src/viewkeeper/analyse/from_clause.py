"""FROM: tables, subqueries and inner joins, as one list of inputs and one list of conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import Field, Filter, Join, Relation, Scan
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.scopes import Ambiguous, Names, Origin, Output, Scope
from viewkeeper.sql.quoting import parse_path

_OR = re.compile(r"\bor\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Built:
    """A query, or a part of one, as a relation; its columns in order as the query knows them."""

    relation: Relation
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Cte:
    """A query that WITH has named, and what it could see itself."""

    query: exp.Expr
    columns: tuple[str, ...]
    environment: Mapping[str, Cte]


Environment = Mapping[str, Cte]
BuildQuery = Callable[[exp.Expr, Environment], Built]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What FROM and WHERE have put together so far."""

    relations: tuple[Relation, ...]
    conjuncts: tuple[Scalar, ...]
    scope: Scope

    def relation(self) -> Relation:
        """All of it as one relation."""
        if len(self.relations) > 1:
            return Join(self.relations, self.conjuncts)
        return Filter(self.relations[0], _all(self.conjuncts)) if self.conjuncts else self.relations[0]

    def where(self, conjuncts: Sequence[Scalar]) -> Inputs:
        """The same with more conditions."""
        return replace(self, conjuncts=(*self.conjuncts, *conjuncts))


@dataclass(frozen=True, slots=True)
class FromReader:
    """Reads FROM clauses of one query text."""

    reader: Reader
    resolve: Callable[[tuple[str, ...]], TableInfo | None]
    names: Names
    case_sensitive: bool
    build: BuildQuery

    def read(self, select: exp.Select, environment: Environment) -> Inputs:
        """FROM and its joins."""
        clause = select.args.get("from_")
        if clause is None:
            raise self.reader.stop(ReasonCode.NO_TABLE, select, "SELECT without FROM")
        inputs = self._item(clause.this, environment)
        for join in select.args.get("joins") or ():
            inputs = self._join(inputs, join, environment)
        return inputs

    def conjuncts(self, condition: exp.Expr, scope: Scope) -> list[Scalar]:
        """The condition, taken apart at its top-level ANDs."""
        nodes, left_over = _split(condition)
        whole = span(condition)
        spans = [span(node) for node in nodes]
        # Every word of the condition must be in one of them, or be an AND or a parenthesis around.
        if whole is None or sum(found[1] - found[0] for found in spans if found) + left_over != (
            whole[1] - whole[0]
        ):
            raise self.reader.not_understood(condition)
        return [self.reader.scalar(node, column_lookup(scope), scope.names()) for node in nodes]

    def _item(self, node: exp.Expr, environment: Environment) -> Inputs:
        match node:
            case exp.Table():
                only(self.reader, node, "this", "db", "catalog", "alias", "joins")
                inputs = self._table(node, environment)
            case exp.Subquery():
                only(self.reader, node, "this", "alias", "joins", "with_")
                inputs = self._subquery(node, environment)
            case exp.Values():
                raise self.reader.stop(ReasonCode.NO_TABLE, node, "VALUES")
            case exp.Lateral() | exp.Unnest():
                raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL")
            case _:
                raise self.reader.not_understood(node)
        for join in node.args.get("joins") or ():
            inputs = self._join(inputs, join, environment)
        return inputs

    def _table(self, node: exp.Table, environment: Environment) -> Inputs:
        if any(isinstance(part, exp.Func) for part in node.parts) or isinstance(node.this, exp.Func):
            raise self.reader.stop(ReasonCode.TABLE_FUNCTION, node, node.name or node.this.name)
        parts = tuple(part.name for part in node.parts)
        cte = environment.get(parts[0].lower()) if len(parts) == 1 else None
        if cte is not None:
            built = self.build(cte.query, cte.environment)
            outputs = _renamed(built.outputs, cte.columns)
            return self._aliased(node, [built.relation], (), outputs, parts)
        info = self.resolve(parts)
        if info is None:
            raise self.reader.not_understood(node, ".".join(parts))
        fields = tuple(Field(name, self.names.fresh(name)) for name, _ in info.columns)
        outputs = tuple(Output(field.stored, field.name) for field in fields)
        return self._aliased(node, [Scan(info.table, fields)], (), outputs, parse_path(info.table))

    def _subquery(self, node: exp.Subquery, environment: Environment) -> Inputs:
        inner = node.this
        if isinstance(inner, exp.Table):
            inputs = self._item(inner, environment)
            if not node.alias:
                return inputs
            visible = inputs.scope.visible
            return self._aliased(node, inputs.relations, inputs.conjuncts, visible, ())
        built = self.build(node if node.args.get("with_") else inner, environment)
        return self._aliased(node, [built.relation], (), built.outputs, ())

    def _aliased(
        self,
        node: exp.Expr,
        relations: Sequence[Relation],
        conjuncts: Sequence[Scalar],
        outputs: tuple[Output, ...],
        qualifier: tuple[str, ...],
    ) -> Inputs:
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            outputs = _renamed(outputs, tuple(column.name for column in alias.args.get("columns") or ()))
            qualifier = (alias.name,) if alias.name else qualifier
        origins = (Origin(qualifier, outputs),) if qualifier else ()
        scope = Scope(origins, outputs, self.case_sensitive)
        if len(relations) == 1 and isinstance(only_one := relations[0], Join):
            return Inputs(only_one.inputs, (*conjuncts, *only_one.conjuncts), scope)
        return Inputs(tuple(relations), tuple(conjuncts), scope)

    def _join(self, left: Inputs, node: exp.Join, environment: Environment) -> Inputs:
        only(self.reader, node, "this", "on", "using", "method", "side", "kind", "hint")
        side, kind, method = (str(node.args.get(key) or "").upper() for key in ("side", "kind", "method"))
        if kind in ("SEMI", "ANTI"):
            raise self.reader.stop(ReasonCode.SEMI_OR_ANTI_JOIN, node, f"{side} {kind}".strip())
        if side or kind == "OUTER":
            raise self.reader.stop(ReasonCode.OUTER_JOIN, node, f"{side} OUTER".strip())
        if kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
            raise self.reader.not_understood(node, f"{method} {kind} JOIN".strip())
        right = self._item(node.this, environment)
        both = Inputs(
            (*left.relations, *right.relations),
            (*left.conjuncts, *right.conjuncts),
            Scope(
                (*left.scope.origins, *right.scope.origins),
                (*left.scope.visible, *right.scope.visible),
                self.case_sensitive,
            ),
        )
        if node.args.get("on") is not None:
            return both.where(self.conjuncts(node.args["on"], both.scope))
        shared = [identifier.name for identifier in node.args.get("using") or ()]
        if method == "NATURAL":
            shared = _common(left.scope, right.scope)
        return self._using(left, right, both, shared, node) if shared else both

    def _using(
        self, left: Inputs, right: Inputs, both: Inputs, shared: Sequence[str], node: exp.Join
    ) -> Inputs:
        try:
            pairs = [(left.scope.resolve([name]), right.scope.resolve([name])) for name in shared]
        except Ambiguous as ambiguous:
            raise self.reader.not_understood(node, "USING") from ambiguous
        keys = [(mine[0], theirs[0]) for mine, theirs in pairs if mine and theirs]
        if len(keys) != len(shared):
            raise self.reader.not_understood(node, "USING")
        equal = [Scalar((Column(mine.column), " = ", Column(theirs.column))) for mine, theirs in keys]
        hidden = {output for pair in keys for output in pair}
        rest = (output for output in both.scope.visible if output not in hidden)
        scope = replace(both.scope, visible=(*(mine for mine, _ in keys), *rest))
        return replace(both.where(equal), scope=scope)


def column_lookup(scope: Scope) -> Callable[[Sequence[str]], tuple[tuple[str | Column, ...], int] | None]:
    """The lookup of plain columns."""

    def lookup(parts: Sequence[str]) -> tuple[tuple[str | Column, ...], int] | None:
        found = scope.resolve(parts)
        return ((Column(found[0].column),), found[1]) if found else None

    return lookup


def only(reader: Reader, node: exp.Expr, *allowed: str) -> None:
    """Stop at any clause that is not one of these: a clause overlooked would be a wrong answer."""
    for key, value in node.args.items():
        if not value or key in allowed:
            continue
        first = value[0] if isinstance(value, list) else value
        where = first if isinstance(first, exp.Expr) else node
        match key:
            case "pivots":
                raise reader.stop(ReasonCode.PIVOT, where, "PIVOT")
            case "laterals":
                raise reader.stop(ReasonCode.LATERAL_VIEW, where, "LATERAL VIEW")
            case "limit" | "offset":
                raise reader.stop(ReasonCode.LIMIT, where, key.upper())
            case _:
                raise reader.not_understood(where, key.strip("_").upper())


def _split(condition: exp.Expr) -> tuple[list[exp.Expr], int]:
    """The operands of AND, also inside parentheses, and how many words are none of them."""
    if isinstance(condition, exp.And):
        left, left_words = _split(condition.this)
        right, right_words = _split(condition.expression)
        return [*left, *right], left_words + right_words + 1
    if isinstance(condition, exp.Paren) and isinstance(condition.this, exp.And):
        inner, words = _split(condition.this)
        return inner, words + 2
    return [condition], 0


def _all(conjuncts: Sequence[Scalar]) -> Scalar:
    if len(conjuncts) == 1:
        return conjuncts[0]
    parts: list[str | Column] = []
    for conjunct in conjuncts:
        loose = any(_OR.search(part) for part in conjunct.parts if isinstance(part, str))
        parts += [" AND "] if parts else []
        parts += ["(", *conjunct.parts, ")"] if loose else conjunct.parts
    return Scalar(tuple(parts))


def _renamed(outputs: tuple[Output, ...], names: Sequence[str]) -> tuple[Output, ...]:
    if not names:
        return outputs
    if len(names) != len(outputs):
        raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason(f"the column list ({', '.join(names)})"))
    return tuple(Output(name, output.column) for name, output in zip(names, outputs, strict=True))


def _common(left: Scope, right: Scope) -> list[str]:
    theirs = {right.fold(output.name) for output in right.visible if output.name}
    return [output.name for output in left.visible if output.name and left.fold(output.name) in theirs]
