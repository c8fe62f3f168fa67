"""The condition by which rows of a source are kept: what it may be, and how much of it a database can decide.

It is one of Spark's, and Spark decides. A database is told only the parts that both read alike, so that it
need not send rows that Spark would throw away::

    kept = σ_c(R)        pushed = σ_p(R) ⊇ σ_c(R),  p a conjunction of parts of c
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeeper.analyse.parsing import NotParsed, SqlText, parse, tokenize
from viewkeeper.analyse.refusals import nondeterministic, refuse, refuse_special_dates
from viewkeeper.define.clock import FUNCTIONS
from viewkeeper.errors import DefinitionError
from viewkeeper.sources.contract import SourceColumn
from viewkeeper.sources.postgres_server import quoted, text_literal
from viewkeeper.sources.postgres_types import PostgresType
from viewkeeper.sql.quoting import nulls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPARED: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST_DIGITS = 18
"""A whole number of so many digits is one on both sides."""


def require_condition(
    spark: SparkSession, source: str, condition: str | None, columns: Sequence[SourceColumn]
) -> None:
    """Refuse what is no condition over these columns, or is not a matter of a row alone."""
    if condition is None:
        return
    from pyspark.errors import PySparkException  # what is pushed down is worked out without Spark, too

    try:
        row = nulls((column.name, column.type) for column in columns)
        query = f"SELECT 1 FROM ({row}) AS t WHERE ({condition}\n)"
        text = tokenize(query)
        refuse(text)
        alone = tokenize(condition)
        _refuse_clocks(alone, {column.name.casefold() for column in columns})
        words = [alone.word(index) for index in range(len(alone.tokens))]
        opened = {word for before, word in pairwise(words) if before == "("}
        if "SELECT" in words or opened & {"TABLE", "VALUES", "FROM", "WITH"}:
            raise DefinitionError("it reads other tables", code="VK-SOURCE-OPTION")
        if min(accumulate({"(": 1, ")": -1}.get(word, 0) for word in words), default=0) < 0:
            raise DefinitionError("it closes a bracket that it did not open", code="VK-SOURCE-OPTION")
        _ = spark.sql(query).schema
        refuse_special_dates(text, lambda: spark.sql(f"EXPLAIN EXTENDED {query}").collect()[0][0])
    except DefinitionError as error:
        raise DefinitionError(
            f"source {source}: the condition {condition}: {error.message}",
            code=error.code,
            hint="Whether a row is kept must be a matter of the row alone.",
        ) from None
    except (PySparkException, NotParsed) as error:
        told = str(error).strip().splitlines()
        said = told[0] if told else type(error).__name__
        raise DefinitionError(
            f"source {source}: the condition {condition} cannot be used: {said}",
            code="VK-SOURCE-OPTION",
            hint=f"It is Spark's SQL, over the columns that are kept: {', '.join(c.name for c in columns)}.",
        ) from None


def _refuse_clocks(text: SqlText, columns: Set[str]) -> None:
    """A view may read the clock, which its epoch pins; what was kept of a source is not looked at again."""
    for index, token in enumerate(text.tokens):
        name = token.text.lower()
        called = text.word(index + 1) == "("
        bare = name not in columns and text.word(index - 1) != "."
        if name in FUNCTIONS and text.is_name(index) and (called or bare):
            raise nondeterministic(text, index, name)


def pushed(condition: str | None, types: Mapping[str, PostgresType]) -> str:
    """What PostgreSQL can decide of a condition; empty if nothing.

    >>> kinds = {"id": PostgresType("integer", "int"), "kind": PostgresType("text", "string")}
    >>> pushed("id > 3 AND upper(kind) = 'A' AND kind IN ('a', 'b')", kinds)
    '"id" > 3 AND "kind" IN (\\'a\\', \\'b\\')'
    >>> pushed("id > 3 OR kind = 'a'", kinds)
    ''
    """
    if condition is None:
        return ""
    try:
        parsed = parse(tokenize(f"SELECT 1 FROM t WHERE ({condition}\n)")).find(exp.Where)
    except NotParsed:
        return ""
    known = {name.casefold(): (name, kind) for name, kind in types.items()}
    found = [] if parsed is None else [_decided(part, known) for part in _conjuncts(parsed.this)]
    return " AND ".join(part for part in found if part is not None)


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    node = _bare(node)
    if isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


_Known = Mapping[str, tuple[str, PostgresType]]


def _decided(node: exp.Expr, known: _Known) -> str | None:
    operator = _COMPARED.get(type(node))
    if operator is not None:
        assert isinstance(node, exp.Binary)
        left, right = _bare(node.left), _bare(node.right)
        if isinstance(right, exp.Column):
            left, right, operator = right, left, _MIRRORED[operator]
        return _comparison(left, operator, [right], known)
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return _comparison(_bare(node.this), "IN", [_bare(each) for each in node.expressions], known)
    if isinstance(node, exp.Not) and isinstance(_bare(node.this), exp.Is):
        return _null_test(_bare(node.this), "IS NOT NULL", known)
    return _null_test(node, "IS NULL", known)


def _comparison(column: exp.Expr, operator: str, values: Sequence[exp.Expr], known: _Known) -> str | None:
    found = _column(column, known)
    if found is None:
        return None
    name, kind = found
    written = [_value(value, kind, ordered=operator not in ("=", "IN")) for value in values]
    if not all(written):
        return None
    listed = ", ".join(each for each in written if each is not None)
    return f"{quoted(name)} {operator} {f'({listed})' if operator == 'IN' else listed}"


def _value(node: exp.Expr, kind: PostgresType, *, ordered: bool) -> str | None:
    """A value that is the same, and compared alike, on both sides. Texts are ordered otherwise there."""
    negative = isinstance(node, exp.Neg)
    literal = _bare(node.this) if negative else node
    if not isinstance(literal, exp.Literal):
        return None
    text = str(literal.this)
    if kind.is_whole and not literal.is_string and text.isdigit() and len(text) <= _MOST_DIGITS:
        return f"-{text}" if negative else text
    plain = literal.is_string and not set(text) & set("'\\\0")
    return text_literal(text) if kind.is_text and plain and not (ordered or negative) else None


def _null_test(node: exp.Expr, told: str, known: _Known) -> str | None:
    if not isinstance(node, exp.Is) or not isinstance(_bare(node.expression), exp.Null):
        return None
    found = _column(_bare(node.this), known)
    return None if found is None else f"{quoted(found[0])} {told}"


def _column(node: exp.Expr, known: _Known) -> tuple[str, PostgresType] | None:
    if not isinstance(node, exp.Column) or node.table:
        return None
    return known.get(node.name.casefold())
