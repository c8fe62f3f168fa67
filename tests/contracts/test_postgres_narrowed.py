"""Tables of PostgreSQL of which some columns and some rows are kept: exactly those, however they come."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from extracted_harness import CAPTURES, Bag, ExtractedHarness, difference, plain, postgres_options
from pyspark.sql import SparkSession

from postgres_server import PostgresInstance
from viewkeeper.errors import DefinitionError
from viewkeeper.sources.postgres_triggers import install_sql

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

COLUMNS = "spot POINT, id INT {key}, name TEXT, price INT, note TEXT, at DATE"
GENERATED = f"{COLUMNS}, twice INT GENERATED ALWAYS AS (price * 2) STORED"
KEPT = "id, price, note"


class Narrowed(ExtractedHarness):
    """``s.t``, of which not all is kept."""

    def __init__(
        self, spark: SparkSession, db: PostgresInstance, capture: str, spec: str, oracle: str
    ) -> None:
        self.db = db
        self.oracle = oracle
        if capture == "trigger":
            db.sql("SET ROLE keeper", install_sql(["s.t"], "keeper"))
        super().__init__(spark, "postgres", postgres_options(db, spec, capture))

    def there(self) -> dict[str, Bag]:
        return {self.tables[0]: Counter(map(plain, self.db.sql(self.oracle)))}

    def random_operation(self, chance: random.Random) -> str:
        some = f"id % 3 = {chance.randrange(3)}"
        note = chance.choice(["'a'", "'b'", "'Az'", "NULL", "repeat('A long one ', 900)"])
        statement = chance.choice(
            [
                "INSERT INTO s.t (spot, id, name, price, note) SELECT point(1, 2), coalesce(max(id), 0) + 1, "
                f"'n', {chance.randrange(6)}, {note} FROM s.t",
                f"UPDATE s.t SET price = {chance.randrange(6)} WHERE {some}",
                f"UPDATE s.t SET note = {note} WHERE {some}",
                f"UPDATE s.t SET name = 'other', at = '2024-02-29' WHERE {some}",
                f"UPDATE s.t SET id = id + 100, price = price + 1 WHERE {some}",
                f"DELETE FROM s.t WHERE {some} AND price > {chance.randrange(6)}",
                "TRUNCATE s.t" if chance.random() < 0.2 else "SELECT 1",
            ]
        )
        self.db.sql("SET ROLE keeper", statement)
        return statement

    def epoch(self, story: object) -> None:
        now, there = self.look(), self.there()
        (table,) = self.tables
        expected = difference(self.copies[table].rows, there[table])
        assert self.delta(self.change(table, now), self.columns(table)) == expected, story
        self.source.confirm(now)
        self.publish(now, there)
        self.source.acknowledge(now)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize(("seed", "key", "condition"), [
    (1, "PRIMARY KEY", "price > 3"),
    (2, "PRIMARY KEY", "note IS NULL OR note IN ('a', 'b')"),
    (3, "", "price >= 2 AND upper(note) LIKE 'A%'"),
])  # fmt: skip
def test_what_is_kept_is_what_is_wanted(
    spark: SparkSession, db: PostgresInstance, capture: str, seed: int, key: str, condition: str
):
    db.sql(
        "SET ROLE keeper",
        f"CREATE TABLE s.t ({COLUMNS.format(key=key)})",
        "ALTER TABLE s.t REPLICA IDENTITY FULL",
        "ALTER TABLE s.t ALTER note SET STORAGE EXTERNAL",
        "INSERT INTO s.t (id, price, note) SELECT i, i % 6, CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'Az' END "
        "FROM generate_series(1, 12) i",
    )
    chance = random.Random(seed)
    oracle = f"SELECT {KEPT} FROM s.t WHERE {condition}"
    subject = Narrowed(spark, db, capture, f"s.t ({KEPT}) WHERE ({condition})", oracle)
    try:
        assert subject.columns(subject.tables[0]) == ("id", "price", "note")
        subject.copy_all()
        assert subject.copies[subject.tables[0]].rows == subject.there()[subject.tables[0]]
        for _ in range(6):
            story = [subject.random_operation(chance) for _ in range(chance.randrange(1, 5))]
            subject.epoch(story)
    finally:
        subject.close()


def test_columns_alone_leave_out_what_spark_has_no_type_for(spark: SparkSession, db: PostgresInstance):
    db.sql(
        "SET ROLE keeper",
        f"CREATE TABLE s.t ({GENERATED.format(key='PRIMARY KEY')})",
        "ALTER TABLE s.t ALTER note SET STORAGE EXTERNAL",
        "INSERT INTO s.t (id, price, note) VALUES (1, 1, repeat('x', 9000))",
    )
    subject = Narrowed(spark, db, "log", "s.t (note)", "SELECT id, note FROM s.t")
    try:
        subject.copy_all()
        db.sql("UPDATE s.t SET price = 2, id = 7")
        subject.epoch("the key is kept, and what the log does not hold is taken from what was seen")
        db.sql("ALTER TABLE s.t DROP spot, DROP name")
        db.sql("INSERT INTO s.t (id, note) VALUES (8, 'new')")
        subject.epoch("what is not kept may go")
    finally:
        subject.close()


def test_the_server_sends_no_rows_that_it_can_tell_are_not_wanted(spark: SparkSession, db: PostgresInstance):
    db.sql(
        "SET ROLE keeper",
        "CREATE TABLE s.t (id INT PRIMARY KEY, price INT)",
        "INSERT INTO s.t SELECT i, i FROM generate_series(1, 1000) i",
    )
    oracle = "SELECT id, price FROM s.t WHERE price > 990"
    subject = Narrowed(spark, db, "log", "s.t WHERE (price > 990 AND abs(id) > 0)", oracle)
    try:
        subject.copy_all()
        assert subject.copies[subject.tables[0]].rows == subject.there()[subject.tables[0]]
        subject.source.show(subject.tables[0], None, None)
        now = subject.source.current()
        name = subject.source.rows(subject.tables[0], now[subject.tables[0]])
        plan = spark.table(name)._jdf.queryExecution().executedPlan().toString()
        assert 'WHERE "price" > 990' in plan
    finally:
        subject.close()


@pytest.mark.parametrize(("spec", "code", "told"), [
    ("s.t (id, nothing)", "VK-SOURCE-OPTION", "no column nothing"),
    ("s.t (id) WHERE (price > 1)", "VK-SOURCE-OPTION", "price"),
    ("s.t (id, price) WHERE (price)", "VK-SOURCE-OPTION", "price"),
    ("s.t (id, price) WHERE (price > rand())", "VK-NONDETERMINISTIC", "rand"),
    ("s.t (id, price) WHERE (id IN (SELECT 1))", "VK-SOURCE-OPTION", "other tables"),
    ("s.t (id, price) WHERE (1 = 1) OR (2 = 2)", "VK-SOURCE-OPTION", "bracket"),
    ("s.t (id, note) WHERE (id > 1)", "VK-SOURCE-IDENTITY", "REPLICA IDENTITY FULL"),
    ("s.t (id, spot)", "VK-SOURCE-TYPE", "point"),
    ("s.t (id, twice)", "VK-SOURCE-TYPE", "worked out by the server"),
    ("s.t (name)", "VK-SOURCE-IDENTITY", "once it is published"),
    ("s.t ()", "VK-SOURCE-OPTION", "missing"),
    ("s.t (id", "VK-SOURCE-OPTION", "write a table as"),
    ("s.t (id) WHERE ( )", "VK-SOURCE-OPTION", "missing"),
])  # fmt: skip
def test_what_cannot_be_kept(spark: SparkSession, db: PostgresInstance, spec: str, code: str, told: str):
    db.sql("SET ROLE keeper", f"CREATE TABLE s.t ({GENERATED.format(key='PRIMARY KEY')})")
    if "(name)" in spec:
        db.sql("ALTER TABLE s.t REPLICA IDENTITY FULL")
    with pytest.raises(DefinitionError) as caught:
        Narrowed(spark, db, "log", spec, "")
    assert caught.value.code == code
    assert told in f"{caught.value} {caught.value.hint}"
    assert not db.sql("SELECT 1 FROM pg_replication_slots")


def test_a_publication_need_not_tell_more_than_is_kept(spark: SparkSession, db: PostgresInstance):
    db.sql(
        "SET ROLE keeper",
        "CREATE TABLE s.t (id INT PRIMARY KEY, price INT, note TEXT)",
        "INSERT INTO s.t VALUES (1, 1, 'a')",
    )
    db.sql("CREATE PUBLICATION theirs FOR TABLE s.t (id, price)")
    options = dict(postgres_options(db, "s.t (price)", "log"), publication="theirs")

    class Published(Narrowed):
        def __init__(self) -> None:
            self.db, self.oracle = db, "SELECT id, price FROM s.t"
            ExtractedHarness.__init__(self, spark, "postgres", options)

    subject = Published()
    try:
        subject.copy_all()
        db.sql("UPDATE s.t SET price = 2, note = 'b'", "INSERT INTO s.t VALUES (2, 3, 'c')")
        subject.epoch("told by a publication of some columns")
    finally:
        subject.close()
    options["tables"] = "s.t (price, note)"
    with pytest.raises(DefinitionError, match="does not tell all of"):
        Published()
