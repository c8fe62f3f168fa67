"""Every kind of relation, printed and run."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

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
    TableAt,
    UnionAll,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, compose, keep
from viewkeeper.sql.printer import print_relation

pytestmark = pytest.mark.spark


def _fields(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, name) for name in names)


@pytest.fixture(scope="module")
def version(spark: SparkSession) -> str:
    """A table with a struct named like itself, and the version at which it had two rows."""
    spark.sql("CREATE TABLE printed (a INT, `b c` STRING, printed STRUCT<a: INT>) USING iceberg")
    spark.sql("INSERT INTO printed VALUES (1, 'x', struct(7)), (NULL, 'y', struct(8))")
    (found,) = spark.sql("SELECT snapshot_id FROM lake.default.printed.snapshots").collect()
    spark.sql("INSERT INTO printed VALUES (3, 'z', struct(9))")
    spark.sql("CREATE OR REPLACE TEMP VIEW keys AS SELECT * FROM VALUES (1, 2), (NULL, 0), (9, 1) AS t(a, n)")
    return str(found[0])


def test_every_kind(spark: SparkSession, version: str) -> None:
    now = TableAt("lake.default.printed", None, (*_fields("a"), Field("b c", "b")))
    old = TableAt("lake.default.printed", version, _fields("a"))
    keys = Staged("keys", (Field("a", "k"), Field("n", "n")), rows=100)
    same_names = Staged("keys", _fields("a", "n"), rows=100)
    like_table = TableAt("lake.default.printed", None, _fields("printed"))
    cases: list[tuple[Relation, list[tuple[object, ...]]]] = [
        (Scan("lake.default.printed", _fields("a")), [(1,), (3,), (None,)]),
        (old, [(1,), (None,)]),
        (Filter(now, compose(Column("b"), " > 'x'")), [(3, "z"), (None, "y")]),
        (Project(now, (Named("c", compose(Column("a"), " + 1")),)), [(2,), (4,), (None,)]),
        (Project(like_table, (Named("f", Scalar((Column("printed"), ".a"))),)), [(7,), (8,), (9,)]),
        (
            Join((now, keys), (compose(Column("a"), " <=> ", Column("k")),)),
            [(1, "x", 1, 2), (None, "y", None, 0)],
        ),
        (Join((old, keys), ()), [(a, k, n) for a in (1, None) for k, n in ((1, 2), (9, 1), (None, 0))]),
        (SemiJoin(now, same_names, (("a", "a"),)), [(1, "x"), (None, "y")]),
        (SemiJoin(now, same_names, (("a", "a"),), anti=True), [(3, "z")]),
        (UnionAll((old, Project(keys, (Named("a", column("k")),)))), [(1,), (1,), (9,), (None,), (None,)]),
        (Distinct(UnionAll((old, old))), [(1,), (None,)]),
        (
            Aggregate(now, (), (AggregateCall("n", "count"), AggregateCall("s", "sum", (column("a"),)))),
            [(3, 4)],
        ),
        (
            Project(Aggregate(now, ("b",), (AggregateCall("m", "max", (column("a"),)),)), keep(["m"])),
            [(1,), (3,), (None,)],
        ),
        (Expand(keys, "n"), [(1,), (1,), (9,)]),
        (
            Aggregate(TableAt("lake.default.printed", version, ()), (), (AggregateCall("n", "count"),)),
            [(2,)],
        ),
    ]
    for relation, expected in cases:
        sql = print_relation(relation)
        frame = spark.sql(sql)
        assert tuple(frame.columns) == relation.columns, sql
        assert sorted(map(repr, map(tuple, frame.collect()))) == sorted(map(repr, expected)), sql
