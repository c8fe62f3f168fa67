"""GROUP BY: keys, aggregate calls, and the expressions around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter, Relation
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, keep
from viewkeeper.analyse.expressions import Parts, Reader, same_key
from viewkeeper.analyse.from_clause import column_lookup, only
from viewkeeper.analyse.functions import AGGREGATES, MAINTAINED
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.scopes import Ambiguous, Names, Output, Scope
from viewkeeper.analyse.tidy import project


class Item(Protocol):
    """One column of the select list."""

    @property
    def name(self) -> str | None: ...
    @property
    def node(self) -> exp.Expr | None: ...
    @property
    def output(self) -> Output | None: ...


@dataclass(frozen=True, slots=True)
class _Key:
    name: str
    scalar: Scalar


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate is called in the expression, other than as a window or inside a subquery."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return any(has_aggregate(child) for child in node.this.iter_expressions())
    if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


class Grouping:
    """Reads one grouped SELECT."""

    def __init__(
        self, reader: Reader, names: Names, scope: Scope, group: exp.Group | None, items: Sequence[Item]
    ) -> None:
        self._reader = reader
        self._names = names
        self._scope = scope
        self._items = items
        self._calls: dict[
            tuple[str, tuple[str | Column, ...] | None], tuple[AggregateCall, Scalar | None]
        ] = {}
        self._aliases: dict[str, Scalar] = {}
        self._wish: str | None = None
        self._keys = self._read_keys(group)

    def build(self, child: Relation, having: exp.Having | None) -> tuple[Relation, list[Scalar]]:
        """The aggregate over the child, filtered by HAVING, and the select list over it."""
        scalars = [self._read_item(item) for item in self._items]
        condition = self._read_having(having) if having is not None else None
        relation: Relation = self._aggregate(child)
        if condition is not None:
            relation = Filter(relation, condition)
        return relation, scalars

    def _aggregate(self, child: Relation) -> Aggregate:
        computed: dict[tuple[str | Column, ...], Named] = {}
        plain: list[str] = []
        for key in self._keys:
            if key.scalar.is_column:
                plain.append(key.name)
            else:
                computed[same_key(key.scalar)] = Named(key.name, key.scalar)
        calls: list[AggregateCall] = []
        for call, argument in self._calls.values():
            if argument is None:
                calls.append(call)
                continue
            if argument.is_column:
                plain += argument.columns
                source = argument
            else:
                wish = f"{call.name}_of"
                named = computed.get(same_key(argument)) or Named(self._names.fresh(wish), argument)
                computed.setdefault(same_key(argument), named)
                source = column(named.name)
            calls.append(AggregateCall(call.name, call.function, source))
        if computed:
            child = project(child, [*keep(dict.fromkeys(plain)), *computed.values()])
        return Aggregate(child, tuple(key.name for key in self._keys), tuple(calls))

    # Keys

    def _read_keys(self, group: exp.Group | None) -> list[_Key]:
        if group is None:
            return []
        for clause in ("grouping_sets", "cube", "rollup"):
            if group.args.get(clause):
                raise self._reader.stop(ReasonCode.GROUPING_SETS, group, clause.replace("_", " ").upper())
        only(self._reader, group, "expressions", "all")
        if group.args.get("all"):
            if group.expressions:
                raise self._reader.not_understood(group, "GROUP BY ALL with expressions")
            return self._unique(
                [(self._item_scalar(item), item.name) for item in self._items if not _aggregates(item)]
            )
        return self._unique([self._read_key(node) for node in group.expressions])

    def _read_key(self, node: exp.Expr) -> tuple[Scalar, str | None]:
        match node:
            case exp.GroupingSets() | exp.Cube() | exp.Rollup():
                kind = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
                raise self._reader.stop(ReasonCode.GROUPING_SETS, node, kind)
            case exp.Tuple():
                raise self._reader.not_understood(node)
            case exp.Literal() if not node.is_string and node.name.isdecimal():
                item = self._item_at(node)
                return self._item_scalar(item), item.name
            case exp.Column() if len(node.parts) == 1 and self._resolve(node) is None:
                for item in self._items:
                    if item.name and self._scope.fold(item.name) == self._scope.fold(node.name):
                        return self._item_scalar(item), item.name
        scalar = self._scalar(node)
        return scalar, self._alias_of(scalar)

    def _item_at(self, node: exp.Expr) -> Item:
        position = int(node.name)
        if not 1 <= position <= len(self._items):
            raise self._reader.not_understood(node)
        return self._items[position - 1]

    def _resolve(self, node: exp.Column) -> tuple[Output, int] | None:
        try:
            return self._scope.resolve([node.name])
        except Ambiguous as ambiguous:
            raise self._reader.not_understood(node) from ambiguous

    def _unique(self, keys: Sequence[tuple[Scalar, str | None]]) -> list[_Key]:
        found: dict[tuple[str | Column, ...], _Key] = {}
        for scalar, wish in keys:
            if same_key(scalar) not in found:
                name = next(iter(scalar.columns)) if scalar.is_column else self._names.fresh(wish or "key")
                found[same_key(scalar)] = _Key(name, scalar)
        return list(found.values())

    def _alias_of(self, scalar: Scalar) -> str | None:
        """The name under which the select list shows exactly this key."""
        for item in self._items:
            if item.name and item.node is not None and not has_aggregate(item.node):
                try:
                    if same_key(self._scalar(item.node)) == same_key(scalar):
                        return item.name
                except NotIncremental:
                    continue
        return None

    def _item_scalar(self, item: Item) -> Scalar:
        if item.node is None:
            assert item.output is not None
            return column(item.output.column)
        return self._scalar(item.node)

    def _scalar(self, node: exp.Expr) -> Scalar:
        return self._reader.scalar(node, column_lookup(self._scope), self._scope.names())

    # The select list and HAVING

    def _read_item(self, item: Item) -> Scalar:
        if item.node is None:
            scalar = self._item_scalar(item)
            if same_key(scalar) not in {same_key(key.scalar) for key in self._keys}:
                reason = ReasonCode.GROUPING_EXPRESSION.reason(item.name or "a column")
                raise NotIncremental(reason)
            return scalar
        is_call = isinstance(item.node, exp.Anonymous) and item.node.name.lower() in MAINTAINED
        self._wish = item.name if is_call else None
        scalar = self._over_groups(item.node)
        if item.name is not None:
            self._aliases.setdefault(self._scope.fold(item.name), scalar)
        return scalar

    def _over_groups(self, node: exp.Expr) -> Scalar:
        known = self._scope.names() | self._aliases.keys()
        return self._reader.scalar(node, self._lookup, known, self._replace)

    def _read_having(self, having: exp.Having) -> Scalar:
        self._wish = None
        # Spark looks into the select list first here, and into FROM second. Where the two disagree about
        # a name it is safer not to guess.
        for reference in having.find_all(exp.Column):
            name = self._scope.fold(reference.parts[0].name)
            alias = self._aliases.get(name)
            found = self._resolve(reference) if len(reference.parts) == 1 else None
            if alias is None or found is None or alias == column(found[0].column):
                continue
            # An aggregate cannot hold another, so inside one the column of FROM is meant.
            if not (self._is_aggregated(alias) and _inside_aggregate(reference)):
                raise self._reader.not_understood(reference)
        return self._over_groups(having.this)

    def _is_aggregated(self, scalar: Scalar) -> bool:
        return any(call.name in scalar.columns for call, _ in self._calls.values())

    def _lookup(self, parts: Sequence[str]) -> tuple[Parts, int] | None:
        found = self._scope.resolve(parts)
        if found is not None:
            output, used = found
            if any(key.scalar == column(output.column) for key in self._keys):
                return (Column(output.column),), used
            raise NotIncremental(ReasonCode.GROUPING_EXPRESSION.reason(".".join(parts)))
        alias = self._aliases.get(self._scope.fold(parts[0]))
        if alias is None:
            return None
        return (alias.parts if alias.is_column else ("(", *alias.parts, ")")), 1

    def _replace(self, node: exp.Expr) -> Scalar | None:
        if isinstance(node, exp.Anonymous) and node.name.lower() in MAINTAINED:
            return self._call(node)
        if span(node) is None or isinstance(node, exp.Column | exp.Literal | exp.Alias | exp.Lambda):
            return None
        if all(key.scalar.is_column for key in self._keys) or has_aggregate(node):
            return None
        try:
            scalar = same_key(self._scalar(node))
        except NotIncremental:
            return None
        return next((column(key.name) for key in self._keys if same_key(key.scalar) == scalar), None)

    def _call(self, node: exp.Anonymous) -> Scalar:
        function = MAINTAINED[node.name.lower()]
        argument = self._argument(node, function)
        identity = (function, None if argument is None else same_key(argument))
        if identity not in self._calls:
            wish = self._wish or _call_name(function, argument)
            call = AggregateCall(self._names.fresh(wish), function, None)
            self._calls[identity] = (call, argument)
        return column(self._calls[identity][0].name)

    def _argument(self, node: exp.Anonymous, function: str) -> Scalar | None:
        arguments = node.expressions
        if any(isinstance(argument, exp.Distinct) for argument in arguments):
            raise self._reader.stop(ReasonCode.AGGREGATE_DISTINCT, node, function)
        if len(arguments) != 1:
            raise self._reader.stop(ReasonCode.AGGREGATE_FUNCTION, node, f"{function} of several expressions")
        (argument,) = arguments
        modified = isinstance(
            argument, exp.Order | exp.Limit | exp.IgnoreNulls | exp.RespectNulls | exp.HavingMax
        )
        if modified or isinstance(argument, exp.Alias | exp.Kwarg):
            raise self._reader.stop(ReasonCode.AGGREGATE_FUNCTION, node, function)
        if function == "count" and isinstance(argument, exp.Star | exp.Literal | exp.Boolean):
            if isinstance(argument, exp.Star):
                only(self._reader, argument)
            return None
        return self._scalar(argument)


def _inside_aggregate(node: exp.Expr) -> bool:
    call = node.find_ancestor(exp.Anonymous)
    while call is not None and call.name.lower() not in MAINTAINED:
        call = call.find_ancestor(exp.Anonymous)
    return call is not None


def _aggregates(item: Item) -> bool:
    return item.node is not None and has_aggregate(item.node)


def _call_name(function: str, argument: Scalar | None) -> str:
    if argument is not None and argument.is_column:
        return f"{function}_{next(iter(argument.columns))}"
    return function if argument is not None else "count"
