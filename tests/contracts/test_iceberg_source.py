"""How an Iceberg delta is found, what it costs, and what is noticed when a table's history breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest
from pyspark.sql import Row, SparkSession
from source_harness import ICEBERG_KINDS, IcebergHarness
from test_source_contract import check, difference

from viewkeeper.errors import SourceError
from viewkeeper.execute.embedded import CATALOG
from viewkeeper.session import work_session
from viewkeeper.sources import iceberg_changes
from viewkeeper.sources.contract import Change
from viewkeeper.sources.drift import compare_schemas
from viewkeeper.sources.iceberg import IcebergSource
from viewkeeper.sql.quoting import quote, quote_path, show_path

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

_GROUPS = count()
KINDS = {kind.name: kind for kind in ICEBERG_KINDS}


@pytest.fixture
def table(spark: SparkSession) -> Callable[..., IcebergHarness]:
    def make(kind: str = "v3-mor-partitioned", name: str | None = None) -> IcebergHarness:
        return IcebergHarness(spark, KINDS[kind], name)

    return make


def jobs(spark: SparkSession, work: Callable[[], object]) -> int:
    """How many Spark jobs the work takes."""
    context = spark.sparkContext
    group = f"counted-{next(_GROUPS)}"
    context.setJobGroup(group, "counted")
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return len(context.statusTracker().getJobIdsForGroup(group))


def rows_of(spark: SparkSession, change: Change, columns: list[str]) -> list[Row]:
    """What a change's statements give, all together."""
    return [row for statement in change.statements(columns) for row in spark.sql(statement).collect()]


def method(subject: IcebergHarness, old: str | None) -> str | None:
    """The method chosen for the change since ``old``, which is checked to be exact."""
    change = check(subject, old, subject.version(), "")
    return None if change is None else change.method


def refused(subject: IcebergHarness, old: str | None, identity: str | None = None) -> str:
    with pytest.raises(SourceError) as raised:
        subject.source.change(subject.table, old, subject.version(), identity=identity)
    assert subject.table in raised.value.message
    assert raised.value.hint
    return raised.value.code


def test_appends_are_read_as_appended_files_and_cost_one_job(spark: SparkSession, table) -> None:
    subject = table()
    subject.insert(0, 20)
    old = subject.version()
    subject.insert(20, 30)
    subject.insert(30, 40)
    assert method(subject, old) == "appended files"
    new = subject.version()
    fresh = IcebergSource(spark, subject.parts)
    assert jobs(spark, fresh.current) == 0
    assert jobs(spark, lambda: fresh.change(subject.table, new, new)) == 0
    assert jobs(spark, lambda: fresh.change(subject.table, old, new)) == 1
    change = fresh.change(subject.table, old, new)
    assert change is not None
    assert change.deleted == 0
    assert change.inserted == 23
    assert jobs(spark, lambda: fresh.columns(subject.table)) == 0


@pytest.mark.parametrize("kind", ["v2-cow-partitioned", "v2-mor-partitioned", "v3-mor-partitioned"])
def test_compaction_is_no_change(table, kind: str) -> None:
    subject = table(kind)
    subject.insert(0, 20)
    subject.insert(20, 40)
    subject.sql("DELETE FROM {t} WHERE id IN (3, 14)")
    old = subject.version()
    subject.compact()
    subject.compact_deletes()
    subject.rewrite_manifests()
    assert subject.version() != old
    assert method(subject, old) is None


def test_changes_around_a_compaction_are_read_and_it_is_not(table) -> None:
    subject = table("v3-mor")
    subject.insert(0, 40)
    old = subject.version()
    subject.insert(40, 50)
    subject.compact()
    assert method(subject, old) == "appended files"
    subject.sql("DELETE FROM {t} WHERE id = 5")
    assert method(subject, old) == "appended files, deleted rows of 1 file"
    subject.compact()
    subject.compact()
    assert method(subject, old) == "appended files, deleted rows of 1 file"


def test_appends_before_and_after_a_compaction_are_each_read_once(table) -> None:
    """Spark 4.1 loads a table once per statement: a second incremental read gave the first one's rows."""
    subject = table("v2-mor")
    subject.insert(0, 40)
    old = subject.version()
    subject.insert(40, 50)
    subject.compact()
    subject.insert(50, 55)
    subject.compact()
    subject.insert(55, 58)
    change = check(subject, old, subject.version(), "three stretches")
    assert change is not None
    assert change.method == "appended files"
    assert len(change.statements(["id"])) == 3


@pytest.mark.parametrize("kind", ["v2-mor", "v3-mor"])
def test_merge_on_read_deletes_read_only_the_deleted_rows(spark: SparkSession, table, kind: str) -> None:
    subject = table(kind)
    subject.insert(0, 40)
    subject.sql("DELETE FROM {t} WHERE id = 3")
    old = subject.version()
    subject.sql("DELETE FROM {t} WHERE id IN (5, 7)")
    new = subject.version()
    change = check(subject, old, new, "")
    assert change is not None
    assert change.method == "deleted rows of 1 file"
    assert (change.inserted, change.deleted, change.passed_over) == (0, 3, 1)
    # the row deleted before must not come at all, not even twice with opposite signs
    assert len(rows_of(spark, change, ["id"])) == 3
    fresh = IcebergSource(spark, subject.parts)
    assert jobs(spark, lambda: fresh.change(subject.table, old, new)) == 2


@pytest.mark.parametrize("broadcast", [0, iceberg_changes.BROADCAST_POSITIONS])
@pytest.mark.parametrize("kind", ["v2-mor", "v3-mor"])
def test_rows_at_the_same_place_of_different_files_are_told_apart(
    spark: SparkSession, table, kind: str, broadcast: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_changes, "BROADCAST_POSITIONS", broadcast)
    subject = table(kind)
    for first in (0, 10, 20):
        rows = f"range({first}, {first + 10}, 1, 1)"
        subject.sql(f"INSERT INTO {{t}} SELECT CAST(id AS INT), 0, 'x', 1.0, NULL FROM {rows}")
    subject.sql("DELETE FROM {t} WHERE id IN (0, 11, 29)")
    old = subject.version()
    subject.sql("DELETE FROM {t} WHERE id IN (1, 10, 19, 20, 22)")
    subject.sql("UPDATE {t} SET name = 'y' WHERE id IN (2, 12, 21)")
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert change.method == "1 added file, deleted rows of 3 files"
    went = [row["id"] for row in rows_of(spark, change, ["id"]) if row["_vk_w"] < 0]
    assert sorted(went) == [1, 2, 10, 12, 19, 20, 21, 22]


def test_rows_that_came_and_went_in_between_do_not_come(spark: SparkSession, table) -> None:
    subject = table("v3-mor")
    subject.insert(0, 20)
    old = subject.version()
    subject.insert(20, 40)
    subject.insert(40, 50)
    subject.sql("DELETE FROM {t} WHERE id BETWEEN 15 AND 25")
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert change.method == "appended files, 1 added file, deleted rows of 1 file"
    ids = [row["id"] for row in rows_of(spark, change, ["id"])]
    assert not {20, 21, 22, 23, 24, 25} & set(ids)


def test_copy_on_write_carries_nothing_over(spark: SparkSession, table) -> None:
    subject = table("v2-cow")
    subject.insert(0, 60)
    old = subject.version()
    subject.sql("UPDATE {t} SET price = 99 WHERE id = 8")
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert change.method == "1 added file, 1 removed file"
    assert len(rows_of(spark, change, ["id", "price"])) == 2
    # seen through the unchanged columns alone, nothing happened
    assert rows_of(spark, change, ["id"]) == []


def test_dropping_a_partition_reads_its_files_by_their_bounds(table) -> None:
    subject = table("v2-cow-partitioned")
    subject.insert(0, 20, part="0")
    subject.insert(20, 40, part="1")
    subject.insert(40, 60, part="2")
    old = subject.version()
    subject.sql("DELETE FROM {t} WHERE part = 1")
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert change.method == "1 removed file"
    assert (change.inserted, change.deleted) == (0, 23)
    assert "BETWEEN CAST('20' AS INT) AND CAST('39' AS INT)" in change.statements(["name"])[0]


def test_a_merge_that_only_inserts_promises_no_deletes(table) -> None:
    subject = table("v3-mor")
    subject.insert(0, 10)
    old = subject.version()
    subject.sql(
        "MERGE INTO {t} USING (SELECT 100 AS i) ON id = i WHEN NOT MATCHED THEN INSERT (id) VALUES (i)"
    )
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert (change.inserted, change.deleted) == (1, 0)


def test_equality_deletes_are_found_by_comparing_snapshots(spark: SparkSession, table) -> None:
    subject = table("v2-mor")
    subject.insert(0, 20)
    old = subject.version()
    _delete_by_equality(spark, subject, 5)
    new = subject.version()
    change = check(subject, old, new, "")
    assert change is not None
    assert change.method == "compared snapshots"
    assert change.reason == "the table has equality delete files"
    assert difference(subject.rows(old), subject.rows(new)).total() == -1
    subject.insert(20, 30)
    assert method(subject, new) == "appended files"
    newer = subject.version()
    subject.sql("DELETE FROM {t} WHERE id = 6")
    assert method(subject, newer) == "compared snapshots"


def _delete_by_equality(spark: SparkSession, subject: IcebergHarness, number: int) -> None:
    """What only other engines do: a delete file that says id = number."""
    jvm = spark._jvm  # type: ignore[attr-defined]
    iceberg = jvm.org.apache.iceberg
    real = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, subject.name)  # type: ignore[attr-defined]
    names = jvm.java.util.ArrayList()
    names.add("id")
    schema = real.schema().select(names)
    ids = spark.sparkContext._gateway.new_array(jvm.int, 1)  # type: ignore[union-attr]
    ids[0] = 1
    builder = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(real)
    factory = builder.equalityFieldIds(ids).equalityDeleteRowSchema(schema).build()
    output = real.io().newOutputFile(real.location() + "/data/equality-deletes.parquet")
    encrypted = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
    writer = factory.newEqualityDeleteWriter(encrypted, real.spec(), None)
    record = iceberg.data.GenericRecord.create(schema)
    record.setField("id", number)
    writer.write(record)
    writer.close()
    real.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def test_snapshots_expired_in_between_are_compared_over(spark: SparkSession, table) -> None:
    subject = table("v3-mor")
    subject.insert(0, 10)
    old = subject.version()
    subject.sql("ALTER TABLE {t} CREATE TAG kept")
    subject.sql("DELETE FROM {t} WHERE id = 3")
    subject.insert(10, 20)
    _expire(spark, subject)
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert change.reason == "snapshots in between are expired"


def _expire(spark: SparkSession, subject: IcebergHarness) -> None:
    name = quote_path(subject.parts[1:])
    spark.sql(
        f"CALL {CATALOG}.system.expire_snapshots(table => '{name}', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    ).collect()


def test_an_expired_snapshot_is_noticed(spark: SparkSession, table) -> None:
    subject = table()
    subject.insert(0, 10)
    old = subject.version()
    identity = subject.source.identity(subject.table)
    assert identity is not None
    subject.insert(10, 20)
    subject.insert(20, 30)
    _expire(spark, subject)
    assert refused(subject, old) == "VK-SOURCE-EXPIRED"
    assert refused(subject, old, identity) == "VK-SOURCE-EXPIRED"
    with pytest.raises(SourceError, match="VK-SOURCE-EXPIRED"):
        subject.source.versions_after(subject.table, old)


def test_a_rollback_is_noticed(spark: SparkSession, table) -> None:
    subject = table()
    subject.insert(0, 10)
    first = subject.version()
    subject.insert(10, 20)
    second = subject.version()
    name = quote_path(subject.parts[1:])
    spark.sql(f"CALL {CATALOG}.system.rollback_to_snapshot('{name}', {first})").collect()
    assert refused(subject, second) == "VK-SOURCE-DIVERGED"
    subject.insert(30, 40)
    assert refused(subject, second) == "VK-SOURCE-DIVERGED"
    assert method(subject, first) == "appended files"


def test_cherry_picking_is_an_append(spark: SparkSession, table) -> None:
    subject = table()
    subject.insert(0, 10)
    first = subject.version()
    subject.insert(10, 20)
    second = subject.version()
    name = quote_path(subject.parts[1:])
    spark.sql(f"CALL {CATALOG}.system.rollback_to_snapshot('{name}', {first})").collect()
    subject.insert(30, 40)
    spark.sql(f"CALL {CATALOG}.system.cherrypick_snapshot('{name}', {second})").collect()
    assert method(subject, first) == "appended files"


def test_main_may_be_moved_to_what_was_written_before_the_table_was_altered(
    spark: SparkSession, table
) -> None:
    """That snapshot has the schema of then, and no other was written since."""
    subject = table()
    subject.insert(0, 10)
    source = subject.source
    recorded = source.schema_version(subject.table, subject.version())
    subject.sql("ALTER TABLE {t} CREATE BRANCH audit")
    spark.sql(f"INSERT INTO {subject.name}.branch_audit (id) VALUES (100)")
    subject.sql("ALTER TABLE {t} DROP COLUMN price")
    subject.sql("ALTER TABLE {t} ADD COLUMN price DECIMAL(8,2)")
    name = quote_path(subject.parts[1:])
    spark.sql(f"CALL {CATALOG}.system.fast_forward('{name}', 'main', 'audit')").collect()
    newest = subject.version()
    assert subject.rows(newest)[100, None, None, None, None] == 1
    assert source.schema_version(subject.table, newest) not in (None, recorded)
    subject.sql("INSERT INTO {t} (id) VALUES (101)")
    newest = subject.version()  # the log tells it again, at no cost
    assert jobs(spark, lambda: source.schema_version(subject.table, newest)) <= 1


def test_replacing_a_table_is_noticed(table) -> None:
    subject = table()
    subject.insert(0, 10)
    old = subject.version()
    subject.sql("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT 1 AS id")
    assert refused(subject, old) == "VK-SOURCE-DIVERGED"


def test_a_recreated_table_is_noticed(table) -> None:
    subject = table()
    subject.insert(0, 10)
    old = subject.version()
    identity = subject.source.identity(subject.table)
    subject.sql("DROP TABLE {t} PURGE")
    subject.create()
    assert subject.source.identity(subject.table) not in (None, identity)
    assert refused(subject, old, identity) == "VK-SOURCE-RECREATED"
    subject.insert(0, 10)
    assert refused(subject, old) == "VK-SOURCE-RECREATED"
    assert refused(subject, old, identity) == "VK-SOURCE-RECREATED"


def test_a_missing_table_and_a_view_are_refused(spark: SparkSession, table) -> None:
    subject = table()
    missing = IcebergSource(spark, (CATALOG, "contract", "no such table"))
    with pytest.raises(SourceError, match=r"VK-SOURCE-MISSING.*`no such table`"):
        missing.current()
    nowhere = IcebergSource(spark, (CATALOG, "no_such_namespace", "t"))
    with pytest.raises(SourceError, match="VK-SOURCE-MISSING"):
        nowhere.current()
    view = (CATALOG, "contract", f"view_of_{subject.parts[-1]}")
    spark.sql(f"CREATE VIEW {quote_path(view)} AS SELECT 1 AS one")
    with pytest.raises(SourceError, match="VK-SOURCE-KIND"):
        IcebergSource(spark, view).current()


def test_where_a_table_stands_is_told_without_a_job(spark: SparkSession, table) -> None:
    written, unwritten = table(), table()
    written.insert(0, 10)
    for subject in (written, unwritten):
        source, told = IcebergSource(spark, subject.parts), []

        def ask(source=source, name=subject.table, told=told) -> None:
            version = source.current()[name]
            told += [version, source.row_count(name, version)]

        assert jobs(spark, ask) == 0
        assert told == [subject.version(), spark.table(subject.name).count()]


def test_a_commit_of_another_session_is_seen_at_once(spark: SparkSession, table) -> None:
    subject = table()
    before = subject.version()
    work_session(spark).sql(f"INSERT INTO {subject.name} (id) VALUES (1)")
    assert subject.version() != before


@pytest.mark.parametrize("name", ["a`;drop", "dots.in.it", "ünï 😀 code", "it's", "x" * 120])
def test_hostile_names(spark: SparkSession, name: str) -> None:
    parts = (CATALOG, "contract", name)
    table, column = quote_path(parts), quote(name)
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(
        f"CREATE TABLE {table} ({column} INT, `the rest` INT) USING iceberg PARTITIONED BY ({column}) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {table} SELECT id % 3, id FROM range(9)")
    source = IcebergSource(spark, parts)
    key = show_path(parts)
    old = source.current()[key]
    spark.sql(f"DELETE FROM {table} WHERE `the rest` = 4")
    spark.sql(f"DELETE FROM {table} WHERE {column} = 2")
    new = source.current()[key]
    change = source.change(key, old, new)
    assert change is not None
    found = Counter(tuple(row) for row in rows_of(spark, change, [name, "the rest"]))
    assert found == Counter([(1, 4, -1), (2, 2, -1), (2, 5, -1), (2, 8, -1)])
    assert [column.name for column in source.schema(key)] == [name, "the rest"]


def test_a_column_named_like_iceberg_s_own_is_not_mistaken_for_it(spark: SparkSession, table) -> None:
    subject = table("v3-mor")
    subject.sql("ALTER TABLE {t} ADD COLUMN `_Deleted` INT")
    subject.sql("INSERT INTO {t} VALUES (1, 1, 'a', 1, NULL, 0), (2, 1, 'b', 1, NULL, 1)")
    old = subject.version()
    subject.sql("DELETE FROM {t} WHERE id = 2")
    assert method(subject, old) == "compared snapshots"


def test_columns_are_followed_by_their_ids(table) -> None:
    subject = table()
    before = subject.source.schema(subject.table)
    used = {"name", "price"}
    subject.sql("ALTER TABLE {t} ADD COLUMN more INT")
    subject.sql("ALTER TABLE {t} DROP COLUMN at")
    assert compare_schemas(before, subject.source.schema(subject.table), used) is None
    subject.sql("ALTER TABLE {t} RENAME COLUMN name TO title")
    drift = compare_schemas(before, subject.source.schema(subject.table), used)
    assert drift is not None
    assert drift.message == "column name was renamed to title"
    subject.sql("ALTER TABLE {t} RENAME COLUMN title TO name")
    subject.sql("ALTER TABLE {t} DROP COLUMN price")
    subject.sql("ALTER TABLE {t} ADD COLUMN price DECIMAL(8, 2) AFTER name")
    drift = compare_schemas(before, subject.source.schema(subject.table), used)
    assert drift is not None
    assert "dropped and added again" in drift.message


def test_a_column_added_in_between_is_no_obstacle(table) -> None:
    subject = table("v3-mor")
    subject.insert(0, 20)
    old = subject.version()
    subject.sql("ALTER TABLE {t} ADD COLUMN more INT FIRST")
    subject.sql("DELETE FROM {t} WHERE id = 4")
    subject.sql("INSERT INTO {t} (id, more) VALUES (77, 1)")
    assert method(subject, old) == "appended files, deleted rows of 1 file"


def test_columns_go_by_todays_names_at_every_version(spark: SparkSession, table) -> None:
    subject = table("v2-cow")
    subject.insert(0, 6)
    old = subject.version()
    # no commit follows: the snapshot's own schema knows neither the new column nor the new name
    subject.sql("ALTER TABLE {t} ADD COLUMN more INT FIRST")
    subject.sql("ALTER TABLE {t} RENAME COLUMN name TO title")
    subject.sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT")
    rows = subject.source.rows(subject.table, old)
    assert [tuple(r) for r in spark.sql(f"SELECT more, title FROM {rows} WHERE id = 3").collect()] == [
        (None, "n3")
    ]
    assert spark.sql(f"SELECT * FROM {rows}").schema.names == ["more", "id", "part", "title", "price", "at"]
    subject.sql("UPDATE {t} SET more = 1 WHERE id = 3")
    change = subject.source.change(subject.table, old, subject.version())
    assert change is not None
    found = Counter(tuple(row) for row in rows_of(spark, change, ["id", "more", "title"]))
    assert found == Counter([(3, None, "n3", -1), (3, 1, "n3", 1)])
    everything = subject.source.change(subject.table, None, old)
    assert everything is not None
    assert len(rows_of(spark, everything, ["Title"])) == 7


def test_a_thousand_changed_files(spark: SparkSession, table) -> None:
    subject = table("v3-mor")
    subject.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.distribution-mode' = 'none')")
    subject.sql("INSERT INTO {t} SELECT CAST(id AS INT), 0, 'x', 1, NULL FROM range(0, 600, 1, 600)")
    old = subject.version()
    subject.sql("INSERT OVERWRITE {t} SELECT CAST(id AS INT), 1, 'x', 1, NULL FROM range(0, 600, 1, 600)")
    change = check(subject, old, subject.version(), "")
    assert change is not None
    assert change.method == "600 added files, 600 removed files"


def test_identifier_fields_are_the_key(spark: SparkSession, table) -> None:
    subject = table()
    assert subject.source.describe(subject.table).key == ()
    parts = (*subject.parts[:-1], f"keyed_{subject.parts[-1]}")
    spark.sql(f"CREATE TABLE {quote_path(parts)} (id INT NOT NULL, day DATE NOT NULL, n INT) USING iceberg")
    spark.sql(f"ALTER TABLE {quote_path(parts)} SET IDENTIFIER FIELDS id, day")
    keyed = IcebergSource(spark, parts)
    (name,) = keyed.current()
    described = keyed.describe(name)
    assert set(described.key) == {"id", "day"}
    assert described.identity == keyed.identity(name)
    assert described.columns == keyed.schema(name)


def test_between_which_values_columns_lie(spark: SparkSession, table) -> None:
    subject = table()
    subject.sql("INSERT INTO {t} (id, name) VALUES (1, 'a'), (5, NULL)")
    old = subject.version()
    subject.sql("INSERT INTO {t} (id, name) VALUES (7, 'b'), (9, 'c')")
    source, name = subject.source, subject.table
    new = subject.version()
    source.change(name, old, new)
    asked = jobs(spark, lambda: source.extents(name, old, new, ["id"]))
    assert asked == 1
    found = source.extents(name, old, subject.version(), ["id", "name", "price"])
    ids = found["id"]
    assert ids.before is not None and (ids.before.low, ids.before.high) == (1, 5)
    assert ids.after is not None and (ids.after.low, ids.after.high) == (1, 9)
    assert ids.inserted is not None and (ids.inserted.low, ids.inserted.high) == (7, 9)
    assert source.extents(name, None, subject.version(), ["id"]) == {}, "everything is new"
    subject.sql("DELETE FROM {t} WHERE id = 9")
    gone = source.extents(name, old, subject.version(), ["id"])["id"]
    assert gone.inserted is None, "rows went, too"
    assert gone.before == ids.before
