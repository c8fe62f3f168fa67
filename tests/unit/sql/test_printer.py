"""Each kind of relation as text, exactly."""

from __future__ import annotations

from textwrap import dedent

import pytest

from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Expand,
    Field,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Staged,
    State,
    TableAt,
    UnionAll,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, compose, keep, words
from viewkeeper.sql.printer import print_relation


def fields(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, name) for name in names)


def same(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


POS = TableAt("lake.shop.pos", "7", fields("store", "item", "qty"))
STORES = TableAt("lake.shop.stores", "8", (Field("store", "store_2"), Field("city", "city")))
DELTA = Staged("delta_pos", fields("store", "qty", "_vk_w"), rows=100)
SALES = Aggregate(POS, ("store",), (AggregateCall("total", "sum", (column("qty"),)),))
QTY_POSITIVE = compose(Column("qty"), " > 0")

CASES: dict[str, tuple[Relation, str]] = {
    "a table at a version": (POS, "SELECT store, item, qty\nFROM lake.shop.pos VERSION AS OF 7"),
    "a table as it is now, renamed and quoted": (
        TableAt("lake.`a.b`.order", None, (Field("select", "a b"),)),
        "SELECT `select` AS `a b`\nFROM lake.`a.b`.`order`",
    ),
    "a branch": (TableAt("t", "br", fields("a")), "SELECT a\nFROM t VERSION AS OF 'br'"),
    "an unbound scan": (Scan("lake.t", fields("a"), State.OLD), "SELECT a\nFROM lake.t /* old */"),
    "a column named like its table": (
        TableAt("lake.pos", None, fields("pos")),
        "SELECT pos\nFROM lake.pos AS _vk_t",
    ),
    "no columns at all": (TableAt("t", None, ()), "SELECT 1 AS _vk_one\nFROM t"),
    "filter and project over a table": (
        Project(
            Filter(Filter(POS, QTY_POSITIVE), compose(Column("store"), " = 1 OR ", Column("item"), " = 2")),
            (Named("twice", compose(Column("qty"), " * 2")), *keep(["store"])),
        ),
        """\
        SELECT qty * 2 AS twice, store
        FROM lake.shop.pos VERSION AS OF 7
        WHERE qty > 0 AND (store = 1 OR item = 2)""",
    ),
    "a filter reads a renamed column under its stored name": (
        Filter(STORES, compose(Column("store_2"), " = 1")),
        "SELECT store AS store_2, city\nFROM lake.shop.stores VERSION AS OF 8\nWHERE store = 1",
    ),
    "a filter on a computed column is nested": (
        Filter(
            Project(POS, (Named("twice", compose(Column("qty"), " * 2")),)), compose(Column("twice"), " > 4")
        ),
        """\
        SELECT twice
        FROM (
          SELECT qty * 2 AS twice
          FROM lake.shop.pos VERSION AS OF 7
        )
        WHERE twice > 4""",
    ),
    "a lambda variable must not capture a renamed column": (
        Project(
            TableAt("t", None, (Field("x", "x_2"), Field("xs", "xs"))),
            (Named("y", Scalar(("transform(", Column("xs"), ", x -> x + ", Column("x_2"), ")"))),),
        ),
        """\
        SELECT transform(xs, x -> x + x_2) AS y
        FROM (
          SELECT x AS x_2, xs
          FROM t
        )""",
    ),
    "aggregate over computed arguments": (
        Aggregate(
            Project(POS, (*keep(["store"]), Named("e", compose(Column("qty"), " + 1")))),
            ("store",),
            (AggregateCall("n", "count"), AggregateCall("s", "sum", (column("e"),))),
        ),
        """\
        SELECT store, count(*) AS n, sum(qty + 1) AS s
        FROM lake.shop.pos VERSION AS OF 7
        GROUP BY store""",
    ),
    "a computed key is nested, for GROUP BY 1 would be an ordinal": (
        Aggregate(Project(POS, (Named("k", words("1")),)), ("k",), ()),
        """\
        SELECT k
        FROM (
          SELECT 1 AS k
          FROM lake.shop.pos VERSION AS OF 7
        )
        GROUP BY k""",
    ),
    "a global aggregate": (
        Aggregate(POS, (), (AggregateCall("n", "count"),)),
        "SELECT count(*) AS n\nFROM lake.shop.pos VERSION AS OF 7",
    ),
    "a constant over a global aggregate stays one row": (
        Project(Aggregate(POS, (), (AggregateCall("n", "count"),)), (Named("one", words("1")),)),
        """\
        SELECT 1 AS one
        FROM (
          SELECT count(*) AS n
          FROM lake.shop.pos VERSION AS OF 7
        )""",
    ),
    "having": (
        Filter(SALES, compose(Column("total"), " > 9")),
        """\
        SELECT store, total
        FROM (
          SELECT store, sum(qty) AS total
          FROM lake.shop.pos VERSION AS OF 7
          GROUP BY store
        )
        WHERE total > 9""",
    ),
    "join": (
        Project(
            Join(
                (DELTA, STORES, Filter(TableAt("items", None, fields("item", "price")), words("true"))),
                (
                    compose(Column("price"), " > ", Column("qty")),
                    compose(Column("store"), " = ", Column("store_2")),
                ),
            ),
            keep(["city", "price"]),
        ),
        """\
        SELECT /*+ BROADCAST(r1) */ r2.city, r3.price
        FROM delta_pos AS r1
        JOIN lake.shop.stores VERSION AS OF 8 AS r2 ON r1.store = r2.store
        JOIN (
          SELECT item, price
          FROM items
          WHERE true
        ) AS r3 ON r3.price > r1.qty""",
    ),
    "cross join, with an alias that no column can be taken for": (
        Join((TableAt("t", None, fields("r1")), TableAt("u", None, fields("b"))), ()),
        "SELECT _r1.r1, _r2.b\nFROM t AS _r1\nCROSS JOIN u AS _r2",
    ),
    "semi join": (
        SemiJoin(POS, DELTA, same("store")),
        """\
        SELECT /*+ BROADCAST(r2) */ r1.store, r1.item, r1.qty
        FROM lake.shop.pos VERSION AS OF 7 AS r1
        LEFT SEMI JOIN delta_pos AS r2 ON r1.store <=> r2.store""",
    ),
    "anti join without keys": (
        SemiJoin(SALES, POS, (), anti=True),
        """\
        SELECT r1.store, r1.total
        FROM (
          SELECT store, sum(qty) AS total
          FROM lake.shop.pos VERSION AS OF 7
          GROUP BY store
        ) AS r1
        LEFT ANTI JOIN lake.shop.pos VERSION AS OF 7 AS r2 ON true""",
    ),
    "union, and distinct over it": (
        Distinct(UnionAll((POS, POS))),
        """\
        SELECT DISTINCT store, item, qty
        FROM (
          SELECT store, item, qty
          FROM lake.shop.pos VERSION AS OF 7
          UNION ALL
          SELECT store, item, qty
          FROM lake.shop.pos VERSION AS OF 7
        )""",
    ),
    "expand": (
        Expand(DELTA, "_vk_w"),
        """\
        SELECT r1.store, r1.qty
        FROM delta_pos AS r1
        LATERAL VIEW explode(sequence(0L, greatest(r1._vk_w - 1, 0L) DIV 1000000)) _vk_chunks AS _vk_chunk
        LATERAL VIEW explode(array_repeat(0, CAST(least(r1._vk_w - _vk_chunk * 1000000, 1000000) AS INT))) \
_vk_copies AS _vk_copy""",
    ),
    "line breaks in the user's text are left where they are": (
        Distinct(Distinct(Project(POS, (Named("s", words("'a\nb'")),)))),
        "SELECT DISTINCT s\nFROM (\n  SELECT DISTINCT 'a\nb' AS s\n  FROM lake.shop.pos VERSION AS OF 7\n)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_prints(name: str) -> None:
    relation, expected = CASES[name]
    assert print_relation(relation) == dedent(expected)


def test_long_lists_break() -> None:
    names = [f"a_long_column_name_{index}" for index in range(8)]
    lines = print_relation(TableAt("t", None, fields(*names))).splitlines()
    assert lines[:2] == ["SELECT", "  a_long_column_name_0,"]
    assert lines[-1] == "FROM t"
