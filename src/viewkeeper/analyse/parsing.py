"""Reading SQL with sqlglot, for its structure alone.

sqlglot gives many functions a meaning of its own and prints them back differently, so here every function
stays anonymous and nothing is ever printed from its tree. Each expression remembers instead which tokens
it was read from: the text between them is what Spark gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import Position, position_at

_SPAN = "vk_span"
_CALL_END = "vk_call_end"

# Spark takes them for columns first and for functions second, so here they are plain words.
_WORDS_NOT_KEYWORDS = {
    TokenType.CURRENT_DATE,
    TokenType.CURRENT_TIME,
    TokenType.CURRENT_TIMESTAMP,
    TokenType.CURRENT_USER,
    TokenType.SESSION_USER,
}


_LITERALS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NUMBER}


class _Tokenizer(Spark.Tokenizer):
    """Spark's tokens; SHOW and the like do not turn what follows them into one string."""

    COMMANDS: ClassVar[set[TokenType]] = set()


class NotParsed(Exception):
    """sqlglot cannot read this text."""


@dataclass(frozen=True)
class SqlText:
    """A SQL text and its tokens; positions in it are character offsets, spans are token indices."""

    sql: str
    tokens: tuple[Token, ...] = field(repr=False)

    @cached_property
    def index_at(self) -> dict[int, int]:
        """The index of the token that starts at an offset; of several there, the first."""
        return {token.start: index for index, token in reversed(list(enumerate(self.tokens)))}

    def position(self, first: int, last: int | None = None) -> Position:
        """Where the tokens from first to last, both included, stand."""
        if not self.tokens:
            return position_at(self.sql, 0)
        end = self.tokens[first if last is None else last].end + 1
        return position_at(self.sql, self.tokens[first].start, end)

    def raw(self, first: int, end: int) -> str:
        """The text of the tokens [first, end), with its comments."""
        return self.sql[self.tokens[first].start : self.tokens[end - 1].end + 1]

    def is_name(self, index: int) -> bool:
        """Whether the token can be a name: quoted with backticks, or a bare word."""
        if not 0 <= index < len(self.tokens):
            return False
        token = self.tokens[index]
        return token.token_type == TokenType.IDENTIFIER or (
            token.token_type not in _LITERALS
            and (token.token_type == TokenType.VAR or token.text.isidentifier())
        )

    def is_distinct_from(self, index: int) -> bool:
        """Whether the FROM there is the last word of IS [NOT] DISTINCT FROM."""
        return self.word(index - 1) == "DISTINCT" and self.word(index - 2) in ("IS", "NOT")

    def word(self, index: int) -> str:
        """The token's text in upper case if it is a bare word or sign; empty for quoted names, strings
        and beyond the end."""
        if not 0 <= index < len(self.tokens):
            return ""
        token = self.tokens[index]
        quoted = token.token_type == TokenType.IDENTIFIER or token.token_type in _LITERALS
        return "" if quoted else token.text.upper()


def tokenize(sql: str) -> SqlText:
    """The tokens of one statement, without the semicolons at its end."""
    try:
        tokens = list(_Tokenizer(dialect=Spark()).tokenize(sql))
    except SqlglotError as error:
        raise NotParsed(str(error)) from error
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return SqlText(sql, tuple(tokens))


def parse(text: SqlText) -> exp.Expr:
    """The tree of the one statement in the text."""
    tokens = [_plain(text, index) for index in range(len(text.tokens))]
    try:
        trees = _SpanParser(error_level=ErrorLevel.IMMEDIATE, dialect=Spark()).parse(tokens, text.sql)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError) as error:
        # A parser bug on strange input must not become a crash of ours: it is one more way not to parse.
        raise NotParsed(_first_line(error)) from error
    if len(trees) != 1 or trees[0] is None:
        raise NotParsed("it is not one statement")
    return trees[0]


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The tokens [first, end) from which the expression was read, if that is known."""
    found: tuple[int, int] | None = node.meta.get(_SPAN)
    return found


def call_end(node: exp.Expr) -> int | None:
    """The token after a call's closing parenthesis."""
    found: int | None = node.meta.get(_CALL_END)
    return found


def _plain(text: SqlText, index: int) -> Token:
    token = text.tokens[index]
    # The clause names a window: WINDOW w AS (…). Elsewhere it is a function, or its column.
    is_clause = text.is_name(index + 1) and text.word(index + 2) == "AS"
    is_window = token.token_type == TokenType.WINDOW and not is_clause
    if not is_window and token.token_type not in _WORDS_NOT_KEYWORDS:
        return token
    return Token(
        TokenType.VAR, token.text, token.line, token.col, token.start, token.end, list(token.comments)
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].split(". Line")[0]


class _SpanParser(SparkParser):
    """sqlglot's Spark parser, with every function anonymous and the tokens of expressions recorded."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    # sqlglot takes array(…)[i] for an array of the index alone, and forgets what is in the parentheses.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    ADD_JOIN_ON_TRUE = False

    def _spanned(self, start: int, node: exp.Expr | None) -> exp.Expr | None:
        # The widest span counts: for `+a` sqlglot returns the mere column.
        if node is not None and self._index > start:
            first, end = node.meta.get(_SPAN) or (start, self._index)
            node.meta[_SPAN] = (min(first, start), max(end, self._index))
        return node

    def _parse_assignment(self) -> exp.Expr | None:
        return self._spanned(self._index, super()._parse_assignment())

    def _parse_disjunction(self) -> exp.Expr | None:
        return self._spanned(self._index, super()._parse_disjunction())

    def _parse_conjunction(self) -> exp.Expr | None:
        return self._spanned(self._index, super()._parse_conjunction())

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:  # noqa: FBT001, FBT002
        return self._spanned(self._index, super()._parse_equality(parse_is))

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._spanned(self._index, super()._parse_bitwise())

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:  # noqa: FBT001, FBT002
        return self._spanned(self._index, super()._parse_term(parse_mod))

    def _parse_unary(self) -> exp.Expr | None:
        return self._spanned(self._index, super()._parse_unary())

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:  # noqa: FBT001, FBT002
        # Not widened: the ALL of sum(ALL a) is no part of the argument.
        start = self._index
        node = super()._parse_lambda(alias)
        return node if node is None or _SPAN in node.meta else self._spanned(start, node)

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:  # noqa: FBT001, FBT002
        # Called with each call just read: the token before is its closing parenthesis.
        if this is not None and not alias:
            this.meta.setdefault(_CALL_END, self._index)
        return super()._parse_window(this, alias)
