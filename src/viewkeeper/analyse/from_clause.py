"""FROM: tables, subqueries and joins, as one list of inputs and one list of conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

from sqlglot import exp

from viewkeeper.algebra.relations import Constant, Exists, Field, Relation, Scan
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.constants import constant, table_function
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.generators import Generators
from viewkeeper.analyse.inputs import Built, Inputs, column_lookup, inputs_of, only
from viewkeeper.analyse.joined_inputs import both, common_names, outer_joined, under_using
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.pivots import Pivots
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.scopes import Ambiguous, Names, Origin, Output, Scope
from viewkeeper.sql.quoting import parse_path


@dataclass(frozen=True, slots=True)
class Cte:
    """A query that WITH has named, and what it could see itself."""

    query: exp.Expr
    columns: tuple[str, ...]
    environment: Mapping[str, Cte]


Environment = Mapping[str, Cte]
BuildQuery = Callable[[exp.Expr, Environment], Built]


@dataclass(frozen=True, slots=True)
class FromReader:
    """Reads FROM clauses of one query text."""

    reader: Reader
    resolve: Callable[[tuple[str, ...]], TableInfo | None]
    names: Names
    case_sensitive: bool
    build: BuildQuery
    kinds: dict[str, str] = dataclass_field(default_factory=dict)
    """The types of columns of tables, by the names that the algebra gives them."""

    def read(self, select: exp.Select, environment: Environment, outer: Scope | None = None) -> Inputs:
        """FROM, its joins and its lateral views; ``outer`` is what stands around a subquery."""
        clause = select.args.get("from_")
        if clause is None:
            one_row = Constant((self.names.fresh("nothing"),), "VALUES (0)", 1)
            inputs = Inputs((one_row,), (), Scope((), (), self.case_sensitive))
        else:
            inputs = self._item(clause.this, environment)
        inputs = self._joins(inputs, select.args.get("joins") or (), environment)
        for lateral in select.args.get("laterals") or ():
            inputs = self._generators.lateral(inputs, lateral)
        return replace(inputs, scope=replace(inputs.scope, outer=outer))

    def _joins(self, inputs: Inputs, joins: Sequence[exp.Join], environment: Environment) -> Inputs:
        """One after the other. A comma binds weaker than JOIN, and the parser takes it for a CROSS JOIN; to
        most joins that makes no difference."""
        for at, join in enumerate(joins):
            if _looks_left(join) and any(each.args.get("kind") == "CROSS" for each in joins[:at]):
                raise self.reader.not_understood(join)
            inputs = self._join(inputs, join, environment)
        return inputs

    def conjuncts(self, condition: exp.Expr, scope: Scope) -> list[Scalar]:
        """The condition, taken apart at its top-level ANDs."""
        nodes = self.operands_of_and(condition)
        return [self._over_rows(node, scope) for node in nodes]

    def operands_of_and(self, condition: exp.Expr) -> list[exp.Expr]:
        """What stands between the top-level ANDs of a condition."""
        nodes, left_over = _split(condition)
        whole = span(condition)
        spans = [span(node) for node in nodes]
        # Every word of the condition must be in one of them, or be an AND or a parenthesis around.
        if whole is None or sum(found[1] - found[0] for found in spans if found) + left_over != (
            whole[1] - whole[0]
        ):
            raise self.reader.not_understood(condition)
        return nodes

    def _item(self, node: exp.Expr, environment: Environment) -> Inputs:
        match node:
            case exp.Table():
                only(self.reader, node, "this", "db", "catalog", "alias", "joins", "pivots")
                inputs = self._table(node, environment)
            case exp.Subquery():
                only(self.reader, node, "this", "alias", "joins", "with_", "pivots")
                inputs = self._subquery(node, environment)
            case exp.Values():
                only(self.reader, node, "expressions", "alias")
                built = constant(self.reader, self.names, node)
                inputs = self._aliased(node, [built.relation], (), built.outputs, ())
            case exp.Lateral() | exp.Unnest():
                raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL")
            case _:
                raise self.reader.not_understood(node)
        for pivot in node.args.get("pivots") or ():
            inputs = self._pivoted(inputs, pivot)
        return self._joins(inputs, node.args.get("joins") or (), environment)

    def _pivoted(self, inputs: Inputs, node: exp.Pivot) -> Inputs:
        pivots = Pivots(self.reader, self.names, self._over_rows, self.kinds)
        relation, outputs = pivots.read(node, inputs.relation(), inputs.scope)
        return self._aliased(node, [relation], (), outputs, ())

    def _over_rows(self, node: exp.Expr, scope: Scope) -> Scalar:
        return self.reader.scalar(node, column_lookup(scope), scope.names())

    def _table(self, node: exp.Table, environment: Environment) -> Inputs:
        if any(isinstance(part, exp.Func) for part in node.parts) or isinstance(node.this, exp.Func):
            built = table_function(self.reader, self.names, node)
            return self._aliased(node, [built.relation], (), built.outputs, ())
        parts = tuple(part.name for part in node.parts)
        cte = environment.get(parts[0].lower()) if len(parts) == 1 else None
        if cte is not None:
            built = self.build(cte.query, cte.environment)
            outputs = _renamed(built.outputs, cte.columns)
            return self._aliased(node, [built.relation], (), outputs, parts)
        info = self.resolve(parts)
        if info is None:
            raise self.reader.not_understood(node, ".".join(parts))
        if len({name.casefold() for name, _ in info.columns}) < len(info.columns):
            raise self.reader.not_understood(node, f"{info.table}, whose columns differ by case alone,")
        fields = tuple(Field(name, self.names.fresh(name)) for name, _ in info.columns)
        kinds = (kind for _, kind in info.columns)
        self.kinds.update(zip((field.name for field in fields), kinds, strict=True))
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
            outputs = _renamed(outputs, tuple(each.name for each in alias.args.get("columns") or ()))
            qualifier = (alias.name,) if alias.name else qualifier
        origins = (Origin(qualifier, outputs),) if qualifier else ()
        scope = Scope(origins, outputs, self.case_sensitive)
        if len(relations) == 1 and not conjuncts:
            return inputs_of(relations[0], scope)
        return Inputs(tuple(relations), tuple(conjuncts), scope)

    def _join(self, left: Inputs, node: exp.Join, environment: Environment) -> Inputs:
        only(self.reader, node, "this", "on", "using", "method", "side", "kind", "hint")
        side, kind, method = (str(node.args.get(key) or "").upper() for key in ("side", "kind", "method"))
        if isinstance(node.this, exp.Lateral):
            inputs, on = self._generators.joined(left, node, side, kind), node.args.get("on")
            return inputs if on is None else inputs.where(self.conjuncts(on, inputs.scope))
        if kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI") or method not in ("", "NATURAL"):
            raise self.reader.not_understood(node, f"{method} {kind} JOIN".strip())
        if node.this.args.get("pivots"):
            raise self.reader.stop(ReasonCode.PIVOT, node, "PIVOT of a join")
        right = self._item(node.this, environment)
        together = both(left, right)
        shared = [identifier.name for identifier in node.args.get("using") or ()]
        if method == "NATURAL":
            shared = common_names(left.scope, right.scope)
        keys = self._shared_keys(left, right, shared, node)
        conjuncts = [Scalar((Column(mine.column), " = ", Column(theirs.column))) for mine, theirs in keys]
        if node.args.get("on") is not None:
            conjuncts += self.conjuncts(node.args["on"], together.scope)
        if kind in ("SEMI", "ANTI"):
            if side == "RIGHT":
                raise self.reader.not_understood(node, f"RIGHT {kind} JOIN")
            found = Exists(left.relation(), right.relation(), tuple(conjuncts), anti=kind == "ANTI")
            return Inputs((found,), (), under_using(left, keys))
        if side or kind == "OUTER":
            scope = under_using(together, keys)
            return outer_joined(left, right, scope, conjuncts, keys, side, self.names)
        return replace(together.where(conjuncts), scope=under_using(together, keys))

    def _shared_keys(
        self, left: Inputs, right: Inputs, shared: Sequence[str], node: exp.Join
    ) -> list[tuple[Output, Output]]:
        """The columns of both sides that USING or NATURAL sets equal."""
        try:
            pairs = [(left.scope.resolve([name]), right.scope.resolve([name])) for name in shared]
        except Ambiguous as ambiguous:
            raise self.reader.not_understood(node, "USING") from ambiguous
        keys = [(mine[0], theirs[0]) for mine, theirs in pairs if mine and theirs]
        if len(keys) != len(shared):
            raise self.reader.not_understood(node, "USING")
        return keys

    @property
    def _generators(self) -> Generators:
        return Generators(self.reader, self.names)


def _looks_left(join: exp.Join) -> bool:
    """Whether it matters to a join what exactly stands on its left side."""
    side, method = (str(join.args.get(key) or "").upper() for key in ("side", "method"))
    return side in ("RIGHT", "FULL") or method == "NATURAL" or bool(join.args.get("using"))


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


def _renamed(outputs: tuple[Output, ...], names: Sequence[str]) -> tuple[Output, ...]:
    if not names:
        return outputs
    if len(names) != len(outputs):
        raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason(f"the column list ({', '.join(names)})"))
    return tuple(Output(name, output.column) for name, output in zip(names, outputs, strict=True))
