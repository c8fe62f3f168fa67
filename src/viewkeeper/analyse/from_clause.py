"""FROM: tables, subqueries and joins, as one list of inputs and one list of conditions.

Inner joins are one list, whatever the order in which they were written. An outer, semi or anti join puts what
was read so far on its left side, and is then one input itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import (
    Constant,
    Exists,
    Field,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Scan,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, compose, keep
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.pivots import Pivots
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


def inputs_of(relation: Relation, scope: Scope) -> Inputs:
    """One relation as what FROM has put together; a join as its inputs."""
    if isinstance(relation, Join):
        return Inputs(relation.inputs, relation.conjuncts, scope)
    return Inputs((relation,), (), scope)


@dataclass(frozen=True, slots=True)
class FromReader:
    """Reads FROM clauses of one query text."""

    reader: Reader
    resolve: Callable[[tuple[str, ...]], TableInfo | None]
    names: Names
    case_sensitive: bool
    build: BuildQuery

    def read(self, select: exp.Select, environment: Environment, outer: Scope | None = None) -> Inputs:
        """FROM, its joins and its lateral views; ``outer`` is what stands around a subquery."""
        clause = select.args.get("from_")
        if clause is None:
            one_row = Constant((self.names.fresh("nothing"),), "VALUES (0)", 1)
            inputs = Inputs((one_row,), (), Scope((), (), self.case_sensitive))
        else:
            inputs = self._item(clause.this, environment)
        for join in select.args.get("joins") or ():
            inputs = self._join(inputs, join, environment)
        for lateral in select.args.get("laterals") or ():
            inputs = self._lateral(inputs, lateral)
        return replace(inputs, scope=replace(inputs.scope, outer=outer))

    def conjuncts(self, condition: exp.Expr, scope: Scope) -> list[Scalar]:
        """The condition, taken apart at its top-level ANDs."""
        nodes = self.operands_of_and(condition)
        return [self.reader.scalar(node, column_lookup(scope), scope.names()) for node in nodes]

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
        for join in node.args.get("joins") or ():
            inputs = self._join(inputs, join, environment)
        return inputs

    def _pivoted(self, inputs: Inputs, node: exp.Pivot) -> Inputs:
        pivots = Pivots(self.reader, self.names, self._over_rows)
        relation, outputs = pivots.read(node, inputs.relation(), inputs.scope)
        return self._aliased(node, [relation], (), outputs, ())

    def _over_rows(self, node: exp.Expr, scope: Scope) -> Scalar:
        return self.reader.scalar(node, column_lookup(scope), scope.names())

    def _table(self, node: exp.Table, environment: Environment) -> Inputs:
        if any(isinstance(part, exp.Func) for part in node.parts) or isinstance(node.this, exp.Func):
            return self._table_function(node)
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

    def _table_function(self, node: exp.Table) -> Inputs:
        """``range`` of constants; others are not followed."""
        called = node.this
        values = [
            each.name for each in called.expressions if isinstance(each, exp.Literal) and not each.is_string
        ]
        name = called.name.lower()
        if (
            name != "range"
            or len(values) != len(called.expressions)
            or not all(v.isdecimal() for v in values)
        ):
            raise self.reader.stop(ReasonCode.TABLE_FUNCTION, node, name)
        bounds = [int(value) for value in values[:3]]
        output = Output("id", self.names.fresh("id"))
        rows = Constant((output.column,), f"SELECT * FROM range({', '.join(values)})", len(range(*bounds)))
        return self._aliased(node, [rows], (), (output,), ())

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
        if len(relations) == 1 and isinstance(only_one := relations[0], Join):
            return Inputs(only_one.inputs, (*conjuncts, *only_one.conjuncts), scope)
        return Inputs(tuple(relations), tuple(conjuncts), scope)

    def _join(self, left: Inputs, node: exp.Join, environment: Environment) -> Inputs:
        only(self.reader, node, "this", "on", "using", "method", "side", "kind", "hint")
        side, kind, method = (str(node.args.get(key) or "").upper() for key in ("side", "kind", "method"))
        if isinstance(node.this, exp.Lateral):
            return self._lateral_join(left, node, side, kind)
        if kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI") or method not in ("", "NATURAL"):
            raise self.reader.not_understood(node, f"{method} {kind} JOIN".strip())
        right = self._item(node.this, environment)
        both = _both(left, right)
        shared = [identifier.name for identifier in node.args.get("using") or ()]
        if method == "NATURAL":
            shared = _common(left.scope, right.scope)
        keys = self._shared_keys(left, right, shared, node)
        conjuncts = [Scalar((Column(mine.column), " = ", Column(theirs.column))) for mine, theirs in keys]
        if node.args.get("on") is not None:
            conjuncts += self.conjuncts(node.args["on"], both.scope)
        if kind in ("SEMI", "ANTI"):
            if side == "RIGHT":
                raise self.reader.not_understood(node, f"RIGHT {kind} JOIN")
            found = Exists(left.relation(), right.relation(), tuple(conjuncts), anti=kind == "ANTI")
            return Inputs((found,), (), left.scope)
        if side or kind == "OUTER":
            return self._outer(left, right, replace(both, scope=_using(both, keys)), conjuncts, keys, side)
        return replace(both.where(conjuncts), scope=_using(both, keys))

    def _outer(
        self,
        left: Inputs,
        right: Inputs,
        both: Inputs,
        conjuncts: Sequence[Scalar],
        keys: Sequence[tuple[Output, Output]],
        side: str,
    ) -> Inputs:
        """A RIGHT join is a LEFT one the other way round. Under USING the key is that of the side of which
        all rows are kept; in a FULL join whichever is there."""
        if side == "RIGHT":
            swapped = {mine.column: theirs.column for mine, theirs in keys}
            visible = tuple(
                replace(each, column=swapped.get(each.column, each.column)) for each in _keyed(both, keys)
            )
            scope = replace(both.scope, visible=(*visible, *both.scope.visible[len(keys) :]))
            return Inputs((_left_join(right.relation(), left.relation(), conjuncts),), (), scope)
        if side != "FULL":
            return Inputs((_left_join(left.relation(), right.relation(), conjuncts),), (), both.scope)
        joined: Relation = OuterJoin(left.relation(), right.relation(), tuple(conjuncts), full=True)
        if not keys:
            return Inputs((joined,), (), both.scope)
        merged = [
            (Output(mine.name, self.names.fresh(mine.name or "key")), mine, theirs) for mine, theirs in keys
        ]
        items = [
            Named(out.column, compose("coalesce(", column(mine.column), ", ", column(theirs.column), ")"))
            for out, mine, theirs in merged
        ]
        joined = Project(joined, (*keep(joined.columns), *items))
        scope = replace(both.scope, visible=(*(out for out, *_ in merged), *both.scope.visible[len(keys) :]))
        return Inputs((joined,), (), scope)

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

    # Generators

    def _lateral(self, inputs: Inputs, node: exp.Lateral) -> Inputs:
        """LATERAL VIEW [OUTER] generator(…) alias AS columns."""
        only(self.reader, node, "this", "view", "outer", "alias")
        alias = node.args.get("alias")
        wishes = [name.name for name in (alias.args.get("columns") if alias is not None else None) or ()]
        called = node.this
        lookup = column_lookup(inputs.scope)
        call = self.reader.scalar(called, lookup, inputs.scope.names(), aggregate=called)
        return self.generated(inputs, called, call, wishes, alias, outer=bool(node.args.get("outer")))

    def _lateral_join(self, left: Inputs, node: exp.Join, side: str, kind: str) -> Inputs:
        """``, LATERAL explode(…) AS e(x)``, as a lateral view; LATERAL (SELECT …) is not followed."""
        if not isinstance(node.this.this, exp.Anonymous) or side not in ("", "LEFT") or kind == "FULL":
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL")
        if node.args.get("on") is not None or node.args.get("using"):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL … ON")
        inputs = self._lateral(left, node.this)
        if side == "LEFT":
            (generated,) = inputs.relations
            assert isinstance(generated, Generate)
            return replace(inputs, relations=(replace(generated, outer=True),))
        return inputs

    def generated(
        self,
        inputs: Inputs,
        called: exp.Expr,
        call: Scalar,
        wishes: Sequence[str],
        alias: exp.TableAlias | None = None,
        *,
        outer: bool = False,
    ) -> Inputs:
        """What FROM offers after a generator: its columns, too."""
        name = called.name.lower()
        if not isinstance(called, exp.Anonymous) or name not in GENERATED_NAMES:
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, called, name or "LATERAL VIEW")
        names = tuple(wishes) or GENERATED_NAMES[name]
        if any(isinstance(each, exp.Kwarg) for each in called.expressions):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, called, f"{name} with named arguments")
        if not names:
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, called, f"{name} without names for its columns")
        outputs = tuple(Output(each, self.names.fresh(each)) for each in names)
        relation = Generate(inputs.relation(), call, tuple(each.column for each in outputs), outer)
        qualifier = (Origin((alias.name,), outputs),) if alias is not None and alias.name else ()
        scope = replace(
            inputs.scope,
            origins=(*inputs.scope.origins, *qualifier),
            visible=(*inputs.scope.visible, *outputs),
        )
        return Inputs((relation,), (), scope)


GENERATED_NAMES: Mapping[str, tuple[str, ...]] = {
    "explode": ("col",),
    "explode_outer": ("col",),
    "posexplode": ("pos", "col"),
    "posexplode_outer": ("pos", "col"),
    "inline": (),
    "inline_outer": (),
    "stack": (),
    "json_tuple": (),
}
"""The generators, and what Spark calls their columns if nobody else does. Those are the ones of an array;
what they are for a map, a struct or a stack depends on its type."""


def constant(reader: Reader, names: Names, node: exp.Values) -> Built:
    """VALUES as a relation."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    written = [[reader.scalar(value, lambda _: None, ()).parts for value in row] for row in rows]
    outputs = tuple(Output(f"col{at}", names.fresh(f"col{at}")) for at in range(1, len(rows[0]) + 1))
    text = "VALUES " + ", ".join(f"({', '.join(''.join(map(str, each)) for each in row)})" for row in written)
    return Built(Constant(tuple(each.column for each in outputs), text, len(rows)), outputs)


def _both(left: Inputs, right: Inputs) -> Inputs:
    scope = replace(
        left.scope,
        origins=(*left.scope.origins, *right.scope.origins),
        visible=(*left.scope.visible, *right.scope.visible),
    )
    return Inputs((*left.relations, *right.relations), (*left.conjuncts, *right.conjuncts), scope)


def _using(both: Inputs, keys: Sequence[tuple[Output, Output]]) -> Scope:
    """Under USING each key is one column, and stands first; each side's can still be named with its table."""
    hidden = {output for pair in keys for output in pair}
    rest = (output for output in both.scope.visible if output not in hidden)
    return replace(both.scope, visible=(*(mine for mine, _ in keys), *rest))


def _keyed(both: Inputs, keys: Sequence[tuple[Output, Output]]) -> tuple[Output, ...]:
    return both.scope.visible[: len(keys)]


def _left_join(left: Relation, right: Relation, conjuncts: Sequence[Scalar]) -> OuterJoin:
    """What concerns the right side alone narrows it before it is joined."""
    own = [each for each in conjuncts if each.columns and each.columns <= set(right.columns)]
    rest = tuple(each for each in conjuncts if each not in own)
    return OuterJoin(left, Filter(right, _all(own)) if own else right, rest)


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
