"""Tables over JDBC: what only they can do to us. What all sources promise is in the contract suite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from extracted_harness import Bag, ExtractedHarness
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import ViewkeeperError
from viewkeeper.sources.differential import KEY_TWICE

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


class SqliteHarness(ExtractedHarness):
    """A table of SQLite's, ``t``."""

    def __init__(self, spark: SparkSession, file: Path, *ddl: str, **options: str) -> None:
        self.file = file
        self.sql(*ddl)
        super().__init__(spark, "jdbc", {"url": f"jdbc:sqlite:{file}", "table": "t", **options})
        self.copy_all()

    def sql(self, *statements: str) -> None:
        with sqlite3.connect(self.file) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    def random_operation(self, chance: object) -> str:
        raise NotImplementedError

    def there(self) -> dict[str, Bag]:
        raise NotImplementedError

    def delta_now(self) -> Bag:
        change = self.change(self.tables[0], self.look())
        return self.delta(change, self.columns(self.tables[0]))


@pytest.fixture
def follow(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., SqliteHarness]]:
    opened: list[SqliteHarness] = []

    def make(*ddl: str, **options: str) -> SqliteHarness:
        opened.append(SqliteHarness(spark, tmp_path / "t.db", *ddl, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.mark.parametrize("key", ["id", ""], ids=["keyed", "bag"])
def test_a_null_that_goes_to_the_column_beside_it_is_noticed(
    follow: Callable[..., SqliteHarness], key: str
) -> None:
    """A digest of a row passes over NULLs: where they stand must be part of it."""
    subject = follow(
        "CREATE TABLE t (id INTEGER, one TEXT, other TEXT)",
        "INSERT INTO t VALUES (1, 'x', NULL), (2, 'a', 'b')",
        **({"key": key} if key else {}),
    )
    subject.sql("UPDATE t SET one = NULL, other = 'x' WHERE id = 1")
    assert subject.delta_now() == {(1, "x", None): -1, (1, None, "x"): 1}


def test_values_that_are_exchanged_between_rows_are_noticed(follow: Callable[..., SqliteHarness]) -> None:
    """The same values, in other rows."""
    subject = follow(
        "CREATE TABLE t (id INTEGER, name TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)"
    )
    subject.sql("UPDATE t SET name = CASE id WHEN 1 THEN 'b' ELSE 'a' END WHERE id < 3")
    assert subject.delta_now() == {(1, "a"): -1, (2, "b"): -1, (1, "b"): 1, (2, "a"): 1}


def test_a_key_that_comes_twice_in_the_first_copy_is_named(follow: Callable[..., SqliteHarness]) -> None:
    with pytest.raises((ViewkeeperError, PySparkException, Py4JJavaError)) as refused:
        follow("CREATE TABLE t (id INTEGER, name TEXT)", "INSERT INTO t VALUES (7, 'a'), (7, 'b')", key="id")
    assert KEY_TWICE in str(refused.value)


WHOLE = 'id INTEGER, "odd `name, x" SMALLINT, tiny TINYINT'
LARGE = 5_000_000_000


def test_whole_numbers_of_sqlite_have_64_bits(follow: Callable[..., SqliteHarness]) -> None:
    """Whatever their columns are declared as."""
    subject = follow(
        f"CREATE TABLE t ({WHOLE})", f"INSERT INTO t VALUES ({LARGE}, {-LARGE}, {LARGE}), (1, 2, 3)"
    )
    table = subject.tables[0]
    assert {column.type for column in subject.source.columns(table)} == {"bigint"}
    assert subject.copies[table].rows == {(LARGE, -LARGE, LARGE): 1, (1, 2, 3): 1}
    subject.sql(f"UPDATE t SET tiny = {1 << 62} WHERE id = {LARGE}", "DELETE FROM t WHERE id = 1")
    assert subject.delta_now() == {
        (LARGE, -LARGE, LARGE): -1, (LARGE, -LARGE, 1 << 62): 1, (1, 2, 3): -1
    }  # fmt: skip


def test_a_source_that_was_declared_with_32_bits_goes_on_while_they_suffice(
    follow: Callable[..., SqliteHarness],
) -> None:
    subject = follow(f"CREATE TABLE t ({WHOLE})", "INSERT INTO t VALUES (1, 2, NULL)")
    before = json.dumps([[column.name, "int"] for column in subject.source.columns(subject.tables[0])])
    subject.definition = replace(subject.definition, facts=(("columns", before),))
    subject.reopen()
    subject.copy_all()
    assert not subject.source.problems()
    subject.sql("INSERT INTO t VALUES (2, -2147483648, 2147483647)")
    assert subject.delta_now() == {(2, -2147483648, 2147483647): 1}
    subject.sql(f"INSERT INTO t VALUES (3, {LARGE}, NULL)")
    with pytest.raises(ViewkeeperError) as refused:
        subject.look()
    assert refused.value.code == "VK-SOURCE-CHANGED"
    assert "CREATE OR REPLACE SOURCE" in str(refused.value)
