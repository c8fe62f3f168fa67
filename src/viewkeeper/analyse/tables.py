"""Where a query names tables: found on the tokens, so that it works for every query Spark accepts.

A table stands after FROM, JOIN, or a comma in FROM, unless a WITH above has given that name to a query.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from viewkeeper.analyse.parsing import SqlText
from viewkeeper.analyse.refusals import closing

_ENDS_FROM = {
    *(
        "WHERE",
        "GROUP",
        "GROUP BY",
        "HAVING",
        "ORDER",
        "ORDER BY",
        "SORT",
        "SORT BY",
        "CLUSTER",
        "CLUSTER BY",
    ),
    *("DISTRIBUTE", "DISTRIBUTE BY", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "SELECT", "|>"),
    *("UNION", "EXCEPT", "MINUS", "INTERSECT", "SETMINUS"),
}
_NO_ALIAS = {
    *_ENDS_FROM,
    *("", ",", ")", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "LATERAL"),
    *("ON", "USING", "PIVOT", "UNPIVOT", "TABLESAMPLE", "WITH", "VERSION", "TIMESTAMP", "FOR"),
    *("SYSTEM_VERSION", "SYSTEM_TIME"),
}
_TRAVELS = {"VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME", "FOR", "TABLESAMPLE"}
_SET_WORDS = {"UNION", "ALL", "EXCEPT", "MINUS", "INTERSECT", "DISTINCT", "SETMINUS"}


class Unsure(Exception):
    """A table is named in a way that cannot be followed on the tokens."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index
        self.what = what


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the query names it: the tokens [first, end), the parts of its name, and in which
    FROM it stands. ``plain`` is false when time travel or sampling follows."""

    first: int
    end: int
    parts: tuple[str, ...]
    aliased: bool
    scope: int
    plain: bool


@dataclass(slots=True)
class _Frame:
    opened: int
    is_query: bool = False
    in_from: bool = False
    in_pipe: bool = False
    expects: bool = False
    in_lateral_view: bool = False
    in_values: bool = False
    scope: int = -1

    @property
    def lists(self) -> bool:
        """Whether a comma here parts something other than the items of FROM."""
        return self.in_lateral_view or self.in_values


@dataclass(slots=True)
class _Finder:
    text: SqlText
    frames: list[_Frame] = field(default_factory=lambda: [_Frame(-1)])
    ctes: list[tuple[str, int, int]] = field(default_factory=list)
    found: list[TableName] = field(default_factory=list)

    def run(self) -> list[TableName]:
        index = 0
        while index < len(self.text.tokens):
            index = self._step(index)
        return self.found

    def _step(self, index: int) -> int:
        frame, word = self.frames[-1], self.text.word(index)
        if frame.expects and word not in ("(", "LATERAL"):
            frame.expects = False
            return self._relation(index)
        if word == "(":
            starts_query = self.text.word(index + 1) in ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
            nests_join = frame.expects and not starts_query
            self.frames.append(_Frame(index, in_from=nests_join, scope=index))
            self.frames[-1].expects = self.frames[-1].in_from
            frame.expects = False
        elif word == ")":
            self.frames = self.frames[:-1] or [_Frame(-1)]
        elif self.text.word(index - 1) != ".":
            self._keyword(index, word, frame)
        return index + 1

    def _keyword(self, index: int, word: str, frame: _Frame) -> None:
        starts = index == frame.opened + 1
        frame.in_values = frame.in_values and not self.text.is_name(index)
        if word == "WITH" and starts:
            frame.is_query = True
            self._read_ctes(index)
        elif word == "SELECT":
            frame.is_query, frame.in_from = True, False
        elif word == "FROM" and (frame.is_query or starts) and self._is_clause(index):
            frame.is_query = frame.in_from = frame.expects = True
            frame.in_lateral_view, frame.scope = False, index
        elif frame.in_from and (word == "JOIN" or (word == "," and not frame.lists)):
            frame.expects = True
        elif frame.in_pipe and word == "JOIN":
            frame.in_from = frame.expects = True
            frame.scope = index
        elif word == "VIEW" and self.text.word(index - 1) == "LATERAL":
            frame.in_lateral_view = True
        elif word == "TABLE":
            self._table_query(index, frame, starts=starts)
        elif word in _ENDS_FROM:
            frame.in_from = frame.in_lateral_view = False
            frame.in_pipe = frame.in_pipe or word == "|>"

    def _is_clause(self, index: int) -> bool:
        """Whether this FROM is neither a name nor part of IS [NOT] DISTINCT FROM."""
        return not self.text.is_distinct_from(index) and self.text.word(index + 1) != "."

    def _table_query(self, index: int, frame: _Frame, *, starts: bool) -> None:
        if starts or self.text.word(index - 1) in _SET_WORDS or (frame.is_query and not frame.in_from):
            frame.is_query = frame.expects = True
            frame.scope = index
        else:
            raise Unsure(index, "TABLE as an argument")

    def _relation(self, index: int) -> int:
        if self.text.word(index) == "VALUES":
            self.frames[-1].in_values = True
            return index + 1
        if not self.text.is_name(index):
            raise Unsure(index, self.text.raw(index, index + 1))
        end = index + 1
        while self.text.word(end) == "." and self.text.is_name(end + 1):
            end += 2
        if self.text.word(end) == "(":
            if self.text.word(index) == "IDENTIFIER":
                raise Unsure(index, "IDENTIFIER(…)")
            return end
        parts = tuple(self.text.tokens[at].text for at in range(index, end, 2))
        if not self._is_cte(parts, index):
            following = self.text.word(end)
            aliased = end < len(self.text.tokens) and following not in _NO_ALIAS
            aliased = aliased or (following == "" and self.text.is_name(end))
            options = following == "WITH" and self.text.word(end + 1) == "("
            plain = not (options or (following in _TRAVELS and self._travels(end)))
            scope = self.frames[-1].scope
            self.found.append(TableName(index, end, parts, aliased and plain, scope, plain))
        return end

    def _travels(self, index: int) -> bool:
        word = self.text.word(index)
        return word in ("FOR", "TABLESAMPLE") or self.text.word(index + 1) == "AS"

    def _is_cte(self, parts: tuple[str, ...], index: int) -> bool:
        name = parts[0].lower()
        return len(parts) == 1 and any(
            name == cte and since <= index < until for cte, since, until in self.ctes
        )

    def _read_ctes(self, index: int) -> None:
        recursive = self.text.word(index + 1) == "RECURSIVE"
        opened = self.frames[-1].opened
        until = closing(self.text, opened) if opened >= 0 else len(self.text.tokens)
        at = index + (2 if recursive else 1)
        while at < len(self.text.tokens):
            name = self.text.tokens[at].text.lower()
            at = self._body(at + 1)
            end = closing(self.text, at)
            self.ctes.append((name, at if recursive else end, until))
            if self.text.word(end + 1) != ",":
                return
            at = end + 2

    def _body(self, index: int) -> int:
        """The parenthesis that opens a WITH query, after its name and column list."""
        if self.text.word(index) == "(" and self.text.word(closing(self.text, index) + 1) in (
            "AS",
            "(",
            "MAX",
        ):
            index = closing(self.text, index) + 1
        while index < len(self.text.tokens) and self.text.word(index) != "(":
            index += 1
        return index


def find_tables(text: SqlText) -> list[TableName]:
    """Every place where a table is named, in order; raises :class:`Unsure`."""
    return _Finder(text).run()
