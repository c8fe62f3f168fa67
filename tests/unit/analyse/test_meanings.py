"""Queries whose meaning is easily mistaken: read right, or not at all."""

from __future__ import annotations

import pytest
from shop import read

from viewkeeper.sql.printer import print_relation

RIGHT = [
    # An aggregate without keys is one row, also when nobody asks for what it says.
    ("SELECT qty AS a FROM (SELECT qty, (SELECT max(store) FROM stores) AS m FROM pos)", "max(store)"),
    ("SELECT qty AS a FROM pos WHERE EXISTS (SELECT max(store) FROM stores WHERE store > 1)", "max(store)"),
    ("SELECT count(*) AS a FROM (SELECT count(*) AS c FROM pos)", "SELECT count(*) AS c\n"),
    # Rows that tie have one rank, whatever the frame.
    (
        "SELECT rank() OVER (ORDER BY qty ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS a FROM pos",
        "rank() OVER (ORDER BY qty ASC NULLS FIRST ROWS",
    ),
    # The last value of a partition that is in no order is one for all its rows.
    (
        "SELECT last_value(qty) OVER (PARTITION BY store) AS a FROM pos",
        "(PARTITION BY store ORDER BY qty ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    ("SELECT first_value(qty) OVER (ORDER BY item) AS a FROM pos", "ORDER BY item ASC NULLS FIRST, qty)"),
    # A window that is another one.
    (
        "SELECT count(qty) OVER w2 AS a FROM pos WINDOW w1 AS (PARTITION BY store), w2 AS (w1)",
        "OVER (PARTITION BY store)",
    ),
    ("SELECT qty AS a FROM pos ORDER BY qty OFFSET 0", "SELECT qty AS a\nFROM lake.shop.pos /* new */"),
    # In a subquery an alias to the left is nearer than a column from around it.
    (
        "SELECT p.qty AS a FROM pos p WHERE (p.item, p.qty) IN "
        "(SELECT s.store AS note, note + 1 FROM stores s WHERE s.store = p.store)",
        "r1.qty = (r2.store + 1)",
    ),
    # Of columns with other types not the keys inside are grouped, but what occurs outside.
    (
        "SELECT (SELECT max(s.region) FROM stores s WHERE s.city = p.store) AS a FROM pos p",
        "SELECT DISTINCT store AS",
    ),
]


@pytest.mark.parametrize(("query", "part"), RIGHT)
def test_read_right(query: str, part: str) -> None:
    analysis = read(query)
    assert analysis.reason is None, analysis.reason
    assert analysis.relation is not None
    assert part in print_relation(analysis.relation), print_relation(analysis.relation)


NOT_READ = [
    # A comma binds weaker than JOIN, and is not always told from CROSS JOIN.
    "SELECT p.qty AS a FROM items i, stores s RIGHT JOIN pos p ON s.store = p.store",
    "SELECT i.name AS a FROM items i, pos NATURAL JOIN stores",
    # HAVING makes it one group: a row, or none.
    "SELECT qty AS a FROM pos WHERE EXISTS "
    "(SELECT 1 FROM stores s WHERE s.store = pos.store HAVING count(*) > 1)",
    "SELECT (SELECT 1 FROM stores s WHERE s.store = p.store HAVING count(*) > 1) AS a FROM pos p",
    # A frame of RANGE ends with the rows that tie.
    "SELECT last_value(qty) OVER (ORDER BY item) AS a FROM pos",
    "SELECT nth_value(qty, 2) OVER (ORDER BY item) AS a FROM pos",
    "SELECT first_value(qty) IGNORE NULLS OVER (ORDER BY item) AS a FROM pos",
    # Unknown is not false in a comparison, nor under NOT beside what is no condition.
    "SELECT qty AS a FROM pos WHERE (store IN (SELECT store FROM stores)) = (qty = 1)",
    "SELECT qty AS a FROM pos WHERE (store NOT IN (SELECT store FROM stores)) IS NULL",
    "SELECT NOT (qty = 1 AND store IN (SELECT store FROM stores)) AS a FROM pos",
    "SELECT qty AS a FROM pos WHERE if(NOT (qty = 1 AND store IN (SELECT store FROM stores)), qty, 0) > 1",
    # One value of several equal ones; a generator that makes no row.
    "SELECT (SELECT DISTINCT city FROM stores s WHERE s.store = p.store) AS a FROM pos p",
    "SELECT i.qty AS a FROM items i WHERE EXISTS (SELECT explode(p.tags) FROM pos p WHERE p.item = i.item)",
    "SELECT 1 AS a FROM items i WHERE EXISTS (SELECT explode(p.tags) AS t FROM pos p WHERE p.qty = i.qty)",
    # PIVOT casts its values, and pivots a whole join.
    "SELECT * FROM (SELECT city, region FROM stores) PIVOT (count(*) FOR region IN (1 AS a))",
    "SELECT * FROM (SELECT city, store, region FROM stores) "
    "PIVOT (count(*) AS n, max(region) AS m FOR store IN (1 AS a))",
]


@pytest.mark.parametrize("query", NOT_READ)
def test_not_read(query: str) -> None:
    assert read(query).relation is None


def test_a_limit_inside_parentheses_counts() -> None:
    analysis = read(
        "SELECT qty AS a FROM pos WHERE store IN ((SELECT store FROM stores) ORDER BY store LIMIT 1)"
    )
    assert analysis.relation is None or "row_number <= 1" in print_relation(analysis.relation)
