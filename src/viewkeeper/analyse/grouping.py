"""GROUP BY: keys, aggregate calls, and the expressions around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from viewkeeper.algebra.aggregates import FUNCTIONS, SAME_WITH_DISTINCT
from viewkeeper.algebra.relations import Aggregate, AggregateCall, Filter, Project, Relation, Repeat
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, compose, keep, words
from viewkeeper.analyse.expressions import Parts, Reader, dotted, innermost, same_key, whole_number
from viewkeeper.analyse.functions import AGGREGATES, GROUPING, MAINTAINED
from viewkeeper.analyse.grouping_sets import (
    grouping_id,
    has_sets,
    is_grouped_away,
    key_in_sets,
    keys_in_order,
    spelt_out,
)
from viewkeeper.analyse.inputs import alias_lookup, column_lookup, only
from viewkeeper.analyse.limits import ordered_by
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


@dataclass(slots=True)
class _Inputs:
    """What an aggregate reads of its input: columns, and expressions over them, each computed once."""

    plain: dict[str, None] = field(default_factory=dict)
    computed: dict[tuple[str | Column, ...], Named] = field(default_factory=dict)

    def add(self, scalar: Scalar, name: str) -> str:
        """The column that has this value; the name is for one that has to be computed."""
        if scalar.is_column:
            (known,) = scalar.columns
            self.plain[known] = None
            return known
        return self.computed.setdefault(same_key(scalar), Named(name, scalar)).name

    def read_from(self, child: Relation) -> Relation:
        if not self.computed:
            return child
        return project(child, [*keep(self.plain), *self.computed.values()])


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate is called in the expression, other than as a window or inside a subquery."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inside = [*innermost(node.this).iter_expressions(), *(node.args.get("partition_by") or ())]
        return any(has_aggregate(child) for child in (*inside, *ordered_by(node)))
    if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


Replaced = Callable[[exp.Expr, Callable[..., Scalar]], "Scalar | None"]
"""What stands for an expression that is taken out of the select list, given how to read what is inside it."""


class Grouping:
    """Reads one grouped SELECT."""

    def __init__(
        self,
        reader: Reader,
        names: Names,
        scope: Scope,
        group: exp.Group | None,
        items: Sequence[Item],
        replaced: Replaced = lambda *_: None,
        more_keys: Sequence[Scalar] = (),
    ) -> None:
        """``replaced`` knows what stands for windows and subqueries; ``more_keys`` are grouped by as well."""
        self._reader = reader
        self._replaced = replaced
        self._names = names
        self._scope = scope
        self._items = items
        self._calls: dict[tuple[object, ...], AggregateCall] = {}
        self._aliases: dict[str, Scalar] = {}
        self._hiding: set[str] = set()
        """The names of the select list that stand for themselves in HAVING, though FROM has them too."""
        self._wish: str | None = None
        self._sets: list[frozenset[int]] = []
        self._set = ""
        self._keys = self._read_keys(group)
        self.more_keys = [self._more(scalar) for scalar in more_keys]

    def _more(self, scalar: Scalar) -> str:
        """The column of a key that the query does not name itself."""
        if self._sets:
            raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason("a subquery with grouping sets"))
        known = next((key for key in self._keys if same_key(key.scalar) == same_key(scalar)), None)
        if known is None:
            known = _Key(next(iter(scalar.columns)) if scalar.is_column else self._names.fresh("key"), scalar)
            self._keys.append(known)
        return known.name

    def build(
        self,
        child: Relation,
        having: exp.Having | None,
        attach: Callable[[Relation], Relation] = lambda relation: relation,
    ) -> tuple[Relation, list[Scalar]]:
        """The aggregate over the child, filtered by HAVING, and the select list over it; ``attach`` joins the
        groups with what the expressions over them need besides."""
        scalars = [self._read_item(item) for item in self._items]
        condition = self._read_having(having) if having is not None else None
        relation = attach(self._aggregate(child))
        if condition is not None:
            relation = Filter(relation, condition)
        return relation, scalars

    def _aggregate(self, child: Relation) -> Aggregate:
        inputs = _Inputs()
        sources: list[str] = []
        for key in self._keys:
            own = self._names.fresh(f"{key.name}_of") if self._sets else key.name
            sources.append(inputs.add(key.scalar, own))
        calls: list[AggregateCall] = []
        for call in self._calls.values():
            for name in sorted(call.columns) if call.written is not None else ():
                inputs.add(column(name), name)
            wish = f"{call.name}_of"
            arguments = [column(inputs.add(each, self._names.fresh(wish))) for each in call.arguments]
            calls.append(replace(call, arguments=tuple(arguments)))
        child = inputs.read_from(child)
        keys = tuple(key.name for key in self._keys)
        if not self._sets:
            return Aggregate(child, keys, tuple(calls))
        repeated = Repeat(child, self._set, len(self._sets))
        in_sets = [
            Named(key.name, key_in_sets(column(source), self._sets, at, self._set))
            for at, (key, source) in enumerate(zip(self._keys, sources, strict=True))
        ]
        read = dict.fromkeys(name for call in calls for name in sorted(call.columns))
        return Aggregate(
            Project(repeated, (*in_sets, *keep([self._set]), *keep(read))), (*keys, self._set), tuple(calls)
        )

    # Keys

    def _read_keys(self, group: exp.Group | None) -> list[_Key]:
        if group is None:
            return []
        only(self._reader, group, "expressions", "all", "grouping_sets", "cube", "rollup")
        if has_sets(group):
            return self._read_sets(spelt_out(group), keys_in_order(group))
        if group.args.get("all"):
            if group.expressions:
                raise self._reader.not_understood(group, "GROUP BY ALL with expressions")
            return self._unique(
                [(self._item_scalar(item), item.name) for item in self._items if not _aggregates(item)]
            )
        return self._unique([self._read_key(node) for node in group.expressions])

    def _read_sets(self, sets: Sequence[Sequence[exp.Expr]], ordered: Sequence[exp.Expr]) -> list[_Key]:
        """The keys of all the sets, under names of their own: within a set some are NULL."""
        keys: dict[tuple[str | Column, ...], _Key] = {}
        for node in ordered:
            scalar, wish = self._read_key(node)
            name = next(iter(scalar.columns)) if scalar.is_column else "key"
            if same_key(scalar) not in keys:
                keys[same_key(scalar)] = _Key(self._names.fresh(wish or name), scalar)
        places = {key: at for at, key in enumerate(keys)}
        for nodes in sets:
            self._sets.append(frozenset(places[same_key(self._read_key(node)[0])] for node in nodes))
        self._set = self._names.fresh("grouping_set")
        return list(keys.values())

    def _read_key(self, node: exp.Expr) -> tuple[Scalar, str | None]:
        match node:
            case exp.Tuple():
                raise self._reader.not_understood(node)
            case exp.Literal() if (number := whole_number(node)) is not None:
                item = self._item_at(number, node)
                return self._item_scalar(item), item.name
            case exp.Column() if len(node.parts) == 1 and self._resolve(node) is None:
                for item in self._items:
                    if item.name and self._scope.fold(item.name) == self._scope.fold(node.name):
                        return self._item_scalar(item), item.name
        scalar = self._scalar(node)
        return scalar, self._alias_of(scalar)

    def _item_at(self, position: int, node: exp.Expr) -> Item:
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

    def _scalar(self, node: exp.Expr, aggregate: exp.Expr | None = None) -> Scalar:
        lookup = column_lookup(self._scope)
        return self._reader.scalar(node, lookup, self._scope.names(), aggregate=aggregate)

    # The select list and HAVING

    def _read_item(self, item: Item) -> Scalar:
        if item.node is None:
            scalar = self._item_scalar(item)
            for key in self._keys:
                if same_key(key.scalar) == same_key(scalar):
                    return column(key.name)
            raise NotIncremental(ReasonCode.GROUPING_EXPRESSION.reason(item.name or "a column"))
        self._wish = item.name if _aggregate_called(item.node) is not None else None
        scalar = self.over_groups(item.node)
        if item.name is not None:
            self._aliases.setdefault(self._scope.fold(item.name), scalar)
        return scalar

    def _read_having(self, having: exp.Having) -> Scalar:
        self._wish = None
        for reference in having.find_all(exp.Column):
            alias = self._aliases.get(self._scope.fold(reference.parts[0].name))
            found = self._resolve(reference) if len(reference.parts) == 1 else None
            if alias is not None and found is not None and alias != column(found[0].column):
                self._choose(reference, alias, column(found[0].column))
        return self.over_groups(having.this)

    def _choose(self, reference: exp.Column, alias: Scalar, found: Scalar) -> None:
        """Which one a name in HAVING means: that of the select list, or the column of FROM. Mostly only one
        makes sense, and of two Spark takes a key; where it is not that plain, it is safer not to guess."""
        in_keys = any(found.columns <= key.scalar.columns for key in self._keys)
        if _inside_aggregate(reference):
            # An aggregate cannot hold another.
            if not self._is_aggregated(alias):
                raise self._reader.not_understood(reference)
        elif not in_keys:
            # A column that is no key stands in an aggregate or nowhere.
            self._hiding.add(self._scope.fold(reference.name))
        elif not any(key.scalar == found for key in self._keys):
            raise self._reader.not_understood(reference)

    def _is_aggregated(self, scalar: Scalar) -> bool:
        return any(call.name in scalar.columns for call in self._calls.values())

    def _lookup(self, parts: Sequence[str]) -> tuple[Parts, int] | None:
        hidden = len(parts) == 1 and self._scope.fold(parts[0]) in self._hiding
        found = None if hidden else self._scope.resolve(parts)
        if found is not None:
            output, used = found
            for key in self._keys:
                if key.scalar == column(output.column):
                    return (Column(key.name),), used
            raise NotIncremental(ReasonCode.GROUPING_EXPRESSION.reason(".".join(parts)))
        return alias_lookup(self._aliases, self._scope, parts)

    def over_groups(self, node: exp.Expr, function: exp.Expr | None = None) -> Scalar:
        """An expression over the groups. ``function`` is a window function that may stand in it: that is no
        aggregate of the groups."""

        def replace(inner: exp.Expr) -> Scalar | None:
            if function is not None and innermost(inner) is function:
                return None
            return self._replace(inner)

        known = self._scope.names() | self._aliases.keys()
        return self._reader.scalar(node, self._lookup, known, replace, aggregate=function)

    def _replace(self, node: exp.Expr) -> Scalar | None:
        found = self._replaced(node, self.over_groups)
        if found is not None:
            return found
        called = _aggregate_called(node)
        if called is not None:
            return self._call(node, called)
        if isinstance(node, exp.Anonymous) and node.name.lower() in GROUPING and self._sets:
            return self._grouping(node)
        if span(node) is None or isinstance(node, exp.Literal | exp.Alias | exp.Lambda):
            return None
        if isinstance(node, exp.Column) and not self._is_field(node):
            return None
        if all(key.scalar.is_column for key in self._keys) or has_aggregate(node):
            return None
        try:
            scalar = same_key(self._scalar(node))
        except NotIncremental:
            return None
        return next((column(key.name) for key in self._keys if same_key(key.scalar) == scalar), None)

    def _is_field(self, node: exp.Column) -> bool:
        """Whether it names a field of a struct, which may be a key."""
        parts = [part.name for part in dotted(node)]
        try:
            found = self._scope.resolve(parts)
        except Ambiguous:
            return False
        return found is not None and found[1] < len(parts)

    def _grouping(self, node: exp.Anonymous) -> Scalar:
        """GROUPING(key) or GROUPING_ID(keys); the latter of all the keys if none is named."""
        places = {same_key(key.scalar): at for at, key in enumerate(self._keys)}
        try:
            named = [places[same_key(self._scalar(each))] for each in node.expressions]
        except KeyError as error:
            raise self._reader.not_understood(node) from error
        if node.name.lower() == "grouping":
            if len(named) != 1:
                raise self._reader.not_understood(node)
            return is_grouped_away(self._sets, named[0], self._set)
        return grouping_id(self._sets, named or range(len(self._keys)), self._set)

    def _call(self, node: exp.Expr, called: exp.Anonymous) -> Scalar:
        """The column of an aggregate call. ``node`` is all of it: with FILTER and WITHIN GROUP."""
        function = MAINTAINED[called.name.lower()]
        arguments = self._arguments(node, called, function)
        written = self._scalar(node, called) if arguments is None else None
        reads = (written,) if written is not None else arguments or ()
        identity = (function, written is None, *map(same_key, reads))
        if identity not in self._calls:
            wish = self._wish or _call_name(function, arguments)
            self._calls[identity] = AggregateCall(
                self._names.fresh(wish), function, tuple(arguments or ()), written
            )
        return column(self._calls[identity].name)

    def _arguments(self, node: exp.Expr, called: exp.Anonymous, function: str) -> list[Scalar] | None:
        """What the function is applied to; ``None``: the call stays in the user's words as a whole."""
        wanted = FUNCTIONS[function].arguments
        nodes = called.expressions
        if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct) and function in SAME_WITH_DISTINCT:
            nodes = nodes[0].expressions
        plain = wanted == len(nodes) and not any(isinstance(each, _MODIFIED) for each in nodes)
        if not plain or not isinstance(node, exp.Anonymous | exp.Filter):
            return None
        if function == "count" and isinstance(nodes[0], exp.Star | exp.Literal | exp.Boolean):
            if isinstance(nodes[0], exp.Star):
                only(self._reader, nodes[0])
            return self._filtered(node, [words("1")]) if isinstance(node, exp.Filter) else []
        return self._filtered(node, [self._scalar(each) for each in nodes])

    def _filtered(self, node: exp.Expr, arguments: list[Scalar]) -> list[Scalar]:
        """f(e) FILTER (WHERE p) is f(CASE WHEN p THEN e END): every aggregate with arguments skips NULL."""
        if not isinstance(node, exp.Filter):
            return arguments
        condition = self._scalar(node.expression.this)
        return [compose("CASE WHEN ", condition, " THEN ", argument, " END") for argument in arguments]


_MODIFIED = (
    *(exp.Distinct, exp.Order, exp.Limit, exp.IgnoreNulls, exp.RespectNulls, exp.HavingMax),
    *(exp.Alias, exp.Kwarg),
)


def _aggregate_called(node: exp.Expr) -> exp.Anonymous | None:
    """The aggregate that this expression is a call of, with or without FILTER and WITHIN GROUP."""
    called = innermost(node)
    return called if isinstance(called, exp.Anonymous) and called.name.lower() in MAINTAINED else None


def _inside_aggregate(node: exp.Expr) -> bool:
    call = node.find_ancestor(exp.Anonymous)
    while call is not None and call.name.lower() not in MAINTAINED:
        call = call.find_ancestor(exp.Anonymous)
    return call is not None


def _aggregates(item: Item) -> bool:
    return item.node is not None and has_aggregate(item.node)


def _call_name(function: str, arguments: Sequence[Scalar] | None) -> str:
    if arguments and arguments[0].is_column:
        return f"{function}_{next(iter(arguments[0].columns))}"
    return function
