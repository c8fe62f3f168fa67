"""Window functions: the calls of a select list, each a column of its own.

A call is written out again from its parts, so that it has one meaning whoever computes it. Where the answer
depends on the order of rows that tie (``row_number``, ``lag``, a frame of ROWS), all columns that the select
list uses follow in ORDER BY: rows that agree on those are interchangeable. Where it depends on the order of
addition (``sum`` of floating-point numbers over a whole partition), that order is fixed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.algebra.aggregates import FUNCTIONS
from viewkeeper.algebra.relations import Project, Relation, Window, WindowCall
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, keep
from viewkeeper.analyse.canonical import ORDERLESS
from viewkeeper.analyse.expressions import Reader, innermost, same_key
from viewkeeper.analyse.functions import MAINTAINED, WINDOW_ONLY
from viewkeeper.analyse.limits import ordered_by
from viewkeeper.analyse.parsing import span
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Names

_BY_POSITION = frozenset({"row_number", "ntile", "lag", "lead"})
"""Their answer depends on which of several rows that tie comes first, whatever the frame."""
_RANKS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Rows that tie have one rank: they must go on to tie."""
_FIRST = frozenset({"first_value", "first", "any_value"})
_VALUES = frozenset({*_FIRST, "last_value", "last", "nth_value"})
"""Of the rows in the frame, one in a certain place."""
_ADDING = frozenset(
    name for name, function in FUNCTIONS.items() if not all(map(function.reproducible, ("int", "double")))
)
"""Their answer depends on the order in which they add up."""
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

ReadScalar = Callable[[exp.Expr, "exp.Expr | None"], Scalar]
"""Reads an expression where the window stands; the second is the window function that may stand in it."""


@dataclass(frozen=True, slots=True)
class _Ordered:
    scalar: Scalar
    direction: str


@dataclass(frozen=True, slots=True)
class _Call:
    """A window function, taken apart; the expressions it reads are columns of the relation below."""

    name: str
    function: str
    written: Scalar
    arguments: tuple[Scalar, ...]
    keys: tuple[str, ...]
    order: tuple[_Ordered, ...]
    frame: str

    @property
    def reads(self) -> frozenset[str]:
        ordered = (each.scalar.columns for each in self.order)
        return self.written.columns.union(self.keys, *ordered)

    def call(self, others: Iterable[str]) -> WindowCall:
        """The whole call. ``others`` are the columns by which rows that tie are told apart."""
        order, frame = list(self.order), self.frame
        if not order and not frame and self.function in _ADDING | _VALUES:
            frame = _WHOLE
        by_rows = frame.startswith("ROWS")
        tells_apart = by_rows or self.function in _BY_POSITION | _VALUES
        if tells_apart and self.function not in _RANKS:
            given = {
                *self.keys,
                *(name for each in order if each.scalar.is_column for name in each.scalar.columns),
            }
            order += [_Ordered(column(name), "") for name in others if name not in given]
        parts: list[str | Column] = [*self.written.parts, " OVER ("]
        separator = ""
        for at, key in enumerate(self.keys):
            parts += [", " if at else "PARTITION BY ", Column(key)]
            separator = " "
        for at, each in enumerate(order):
            parts += [", " if at else f"{separator}ORDER BY ", *each.scalar.parts, each.direction]
            separator = " "
        parts.append(f"{separator}{frame})" if frame else ")")
        written = Scalar(tuple(part for part in parts if part != ""))
        return WindowCall(self.name, written, self.function, () if by_rows else self.arguments)


@dataclass(slots=True)
class Windows:
    """The windows of one SELECT."""

    reader: Reader
    names: Names
    named: Mapping[str, exp.Window]
    """Those of its WINDOW clause."""
    _calls: dict[tuple[object, ...], _Call] = field(default_factory=dict)
    _computed: dict[tuple[str | Column, ...], Named] = field(default_factory=dict)

    def replace(self, node: exp.Expr, read: ReadScalar) -> Scalar | None:
        """The column that a call makes, if the node is one."""
        if not isinstance(node, exp.Window):
            return None
        called = innermost(node.this)
        function = called.name.lower() if isinstance(called, exp.Anonymous) else ""
        if function in ORDERLESS:
            raise self.reader.stop(ReasonCode.WINDOW_FUNCTION, node, function)
        function = MAINTAINED.get(function, function)
        if function not in WINDOW_ONLY | _VALUES | frozenset(MAINTAINED.values()):
            raise self.reader.stop(ReasonCode.WINDOW_FUNCTION, node, function or "a window")
        over = self._definition(node)
        written = read(node.this, called)
        keys = tuple(
            dict.fromkeys(self._key(read(each, None)) for each in over.args.get("partition_by") or ())
        )
        order = tuple(self._ordered(each, read) for each in ordered_by(over))
        frame = self._frame(over.args.get("spec"))
        if function in _VALUES and not _keeps_its_frame(node.this, function, order, frame):
            raise self.reader.stop(ReasonCode.WINDOW_FUNCTION, node, f"{function} in a frame of RANGE")
        identity = (same_key(written), keys, tuple((same_key(o.scalar), o.direction) for o in order), frame)
        if identity not in self._calls:
            name = self.names.fresh(function)
            arguments = () if function not in _ADDING else tuple(read(each, None) for each in _added(called))
            self._calls[identity] = _Call(name, function, written, arguments, keys, order, frame)
        return column(self._calls[identity].name)

    def over(self, child: Relation, used: Iterable[str]) -> Relation:
        """The relation with the columns of all windows; ``used`` are those that the select list reads."""
        if not self._calls:
            return child
        own = {call.name for call in self._calls.values()}
        if self._computed:
            child = Project(child, (*keep(child.columns), *self._computed.values()))
        read = frozenset(used).union(*(call.reads for call in self._calls.values())) - own
        others = [name for name in child.columns if name in read]
        by_keys: dict[tuple[str, ...], list[WindowCall]] = {}
        for call in self._calls.values():
            by_keys.setdefault(call.keys, []).append(call.call(others))
        for keys, calls in by_keys.items():
            child = Window(child, keys, tuple(calls))
        return child

    def _definition(self, node: exp.Window) -> exp.Window:
        """What stands after OVER, or what its name stands for; one name may stand for another."""
        alias = node.args.get("alias")
        if alias is None:
            return node
        found = self.named.get(alias.name.lower())
        if found is not None and found.args.get("alias") is not None and not _says_more(found):
            found = self.named.get(found.args["alias"].name.lower())
        if found is None or found.args.get("alias") is not None or _says_more(node):
            raise self.reader.not_understood(node)
        return found

    def _key(self, scalar: Scalar) -> str:
        """A column that partitions; what is computed becomes one."""
        if scalar.is_column:
            return next(iter(scalar.columns))
        known = self._computed.get(same_key(scalar))
        if known is None:
            known = self._computed[same_key(scalar)] = Named(self.names.fresh("partition"), scalar)
        return known.name

    def _ordered(self, node: exp.Ordered, read: ReadScalar) -> _Ordered:
        if node.args.get("with_fill"):
            raise self.reader.not_understood(node)
        return _Ordered(read(node.this, None), direction(node))

    def _frame(self, spec: exp.WindowSpec | None) -> str:
        if spec is None:
            return ""
        if spec.args.get("exclude"):
            raise self.reader.not_understood(spec)
        start = self._bound(spec, "start")
        end = self._bound(spec, "end") if spec.args.get("end") is not None else None
        kind = str(spec.args["kind"]).upper()
        return f"{kind} {start}" if end is None else f"{kind} BETWEEN {start} AND {end}"

    def _bound(self, spec: exp.WindowSpec, which: str) -> str:
        value, side = spec.args[which], spec.args.get(f"{which}_side")
        if isinstance(value, exp.Expr):
            where = span(value)
            value = self.reader.text.raw(*where) if where else value.sql("spark")
        return f"{value} {side}" if side else str(value)


def _says_more(node: exp.Window) -> bool:
    """Whether a window that is named says something beside the name."""
    return any(node.args.get(key) for key in ("partition_by", "order", "spec"))


def _keeps_its_frame(node: exp.Expr, function: str, order: Sequence[_Ordered], frame: str) -> bool:
    """Whether a frame holds the rows that it does when those that tie are told apart. A frame of RANGE ends
    with the last row that ties with the current one, so it would be cut short; its first row is the same."""
    if frame.startswith("ROWS") or (not order and not frame):
        return True
    from_the_start = not frame or frame.startswith(("RANGE UNBOUNDED", "RANGE BETWEEN UNBOUNDED"))
    passes_nulls_over = isinstance(node, exp.IgnoreNulls) or len(innermost(node).expressions) > 1
    return function in _FIRST and from_the_start and not passes_nulls_over


def direction(node: exp.Ordered) -> str:
    """How an expression orders rows, nothing left open."""
    down = bool(node.args.get("desc"))
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f" {'DESC' if down else 'ASC'} NULLS {nulls}"


def _added(called: exp.Expr) -> Sequence[exp.Expr]:
    """The arguments of an aggregate, with or without DISTINCT."""
    (*arguments,) = called.expressions
    return arguments[0].expressions if arguments and isinstance(arguments[0], exp.Distinct) else arguments


def named_windows(select: exp.Select) -> dict[str, exp.Window]:
    """The windows that a WINDOW clause names."""
    return {window.this.name.lower(): window for window in select.args.get("windows") or ()}
