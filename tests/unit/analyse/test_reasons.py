"""Each reason why a query is kept by full recompute, with its place in the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shop import PINS, Referee, read, resolve

from viewkeeper.analyse.reading import analyse
from viewkeeper.analyse.reason_page import REFUSALS, page
from viewkeeper.analyse.reasons import ReasonCode

# The query, the code, and the words at which the reason points.
CASES = [
    (
        "SELECT qty FROM pos WHERE (qty > 1) = (store IN (SELECT store FROM stores))",
        "SUBQUERY_EXPRESSION",
        None,
    ),
    (
        "SELECT (SELECT max(city) FROM stores s WHERE s.store = p.store GROUP BY region) AS a FROM pos p",
        "SUBQUERY_EXPRESSION",
        None,
    ),
    ("SELECT percentile_approx(qty, 0.5) OVER (PARTITION BY store) FROM pos", "WINDOW_FUNCTION", None),
    ("SELECT store FROM pos ORDER BY store LIMIT 1 + 2", "LIMIT", None),
    ("SELECT 1 + percentile_approx(qty, 0.5) FROM pos", "AGGREGATE_FUNCTION", "percentile_approx(qty, 0.5)"),
    ("SELECT try_sum(qty) FILTER (WHERE item > 1) FROM pos", "AGGREGATE_FUNCTION", "try_sum(qty)"),
    ("SELECT qty + store FROM pos GROUP BY store + qty", "GROUPING_EXPRESSION", None),
    ("SELECT store FROM pos GROUP BY store, window(note, '1 day')", "TIME_WINDOW", "window"),
    ("SELECT store FROM pos GROUP BY store, window(d, '1 month')", "TIME_WINDOW", "window"),
    ("SELECT page FROM visits GROUP BY page, window(at, '1 hour', '1 second')", "TIME_WINDOW", "window"),
    ("SELECT page FROM visits GROUP BY page, window(at, '1 h'), window(at, '2 h')", "TIME_WINDOW", None),
    ("SELECT count(*) AS a FROM visits GROUP BY window(span, '1 hour')", "TIME_WINDOW", None),
    ("SELECT page FROM visits GROUP BY page, session_window(at, '1 hour')", "TIME_WINDOW", None),
    ("SELECT window(at, '1 hour') AS a FROM visits", "TIME_WINDOW", None),
    ("SELECT x.a FROM pos LATERAL VIEW inline(array(info)) x", "LATERAL_VIEW", None),
    ("SELECT q.x FROM pos p JOIN LATERAL (SELECT p.qty AS x WHERE p.qty > 1) q", "LATERAL_VIEW", None),
    (
        "SELECT x FROM pos p, LATERAL (SELECT city AS x FROM stores s WHERE s.store = p.store)",
        "LATERAL_VIEW",
        None,
    ),
    ("SELECT x FROM pos p, LATERAL (SELECT max(p.qty) AS x)", "AGGREGATE_FUNCTION", None),
    ("SELECT a FROM pos, LATERAL (SELECT qty AS item, item + 1 AS a)", "NOT_UNDERSTOOD", "item"),
    ("SELECT * FROM pos PIVOT (sum(qty) FOR (item, store) IN ((1, 2)))", "PIVOT", None),
    ("SELECT id FROM range(10 + 1)", "TABLE_FUNCTION", "range"),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r",
        "RECURSIVE_CTE",
        None,
    ),
    ("SELECT my_function(qty) FROM pos", "USER_FUNCTION", "my_function(qty)"),
    ("SELECT lake.shop.f(qty) FROM pos", "USER_FUNCTION", None),
    ("SELECT concat_ws(',', *) FROM pos", "STAR_ARGUMENT", None),
    ("SELECT info.* FROM pos", "STRUCT_STAR", "info.*"),
    ("SELECT v:a.b FROM pos", "NOT_PARSED", None),
    ("FROM pos |> SELECT qty", "NOT_PARSED", None),
    ("SELECT arrays_zip(p.qty, i.qty) FROM pos p, items i", "NOT_UNDERSTOOD", "arrays_zip(p.qty, i.qty)"),
    ("SELECT q.a FROM cases AS q", "NOT_UNDERSTOOD", None),
    ("SELECT info.b AS a FROM pos GROUP BY info.a", "GROUPING_EXPRESSION", None),
    ("SELECT info.a AS qty FROM pos ORDER BY -qty LIMIT 3", "NOT_UNDERSTOOD", "-qty"),
    ("SELECT session_variable FROM pos", "NOT_UNDERSTOOD", "session_variable"),
    ("SELECT qty FROM pos HAVING qty > 1", "NOT_UNDERSTOOD", None),
]


@pytest.mark.parametrize(("query", "code", "at"), CASES)
def test_reason(query: str, code: str, at: str | None) -> None:
    analysis = read(query)
    assert analysis.relation is None
    assert analysis.reason is not None
    assert analysis.reason.code == code, analysis.reason
    if at is not None:
        assert analysis.reason.position is not None
        assert query[analysis.reason.position.start :].startswith(at)


def test_every_code_has_a_test() -> None:
    # Below, and in plan/test_exactness.
    elsewhere = {"MAP_COLUMN", "COLLATION", "REGENERATED_DIFFERS", "INEXACT_INNER_AGGREGATE"}
    tested = {code for _, code, _ in CASES} | elsewhere
    assert tested == {code.value for code in ReasonCode}


def test_the_page_of_reasons_is_up_to_date() -> None:
    assert (Path(__file__).parents[3] / "docs" / "reasons.md").read_text("utf-8") == page()


def test_every_refusal_is_on_the_page_and_is_tested() -> None:
    root = Path(__file__).parents[3]
    raised = {
        code
        for path in (root / "src" / "viewkeeper" / "analyse").glob("*.py")
        if path.name != "reason_page.py"
        for code in re.findall(r"VK-[A-Z-]+", path.read_text("utf-8"))
    }
    assert raised == set(REFUSALS)
    tests = "".join(path.read_text("utf-8") for path in (root / "tests").rglob("test_*.py"))
    assert [code for code in REFUSALS if f'"{code}"' not in tests] == []


def test_a_map_cannot_be_compared() -> None:
    referee = Referee(type_name="struct<m:map<string,int>>")
    analysis = analyse("SELECT attrs AS a FROM pos", session=PINS, resolve=resolve, referee=referee)
    assert analysis.reason is not None
    assert analysis.reason.code == "MAP_COLUMN"


def test_regenerated_sql_with_another_schema() -> None:
    schemas = iter([[("a", "int")], [("a", "int")], [("a", "bigint")]])
    analysis = analyse(
        "SELECT qty AS a FROM pos", session=PINS, resolve=resolve, referee=lambda _: next(schemas)
    )
    assert str(analysis.reason).startswith("REGENERATED_DIFFERS")
    assert "column a int became a bigint" in str(analysis.reason)


def test_the_text_is_there_whatever_the_reason() -> None:
    analysis = read("SELECT try_sum(p.qty) FROM pos p LEFT JOIN lake.shop.stores ON p.store = stores.store")
    assert analysis.reason is not None
    assert analysis.tables == ("lake.shop.pos", "lake.shop.stores")
    filled = analysis.text.fill({"lake.shop.pos": "POS_AT_5", "lake.shop.stores": "STORES_AT_6"})
    assert (
        filled
        == "SELECT try_sum(p.qty) FROM POS_AT_5 p LEFT JOIN STORES_AT_6 AS `stores` ON p.store = stores.store"
    )
