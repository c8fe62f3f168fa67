"""Embedded sessions side by side, and the sessions of our own in which work runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import SetupError
from viewkeeper.execute.embedded import embedded_session
from viewkeeper.session import is_connect, require_views, session_pins, supports_views, work_session

pytestmark = pytest.mark.spark

NewSpark = Callable[[str], SparkSession]


def tables(spark: SparkSession) -> list[str]:
    return [row["tableName"] for row in spark.sql("SHOW TABLES").collect()]


def test_two_warehouses_in_one_process_do_not_see_each_other(new_spark: NewSpark) -> None:
    first, second = new_spark("one"), new_spark("it's another")
    first.sql("CREATE TABLE t AS SELECT 1 AS a")
    second.sql("CREATE TABLE u AS SELECT 2 AS a")
    assert (tables(first), tables(second)) == (["t"], ["u"])
    assert (tables(work_session(first)), tables(work_session(second))) == (["t"], ["u"])


def test_a_warehouse_is_found_again(new_spark: NewSpark) -> None:
    new_spark("one").sql("CREATE TABLE t AS SELECT 1 AS a")
    assert tables(new_spark("one")) == ["t"]


def test_a_work_session_has_its_pins_and_none_of_the_users_temporary_views(new_spark: NewSpark) -> None:
    spark = new_spark("one")
    spark.sql("CREATE TABLE t AS SELECT 1 AS a")
    spark.sql("CREATE TEMPORARY VIEW mine AS SELECT 1 AS a")
    spark.conf.set("spark.sql.iceberg.snapshot-property.by", "me")
    spark.conf.set("spark.wap.branch", "mine")
    pins = SessionPins("lake", ("default",), "Asia/Tokyo", ansi=False, case_sensitive=True)
    work = work_session(spark, pins)
    assert session_pins(work) == pins
    assert session_pins(spark) != pins
    assert work.conf.get("spark.sql.sources.partitionOverwriteMode").lower() == "static"
    assert work.conf.get("spark.wap.branch", None) is None
    assert work.conf.get("spark.sql.iceberg.snapshot-property.by", None) is None
    with pytest.raises(AnalysisException):
        work.table("mine")
    assert not is_connect(work)


def test_a_work_session_knows_no_other_meaning_of_words(new_spark: NewSpark) -> None:
    spark = new_spark("one")
    spark.conf.set("spark.sql.jsonGenerator.ignoreNullFields", "false")
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    told = "to_json(struct(1 AS a, CAST(NULL AS INT) AS b))"
    asked = f"SELECT {told} AS told, typeof(CAST('2026-01-01' AS TIMESTAMP)) AS kind"
    assert spark.sql(asked).collect()[0] == ('{"a":1,"b":null}', "timestamp_ntz")
    work = work_session(spark)
    assert work.sql(asked).collect()[0] == ('{"a":1}', "timestamp")
    assert work.conf.get("spark.sql.mapKeyDedupPolicy") == "EXCEPTION"
    assert work.conf.get("spark.sql.legacy.timeParserPolicy") == "CORRECTED"


def test_statements_take_parameters(new_spark: NewSpark) -> None:
    """Delta's parser loses them unless Spark binds them in its old way."""
    spark = new_spark("one")
    spark.conf.set("spark.sql.legacy.parameterSubstitution.constantsOnly", "false")  # as a user's may be
    for session in (new_spark("another"), work_session(spark)):
        assert session.sql("SELECT :a + id AS x FROM range(1)", args={"a": 5}).collect()[0]["x"] == 5


def test_pins_survive_hostile_namespaces(new_spark: NewSpark) -> None:
    spark = new_spark("one")
    spark.sql("CREATE NAMESPACE lake.`a.b c`")
    spark.sql("USE lake.`a.b c`")
    assert session_pins(spark).namespace == ("a.b c",)
    assert session_pins(work_session(spark)).namespace == ("a.b c",)


def test_a_catalog_without_views_is_found_out(new_spark: NewSpark, tmp_path: Path) -> None:
    spark = new_spark("one")
    require_views(spark, "lake")
    assert supports_views(spark, "lake")
    spark.conf.set("spark.sql.catalog.bare", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.bare.type", "hadoop")
    spark.conf.set("spark.sql.catalog.bare.warehouse", str(tmp_path / "bare"))
    assert not supports_views(spark, "bare")
    with pytest.raises(SetupError, match="schema-version=V1") as caught:
        require_views(spark, "bare")
    assert caught.value.code == "VK-SETUP-NO-VIEWS"


def test_a_folder_that_sqlite_would_misread_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="VK-SETUP-FOLDER"):
        embedded_session(tmp_path / "what?")


def test_the_data_may_lie_elsewhere_behind_links(new_spark: NewSpark, tmp_path: Path) -> None:
    """People move the data to a larger disk, the whole folder or a table's large files."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "data").symlink_to(elsewhere)
    spark = new_spark("one")
    spark.sql("CREATE TABLE t USING iceberg AS SELECT id FROM range(1000)")
    for file in list(elsewhere.rglob("*.parquet")):
        file.rename(moved := tmp_path / file.name)
        file.symlink_to(moved)
    spark.sql("DELETE FROM t WHERE id % 2 = 0")
    spark.sql("INSERT INTO t VALUES (-1)")
    assert spark.sql("SELECT count(*), sum(id) FROM t").collect()[0] == (501, 249_999)
