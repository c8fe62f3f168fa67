"""``current_date`` and its like, read as tables: clocks, which the epoch sets.

    WHERE day >= current_date - INTERVAL 7 DAYS
    WHERE day >= (SELECT max(now) FROM _clock.UTC.date) - INTERVAL 7 DAYS

Whatever can be done with a subquery can be done with these. A condition of WHERE that reads nothing else is a
*time filter*, which has a rule of its own: as time passes, only the rows at its edges are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from viewkeeper.algebra.relations import Field, Relation, Scan, TimeFilter
from viewkeeper.algebra.scalars import Scalar, column
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.functions import WITHOUT_PARENTHESES
from viewkeeper.analyse.holes import Resolve
from viewkeeper.analyse.inputs import Inputs, column_lookup
from viewkeeper.analyse.parsing import SqlText, tokenize
from viewkeeper.analyse.scopes import Names
from viewkeeper.analyse.tables import Unsure, find_tables
from viewkeeper.define.clock import CLOCK, FUNCTIONS, NOW, clock_table, zone_of
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.quoting import parse_path, quote_path

_SHIFTS = frozenset(
    ("date_sub", "date_add", "dateadd", "add_months", "trunc", "date_trunc", "last_day", "date")
)
"""Functions of a point in time that are unknown for none, or for every one."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


def with_clock(text: SqlText, zone: str, resolve: Resolve) -> SqlText:
    """The query with clocks in the place of the functions that read one; the same if there are none."""
    pieces: list[str] = []
    done = 0
    for index, end in _calls(text, resolve):
        name = text.tokens[index].text.lower()
        if zone_of(zone) is None:
            raise DefinitionError(
                f"The function {name} depends on the time zone {zone}, which is not known here",
                code="VK-TIME-ZONE",
                hint="Set spark.sql.session.timeZone to a region such as Europe/Berlin, or to UTC.",
                position=text.position(index),
            )
        table = quote_path(parse_path(clock_table(FUNCTIONS[name], zone)))
        pieces += [text.sql[done : text.tokens[index].start], f"(SELECT max({NOW}) FROM {table})"]
        done = text.tokens[end - 1].end + 1
    return tokenize("".join((*pieces, text.sql[done:]))) if pieces else text


def _calls(text: SqlText, resolve: Resolve) -> Iterator[tuple[int, int]]:
    """The tokens of each call. Without parentheses a name may be that of a column, which goes first."""
    for index, token in enumerate(text.tokens):
        name = token.text.lower()
        if name not in FUNCTIONS or not text.is_name(index):
            continue
        if (text.word(index + 1), text.word(index + 2)) == ("(", ")"):
            yield index, index + 3
        elif (
            name in WITHOUT_PARENTHESES
            and text.word(index + 1) not in ("(", ".")
            and not (text.word(index - 1) in (".", "AS") or _is_column(text, name, resolve))
        ):
            yield index, index + 1


def _is_column(text: SqlText, name: str, resolve: Resolve) -> bool:
    """Whether a table that the query reads has such a column, or the query itself makes one."""
    aliased = any(
        text.word(at) == "AS" and text.tokens[at + 1].text.lower() == name
        for at in range(len(text.tokens) - 1)
    )
    try:
        tables = [resolve(found.parts) for found in find_tables(text)]
    except Unsure:
        return True
    return aliased or any(
        column.lower() == name for table in tables if table is not None for column, _ in table.columns
    )


def clock_of(node: exp.Expr) -> tuple[str, ...] | None:
    """The clock that a subquery asks, if it does."""
    query = node.this if isinstance(node, exp.Subquery) else node
    source = query.args.get("from_") if isinstance(query, exp.Select) else None
    table = source.this if isinstance(source, exp.From) else None
    if not isinstance(table, exp.Table):
        return None
    parts = tuple(part.name for part in table.parts)
    return parts if parts[0] == CLOCK else None


def clock_read(node: exp.Expr) -> tuple[str, ...] | None:
    """The one clock that a condition reads; ``None`` if it has other subqueries, or several clocks."""
    asked = {clock_of(query) for query in node.find_all(exp.Select, exp.SetOperation, exp.Exists)}
    return asked.pop() if len(asked) == 1 else None


def time_filtered(
    inputs: Inputs, node: exp.Expr, reader: Reader, names: Names, resolve: Resolve
) -> Inputs | None:
    """WHERE, as far as it is a time filter: over the one input that it concerns, or over all of them.
    ``None`` if it is none, or reads columns from around the query."""
    parts = clock_read(node)
    info = None if parts is None else resolve(parts)
    if info is None:
        return None
    now = names.fresh(NOW)

    def stand_in(inner: exp.Expr) -> Scalar | None:
        return column(now) if clock_of(inner) is not None else None

    scope = inputs.scope
    predicate = reader.scalar(node, column_lookup(scope), scope.names(), stand_in)

    def filtered(relation: Relation) -> Relation:
        clock = Scan(info.table, (Field(NOW, now),))
        return TimeFilter(relation, clock, predicate, lasting=_is_lasting(node))

    read = predicate.columns - {now}
    for at, relation in enumerate(inputs.relations):
        if read <= set(relation.columns):
            relations = (*inputs.relations[:at], filtered(relation), *inputs.relations[at + 1 :])
            return replace(inputs, relations=relations)
    whole = inputs.relation()
    return Inputs((filtered(whole),), (), scope) if read <= set(whole.columns) else None


def _is_lasting(node: exp.Expr) -> bool:
    """Whether a condition compares something with a point in time: where it is true, nothing is NULL, so that
    it is not unknown at any other time."""
    if not isinstance(node, _COMPARISONS):
        return False
    return all(clock_read(each) is None or _is_point(each) for each in node.iter_expressions())


def _is_point(node: exp.Expr) -> bool:
    """The clock itself, moved by a constant or cut to a unit."""
    if clock_of(node) is not None:
        return True
    match node:
        case exp.TryCast():
            return False
        case exp.Paren() | exp.Cast():
            return _is_point(node.this)
        case exp.Add() | exp.Sub():
            operands = [node.this, node.expression]
        case exp.Anonymous() if node.name.lower() in _SHIFTS:
            operands = node.expressions
        case _:
            return False
    return all(
        _is_point(each) or each.find(exp.Column, exp.Anonymous, exp.Query) is None for each in operands
    )
