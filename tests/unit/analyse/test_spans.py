"""An expression is the user's own text: with its holes filled by the same names, nothing has changed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shop import PINS, read
from sqlglot.parsers.spark import SparkParser

from viewkeeper.algebra.relations import Project
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.analyse.parsing import _SpanParser
from viewkeeper.define.definitions import SessionPins
from viewkeeper.sql.quoting import ident

_ATOMS = [
    "qty",
    "store",
    "price",
    "`note`",
    "info.b.c",
    "tags[0]",
    "attrs['k']",
    "1L",
    "2.50BD",
    "'it\\'s'",
    "NULL",
]
_FORMS = [
    *("{} + {}", "{}*{}", "({} - {})", "-{}", "+{}", "~{}", "{} || {}", "{} DIV {}", "{} % {}", "{}::string"),
    *("log10({})", "nvl2({}, {}, {})", "IF({} > 1, {}, {})", "date_add({}, {})", "substr({}, 2)"),
    *("CASE WHEN {} THEN {} ELSE {} END", "cast({} AS decimal(10, 2))", "try_cast({} as int)"),
    *("{} BETWEEN {} AND {}", "NOT {}", "{} IS NOT NULL", "{} IN ({}, {})", "{} <=> {}", "{} == {}"),
    *("{} AND {}", "{} OR {}", "{} LIKE 'a%'", "{} RLIKE r'\\d'", "{} IS DISTINCT FROM {}"),
    *("transform(tags, x -> concat(x, {}))", "filter(tags, (x, i) -> x = {})", "struct(1 AS a, {} AS b)"),
    *("extract(YEAR FROM {})", "trim(BOTH 'x' FROM {})", "position({} IN {})", "dateadd(DAY, {}, d)"),
    *("{} + INTERVAL '1' DAY", "DATE '2020-01-01' > {}", "coalesce( {} ,{} )", "named_struct('a',{})"),
]


def _fill(form: str, parts: tuple[str, ...]) -> str:
    supply = iter(part if part in _ATOMS else f"({part})" for part in parts * 3)
    return re.sub(r"\{\}", lambda _: next(supply), form)


_EXPRESSIONS = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: st.builds(_fill, st.sampled_from(_FORMS), st.tuples(inner, inner, inner)),
    max_leaves=8,
)


def _scalar(expression: str, pins: SessionPins = PINS) -> Scalar:
    analysis = read(f"SELECT 0 AS z, {expression} AS a FROM pos", "z", "a", pins=pins)
    assert analysis.reason is None, analysis.reason
    assert isinstance(analysis.relation, Project)
    return analysis.relation.items[1].scalar


def _filled(scalar: Scalar) -> str:
    return "".join(ident(part.name) if isinstance(part, Column) else part for part in scalar.parts)


@settings(max_examples=300, deadline=None)
@given(_EXPRESSIONS)
def test_the_text_is_kept(expression: str) -> None:
    assert _filled(_scalar(expression)) == expression.replace("`note`", "note")


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("qty + pos.qty", {"qty"}),
        ("info.b.c", {"info"}),
        ("pos.info.b.c", {"info"}),
        ("lake.shop.pos.info.b.c", {"info"}),
        ("transform(tags, qty -> qty + store)", {"tags", "store"}),
        ("transform(tags, QTY -> qty + store)", {"tags", "store"}),
        ("struct(qty)", {"qty"}),
        ("'qty' || \"store\"", set()),
        ("timestampdiff(MONTH, d, d)", {"d"}),
        ("make_date(year => qty, month => 1, day => 2)", {"qty"}),
    ],
)
def test_the_columns_are_found(expression: str, columns: set[str]) -> None:
    assert _scalar(expression).columns == columns


def test_comments_and_line_breaks_become_spaces() -> None:
    assert _filled(_scalar("qty -- one\n  + /* two */ 'a\nb'")) == "qty + 'a\nb'"


def test_names_in_their_own_case() -> None:
    pins = SessionPins("lake", ("shop",), "UTC", case_sensitive=True)
    assert _scalar("qty", pins).columns == {"qty"}
    reason = read("SELECT QTY AS a FROM pos", pins=pins).reason
    assert reason is not None
    assert reason.code == "NOT_UNDERSTOOD"


@pytest.mark.parametrize("inside", ["(SELECT max(qty) FROM items)", "count(*) OVER ()"])
def test_what_the_parser_loses_is_not_taken_for_words(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """sqlglot forgot the parentheses of ``array(…)[0]``; whatever else it forgets must not be passed over."""
    query = f"SELECT array({inside}, 0)[0] AS a FROM pos"
    assert read(query).reason is None
    monkeypatch.setattr(_SpanParser, "ARRAY_CONSTRUCTORS", SparkParser.ARRAY_CONSTRUCTORS)
    reason = read(query).reason
    assert reason is not None
    assert reason.code == "NOT_UNDERSTOOD"
