"""Files as a source: what only they can do to us. What all sources promise is in the contract suite."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from extracted_harness import Bag, ExtractedHarness, check_bounds, difference
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.sources.differential import KEY_TWICE

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

SPARK_ERRORS = (PySparkException, Py4JJavaError)


class Inbox(ExtractedHarness):
    """A folder that a test fills by itself."""

    def __init__(self, spark: SparkSession, folder: Path, **options: str) -> None:
        super().__init__(spark, "files", {"path": str(folder), **options})

    def random_operation(self, chance: object) -> str:
        raise NotImplementedError

    def there(self) -> dict[str, Bag]:
        """As Spark reads all files, without us."""
        raise NotImplementedError

    def delta_now(self) -> Bag:
        change = self.change(self.tables[0], self.look())
        return self.delta(change, self.columns(self.tables[0]))


@pytest.fixture
def deliver(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    clock = 1_700_000_000

    def write(name: str, *lines: str) -> Path:
        nonlocal clock
        clock += 1
        file = tmp_path / name
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.utime(file, (clock, clock))
        return file

    yield write


CSV = {"format": "csv", "schema": "id INT, name STRING"}


def test_times_without_a_zone_are_of_the_zone_in_which_the_source_was_declared(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path]
) -> None:
    (noon,) = spark.sql("SELECT TIMESTAMP'2026-01-01 12:00:00'").collect()[0]
    deliver("1.csv", "1,2026-01-01 12:00:00")
    subject = Inbox(spark, tmp_path, format="csv", schema="id INT, at TIMESTAMP")
    subject.copy_all()
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        subject.reopen()
        deliver("2.csv", "2,2026-01-01 12:00:00")
        assert subject.delta_now() == {(2, noon): 1}
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


def test_where_a_session_is_does_not_change_a_file(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path]
) -> None:
    """A warehouse is opened by people, and machines, in several time zones."""
    deliver("1.csv", "1,a")
    subject = Inbox(spark, tmp_path, **CSV)
    subject.copy_all()
    before = subject.look()
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        subject.reopen()
        assert subject.look() == before
        deliver("2.csv", "2,b")
        assert subject.delta_now() == {(2, "b"): 1}
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


def test_a_file_of_the_hour_that_comes_twice(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path]
) -> None:
    """When the clock is set back, two times have the same name."""
    first = 1_729_989_000  # 02:30 in Berlin, and again an hour later
    os.utime(deliver("1.csv", "1,a"), (first, first))
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        subject = Inbox(spark, tmp_path, mode="replace", **CSV)
        subject.copy_all()
        os.utime(deliver("1.csv", "1,b"), (first + 3600, first + 3600))
        assert subject.delta_now() == {(1, "a"): -1, (1, "b"): 1}
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


@pytest.mark.parametrize("mode", ["append", "replace", "snapshot"])
@pytest.mark.parametrize("when", ["copied", "added", "added across files"])
def test_a_key_that_comes_twice_is_refused_whichever_way_it_comes(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path], mode: str, when: str
) -> None:
    """What is declared to be a key is taken for one by the planner, and by later comparisons."""
    deliver("1.csv", "1,a", *(["1,b"] if when == "copied" else []))
    with pytest.raises((ViewkeeperError, *SPARK_ERRORS)) as refused:
        subject = Inbox(spark, tmp_path, mode=mode, key="id", **CSV)
        subject.copy_all()
        deliver("2.csv", *(["2,x", "2,y"] if when == "added" else ["1,x"]))
        subject.delta_now()
    assert KEY_TWICE in str(refused.value) or "key" in str(refused.value)


@pytest.mark.parametrize("key", ["id", ""], ids=["keyed", "bag"])
def test_maps_are_kept_exactly_or_refused(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path], key: str
) -> None:
    """Spark compares no maps, and makes zeros of the NULLs in those that it groups by."""
    deliver("1.json", '{"id": 1, "m": {"a": 1, "b": null}}', '{"id": 2, "m": {"a": 1, "b": null}}')
    options = {"format": "json", "schema": "id INT, m MAP<STRING, INT>", "mode": "replace"}
    try:
        subject = Inbox(spark, tmp_path, **options, **({"key": key} if key else {}))
    except ViewkeeperError as error:
        assert "m" in error.message and error.hint
        return
    # Kept in Spark: a map cannot stand in a bag of Python's.
    now = subject.look()
    spark.sql(
        f"SELECT * FROM {subject.source.rows(subject.tables[0], now[subject.tables[0]])}"
    ).localCheckpoint().createOrReplaceTempView("kept_maps")
    subject.source.confirm(now)
    subject.source.show(subject.tables[0], "SELECT * FROM kept_maps", now[subject.tables[0]])
    deliver("1.json", '{"id": 1, "m": {"a": 1, "b": null}}', '{"id": 2, "m": {"a": null}}')
    later = subject.source.current()
    change = subject.source.change(subject.tables[0], now[subject.tables[0]], later[subject.tables[0]])
    assert change is not None
    (statement,) = change.statements(("id", "m"))
    found = sorted(repr(tuple(row)) for row in spark.sql(statement).collect())
    assert found == sorted([repr((2, {"a": 1, "b": None}, -1)), repr((2, {"a": None}, 1))])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_many_rows_in_few_bytes_are_not_taken_for_few(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path], form: str
) -> None:
    """Files are packed, and rows may be short: what a change says of its size is a bound, not a guess."""
    seen, there = 3_000, 2_000
    options = {"format": form, "mode": "replace", "schema": "id INT"}

    def write(rows: int) -> None:
        if form == "csv":
            deliver("1.csv", *["1"] * rows)
            return
        out = tmp_path.parent / f"{tmp_path.name}-{rows}"
        spark.range(rows).selectExpr("1 AS id").coalesce(1).write.parquet(str(out))
        (file,) = out.glob("part-*")
        (tmp_path / "1.parquet").write_bytes(file.read_bytes())
        os.utime(tmp_path / "1.parquet", (1_700_000_000 + rows, 1_700_000_000 + rows))

    write(seen)
    subject = Inbox(spark, tmp_path, **options)
    subject.copy_all()
    write(there)
    change = subject.change(subject.tables[0], subject.look())
    assert change is not None
    expected = difference(Counter({(1,): seen}), Counter({(1,): there}))
    assert subject.delta(change, ("id",)) == expected
    check_bounds(change, expected, form)


def test_a_version_that_nobody_remembers_is_told(
    spark: SparkSession, tmp_path: Path, deliver: Callable[..., Path]
) -> None:
    deliver("1.csv", "1,a")
    subject = Inbox(spark, tmp_path, **CSV)
    subject.copy_all()
    subject.shelf.kept.clear()
    subject.reopen()
    deliver("2.csv", "2,b")
    with pytest.raises(SourceError) as refused:
        subject.delta_now()
    assert refused.value.code == "VK-SOURCE-EXPIRED"
