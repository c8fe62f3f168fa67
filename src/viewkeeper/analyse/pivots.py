"""PIVOT and UNPIVOT, as what they stand for: an aggregate with conditions, and a generator.

    PIVOT (sum(x) FOR k IN ('a', 'b'))          γ with sum(x) of the rows where k is 'a', and where it is 'b'
    UNPIVOT (v FOR n IN (a, b))                 each row with ('a', a) and ('b', b), unless that is NULL

A pivoted group that has no row with a value of the list shows NULL for it, also where it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.algebra.aggregates import FUNCTIONS
from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter, Generate, Project, Relation
from viewkeeper.algebra.scalars import Named, Scalar, column, compose, keep, words
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.functions import MAINTAINED
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.scopes import Names, Output, Scope
from viewkeeper.sql.quoting import literal

_COUNTING = frozenset({"count", "count_if", "approx_count_distinct"})
_NUMBERS = frozenset({"sum", "avg"})


@dataclass(frozen=True, slots=True)
class Pivots:
    """Reads what follows a table in FROM."""

    reader: Reader
    names: Names
    read_scalar: Callable[[exp.Expr, Scope], Scalar]
    kinds: Mapping[str, str]
    """The types of columns, as far as they are known."""

    def read(self, node: exp.Pivot, relation: Relation, scope: Scope) -> tuple[Relation, tuple[Output, ...]]:
        """The pivoted relation and its columns."""
        fields = list(node.args.get("fields") or ())
        if len(fields) != 1 or not isinstance(fields[0], exp.In) or node.args.get("group"):
            raise self._stop(node)
        read = self._unpivot if node.args.get("unpivot") else self._pivot
        return read(node, fields[0], relation, scope)

    def _pivot(
        self, node: exp.Pivot, field: exp.In, relation: Relation, scope: Scope
    ) -> tuple[Relation, tuple[Output, ...]]:
        found = scope.resolve([part.name for part in field.this.parts]) if _is_column(field.this) else None
        if found is None:
            raise self._stop(node)
        by = column(found[0].column)
        kind = self.kinds.get(found[0].column, "")
        if not all(_is_of(_unaliased(each), kind) for each in field.expressions):
            raise self._stop(node)  # Spark casts the value, and not what it is compared with
        calls = [self._call(each, scope) for each in node.expressions]
        functions = {function for function, _ in calls}
        if functions & _COUNTING and functions - _COUNTING - _NUMBERS:
            raise self._stop(node)  # of no rows Spark then makes 0, and not NULL
        read = by.columns.union(*(argument.columns for _, arguments in calls for argument in arguments))
        keys = [output for output in scope.visible if output.column not in read]
        shown = node.args.get("columns") or ()
        if len(shown) != len(calls) * len(field.expressions):
            raise self._stop(node)
        values = [self.read_scalar(_unaliased(each), scope) for each in field.expressions]
        made: list[AggregateCall] = []
        items: list[Named] = [Named(output.column, column(output.column)) for output in keys]
        outputs = list(keys)
        wishes = iter(identifier.name for identifier in shown)
        for value in values:
            there = compose(by, " <=> ", value)
            rows = AggregateCall(self.names.fresh("rows"), "count_if", (there,))
            made.append(rows)
            for function, arguments in calls:
                wish = next(wishes)
                chosen = [compose("CASE WHEN ", there, " THEN ", each, " END") for each in arguments]
                call = AggregateCall(self.names.fresh(wish), function, tuple(chosen))
                made.append(call)
                output = Output(wish, self.names.fresh(wish))
                shown_if = compose("CASE WHEN ", column(rows.name), " > 0 THEN ", column(call.name), " END")
                items.append(Named(output.column, shown_if))
                outputs.append(output)
        grouped = Aggregate(relation, tuple(output.column for output in keys), tuple(made))
        return Project(grouped, tuple(items)), tuple(outputs)

    def _call(self, node: exp.Expr, scope: Scope) -> tuple[str, list[Scalar]]:
        called = node.this if isinstance(node, exp.Alias) else node
        function = MAINTAINED.get(called.name.lower()) if isinstance(called, exp.Anonymous) else None
        if function is None:
            raise self._stop(node)
        nodes = called.expressions
        if function == "count" and len(nodes) == 1 and isinstance(nodes[0], exp.Star | exp.Literal):
            return function, [words("1")]
        if FUNCTIONS[function].arguments != len(nodes) or any(
            isinstance(each, exp.Distinct) for each in nodes
        ):
            raise self._stop(node)
        return function, [self.read_scalar(each, scope) for each in nodes]

    def _unpivot(
        self, node: exp.Pivot, field: exp.In, relation: Relation, scope: Scope
    ) -> tuple[Relation, tuple[Output, ...]]:
        if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Identifier):
            raise self._stop(node)
        columns: list[str] = []
        parts: list[Scalar | str] = [f"stack({len(field.expressions)}"]
        for each in field.expressions:
            value = self.read_scalar(_unaliased(each), scope)
            if not value.is_column:
                raise self._stop(node)
            columns += value.columns
            label = each.args["alias"].name if isinstance(each, exp.PivotAlias) else _unaliased(each).name
            parts += [f", {literal(label)}, ", value]
        rest = [output for output in scope.visible if output.column not in columns]
        name, value_name = (
            Output(wish, self.names.fresh(wish)) for wish in (field.this.name, node.expressions[0].name)
        )
        generated: Relation = Generate(relation, compose(*parts, ")"), (name.column, value_name.column))
        if not node.args.get("include_nulls"):
            generated = Filter(generated, compose(column(value_name.column), " IS NOT NULL"))
        outputs = (*rest, name, value_name)
        return Project(generated, keep(output.column for output in outputs)), outputs

    def _stop(self, node: exp.Expr) -> NotIncremental:
        return self.reader.stop(ReasonCode.PIVOT, node, "this PIVOT")


def _is_of(value: exp.Expr, kind: str) -> bool:
    """Whether a literal is of the type that the column has."""
    if not isinstance(value, exp.Literal):
        return False
    return kind == "string" if value.is_string else kind in ("tinyint", "smallint", "int", "bigint")


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column)


def _unaliased(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.PivotAlias | exp.Alias) else node
