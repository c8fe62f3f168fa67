"""Two queries that say the same under other names are the same value, once they are named alike."""

from __future__ import annotations

import pytest
from shop import read

from viewkeeper.algebra.relations import Field, Relation, Scan
from viewkeeper.algebra.renaming import canonical, renamed
from viewkeeper.plan.hidden_state import inner_results, reading
from viewkeeper.sql.printer import print_relation


def relation_of(query: str) -> Relation:
    relation = read(query).relation
    assert relation is not None
    return relation


SAME = [
    (
        "SELECT count(*) AS a FROM (SELECT store, sum(qty) AS q FROM pos GROUP BY store) WHERE q > 1",
        "SELECT max(t.total) AS a FROM items i JOIN "
        "(SELECT p.store AS s, sum(p.qty) AS total FROM pos p GROUP BY p.store) t ON t.s = i.item",
    ),
    (
        "SELECT i.qty AS a FROM items i WHERE i.item IN (SELECT DISTINCT item FROM pos WHERE qty > 2)",
        "SELECT count(*) AS a FROM (SELECT DISTINCT x.item AS z FROM pos AS x WHERE x.qty > 2)",
    ),
    (
        "SELECT max(n) AS a FROM (SELECT s.city, count(*) AS n FROM pos p LEFT JOIN stores s "
        "ON s.store = p.store GROUP BY s.city)",
        "SELECT sum(k) AS a FROM (SELECT u.city, count(*) AS k FROM pos AS t LEFT JOIN stores AS u "
        "ON u.store = t.store GROUP BY u.city)",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_inner_result(one: str, other: str) -> None:
    (first,), (second,) = (inner_results(relation_of(query)) for query in (one, other))
    assert canonical(first)[0] == canonical(second)[0]


def test_another_one_stays_another() -> None:
    queries = [
        f"SELECT sum(n) AS a FROM (SELECT {key}, {call} AS n FROM pos WHERE qty > {least} GROUP BY {key})"
        for key in ("store", "item")
        for call in ("count(*)", "sum(qty)")
        for least in (0, 1)
    ]
    found = {canonical(inner)[0] for query in queries for inner in inner_results(relation_of(query))}
    assert len(found) == len(queries)


@pytest.mark.parametrize("query", [query for pair in SAME for query in pair])
def test_there_and_back(query: str) -> None:
    relation = relation_of(query)
    there, names = canonical(relation)
    assert renamed(there, {new: old for old, new in names.items()}) == relation


def test_what_is_at_the_top_is_no_inner_result() -> None:
    for query in (
        "SELECT DISTINCT qty AS a FROM pos",
        "SELECT sum(qty) AS a FROM pos GROUP BY store HAVING count(*) > 1",
        "SELECT row_number() OVER (PARTITION BY store ORDER BY qty) AS a FROM pos",
        "SELECT rank() OVER (ORDER BY sum(qty)) AS a FROM pos GROUP BY store",
    ):
        assert inner_results(relation_of(query)) == ()


def test_what_is_kept_is_read() -> None:
    relation = relation_of(SAME[0][0])
    (inner,) = inner_results(relation)
    kept = Scan("hidden", tuple(Field(name, name) for name in inner.columns))
    assert print_relation(reading(relation, {inner: kept})).count("FROM hidden") == 1
