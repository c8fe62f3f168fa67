"""Where queries name tables, and the text with holes there."""

from __future__ import annotations

import pytest
from shop import read, resolve

from viewkeeper.analyse.analysis import QueryText, TableInfo
from viewkeeper.analyse.holes import holes
from viewkeeper.analyse.parsing import tokenize
from viewkeeper.analyse.tables import find_tables

# The query, and the tables it reads as written; a star marks those with an alias of their own.
FOUND = [
    ("SELECT a FROM t", "t"),
    ("SELECT a FROM t AS x", "t*"),
    ("SELECT a FROM t x WHERE a > 1", "t*"),
    ("SELECT a FROM a.`b c`.t, u", "a.b c.t u"),
    ("SELECT a FROM t JOIN u ON t.a = u.a LEFT JOIN v w USING (a)", "t u v*"),
    ("SELECT a FROM (t JOIN u ON true) x, (SELECT b FROM v) y, w", "t u v w"),
    ("SELECT a FROM t UNION ALL SELECT a FROM t EXCEPT TABLE v", "t t v"),
    ("FROM t SELECT a", "t"),
    ("WITH t AS (SELECT * FROM t), u (a, b) AS (SELECT 1 FROM t, w) SELECT * FROM u, t", "t w"),
    ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c", "c"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT * FROM r JOIN t", "t"),
    ("SELECT a FROM t WHERE a IN (SELECT b FROM u) AND EXISTS (SELECT 1 FROM v)", "t u v"),
    ("SELECT (SELECT max(a) FROM u) FROM t ORDER BY a, b LIMIT 3", "u t"),
    ("SELECT extract(year FROM d), trim(BOTH 'x' FROM y) FROM t", "t"),
    ("SELECT substring(a FROM 2 FOR 3) FROM t WHERE a IS NOT DISTINCT FROM b", "t"),
    ("SELECT a FROM t LATERAL VIEW explode(x) l AS p, q WHERE a = 1", "t"),
    ("SELECT a FROM range(10), t, VALUES (1), (2) v, u", "t u"),
    ("SELECT a FROM t, LATERAL (SELECT b FROM u)", "t u"),
    ("SELECT t.from, from.t FROM t", "t"),
    ("SELECT sum(a) FROM t GROUP BY a, b HAVING sum(a) > 1, c", "t"),
    ("SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2))", "t"),
    ("FROM t |> JOIN u ON t.a = u.a |> WHERE a > 1, b |> LEFT JOIN v w USING (a) |> SELECT a", "t u v*"),
    ("SELECT 1 AS one |> CROSS JOIN t |> UNION ALL TABLE u |> JOIN (SELECT * FROM v) x USING (a)", "t u v"),
]


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_finds_tables(query: str, expected: str) -> None:
    found = find_tables(tokenize(query))
    shown = " ".join(".".join(name.parts) + ("*" if name.aliased else "") for name in found)
    assert shown == expected


def _pinned(query: QueryText) -> str:
    return query.fill({table: f"{table} VERSION AS OF 5" for table in query.tables})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT qty FROM pos", "SELECT qty FROM lake.shop.pos VERSION AS OF 5 AS `pos`"),
        ("SELECT qty FROM shop.pos p;", "SELECT qty FROM lake.shop.pos VERSION AS OF 5 p"),
        (
            "SELECT lake.shop.pos.qty, shop.pos.info.a, pos.d FROM pos -- all",
            "SELECT pos.qty, pos.info.a, pos.d FROM lake.shop.pos VERSION AS OF 5 AS `pos`",
        ),
        ("TABLE stores", "SELECT * FROM lake.shop.stores VERSION AS OF 5 AS `stores`"),
    ],
)
def test_fills(query: str, expected: str) -> None:
    assert _pinned(read(query).text) == expected


def test_an_empty_fill_is_the_text() -> None:
    query = "SELECT  p.qty /* c */ FROM pos p\n JOIN stores s ON p.store=s.store -- x\n WHERE p.qty>1"
    text = read(query).text
    assert text.fill({"lake.shop.pos": "pos", "lake.shop.stores": "stores"}) == query


def test_any_select_can_have_holes() -> None:
    def views(parts: tuple[str, ...]) -> TableInfo | None:
        return TableInfo("lake.shop.v", ()) if parts[-1] == "v" else None

    text = holes("SELECT rand(), * FROM v JOIN temporary_thing t ON v.a = t.a", views)
    assert text is not None
    assert text.fill({"lake.shop.v": "x"}) == (
        "SELECT rand(), * FROM x AS `v` JOIN temporary_thing t ON v.a = t.a"
    )


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO t SELECT * FROM pos",
        "SELECT 1",
        "SELECT * FROM nothing",
        "SELECT * FROM pos VERSION AS OF 1",
        "'",
    ],
)
def test_no_holes(query: str) -> None:
    assert holes(query, resolve) is None
