"""A cube is the views of its nodes, in the user's words."""

from __future__ import annotations

import pytest

from viewkeeper.analyse.cubes import nodes_of
from viewkeeper.errors import DefinitionError


def spelt(query: str) -> dict[tuple[str, ...], str]:
    return {node.keys: " ".join(node.query.split()) for node in nodes_of(query)}


def test_each_set_of_keys_is_a_query() -> None:
    query = """
        SELECT s.city, date_trunc('month', d) AS m, count(*) AS n, sum(q) /* all of it */ AS q
        FROM pos JOIN stores s ON id = store
        WHERE q > (SELECT 1)
        GROUP BY GROUPING SETS ((s.city, m), (s.city), ())
        HAVING count(*) > 1"""
    start = "FROM pos JOIN stores s ON id = store WHERE q > (SELECT 1)"
    measures = "count(*) AS n, sum(q) /* all of it */ AS q"
    having = "HAVING count(*) > 1"
    month = "date_trunc('month', d) AS m"
    assert spelt(query) == {
        ("city", "m"): f"SELECT s.city, {month}, {measures} {start} GROUP BY s.city, m {having}",
        ("city",): f"SELECT s.city, {measures} {start} GROUP BY s.city {having}",
        (): f"SELECT {measures} {start} {having}",
    }


@pytest.mark.parametrize(
    "groups",
    ["CUBE(a, b)", "ROLLUP(a, b), ROLLUP(b)", "a, b WITH CUBE", "GROUPING SETS ((A, b), (b), (a), ())"],
)
def test_the_forms_of_group_by(groups: str) -> None:
    assert set(spelt(f"SELECT a, b, sum(c) AS c FROM t GROUP BY {groups}")) == {
        ("a", "b"),
        ("a",),
        ("b",),
        (),
    }


def test_keys_by_number_are_spelt_out_and_equal_sets_are_one_node() -> None:
    start = "WITH t AS (SELECT 1 AS x FROM u) SELECT"
    query = f"{start} x + 1 AS y, count(*) AS n FROM t GROUP BY ROLLUP(1), ROLLUP(y)"
    assert spelt(query) == {
        ("y",): f"{start} x + 1 AS y, count(*) AS n FROM t GROUP BY x + 1",
        (): f"{start} count(*) AS n FROM t",
    }


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT a, count(*) AS n FROM t GROUP BY a", "groups by CUBE, ROLLUP or GROUPING SETS"),
        ("SELECT a, count(*) AS n FROM t UNION ALL SELECT 1, 2 FROM u", "groups by CUBE, ROLLUP"),
        ("SELECT count(*) AS n FROM t GROUP BY CUBE(a)", "a is a key of the cube, but the query does not"),
        ("SELECT a, grouping(a), count(*) FROM t GROUP BY CUBE(a)", "GROUPING tells the sets"),
        ("SELECT a + 1, count(*) AS n FROM t GROUP BY CUBE(a + 1)", "needs a name"),
        ("SELECT a FROM t GROUP BY CUBE(a)", "at least one aggregate"),
        ("SELECT a, count(*) AS n FROM t GROUP BY CUBE(9)", "9 is a key"),
        ("SELECT (", "cannot be read"),
    ],
)
def test_what_is_no_cube_is_refused(query: str, says: str) -> None:
    with pytest.raises(DefinitionError, match="VK-CUBE") as refused:
        nodes_of(query)
    assert says in str(refused.value)
