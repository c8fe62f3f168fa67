"""A query's text with holes where it names tables, to be filled with those tables at some version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from viewkeeper.analyse.analysis import QueryText, TableHole, TableInfo
from viewkeeper.analyse.parsing import NotParsed, SqlText, tokenize
from viewkeeper.analyse.refusals import PATH_FORMATS, path_read
from viewkeeper.analyse.tables import TableName, Unsure, find_tables
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.quoting import parse_path, quote, show_path

Resolve = Callable[[tuple[str, ...]], TableInfo | None]


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
