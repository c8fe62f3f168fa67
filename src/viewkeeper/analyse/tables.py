"""Where a query names tables: found on the tokens, so that it works for every query Spark accepts.

A table stands after FROM, JOIN, or a comma in FROM, unless a WITH above has given that name to a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import TokenType

from viewkeeper.analyse.analysis import QueryText, TableHole, TableInfo
from viewkeeper.analyse.parsing import NotParsed, SqlText, tokenize
from viewkeeper.analyse.refusals import PATH_FORMATS, closing, path_read
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.quoting import parse_path, quote, show_path

Resolve = Callable[[tuple[str, ...]], TableInfo | None]

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
    expects: bool = False
    in_lateral_view: bool = False
    scope: int = -1


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
        if word == "WITH" and starts:
            frame.is_query = True
            self._read_ctes(index)
        elif word == "SELECT":
            frame.is_query, frame.in_from = True, False
        elif word == "FROM" and (frame.is_query or starts) and not self._compares(index):
            frame.is_query = frame.in_from = frame.expects = True
            frame.in_lateral_view, frame.scope = False, index
        elif frame.in_from and (word == "JOIN" or (word == "," and not frame.in_lateral_view)):
            frame.expects = True
        elif word == "VIEW" and self.text.word(index - 1) == "LATERAL":
            frame.in_lateral_view = True
        elif word == "TABLE":
            self._table_query(index, frame, starts=starts)
        elif word in _ENDS_FROM:
            frame.in_from = frame.in_lateral_view = False

    def _compares(self, index: int) -> bool:
        """Whether this FROM belongs to IS [NOT] DISTINCT FROM."""
        return self.text.word(index - 1) == "DISTINCT" and self.text.word(index - 2) in ("IS", "NOT")

    def _table_query(self, index: int, frame: _Frame, *, starts: bool) -> None:
        if starts or self.text.word(index - 1) in _SET_WORDS or (frame.is_query and not frame.in_from):
            frame.is_query = frame.expects = True
            frame.scope = index
        else:
            raise Unsure(index, "TABLE as an argument")

    def _relation(self, index: int) -> int:
        if self.text.word(index) == "VALUES":
            return index + 1
        if not self._is_name(index):
            raise Unsure(index, self.text.raw(index, index + 1))
        end = index + 1
        while self.text.word(end) == "." and self._is_name(end + 1):
            end += 2
        if self.text.word(end) == "(":
            if self.text.word(index) == "IDENTIFIER":
                raise Unsure(index, "IDENTIFIER(…)")
            return end
        parts = tuple(self.text.tokens[at].text for at in range(index, end, 2))
        if not self._is_cte(parts, index):
            following = self.text.word(end)
            aliased = end < len(self.text.tokens) and following not in _NO_ALIAS
            aliased = aliased or (following == "" and self._is_name(end))
            options = following == "WITH" and self.text.word(end + 1) == "("
            plain = not (options or (following in _TRAVELS and self._travels(end)))
            scope = self.frames[-1].scope
            self.found.append(TableName(index, end, parts, aliased and plain, scope, plain))
        return end

    def _travels(self, index: int) -> bool:
        word = self.text.word(index)
        return word in ("FOR", "TABLESAMPLE") or self.text.word(index + 1) == "AS"

    def _is_name(self, index: int) -> bool:
        if index >= len(self.text.tokens):
            return False
        token = self.text.tokens[index]
        return token.token_type == TokenType.IDENTIFIER or token.text.replace("-", "_").isidentifier()

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


def refuse_paths(text: SqlText, resolve: Resolve) -> None:
    """Raise if a name such as ``parquet.data`` is no table: Spark would then take it for files."""
    try:
        names = find_tables(text)
    except Unsure:
        return  # Spark may have more to say about the text; the tables are looked for again later
    for name in names:
        if len(name.parts) == 2 and resolve(name.parts) is None:
            is_path = any(sign in name.parts[1] for sign in "/\\:")
            if is_path or name.parts[0].lower() in PATH_FORMATS:
                raise path_read(text, name.first, name.end - 1)


def query_text(text: SqlText, resolve: Resolve) -> QueryText:
    """The query of a view with holes at its tables; every one of them must resolve."""
    try:
        names = find_tables(text)
    except Unsure as unsure:
        raise _not_understood(text, unsure.index, unsure.what) from unsure
    tables: list[tuple[TableName, TableInfo]] = []
    for name in names:
        if not name.plain:
            raise DefinitionError(
                f"{show_path(name.parts)} is read with options of its own",
                code="VK-PINNED-TABLE",
                hint="Leave them out: a view always follows its tables.",
                position=text.position(name.first, name.end - 1),
            )
        tables.append((name, _known(text, name, resolve)))
    clash = _same_alias(names)
    if clash is not None:
        raise _not_understood(text, clash.first, f"two tables named {clash.parts[-1]} side by side")
    return _with_holes(text, tables)


def holes(query: str, resolve: Resolve) -> QueryText | None:
    """Any SELECT with holes at those tables that ``resolve`` knows; ``None`` if there are none, or if the
    text is no query that can be followed."""
    try:
        text = tokenize(query)
        names = [name for name in find_tables(text) if name.plain]
    except (NotParsed, Unsure):
        return None
    if text.word(0) not in ("SELECT", "WITH", "FROM", "TABLE", "(") or _same_alias(names):
        return None
    tables = [(name, info) for name in names if (info := resolve(name.parts)) is not None]
    return _with_holes(text, tables) if tables else None


def _known(text: SqlText, name: TableName, resolve: Resolve) -> TableInfo:
    info = resolve(name.parts)
    if info is None:
        raise DefinitionError(
            f"There is no table or view {show_path(name.parts)} that a view could read",
            code="VK-UNKNOWN-TABLE",
            hint="It must be a table of a catalog; temporary views last no longer than a session.",
            position=text.position(name.first, name.end - 1),
        )
    return info


def _same_alias(names: Sequence[TableName]) -> TableName | None:
    seen: dict[tuple[int, str], tuple[str, ...]] = {}
    for name in names:
        if not name.aliased:
            key = (name.scope, name.parts[-1].lower())
            if key in seen:
                return name
            seen[key] = name.parts
    return None


def _with_holes(text: SqlText, tables: Sequence[tuple[TableName, TableInfo]]) -> QueryText:
    cuts = [*_table_cuts(text, tables), *_qualifier_cuts(text, tables)]
    parts: list[str | TableHole] = []
    done = 0
    for start, end, hole in sorted(cuts, key=lambda cut: cut[0]):
        parts += [text.sql[done:start], hole]
        done = end
    last = text.tokens[-1].end + 1
    parts.append(text.sql[done:last])
    return QueryText(tuple(part for part in parts if part != ""))


_Cut = tuple[int, int, TableHole | str]


def _table_cuts(text: SqlText, tables: Sequence[tuple[TableName, TableInfo]]) -> Iterator[_Cut]:
    for name, info in tables:
        alias = None if name.aliased else quote(name.parts[-1])
        start, end = text.tokens[name.first].start, text.tokens[name.end - 1].end + 1
        yield start, end, TableHole(info.table, alias)
        if text.word(name.first - 1) == "TABLE":
            # `TABLE t` takes a bare name and nothing else.
            keyword = text.tokens[name.first - 1]
            yield keyword.start, keyword.end + 1, "SELECT * FROM"


def _qualifier_cuts(text: SqlText, tables: Sequence[tuple[TableName, TableInfo]]) -> Iterator[_Cut]:
    """``lake.shop.pos.qty`` must become ``pos.qty``, for the relation in the hole is only called pos."""
    inside = {index for name, _ in tables for index in range(name.first, name.end)}
    qualifiers = {
        tuple(part.lower() for part in parse_path(info.table)[-length:])
        for name, info in tables
        if not name.aliased
        for length in range(2, len(parse_path(info.table)) + 1)
    }
    index = 0
    while index < len(text.tokens):
        end = index + 1
        while text.word(end) == "." and end + 1 < len(text.tokens):
            end += 2
        if index not in inside and end > index + 4:
            chain = tuple(text.tokens[at].text.lower() for at in range(index, end, 2))
            for length in range(len(chain) - 1, 1, -1):
                if chain[:length] in qualifiers:
                    keep_from = text.tokens[index + 2 * (length - 1)].start
                    yield text.tokens[index].start, keep_from, ""
                    break
        index = end


def _not_understood(text: SqlText, index: int, what: str) -> DefinitionError:
    return DefinitionError(
        f"It is not clear which tables the query reads: {what}",
        code="VK-NOT-UNDERSTOOD",
        hint="Name every table plainly after FROM or JOIN, with an alias of its own.",
        position=text.position(min(index, len(text.tokens) - 1)),
    )
