"""The statements that are ours, read token by token; everything else passes through to Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from sqlglot.tokenizer_core import TokenType

from viewkeeper.analyse.cubes import nodes_of
from viewkeeper.analyse.parsing import NotParsed, SqlText, tokenize
from viewkeeper.analyse.refusals import closing
from viewkeeper.define.definitions import ColumnSpec, Expectation, OnViolation
from viewkeeper.define.timing import TargetLag, Timing, read_interval, read_schedule, read_zone
from viewkeeper.errors import DefinitionError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE MATERIALIZED VIEW``. ``query_start`` is where the query stands in the statement."""

    name: tuple[str, ...]
    query: str = ""
    query_start: int = 0
    replace: bool = False
    if_not_exists: bool = False
    columns: tuple[ColumnSpec, ...] = ()
    comment: str | None = None
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    policy: str | None = None
    consistency: str | None = None
    with_data: bool = True
    expectations: tuple[Expectation, ...] = ()
    timing: Timing | None = None


@dataclass(frozen=True, slots=True)
class CreateCube:
    """``CREATE MATERIALIZED CUBE``; in ``view`` the cube's name and query stand in the place of a view's."""

    view: CreateView

    @property
    def views(self) -> tuple[CreateView, ...]:
        """A view for each node."""
        *where, name = self.view.name
        return tuple(
            replace(self.view, name=(*where, node.name(name)), query=node.query)
            for node in nodes_of(self.view.query)
        )


@dataclass(frozen=True, slots=True)
class RefreshView:
    """``REFRESH MATERIALIZED VIEW v [FULL]``."""

    name: tuple[str, ...]
    full: bool = False


@dataclass(frozen=True, slots=True)
class ExplainView:
    """``EXPLAIN MATERIALIZED VIEW v``."""

    name: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropView:
    """``DROP MATERIALIZED VIEW [IF EXISTS] v``."""

    name: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterView:
    """``ALTER MATERIALIZED VIEW v SET TBLPROPERTIES (…)``."""

    name: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RetimeView:
    """``ALTER MATERIALIZED VIEW v SET TARGET LAG … | SET SCHEDULE CRON …``, or ``UNSET``."""

    name: tuple[str, ...]
    timing: Timing | None


@dataclass(frozen=True, slots=True)
class ShowViews:
    """``SHOW MATERIALIZED VIEWS``."""


@dataclass(frozen=True, slots=True)
class CreateSource:
    """``CREATE SOURCE s USING kind OPTIONS (…)``."""

    name: str
    kind: str
    options: tuple[tuple[str, str], ...] = ()
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSource:
    """``DROP SOURCE [IF EXISTS] s``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowSources:
    """``SHOW SOURCES``."""


@dataclass(frozen=True, slots=True)
class Passthrough:
    """A statement that is not ours, letter for letter."""

    text: str


Statement: TypeAlias = (
    CreateView
    | CreateCube
    | AlterView
    | RetimeView
    | RefreshView
    | ExplainView
    | DropView
    | ShowViews
    | CreateSource
    | DropSource
    | ShowSources
    | Passthrough
)

_POLICIES = ("auto", "incremental strict", "incremental", "full")


def parse_statement(sql: str) -> Statement:
    """What a text given to ``sql`` asks for.

    >>> parse_statement("REFRESH MATERIALIZED VIEW shop.v FULL;")
    RefreshView(name=('shop', 'v'), full=True)
    """
    try:
        text = tokenize(sql)
    except NotParsed:
        return Passthrough(sql)  # Spark will say what is wrong with it
    cursor = _Cursor(text)
    match cursor.next_word():
        case "CREATE":
            or_replace = cursor.take("OR", "REPLACE")
            if cursor.take("MATERIALIZED"):
                is_cube = cursor.take("CUBE")
                if not is_cube:
                    cursor.expect("VIEW")
                view = _create(cursor, or_replace=or_replace)
                return CreateCube(view) if is_cube else view
            if cursor.take("SOURCE"):
                return _create_source(cursor, or_replace=or_replace)
        case "ALTER" if cursor.take("MATERIALIZED"):
            cursor.expect("VIEW")
            return cursor.last(_alter(cursor))
        case "REFRESH" if cursor.take("MATERIALIZED"):
            cursor.expect("VIEW")
            return cursor.last(RefreshView(cursor.name(), full=cursor.take("FULL")))
        case "EXPLAIN" if cursor.take("MATERIALIZED"):
            cursor.expect("VIEW")
            return cursor.last(ExplainView(cursor.name()))
        case "DROP" if cursor.take("MATERIALIZED"):
            cursor.expect("VIEW")
            if_exists = cursor.take("IF", "EXISTS")
            return cursor.last(DropView(cursor.name(), if_exists))
        case "DROP" if cursor.take("SOURCE"):
            if_exists = cursor.take("IF", "EXISTS")
            return cursor.last(DropSource(cursor.identifier("a name"), if_exists))
        case "SHOW" if cursor.take("SOURCES"):
            return cursor.last(ShowSources())
        case "SHOW" if cursor.take("MATERIALIZED"):
            cursor.expect("VIEWS")
            return cursor.last(ShowViews())
    return Passthrough(sql)


@dataclass(slots=True)
class _Cursor:
    """A place in the statement, moving forward."""

    text: SqlText
    index: int = 0
    seen: set[str] = field(default_factory=set)

    def next_word(self) -> str:
        self.index += 1
        return self.text.word(self.index - 1)

    def ahead(self, *words: str) -> bool:
        return all(self.text.word(self.index + offset) == word for offset, word in enumerate(words))

    def take(self, *words: str) -> bool:
        found = self.ahead(*words)
        self.index += len(words) if found else 0
        return found

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.error(" ".join(words))

    def done(self) -> bool:
        return self.index >= len(self.text.tokens)

    def last(self, statement: T) -> T:
        if not self.done():
            raise self.error("the end of the statement")
        return statement

    def name(self) -> tuple[str, ...]:
        parts = [self.identifier("a name")]
        while self.take("."):
            parts.append(self.identifier("a name"))
        return tuple(parts)

    def identifier(self, expected: str) -> str:
        if not self.text.is_name(self.index):
            raise self.error(expected)
        self.index += 1
        return self.text.tokens[self.index - 1].text

    def string(self, expected: str) -> str:
        if not self.at_string():
            raise self.error(expected)
        pieces = [self.text.tokens[self.index].text]
        self.index += 1
        # To Spark 'it''s' is one string; here it comes as two that touch.
        tokens = self.text.tokens
        while self.at_string() and tokens[self.index].start == tokens[self.index - 1].end + 1:
            pieces.append(tokens[self.index].text)
            self.index += 1
        return "'".join(pieces)

    def at_string(self) -> bool:
        return not self.done() and self.text.tokens[self.index].token_type == TokenType.STRING

    def list(self, read: Callable[[_Cursor], T]) -> tuple[T, ...]:
        """``( item, … )``."""
        self.expect("(")
        items = [read(self)]
        while self.take(","):
            items.append(read(self))
        self.expect(")")
        return tuple(items)

    def error(self, expected: str) -> DefinitionError:
        tokens = self.text.tokens
        found = f"found {self.text.raw(self.index, self.index + 1)}" if not self.done() else "the text ends"
        return DefinitionError(
            f"Expected {expected}, but {found}",
            code="VK-SYNTAX",
            position=self.text.position(min(self.index, len(tokens) - 1)),
        )


def _create(cursor: _Cursor, *, or_replace: bool) -> CreateView:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    view = CreateView(cursor.name(), replace=or_replace, if_not_exists=if_not_exists)
    if cursor.ahead("("):
        listed = cursor.list(_column_or_expectation)
        view = replace(
            view,
            columns=tuple(each for each in listed if isinstance(each, ColumnSpec)),
            expectations=_named_once(cursor, [each for each in listed if isinstance(each, Expectation)]),
        )
    while not cursor.ahead("AS"):
        view = _clause(cursor, view)
    cursor.expect("AS")
    if cursor.done():
        raise cursor.error("a query")
    start = cursor.text.tokens[cursor.index].start
    return replace(view, query=cursor.text.sql[start : cursor.text.tokens[-1].end + 1], query_start=start)


def _alter(cursor: _Cursor) -> AlterView | RetimeView:
    name = cursor.name()
    if cursor.take("UNSET"):
        if not (cursor.take("TARGET", "LAG") or cursor.take("SCHEDULE")):
            raise cursor.error("TARGET LAG or SCHEDULE")
        return RetimeView(name, None)
    cursor.expect("SET")
    timing = _timing(cursor)
    if timing is not None:
        return RetimeView(name, timing)
    if not cursor.take("TBLPROPERTIES"):
        raise cursor.error("TBLPROPERTIES, TARGET LAG or SCHEDULE CRON")
    return AlterView(name, cursor.list(_property))


def _create_source(cursor: _Cursor, *, or_replace: bool) -> CreateSource:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.identifier("a name")
    cursor.expect("USING")
    kind = cursor.identifier("a kind, such as files").casefold()
    options = cursor.list(_property) if cursor.take("OPTIONS") else ()
    return cursor.last(CreateSource(name, kind, options, replace=or_replace, if_not_exists=if_not_exists))


def _clause(cursor: _Cursor, view: CreateView) -> CreateView:
    before = cursor.index
    clause, view = _read_clause(cursor, view)
    if clause in cursor.seen:
        cursor.index = before
        raise cursor.error(f"{clause} only once")
    cursor.seen.add(clause)
    return view


def _read_clause(cursor: _Cursor, view: CreateView) -> tuple[str, CreateView]:
    if cursor.take("COMMENT"):
        return "COMMENT", replace(view, comment=cursor.string("a comment in quotes"))
    if cursor.take("PARTITIONED BY"):
        return "PARTITIONED BY", replace(view, partitioned_by=cursor.list(_expression))
    if cursor.take("CLUSTER BY"):
        return "CLUSTER BY", replace(view, cluster_by=cursor.list(_expression))
    if cursor.take("TBLPROPERTIES"):
        return "TBLPROPERTIES", replace(view, properties=cursor.list(_property))
    if cursor.take("REFRESH", "POLICY"):
        return "REFRESH POLICY", replace(view, policy=_one_of(cursor, _POLICIES))
    if cursor.take("CONSISTENCY"):
        return "CONSISTENCY", replace(view, consistency=_one_of(cursor, ("strong", "complete")))
    if cursor.take("WITH", "NO", "DATA"):
        return "WITH NO DATA", replace(view, with_data=False)
    timing = _timing(cursor)
    if timing is not None:
        return "TARGET LAG or SCHEDULE", replace(view, timing=timing)
    raise cursor.error(
        "AS, COMMENT, PARTITIONED BY, CLUSTER BY, TBLPROPERTIES, REFRESH POLICY, TARGET LAG, SCHEDULE CRON, "
        "CONSISTENCY or WITH NO DATA"
    )


def _timing(cursor: _Cursor) -> Timing | None:
    """``TARGET LAG '…'`` or ``SCHEDULE CRON '…' [AT TIME ZONE '…']``, if one of them stands here."""
    if cursor.take("TARGET", "LAG"):
        return TargetLag(_understood(cursor, "an interval in quotes", read_interval))
    if not cursor.take("SCHEDULE"):
        return None
    cursor.expect("CRON")
    schedule = _understood(cursor, "a cron expression in quotes", read_schedule)
    if not (cursor.take("AT", "TIME", "ZONE") or cursor.take("AT TIME ZONE")):
        return schedule

    def zone(name: str) -> str:
        read_zone(name)
        return name

    return replace(schedule, time_zone=_understood(cursor, "a time zone in quotes", zone))


def _understood(cursor: _Cursor, expected: str, read: Callable[[str], T]) -> T:
    """What a quoted text says; if it says nothing, the error stands where the text does."""
    place = cursor.index
    said = cursor.string(expected)
    try:
        return read(said)
    except ValueError as error:
        raise DefinitionError(
            str(error),
            code="VK-TIMING",
            position=cursor.text.position(place),
            hint="For example TARGET LAG '5 minutes', or SCHEDULE CRON '0 6 * * 1-5'.",
        ) from error


def _column_or_expectation(cursor: _Cursor) -> ColumnSpec | Expectation:
    """``CONSTRAINT name EXPECT (predicate) [ON VIOLATION FAIL EPOCH | DROP ROW | WARN]``, or a column."""
    if not (cursor.ahead("CONSTRAINT") and cursor.text.word(cursor.index + 2) == "EXPECT"):
        return _column(cursor)
    cursor.expect("CONSTRAINT")
    name = cursor.identifier("a name")
    cursor.expect("EXPECT")
    if not cursor.ahead("("):
        raise cursor.error("a condition in parentheses")
    last = closing(cursor.text, cursor.index)
    if last == cursor.index + 1:
        raise cursor.error("a condition in parentheses")
    predicate = cursor.text.raw(cursor.index + 1, last)
    cursor.index = last + 1
    if not cursor.take("ON", "VIOLATION"):
        return Expectation(name, predicate)
    words = ("fail epoch", "fail update", "drop row", "warn")
    return Expectation(name, predicate, on_violation(_one_of(cursor, words)))


def on_violation(words: str) -> OnViolation:
    """FAIL UPDATE is what pipelines call it."""
    return OnViolation("fail epoch" if words == "fail update" else words)


def _named_once(cursor: _Cursor, expectations: Sequence[Expectation]) -> tuple[Expectation, ...]:
    names = [each.name.casefold() for each in expectations]
    if len(set(names)) != len(names):
        raise cursor.error("expectations with different names")
    return tuple(expectations)


def _column(cursor: _Cursor) -> ColumnSpec:
    name = cursor.identifier("a column name")
    return ColumnSpec(name, cursor.string("a comment in quotes") if cursor.take("COMMENT") else None)


def _expression(cursor: _Cursor) -> str:
    """One item of a list, as it stands: ``region``, ``days(ts)``, ``bucket(16, id)``."""
    start = cursor.index
    while not cursor.done() and not cursor.ahead(",") and not cursor.ahead(")"):
        cursor.index = closing(cursor.text, cursor.index) + 1 if cursor.ahead("(") else cursor.index + 1
    if cursor.index == start:
        raise cursor.error("a column")
    return cursor.text.raw(start, cursor.index)


def _property(cursor: _Cursor) -> tuple[str, str]:
    key = cursor.string("a property") if cursor.at_string() else ".".join(cursor.name())
    cursor.take("=")
    if cursor.done() or cursor.ahead(",") or cursor.ahead(")"):
        raise cursor.error("a value")
    if cursor.at_string():
        return key, cursor.string("a value")
    cursor.index += 1
    return key, cursor.text.tokens[cursor.index - 1].text


def _one_of(cursor: _Cursor, words: Sequence[str]) -> str:
    for each in words:
        if cursor.take(*each.upper().split()):
            return each
    *others, last = words
    raise cursor.error(f"{', '.join(others)} or {last}")
