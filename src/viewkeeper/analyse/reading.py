"""Analysis from end to end: a query's text in, its normal form and a verdict out.

    refuse what is no query ──► ask Spark ──► one meaning ──► find the tables ──► read the structure
    ──► ask Spark again

Spark is the referee twice: it says whether the query is valid and what its columns are, and whether the
SQL made from what we read has the same columns. Where reading ends early, the reason says why, and the
view is kept by recomputing its text.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from viewkeeper.algebra.relations import IllFormed, Relation, Window, children, scans
from viewkeeper.algebra.scalars import Named, column
from viewkeeper.analyse.analysis import Analysis, QueryText, Reason
from viewkeeper.analyse.canonical import canonical
from viewkeeper.analyse.clock import with_clock
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.holes import Resolve, query_text, refuse_paths
from viewkeeper.analyse.parsing import NotParsed, SqlText, parse, tokenize
from viewkeeper.analyse.qualify import without_qualify
from viewkeeper.analyse.queries import QueryReader
from viewkeeper.analyse.reasons import NotIncremental, ReasonCode
from viewkeeper.analyse.refusals import (
    refuse,
    refuse_bare_functions,
    refuse_file_columns,
    refuse_special_dates,
)
from viewkeeper.analyse.scopes import Names
from viewkeeper.analyse.spark_errors import SparkError, translate_spark_error
from viewkeeper.analyse.tables import find_tables
from viewkeeper.analyse.tidy import named, prune
from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import DefinitionError, position_at
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import ident_path, parse_path

Schema = Sequence[tuple[str, str]]
Referee = Callable[[str], Schema]

_INCOMPARABLE = re.compile(r"\bmap<|(?:^|[:<,\s])variant(?:$|[>,])", re.IGNORECASE)


def analyse(
    query: str,
    *,
    session: SessionPins,
    resolve: Resolve,
    referee: Referee,
    columns: Sequence[str] = (),
    candidates: Callable[[], Iterable[str]] = tuple,
    explained: Callable[[str], str] = lambda query: "",
) -> Analysis:
    """Read the query of a view.

    ``resolve`` knows the tables, by their names as the query writes them. ``referee`` returns the schema
    that Spark gives to a SQL text, or raises what Spark says against it. ``columns`` are the names that
    the view gives to its columns, if not the query's own; ``candidates`` lists tables, for the hint when
    one is not found; ``explained`` is the plan that Spark makes of a text."""
    try:
        text = tokenize(query)
    except NotParsed as error:
        raise DefinitionError(f"The query cannot be read: {error}", code="VK-SYNTAX") from error
    refuse(text)
    text = without_qualify(text)
    refuse_paths(text, resolve)
    original = text.sql[: text.tokens[-1].end + 1]
    schema = _ask(referee, original, candidates)
    refuse_special_dates(text, lambda: explained(original))
    names = _output_names(schema, columns)
    text, said = _clocked(text, session.time_zone, resolve, schema, referee)
    text, said = _canonical(text, schema, said, referee)
    holes = query_text(text, resolve)
    _check_holes(text, holes, schema, referee)
    tables = filter(None, (resolve(parse_path(table)) for table in holes.tables))
    refuse_file_columns(text, (name for table in tables for name, _ in table.columns))
    try:
        relation = _relation(text, session, resolve, names, said)
        _check_rows_compare(names, schema)
        _check_tables(relation, holes)
        _check_same(relation, names, schema, referee)
    except NotIncremental as stop:
        refuse_bare_functions(text, lambda: explained(text.sql[: text.tokens[-1].end + 1]))
        return Analysis(holes, None, stop.reason)
    if has_window(relation):
        # Rows that tie are told apart in what was read, and may be mixed up by the text.
        holes = query_text(tokenize(print_relation(relation)), resolve)
    return Analysis(holes, relation, None)


def has_window(relation: Relation) -> bool:
    """Whether the relation numbers or orders rows."""
    return isinstance(relation, Window) or any(map(has_window, children(relation)))


def _relation(
    text: SqlText, session: SessionPins, resolve: Resolve, names: Sequence[str], said: Sequence[str]
) -> Relation:
    """The query's relation under the view's column names; ``said`` are those that Spark gives."""
    try:
        tree = parse(text)
    except NotParsed as error:
        raise NotIncremental(ReasonCode.NOT_PARSED.reason(str(error))) from error
    if any(text.word(index) == "|>" for index in range(len(text.tokens))):
        raise NotIncremental(ReasonCode.NOT_PARSED.reason("pipe syntax"))
    if not isinstance(tree, exp.Query | exp.Values):
        raise NotIncremental(ReasonCode.NOT_PARSED.reason(f"{text.word(0)} as a query"))
    _check_nothing_lost(text, tree)
    # A lambda variable would capture a column of the same name.
    variables = {name.name for found in tree.find_all(exp.Lambda) for name in found.expressions}
    reader = Reader(text)
    queries = QueryReader(reader, resolve, Names(variables), case_sensitive=session.case_sensitive)
    try:
        built = queries.read(tree, {})
        if len(built.outputs) != len(names):
            raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason("the select list"))
        for output, name in zip(built.outputs, said, strict=True):
            if output.name is not None and output.name.lower() != name.lower():
                raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason(f"column {name}"))
        items = tuple(
            Named(name, column(output.column)) for name, output in zip(names, built.outputs, strict=True)
        )
        return prune(named(built.relation, items), names)
    except (IllFormed, RecursionError) as error:
        raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason(f"the query ({error})")) from error


def _ask(referee: Referee, query: str, candidates: Callable[[], Iterable[str]]) -> Schema:
    try:
        return referee(query)
    except DefinitionError:
        raise
    except Exception as error:
        if not isinstance(error, SparkError):
            raise
        refusal = translate_spark_error(error, query)
        if refusal.code == "VK-UNKNOWN-TABLE":
            near = _near(refusal.message.split()[-1], candidates())
            hint = f"Did you mean {' or '.join(near)}?" if near else refusal.hint
            refusal = DefinitionError(
                refusal.message, code=refusal.code, hint=hint, position=refusal.position
            )
        raise refusal from error


def _clocked(
    text: SqlText, zone: str, resolve: Resolve, schema: Schema, referee: Referee
) -> tuple[SqlText, list[str]]:
    """The query with clocks for the functions that read one, and the names that Spark gives its columns."""
    rewritten = with_clock(text, zone, resolve)
    said = [name for name, _ in schema] if rewritten is text else _same_types(referee, rewritten.sql, schema)
    if said is None:
        raise DefinitionError(
            "The query reads the clock where no subquery could stand",
            code="VK-NONDETERMINISTIC",
            hint="Read it in WHERE, or in a query inside this one.",
            position=position_at(text.sql, 0),
        )
    return rewritten, said


def _same_types(referee: Referee, sql: str, schema: Schema) -> list[str] | None:
    """The names of the columns of what a query was rewritten to; ``None`` if it is another one."""
    try:
        found: Schema = referee(sql)
    except Exception as error:
        if not isinstance(error, SparkError | DefinitionError):
            raise
        return None
    return [name for name, _ in found] if _types(found) == _types(schema) else None


def _canonical(text: SqlText, schema: Schema, said: list[str], referee: Referee) -> tuple[SqlText, list[str]]:
    """The query with one meaning, and the names that Spark gives to its columns."""
    rewritten = canonical(text)
    if rewritten is text:
        return text, said
    found = _same_types(referee, rewritten.sql, schema)
    if found is None:
        raise DefinitionError(
            "An aggregate of the query depends on the order in which its rows are read",
            code="VK-NONDETERMINISTIC",
            hint="Give columns that collect_list, max_by and the like compute a name with AS, and collect"
            " only values that can be sorted.",
            position=position_at(text.sql, 0),
        )
    return rewritten, found


def _near(name: str, tables: Iterable[str]) -> list[str]:
    by_last = {parse_path(table)[-1].lower(): table for table in tables}
    wanted = name.replace("`", "").split(".")[-1].lower()
    return [by_last[found] for found in difflib.get_close_matches(wanted, by_last, n=3)]


def _output_names(schema: Schema, columns: Sequence[str]) -> list[str]:
    if columns and len(columns) != len(schema):
        raise DefinitionError(
            f"The view names {len(columns)} columns, but its query has {len(schema)}",
            code="VK-COLUMN-COUNT",
            hint="Name every column of the query, in order, or none.",
        )
    names = list(columns) or [name for name, _ in schema]
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise DefinitionError(
                f"Two columns of the view are named {name}",
                code="VK-DUPLICATE-COLUMN",
                hint="Give one of them another name with AS.",
            )
        if name.lower().startswith("_vk_"):
            raise DefinitionError(
                f"Column {name} has a name that is kept for hidden columns",
                code="VK-RESERVED-NAME",
                hint="Give it a name that does not begin with _vk_.",
            )
        seen.add(name.lower())
    return names


def _check_holes(text: SqlText, holes: QueryText, schema: Schema, referee: Referee) -> None:
    """The query with every table replaced by itself must still be the same query."""
    same = holes.fill({table: ident_path(parse_path(table)) for table in holes.tables})
    if _same_types(referee, same, schema) is None:
        raise DefinitionError(
            "It is not clear which tables the query reads",
            code="VK-NOT-UNDERSTOOD",
            hint="Name every table plainly after FROM or JOIN, with an alias of its own.",
            position=position_at(text.sql, 0),
        )


def _check_nothing_lost(text: SqlText, tree: exp.Expr) -> None:
    """The tree must have every table that the text names. What the parser leaves out would be taken for words
    without a meaning of their own, and a table in there would never be looked at again."""
    named = Counter(name.parts[-1].lower() for name in find_tables(text))
    if named - Counter(table.name.lower() for table in tree.find_all(exp.Table)):
        raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason("the list of tables"))


def _check_tables(relation: Relation, holes: QueryText) -> None:
    """The structure must read no table that the text does not."""
    if not {scan.table for scan in scans(relation)} <= set(holes.tables):
        raise NotIncremental(ReasonCode.NOT_UNDERSTOOD.reason("the list of tables"))


def _check_rows_compare(names: Sequence[str], schema: Schema) -> None:
    for name, (_, type_name) in zip(names, schema, strict=True):
        if _INCOMPARABLE.search(type_name):
            raise NotIncremental(ReasonCode.MAP_COLUMN.reason(name, type_name))


def _check_same(relation: Relation, names: Sequence[str], schema: Schema, referee: Referee) -> None:
    try:
        regenerated = referee(print_relation(relation))
    except Exception as error:
        if not isinstance(error, SparkError | DefinitionError):
            raise
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise NotIncremental(ReasonCode.REGENERATED_DIFFERS.reason(f"Spark says {said}")) from error
    expected = [(name, type_name) for name, (_, type_name) in zip(names, schema, strict=True)]
    if list(regenerated) != expected:
        raise NotIncremental(_difference(expected, regenerated))


def _difference(expected: Schema, regenerated: Schema) -> Reason:
    for wanted, got in zip(expected, regenerated, strict=False):
        if wanted != got:
            said = f"column {' '.join(wanted)} became {' '.join(got)}"
            return ReasonCode.REGENERATED_DIFFERS.reason(said)
    return ReasonCode.REGENERATED_DIFFERS.reason("the number of columns changed")


def _types(schema: Schema) -> list[str]:
    return [type_name for _, type_name in schema]
