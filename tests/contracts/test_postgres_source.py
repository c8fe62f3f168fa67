"""PostgreSQL's tables in all their sorts: each is followed exactly, or refused and told; never half."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from extracted_harness import (
    CAPTURES,
    Bag,
    ExtractedHarness,
    check_bounds,
    difference,
    plain,
    postgres_options,
)
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from postgres_server import PostgresInstance
from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.sources.differential import KEY_TWICE
from viewkeeper.sources.postgres_server import quoted
from viewkeeper.sources.postgres_triggers import install_sql

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

SPARK_ERRORS = (PySparkException, Py4JJavaError)
FOLLOWED = pytest.mark.parametrize(
    "capture", ["log", "trigger", pytest.param("diff", marks=pytest.mark.long)]
)
"""What is compared cannot go wrong like this; but one never knows."""
EVERY = pytest.mark.parametrize("capture", CAPTURES)


class OneTable(ExtractedHarness):
    """A source of one table, ``s.t`` if nothing else is said."""

    def __init__(
        self, spark: SparkSession, db: PostgresInstance, capture: str, table: str = "t", **more: str
    ) -> None:
        self.db = db
        self.table = f"s.{quoted(table)}"
        self.database = more.get("database", "postgres")
        if capture == "trigger":
            self.sql(install_sql([self.table], "keeper"))
        named = {"tables": f"s.{table}", **more}
        super().__init__(spark, "postgres", postgres_options(db, capture=capture, **named))

    def sql(self, *statements: str) -> None:
        with self.db.connect(dbname=self.database, client_encoding="utf8") as connection:
            connection.execute("SET ROLE keeper; SET lock_timeout TO '20s'")
            for statement in statements:
                connection.execute(statement.replace("{t}", self.table))

    def random_operation(self, chance: object) -> str:
        raise NotImplementedError

    def there(self) -> dict[str, Bag]:
        with self.db.connect(dbname=self.database, client_encoding="utf8") as connection:
            found = connection.execute(f"SELECT * FROM {self.table}").fetchall()
        return {self.tables[0]: Counter(map(plain, found))}

    def epoch(self) -> None:
        """Bring the copy up; it must be what is there then."""
        now, there = self.look(), self.there()
        (table,) = self.tables
        change, expected = self.change(table, now), difference(self.copies[table].rows, there[table])
        assert self.delta(change, self.columns(table)) == expected
        if change is not None:
            check_bounds(change, expected, "")
        self.source.confirm(now)
        self.publish(now, there)
        self.source.acknowledge(now)


class KeptInSpark(OneTable):
    """What was seen never becomes a value of Python's, which has no dates behind the year 9999."""

    def read(self, query: str) -> Bag:
        self.spark.sql(query).localCheckpoint().createOrReplaceTempView("kept_in_spark")
        return Counter()

    def _view(self, table: str, rows: Bag) -> str:
        return "kept_in_spark"


Follow = Callable[..., OneTable]


@pytest.fixture
def follow(spark: SparkSession, db: PostgresInstance) -> Iterator[Follow]:
    """Declares a source, and copies its table. ``compare``: with what the database driver reads of it."""
    opened: list[OneTable] = []

    def make(
        capture: str,
        *ddl: str,
        table: str = "t",
        sort: type[OneTable] = OneTable,
        compare: bool = True,
        **more: str,
    ) -> OneTable:
        db.sql(
            "SET ROLE keeper; SET lock_timeout TO '20s'",
            *(each.replace("{t}", f"s.{quoted(table)}") for each in ddl),
        )
        subject = sort(spark, db, capture, table, **more)
        opened.append(subject)
        subject.copy_all()
        if compare:
            assert subject.copies[subject.tables[0]].rows == subject.there()[subject.tables[0]]
        return subject

    yield make
    for each in opened:
        each.close()


def refused(subject: OneTable, *words: str) -> None:
    """It is told that the table is not what it was."""
    with pytest.raises(SourceError) as raised:
        subject.epoch()
    assert raised.value.code == "VK-SOURCE-CHANGED"
    told(raised.value, *words)


def told(error: ViewkeeperError, *words: str) -> None:
    """It names what it is about, and says what to do."""
    assert error.hint
    assert any(word in str(error) for word in words), str(error)


PARTED = (
    "CREATE TABLE {t} (id INT PRIMARY KEY, name TEXT) PARTITION BY RANGE (id)",
    "CREATE TABLE s.low PARTITION OF {t} FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE s.high PARTITION OF {t} FOR VALUES FROM (10) TO (100)",
)
INHERITED = (
    "CREATE TABLE {t} (id INT PRIMARY KEY, name TEXT)",
    "CREATE TABLE s.low (PRIMARY KEY (id)) INHERITS (s.t)",
)


@FOLLOWED
@pytest.mark.parametrize("ddl", [PARTED, INHERITED], ids=["partitioned", "inherited"])
def test_a_table_that_consists_of_others(follow: Follow, capture: str, ddl: tuple[str, ...]) -> None:
    """The log, and the triggers, name the table that a row lies in."""
    try:
        subject = follow(capture, *ddl, "INSERT INTO s.low VALUES (1, 'a'), (2, 'b')")
    except ViewkeeperError as error:
        return told(error, "s.t")
    subject.sql("INSERT INTO s.low VALUES (3, 'c')", "INSERT INTO {t} VALUES (4, 'd')")
    subject.sql("UPDATE {t} SET name = 'x' WHERE id = 1", "DELETE FROM {t} WHERE id = 2")
    subject.epoch()
    if ddl is PARTED:
        subject.sql("UPDATE {t} SET id = 20 WHERE id = 1", "TRUNCATE s.low")
        subject.epoch()
    return None


@FOLLOWED
@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
def test_a_column_that_the_server_works_out(follow: Follow, capture: str, kind: str) -> None:
    ddl = f"CREATE TABLE {{t}} (id INT PRIMARY KEY, twice INT GENERATED ALWAYS AS (id * 2) {kind}, name TEXT)"
    try:
        subject = follow(capture, ddl, "INSERT INTO {t} VALUES (1, DEFAULT, 'a'), (2, DEFAULT, 'b')")
    except ViewkeeperError as error:
        return told(error, "twice")
    subject.sql("INSERT INTO {t} VALUES (3, DEFAULT, 'c')", "UPDATE {t} SET id = 7 WHERE id = 1")
    return subject.epoch()


def made_anew(subject: OneTable) -> None:
    subject.sql("DROP TABLE {t}", "CREATE TABLE {t} (id INT PRIMARY KEY, name TEXT, n INT UNIQUE NOT NULL)")


def swapped(subject: OneTable) -> None:
    """As a nightly load does it."""
    subject.sql(
        "CREATE TABLE s.next (LIKE {t} INCLUDING ALL)", "ALTER TABLE {t} RENAME TO before",
        "ALTER TABLE s.next RENAME TO t",
    )  # fmt: skip


def told_by_another_key(subject: OneTable) -> None:
    subject.sql("ALTER TABLE {t} REPLICA IDENTITY USING INDEX t_n_key")


def with_another_key(subject: OneTable) -> None:
    subject.sql("ALTER TABLE {t} DROP CONSTRAINT t_pkey", "ALTER TABLE {t} ADD PRIMARY KEY (n)")


def without_a_key(subject: OneTable) -> None:
    """From then on what was a key comes several times."""
    subject.sql("ALTER TABLE {t} DROP CONSTRAINT t_pkey", "ALTER TABLE {t} REPLICA IDENTITY FULL")
    subject.sql("INSERT INTO {t} VALUES (1, 'other', 77)")


@FOLLOWED
@pytest.mark.parametrize("harm", [made_anew, swapped, told_by_another_key, with_another_key, without_a_key])
def test_a_table_that_is_not_what_it_was(
    follow: Follow, capture: str, harm: Callable[[OneTable], None]
) -> None:
    subject = follow(
        capture,
        "CREATE TABLE {t} (id INT PRIMARY KEY, name TEXT, n INT UNIQUE NOT NULL)",
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
    )
    harm(subject)
    subject.sql("INSERT INTO {t} VALUES (9, 'new', 9)", "DELETE FROM {t} WHERE n = 2")
    subject.sql("UPDATE {t} SET name = 'x', n = 30 WHERE n = 3")
    try:
        subject.epoch()
    except SourceError as error:
        told(error, "s.t", "column", "key", "triggers")
    except SPARK_ERRORS as error:
        assert KEY_TWICE in str(error)


@pytest.mark.parametrize(
    "publication",
    [
        "FOR TABLE s.other",
        "FOR TABLE s.t WITH (publish = 'insert, update')",
        "FOR TABLE s.t WHERE (id > 1)",
        "FOR TABLE s.t (id, n)",
    ],
)
def test_a_publication_that_does_not_tell_everything(
    follow: Follow, db: PostgresInstance, publication: str
) -> None:
    db.sql("SET ROLE keeper", "CREATE TABLE s.other (id INT PRIMARY KEY)")
    db.sql("SET ROLE keeper", "CREATE TABLE s.t (id INT PRIMARY KEY, name TEXT, n INT)")
    db.sql(f"CREATE PUBLICATION theirs {publication}")
    try:
        subject = follow("log", "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)", publication="theirs")
    except ViewkeeperError as error:
        return told(error, "theirs")
    subject.sql("DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} VALUES (0, 'x', 1)")
    subject.sql("UPDATE {t} SET name = 'y' WHERE id = 2")
    return subject.epoch()


NESTED = {
    "update": "UPDATE {t} SET n = n + 1 WHERE id = NEW.id",
    "move": "UPDATE {t} SET id = -id WHERE id = NEW.id",
    "delete": "DELETE FROM {t} WHERE id = NEW.id",
    "add": "INSERT INTO {t} VALUES (NEW.id + 100, 0) ON CONFLICT DO NOTHING",
}


@FOLLOWED
@pytest.mark.parametrize("nested", NESTED)
def test_what_another_trigger_does_to_a_row_before_ours_tells_of_it(
    follow: Follow, capture: str, nested: str
) -> None:
    """It sorts before ours, so what it does is told before the change that it was fired by."""
    subject = follow(capture, "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "INSERT INTO {t} VALUES (9, 9)")
    subject.sql(
        "CREATE FUNCTION s.f() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN "
        f"IF pg_trigger_depth() = 1 THEN {NESTED[nested]}; END IF; RETURN NULL; END $$",
        "CREATE TRIGGER audit AFTER INSERT OR UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION s.f()",
        "INSERT INTO {t} VALUES (1, 0)",
    )
    subject.epoch()
    subject.sql("UPDATE {t} SET n = 50", "INSERT INTO {t} VALUES (2, 0)")
    subject.epoch()
    subject.sql("INSERT INTO {t} VALUES (3, 0)", "TRUNCATE {t}", "INSERT INTO {t} VALUES (4, 0)")
    subject.epoch()


@FOLLOWED
def test_what_another_trigger_writes_into_a_table_that_was_emptied(follow: Follow, capture: str) -> None:
    subject = follow(capture, "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "INSERT INTO {t} VALUES (9, 9)")
    subject.sql(
        "CREATE FUNCTION s.f() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO {t} VALUES (0, 0), (7, 7); DELETE FROM {t} WHERE id = 7; RETURN NULL; END $$",
        "CREATE TRIGGER audit AFTER TRUNCATE ON {t} FOR EACH STATEMENT EXECUTE FUNCTION s.f()",
        "INSERT INTO {t} VALUES (1, 1)",
        "TRUNCATE {t}",
        "INSERT INTO {t} VALUES (2, 2)",
    )
    subject.epoch()


@FOLLOWED
def test_changes_of_a_session_that_fires_no_other_triggers(
    follow: Follow, db: PostgresInstance, capture: str
) -> None:
    """What a subscriber to another server's publication takes in, and what is restored, is changed so."""
    subject = follow(capture, "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "INSERT INTO {t} VALUES (9, 9)")
    db.sql(
        "SET session_replication_role = replica",
        "INSERT INTO s.t VALUES (1, 1)",
        "DELETE FROM s.t WHERE id = 9",
    )
    subject.epoch()
    db.sql("SET session_replication_role = replica", "TRUNCATE s.t", "INSERT INTO s.t VALUES (2, 2)")
    subject.epoch()


@EVERY
@pytest.mark.parametrize("named", ["", " (id, name, n)"], ids=["all", "named"])
def test_a_column_that_was_dropped(follow: Follow, capture: str, named: str) -> None:
    """No row has to be changed for that to be told."""
    ddl = "CREATE TABLE {t} (id INT PRIMARY KEY, name TEXT, n INT)"
    subject = follow(capture, ddl, "INSERT INTO {t} VALUES (1, 'a', 1)", tables=f"s.t{named}")
    subject.sql("ALTER TABLE {t} DROP name")
    refused(subject, "no column name", "the columns of s.t")


class WithEnums(OneTable):
    """The driver does not know that an array of them is an array."""

    def there(self) -> dict[str, Bag]:
        found = self.db.sql("SELECT id, mood::text, tones::text[] FROM s.t")
        return {self.tables[0]: Counter(map(plain, found))}


ENUMS = (
    "CREATE TYPE s.mood AS ENUM ('sad', 'calm', 'merry')",
    "CREATE TYPE s.tone AS ENUM ('low', 'high')",
    "CREATE TABLE {t} (id INT PRIMARY KEY, mood s.mood, tones s.tone[])",
    "INSERT INTO {t} VALUES (1, 'sad', '{low}'), (2, 'merry', '{high,low}')",
)
RENAMED = {
    "mood": ["ALTER TYPE s.mood RENAME VALUE 'merry' TO 'glad'"],
    "tones": ["ALTER TYPE s.tone RENAME VALUE 'low' TO 'deep'"],
    "swapped": [
        "ALTER TYPE s.mood RENAME VALUE 'sad' TO 'x'",
        "ALTER TYPE s.mood RENAME VALUE 'merry' TO 'sad'",
        "ALTER TYPE s.mood RENAME VALUE 'x' TO 'merry'",
    ],
}


@EVERY
@pytest.mark.parametrize("how", RENAMED)
def test_a_label_that_was_renamed(follow: Follow, capture: str, how: str) -> None:
    """The rows that have it read otherwise, and no row event told so; who compares sees it."""
    subject = follow(capture, *ENUMS, sort=WithEnums)
    subject.sql("ALTER TYPE s.mood ADD VALUE 'brisk' BEFORE 'calm'")
    subject.sql("INSERT INTO {t} VALUES (3, 'brisk', '{}')")
    subject.epoch()
    subject.sql(*RENAMED[how])
    if capture == "diff":
        subject.epoch()
    else:
        refused(subject, "column tones" if how == "tones" else "column mood")


@FOLLOWED
def test_sources_that_were_declared_before_labels_were_remembered(follow: Follow, capture: str) -> None:
    subject = follow(capture, *ENUMS, sort=WithEnums)
    facts = dict(subject.definition.facts)
    facts["tables"] = json.dumps([table[:9] for table in json.loads(facts["tables"])])
    subject.definition = replace(subject.definition, facts=tuple(facts.items()))
    subject.reopen()
    subject.sql("INSERT INTO {t} VALUES (3, 'calm', NULL)")
    subject.epoch()


VALUES = {
    "numeric": ("NUMERIC[]", "'{1.10,1234567890.123456789,12345678901234567890,NULL,-0}'"),
    "scaled": ("NUMERIC(10,2)[]", "'{1.10,99999999.99}'"),
    "text": ("TEXT[]", r"""'{"a,b","say \"hi\"",NULL,"NULL","",plain,"{x}","back\\slash"}'"""),
    "char": ("CHAR(3)[]", "'{a,bcd,NULL}'"),
    "json": ("JSON[]", """ARRAY['{"a":  1}', '"b"', 'null', '12', '[1, 2]']::json[]"""),
    "jsonb": ("JSONB[]", """ARRAY['{"a":  1}', '"b"', 'null', '12']::jsonb[]"""),
    "double": ("DOUBLE PRECISION[]", "'{0.1,1e300,-0,Infinity}'"),
    "bigint": ("BIGINT[]", "'{9223372036854775807,NULL}'"),
    "boolean": ("BOOLEAN[]", "'{t,f,NULL}'"),
    "bytes": ("BYTEA[]", r"""ARRAY['\x00ff'::bytea, '']"""),
    "date": ("DATE[]", "'{2024-02-29,0001-01-01}'"),
    "moment": ("TIMESTAMP[]", "'{2024-02-29 12:34:56.789}'"),
    "zoned": ("TIMESTAMPTZ[]", "'{2024-02-29 12:34:56.789+02}'"),
    "uuid": ("UUID[]", "'{11111111-2222-3333-4444-555555555555}'"),
    "time": ("TIME[]", "'{01:02:03}'"),
}


@EVERY
def test_a_value_is_the_same_whether_it_was_copied_or_followed(follow: Follow, capture: str) -> None:
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in VALUES.items())
    row = ", ".join(value for _, value in VALUES.values())
    ddl = f"CREATE TABLE {{t}} (id INT PRIMARY KEY, {columns})"
    subject = follow(capture, ddl, f"INSERT INTO {{t}} VALUES (1, {row})", compare=False)
    subject.sql(f"INSERT INTO {{t}} VALUES (2, {row})")
    (table,) = subject.tables
    now = subject.look()
    (followed,) = subject.delta(subject.change(table, now), subject.columns(table))
    (copied,) = subject.copies[table].rows
    differing = {
        name: (one, other)
        for name, one, other in zip(subject.columns(table), copied, followed, strict=True)
        if one != other and name != "id"
    }
    assert differing == {}
    found = dict(zip(subject.columns(table), copied, strict=True))
    assert found["json"] == ('{"a":  1}', '"b"', "null", "12", "[1, 2]")
    assert found["numeric"][1:3] == (Decimal("1234567890.123456789"), Decimal("12345678901234567890"))
    assert found["char"] == ("a  ", "bcd", None)


@EVERY
@pytest.mark.parametrize("value", ["'{{a,b},{c,d}}'", "'[0:1]={a,b}'"], ids=["matrix", "bounds"])
def test_an_array_that_spark_has_no_place_for(follow: Follow, capture: str, value: str) -> None:
    """Refused; or, of bounds that nobody will miss, the same whether it was copied or followed."""
    ddl = "CREATE TABLE {t} (id INT PRIMARY KEY, tags TEXT[])"
    insert = f"INSERT INTO {{t}} VALUES (1, {value})"
    held: list[object] = []
    try:
        held.extend(follow(capture, ddl, insert, compare=False).copies.popitem()[1].rows)
    except (ViewkeeperError, *SPARK_ERRORS):
        held.append("refused")
    subject = follow(capture, "DROP TABLE {t}", ddl)
    subject.sql(insert)
    try:
        change = subject.change(subject.tables[0], subject.look())
        held.extend(subject.delta(change, ("id", "tags")))
    except (ViewkeeperError, *SPARK_ERRORS):
        held.append("refused")
    assert held in (["refused"] * 2, [(1, ("a", "b"))] * 2)


@EVERY
def test_names_that_have_to_be_quoted(follow: Follow, capture: str) -> None:
    columns = """"Id" INT PRIMARY KEY, "a ""b"", `c`" TEXT, "it's" INT, "select" INT"""
    subject = follow(
        capture, f"CREATE TABLE {{t}} ({columns})", "INSERT INTO {t} VALUES (1, 'a', 1, 1), (2, 'b', 2, 2)",
        table="It's a $$ Table$vk$",
    )  # fmt: skip
    subject.sql("""UPDATE {t} SET "it's" = 5 WHERE "Id" = 1""", "INSERT INTO {t} VALUES (3, NULL, 3, 3)")
    subject.epoch()


@EVERY
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("DATE", ["2024-02-29", "0001-01-01", "9999-12-31", "10000-01-01", "12345-06-07"]),
        ("TEXT", ["", "a,b", "ü", "\N{SNOWMAN}", "a' b"]),
        pytest.param(
            *("NUMERIC(38,4)", ["0.0001", "-1", "1234567890123456789012345678901234.0000"]),
            marks=pytest.mark.long,
        ),
        pytest.param(*("BOOLEAN", ["t", "f"]), marks=pytest.mark.long),
        pytest.param(
            *("TIMESTAMPTZ", ["2024-02-29 12:34:56.789+02", "1900-01-01 00:00:00+00"]), marks=pytest.mark.long
        ),
        pytest.param(*("BYTEA", ["\\x", "\\x00", "\\xff00"]), marks=pytest.mark.long),
        pytest.param(
            *("DOUBLE PRECISION", ["0.1", "-0", "NaN", "Infinity", "1e300"]), marks=pytest.mark.long
        ),
        ("CHAR(5)", ["a", "ab ", "", "ü"]),
        pytest.param(*("UUID", ["11111111-2222-3333-4444-555555555555"]), marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_are_found_by_their_keys(follow: Follow, capture: str, kind: str, keys: list[str]) -> None:
    """Each is changed, then goes: for that both sides must mean the same row by a key."""
    rows = ", ".join(f"($k${key}$k$, {at})" for at, key in enumerate(keys))
    ddl = f"CREATE TABLE {{t}} (k {kind} PRIMARY KEY, n INT)"
    filled = f"INSERT INTO {{t}} VALUES {rows}"
    subject = follow(capture, ddl, filled, sort=KeptInSpark, compare=False)
    (table,) = subject.tables
    subject.sql("UPDATE {t} SET n = n + 100")
    weights = subject.delta(subject.change(table, subject.look()), ("n",))
    expected = {(at,): -1 for at in range(len(keys))} | {(at + 100,): 1 for at in range(len(keys))}
    assert weights == expected
    subject.sql("DELETE FROM {t}")
    weights = subject.delta(subject.change(table, subject.look()), ("n",))
    assert weights == {(at,): -1 for at in range(len(keys))}


@EVERY
def test_a_database_in_another_encoding(spark: SparkSession, db: PostgresInstance, capture: str) -> None:
    db.sql(
        "DROP DATABASE IF EXISTS old",
        "CREATE DATABASE old ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        "GRANT CREATE ON DATABASE old TO keeper",
    )
    with db.connect(dbname="old", client_encoding="utf8") as connection:
        connection.execute("SET ROLE keeper")
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (k TEXT PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO s.t SELECT 'ü' || i, 'é' FROM generate_series(1, 20) AS i")
    try:
        subject = OneTable(spark, db, capture, database="old")
    except ViewkeeperError as error:
        return told(error, "LATIN1")
    try:
        subject.copy_all()
        subject.sql("UPDATE {t} SET name = 'ñ'", "INSERT INTO {t} VALUES ('ö', 'ß')")
        subject.epoch()
    finally:
        subject.close()
    return None
