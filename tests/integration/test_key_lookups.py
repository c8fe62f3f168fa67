"""The keys of a small change reach the scan of a large table, however that is laid out: what its partitions,
bounds and bloom filters tell apart is not read. Told by what Spark counted in its scans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from world import assert_exact, strategies

from viewkeeper.plan import lookups
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

ROWS, KEYS = 4_000, 1_000
NUMBER, TEXT, DAY = "BIGINT", "STRING", "DATE"
KEY = {NUMBER: "id * 7919", TEXT: "md5(string(id))", DAY: "date_add(DATE'2020-01-01', INT(id))"}
"""By type: the key that is made of a number."""
BUCKETS, RANGES = 16, 8
SMALL_GROUPS = {
    "row-group-size-bytes": "2048",
    "row-group-check-min-record-count": "100",
    "row-group-check-max-record-count": "100",
    "dict-size-bytes": "64",
}
"""Of about a hundred rows, and without dictionaries, which would tell as much as a bloom filter."""


@pytest.fixture
def shop(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    monkeypatch.setattr(lookups, "_LARGE_ROWS", 1)
    monkeypatch.setattr(lookups, "_LARGER", 1)
    return wh


def fill(shop: Warehouse, kind: str, layout: str = "", *, lots: int = 1, keys: int = KEYS) -> None:
    """A table with so many keys, and rows without one, written in so many lots, each of which has keys of a
    range of its own, in no order; and another one that it is joined with."""
    spark = shop.spark
    spark.sql(f"CREATE TABLE facts (k {kind}, v BIGINT) USING iceberg {layout}")
    spark.sql(f"CREATE TABLE items (k {kind}, name STRING) USING iceberg")
    everything = f"SELECT {KEY[kind]} AS k, v FROM (SELECT id % {keys} AS id, id AS v FROM range({ROWS}))"
    for lot in range(lots):
        spark.sql(
            "INSERT INTO facts SELECT k, v FROM "
            f"(SELECT *, ntile({lots}) OVER (ORDER BY k) - 1 AS lot FROM ({everything})) WHERE lot = {lot} "
            "ORDER BY hash(v)"
        )
    spark.sql("INSERT INTO facts VALUES (NULL, -1), (NULL, -2)")
    spark.sql("INSERT INTO items VALUES (NULL, 'none')")
    shop.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT items.k, name, v FROM items JOIN facts ON items.k = facts.k"
    )


def properties(settings: dict[str, str]) -> str:
    listed = ", ".join(f"'write.parquet.{key}' = '{value}'" for key, value in settings.items())
    return f"TBLPROPERTIES ({listed})"


def add_items(shop: Warehouse, kind: str, numbers: str, *, without_key: int = 0) -> None:
    """New ones with the keys of these numbers, and so many without a key, which find nothing."""
    missing = f" UNION ALL SELECT NULL, 'lost' FROM range({without_key})"
    shop.spark.sql(f"INSERT INTO items SELECT {KEY[kind]}, 'new' FROM {numbers} AS t(id){missing}")


@dataclass(frozen=True)
class Scanned:
    """What the scans of ``facts`` read: data files that were not skipped, and the rows in them that were in
    no row group that was skipped."""

    files: int
    rows: int


def refreshed(shop: Warehouse) -> Scanned:
    """Refresh by the change; what was read for it."""
    before = {execution for execution, _ in executions(shop)}
    epoch = shop.refresh("v", policy="incremental")
    assert strategies(epoch) == {"v": "incremental"}
    found = [
        scanned
        for execution, store in executions(shop)
        if execution not in before
        for scanned in scans(store, execution, "BatchScan lake.default.facts")
    ]
    assert found, "it is joined with what it had"
    assert_exact(shop)
    return Scanned(sum(each.files for each in found), sum(each.rows for each in found))


def executions(shop: Warehouse) -> Iterator[tuple[int, Any]]:
    """What Spark remembers of the statements that it ran."""
    shop.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = shop.spark._jsparkSession.sharedState().statusStore()
    yield from ((each.executionId(), store) for each in items(store.executionsList()))


def scans(store: Any, execution: int, name: str) -> Iterator[Scanned]:
    """What was counted in each scan of that name."""
    told = store.executionMetrics(execution)
    for node in items(store.planGraph(execution).allNodes()):
        if node.name() == name:
            ids = {metric.name(): metric.accumulatorId() for metric in items(node.metrics())}
            files, rows = (
                told.get(ids[f"number of {what}"]) for what in ("result data files", "output rows")
            )
            yield Scanned(
                *(int(each.get().replace(",", "")) if each.isDefined() else 0 for each in (files, rows))
            )


def items(sequence: Any) -> Iterator[Any]:
    """Those of a sequence of Scala."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


@pytest.mark.parametrize("kind", [NUMBER, TEXT])
def test_buckets_that_hold_no_key_are_not_read(shop: Warehouse, kind: str) -> None:
    fill(shop, kind, f"PARTITIONED BY (bucket({BUCKETS}, k))")
    add_items(shop, kind, "VALUES (3), (977)", without_key=2)
    scanned = refreshed(shop)
    assert 1 <= scanned.files <= 2, f"one of {BUCKETS} files for each key"
    assert scanned.rows < ROWS / 4


def test_days_that_do_not_occur_are_not_read(shop: Warehouse) -> None:
    fill(shop, DAY, "PARTITIONED BY (months(k))")
    add_items(shop, DAY, "VALUES (3), (500), (999)")
    assert refreshed(shop).files == 3, "of 33 months"


@pytest.mark.parametrize("kind", [NUMBER, TEXT])
def test_values_that_do_not_occur_are_not_read(shop: Warehouse, kind: str) -> None:
    fill(shop, kind, "PARTITIONED BY (k)", keys=8)
    add_items(shop, kind, "VALUES (3), (7), (977)", without_key=1)
    assert refreshed(shop) == Scanned(2, 2 * ROWS // 8)


@pytest.mark.parametrize("kind", [NUMBER, TEXT])
def test_of_a_sorted_table_only_files_that_may_hold_a_key_are_read(shop: Warehouse, kind: str) -> None:
    fill(shop, kind, lots=RANGES)
    add_items(shop, kind, "VALUES (3), (977)", without_key=1)
    assert refreshed(shop).files <= 2, f"of {RANGES}"


def test_more_keys_than_iceberg_compares_at_once(shop: Warehouse) -> None:
    """They are spread over the whole range of keys, but lie in a few places."""
    fill(shop, NUMBER, lots=RANGES)
    add_items(
        shop, NUMBER, f"(SELECT id FROM range(0, 120) UNION ALL SELECT id FROM range({KEYS - 120}, {KEYS}))"
    )
    assert refreshed(shop).files == 2, f"the first and the last of {RANGES}"


@pytest.mark.parametrize("kind", [NUMBER, TEXT])
@pytest.mark.parametrize("bloom", [True, False])
def test_bloom_filters_tell_row_groups_apart(shop: Warehouse, kind: str, bloom: bool) -> None:
    settings = SMALL_GROUPS | {"bloom-filter-enabled.column.k": str(bloom).lower()}
    fill(shop, kind, properties(settings), keys=ROWS)
    add_items(shop, kind, "VALUES (3), (977)", without_key=1)
    rows = refreshed(shop).rows
    assert rows < ROWS / 2 if bloom else rows >= ROWS - 100, "which lie in all row groups between others"


def test_numbers_are_not_looked_for_among_texts_as_texts(shop: Warehouse) -> None:
    """'007' and 7 are equal, but no text is that."""
    shop.spark.sql("CREATE TABLE numbers (k BIGINT, v BIGINT) USING iceberg")
    shop.spark.sql("CREATE TABLE texts (k STRING, name STRING) USING iceberg")
    shop.spark.sql("INSERT INTO numbers SELECT id, id FROM range(20)")
    shop.spark.sql("INSERT INTO texts VALUES ('1', 'one')")
    shop.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT numbers.k, name FROM numbers JOIN texts ON numbers.k = texts.k"
    )
    shop.spark.sql("INSERT INTO texts VALUES ('007', 'seven'), ('10', 'ten'), (' 9', 'nine'), (NULL, '')")
    shop.refresh("v", policy="incremental")
    assert_exact(shop)
    assert shop.sql("SELECT k FROM v").count() == 4
    shop.spark.sql("INSERT INTO numbers VALUES (7, 8), (NULL, 1), (1, 9)")
    shop.refresh("v", policy="incremental")
    assert_exact(shop)
