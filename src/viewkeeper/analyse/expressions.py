"""From the tree of an expression to its text with holes where columns stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.analyse import functions
from viewkeeper.analyse.parsing import SqlText, call_end, span
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.refusals import nondeterministic
from viewkeeper.analyse.scopes import Ambiguous
from viewkeeper.errors import Position
from viewkeeper.sql.quoting import ident

Parts = tuple[str | Column, ...]
Lookup = Callable[[Sequence[str]], "tuple[Parts, int] | None"]
"""From the parts of a name to what stands in its place, and how many of the parts that replaces."""
Replace = Callable[[exp.Expr], "Scalar | None"]
"""From a subexpression to the column that has its value already, if there is one."""


@dataclass(slots=True)
class _Cuts:
    """What replaces which tokens, as found while the tree is walked."""

    found: list[tuple[int, int, Parts]] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    units: set[int] = field(default_factory=set)
    aggregate: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions of one query text."""

    text: SqlText
    stand_ins: dict[tuple[int, int], Parts] = field(default_factory=dict)
    """By the tokens of a call, the column that has its value already."""

    def scalar(
        self,
        node: exp.Expr,
        lookup: Lookup,
        known: Collection[str],
        replace: Replace = lambda _: None,
        aggregate: exp.Expr | None = None,
    ) -> Scalar:
        """The expression as the user wrote it, with the columns that ``lookup`` finds in its holes.

        ``known`` are the names that may be columns here: should one of them stand somewhere that the walk
        has not accounted for, the expression is not understood. ``aggregate`` is the one call of an
        aggregate (or of a generator, or of a window function) that may stand in it."""
        where = span(node) or self._extent_of_call(node)
        if where is None:
            raise self.not_understood(node)
        cuts = _Cuts(aggregate=aggregate)
        self._walk(node, lookup, replace, cuts, frozenset())
        self._account(where, cuts, known)
        return Scalar(tuple(_merged(self._pieces(where, sorted(cuts.found, key=lambda cut: cut[0])))))

    def position(self, node: exp.Expr) -> Position | None:
        """Where the expression stands, as exactly as is known."""
        where = span(node)
        if where:
            return self.text.position(where[0], where[1] - 1)
        for inner in node.walk():
            start = inner.meta.get("start")
            if start is not None and start in self.text.index_at:
                return self.text.position(self.text.index_at[start])
        return None

    def not_understood(self, node: exp.Expr, what: str | None = None) -> NotIncremental:
        """The verdict on something that the walk cannot follow."""
        where = span(node)
        shown = what or (self.text.raw(*where) if where else type(node).__name__)
        return NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason(shown, at=self.position(node)))

    def stop(self, code: ReasonCode, node: exp.Expr, *values: str) -> NotIncremental:
        """The verdict with this code, at the place of the node."""
        return NotIncremental(code.reason(*values, at=self.position(node)))

    def _walk(
        self, node: exp.Expr, lookup: Lookup, replace: Replace, cuts: _Cuts, variables: frozenset[str]
    ) -> None:
        replacement = replace(node)
        if replacement is not None:
            first, end = self.extent(node)
            cuts.found.append((first, end, _operand(replacement)))
            return
        if self.stand_ins and isinstance(node, exp.Anonymous) and self.extent(node) in self.stand_ins:
            where = self.extent(node)
            cuts.found.append((*where, self.stand_ins[where]))
            return
        match node:
            case exp.Query() | exp.Exists():
                raise self.stop(ReasonCode.SUBQUERY_EXPRESSION, node)
            case exp.Window():
                raise self.stop(ReasonCode.WINDOW_FUNCTION, node, _called(node.this))
            case exp.Filter() | exp.WithinGroup() if innermost(node) is not cuts.aggregate:
                raise self.stop(ReasonCode.AGGREGATE_FUNCTION, node, _called(node.this))
            case exp.Placeholder() | exp.Parameter() | exp.SessionParameter():
                raise self.not_understood(node)
            case exp.Lambda():
                names = {variable.name.lower() for variable in node.expressions}
                cuts.variables |= names
                self._walk(node.this, lookup, replace, cuts, variables | names)
            case exp.Column():
                self._column(node, lookup, cuts, variables)
            case exp.Star() if node.parent is cuts.aggregate and _called(node.parent) == "count":
                return  # count(*) over a window
            case exp.Star():
                raise self.stop(ReasonCode.STAR_ARGUMENT, node, _called(node.parent))
            case exp.Dot() if isinstance(node.expression, exp.Func):
                raise self.stop(ReasonCode.USER_FUNCTION, node, _called(node.expression))
            case exp.Alias() | exp.Kwarg():
                inner = node.this if isinstance(node, exp.Alias) else node.expression
                self._walk(inner, lookup, replace, cuts, variables)
            case _:
                if isinstance(node, exp.Tuple) and not _is_list(node):
                    self._spell_out(node, cuts)
                for child in self._operands(node, cuts):
                    known = len(cuts.found)
                    self._walk(child, lookup, replace, cuts, variables)
                    if len(cuts.found) == known + 1:
                        self._keep_name(node, child, cuts)

    def _operands(self, node: exp.Expr, cuts: _Cuts) -> Iterator[exp.Expr]:
        children = list(node.iter_expressions())
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if node is not cuts.aggregate:
                self._check_function(node, name)
            unit = children[0] if children else None
            if name in functions.DATE_UNIT_FIRST and len(children) == 3 and isinstance(unit, exp.Column):
                cuts.units.add(self._index(unit.parts[0]))
                children = children[1:]
        # A quoted function name is an identifier, and no operand.
        return (child for child in children if not isinstance(child, exp.Identifier | exp.DataType))

    def _check_function(self, node: exp.Anonymous, name: str) -> None:
        if name in functions.SCALARS:
            return
        if name in functions.AGGREGATES:
            raise self.stop(ReasonCode.AGGREGATE_FUNCTION, node, name)
        if name in functions.GENERATORS:
            raise self.stop(ReasonCode.LATERAL_VIEW, node, name)
        if name in functions.TIME_WINDOWS:
            raise self.stop(ReasonCode.TIME_WINDOW, node, name)
        if name in functions.WINDOW_ONLY:
            raise self.stop(ReasonCode.WINDOW_FUNCTION, node, name)
        if name in functions.GROUPING:
            raise self.not_understood(node)
        raise self.stop(ReasonCode.USER_FUNCTION, node, name)

    def _column(self, node: exp.Column, lookup: Lookup, cuts: _Cuts, variables: frozenset[str]) -> None:
        if isinstance(node.this, exp.Star):
            raise self.stop(ReasonCode.STAR_ARGUMENT, node, _called(node.parent))
        identifiers = dotted(node)
        names = [identifier.name for identifier in identifiers]
        if names[0].lower() in variables:
            return
        try:
            found = lookup(names)
        except Ambiguous as ambiguous:
            raise self.not_understood(node) from ambiguous
        if found is None:
            if len(names) == 1 and names[0].lower() in functions.WITHOUT_PARENTHESES:
                raise nondeterministic(self.text, self._index(identifiers[0]), names[0].lower())
            raise self.not_understood(node)
        parts, used = found
        first, last = self._index(identifiers[0]), self._index(identifiers[used - 1])
        cuts.found.append((first, last + 1, parts))

    def _spell_out(self, node: exp.Tuple, cuts: _Cuts) -> None:
        """``(a, b)`` is ``struct(a, b)``, in which fields can be given names."""
        where = span(node)
        if where is None or self.text.word(where[0]) != "(":
            raise self.not_understood(node)
        cuts.found.append((where[0], where[0] + 1, ("struct(",)))

    def _keep_name(self, call: exp.Expr, argument: exp.Expr, cuts: _Cuts) -> None:
        """``struct(a, count(*))`` has fields a and col2: the names are part of the value, whatever we call
        the columns that we put there. What was found last is the argument, or stands inside it."""
        first, end, parts = cuts.found[-1]
        makes_struct = isinstance(call, exp.Tuple) and not _is_list(call)
        named = ""
        if isinstance(call, exp.Anonymous):
            makes_struct, named = makes_struct or call.name.lower() == "struct", call.name.lower()
        if not makes_struct and named not in functions.NAMED_BY_ARGUMENTS:
            return
        if isinstance(argument, exp.Column):
            if span(argument) != (first, end):
                return  # a field of it, whose name it keeps
            name = dotted(argument)[-1].name
        elif (span(argument) or self._extent_of_call(argument)) == (first, end):
            at = next(index for index, each in enumerate(call.expressions) if each is argument)
            name = f"col{at + 1}"
        else:
            return
        if not makes_struct:
            raise self.not_understood(call)
        cuts.found[-1] = (first, end, (*parts, f" AS {ident(name)}"))

    def extent(self, node: exp.Expr) -> tuple[int, int]:
        """The tokens of a call or of any other expression that knows them."""
        start, end = node.meta.get("start"), call_end(node)
        if start is not None and end is not None:
            return self.text.index_at[start], end
        where = span(node)
        if where is None:
            raise self.not_understood(node)
        return where

    def _extent_of_call(self, node: exp.Expr) -> tuple[int, int] | None:
        """The tokens of a call with what follows it, FILTER and the like: up to the OVER of a window."""
        start = innermost(node).meta.get("start")
        if start is None or start not in self.text.index_at:
            return None
        first = self.text.index_at[start]
        if isinstance(node, exp.Anonymous):
            end = call_end(node)
            return None if end is None else (first, end)
        depth = 0
        for index in range(first, len(self.text.tokens)):
            if depth == 0 and self.text.word(index) == "OVER":
                return first, index
            depth += {"(": 1, ")": -1}.get(self.text.word(index), 0)
        return None

    def _index(self, identifier: exp.Expr) -> int:
        start = identifier.meta.get("start")
        if start is None or start not in self.text.index_at:
            raise self.not_understood(identifier, identifier.name)
        return self.text.index_at[start]

    def _account(self, where: tuple[int, int], cuts: _Cuts, known: Collection[str]) -> None:
        covered = {index for first, end, _ in cuts.found for index in range(first, end)} | cuts.units
        for index in range(*where):
            token = self.text.tokens[index]
            name = token.text.lower()
            if index in covered or not self.text.is_name(index) or name in cuts.variables:
                continue
            is_column = (name in known or token.text in known) and not self._is_no_column(index)
            if is_column or self._is_more_than_a_row(index):
                raise NotIncremental(
                    ReasonCode.NOT_UNDERSTOOD.reason(token.text, at=self.text.position(index))
                )

    def _is_more_than_a_row(self, index: int) -> bool:
        """Whether a subquery begins here, or the OVER of a window: what looks at other rows is no mere text,
        even where the parser took it for that."""
        before, word, after = (self.text.word(index + step) for step in (-1, 0, 1))
        return (before == "(" and word == "SELECT" and after != ")") or (before == ")" and word == "OVER")

    def _is_no_column(self, index: int) -> bool:
        """Whether a word that is also a column's name stands where no column can."""
        before, after = self.text.word(index - 1), self.text.word(index + 1)
        if before in (".", "AS", "INTERVAL", "TO", "COLLATE", "::") or after in ("(", "=>", "FROM"):
            return True
        tokens = self.text.tokens
        literals = (TokenType.STRING, TokenType.NUMBER)
        typed = index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.STRING
        return typed or (index > 0 and tokens[index - 1].token_type in literals)

    def _pieces(
        self, where: tuple[int, int], cuts: Sequence[tuple[int, int, Parts]]
    ) -> Iterator[str | Column]:
        first, end = where
        index, done = first, self.text.tokens[first].start
        waiting = list(cuts)
        while index < end:
            token = self.text.tokens[index]
            if token.start < done and index > first:
                index += 1  # the tokenizer splits 1L in three tokens that all stand at the same place
                continue
            if token.start > done:
                yield _gap(self.text.sql[done : token.start])
            if waiting and waiting[0][0] == index:
                _, index, parts = waiting.pop(0)
                yield from parts
            else:
                index += 1
                yield self.text.sql[token.start : token.end + 1]
            done = self.text.tokens[index - 1].end + 1


def dotted(node: exp.Column) -> list[exp.Expr]:
    """All the identifiers of ``a.b.c…``, also beyond the four that sqlglot puts into a column."""
    parts: list[exp.Expr] = list(node.parts)
    outer = node.parent
    inner: exp.Expr = node
    while isinstance(outer, exp.Dot) and outer.this is inner and isinstance(outer.expression, exp.Identifier):
        parts.append(outer.expression)
        inner, outer = outer, outer.parent
    return parts


def whole_number(node: exp.Expr | None) -> int | None:
    """The number that stands there, if it is one without sign and point."""
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) if node is not None and is_number else None


_BEHIND_A_POINT = re.compile(r"(\.\w+)|[^.]+")


def same_key(scalar: Scalar) -> tuple[str | Column, ...]:
    """Equal for expressions that differ in nothing but white space and the case of their words. What stands
    behind a point may be the key of a map, and between backticks every letter counts."""
    return tuple(part if isinstance(part, Column) else _folded(part) for part in scalar.parts)


def _folded(part: str) -> str:
    if "'" in part or '"' in part or "`" in part:
        return part
    return _BEHIND_A_POINT.sub(lambda found: found[1] or found[0].lower(), re.sub(r"\s+", "", part))


def _is_list(node: exp.Tuple) -> bool:
    """Whether it is no value, but what IN, LIKE ANY and LIKE ALL compare with."""
    return isinstance(node.parent, exp.In | exp.Any | exp.All)


def _operand(scalar: Scalar) -> Parts:
    return scalar.parts if scalar.is_column else ("(", *scalar.parts, ")")


def _gap(text: str) -> str:
    """White space as it was, a comment or a line break as one space: a comment would swallow what follows."""
    return text if text.isspace() and "\n" not in text else " "


def _merged(pieces: Iterator[str | Column]) -> Iterator[str | Column]:
    words = ""
    for piece in pieces:
        if isinstance(piece, str):
            words += piece
            continue
        if words:
            yield words
        words = ""
        yield piece
    if words:
        yield words


def innermost(node: exp.Expr) -> exp.Expr:
    """The call that FILTER, WITHIN GROUP and IGNORE NULLS stand around."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node


def _called(node: exp.Expr | None) -> str:
    if node is None:
        return "an expression"
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    inner = node.find(exp.Anonymous)
    return inner.name.lower() if inner else "an expression"
