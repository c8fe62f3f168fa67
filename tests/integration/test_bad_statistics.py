"""Statistics that are missing, stale or absurd: a worse plan perhaps, never a wrong result nor a failure. And
joins of more relations than can be searched whole."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from world import ORDERED_LINES, assert_exact, assert_refused, assert_tidy, strategies

import viewkeeper as vk
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Counted
from viewkeeper.sources.iceberg import IcebergSource
from viewkeeper.warehouse import Warehouse
from viewkeeper.workshop import Workshop

pytestmark = pytest.mark.spark


@contextmanager
def small_results_only(spark: SparkSession, most: str) -> Iterator[None]:
    """Spark's driver takes no more than this from the tasks of a job, and so broadcasts no more."""
    settings = spark.sparkContext._jsc.sc().conf()  # type: ignore[union-attr]
    settings.set("spark.driver.maxResultSize", most)
    try:
        yield
    finally:
        settings.remove("spark.driver.maxResultSize")


def test_a_delta_that_is_a_thousand_times_larger_than_expected(
    wh: Warehouse, plans: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """To broadcast it fails for real; then all is computed once more, without hints."""
    monkeypatch.setattr("viewkeeper.algebra.rules.join.SMALL_ROWS", 100)  # no dimension tables here
    monkeypatch.setattr("viewkeeper.execute.tuning._SEEN_SMALL", "100000")
    spark = wh.spark
    spark.sql("CREATE TABLE few (k INT) USING iceberg")
    spark.sql("CREATE TABLE many (k INT, v INT) USING iceberg")
    spark.sql("CREATE TABLE wide (v INT, w INT) USING iceberg")
    spark.sql("INSERT INTO few SELECT INT(id) FROM range(10)")
    spark.sql("INSERT INTO many SELECT INT(id), INT(id) FROM range(100000)")
    spark.sql("INSERT INTO wide SELECT INT(id), INT(id % 50) FROM range(100000)")
    wh.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT w, count(*) AS n, sum(b.v) AS s "
        "FROM few a JOIN many b ON a.k = b.k JOIN wide c ON b.v = c.v GROUP BY w"
    )
    # A hundred thousand rows for the one key, where there was one for each.
    spark.sql("INSERT OVERWRITE many SELECT 7, INT(id) FROM range(100000)")
    wh.refresh(policy="full")
    spark.sql("INSERT INTO few VALUES (7), (8), (7), (7), (7), (7), (7), (7), (7), (7)")
    plans.clear()
    with small_results_only(spark, "512k"):
        epoch = wh.refresh(policy="incremental")
    assert "computing again without hints" in caplog.text
    first, last = plans[0], plans[-1]
    assert first.count("BroadcastHashJoin") == 2
    assert "Broadcast" not in last
    assert set(strategies(epoch).values()) == {"incremental"}
    assert_exact(wh)
    assert_tidy(wh)
    # Learned or not, the next ones are not in the way of it.
    spark.sql("DELETE FROM few WHERE k = 7")
    with small_results_only(spark, "512k"):
        wh.refresh(policy="incremental")
    assert_exact(wh)


CHAIN = (
    "SELECT name, orders.o, qty, region FROM customer JOIN orders ON customer.c = orders.c "
    "JOIN line ON line.o = orders.o JOIN supplier ON line.s = supplier.s JOIN nation USING (n)"
)
CHANGES = (
    "INSERT INTO customer VALUES (3, 'twin'), (NULL, 'nobody')",
    "DELETE FROM orders WHERE o % 7 = 1",
    "INSERT INTO orders VALUES (70, 3, 1), (71, NULL, 1)",
    "INSERT INTO line SELECT INT(70 + id % 2), INT(id % 4), 1 FROM range(30)",
    "UPDATE nation SET region = 'r9' WHERE n = 2",
)


@pytest.fixture
def chain(wh: Warehouse) -> Warehouse:
    for table, (columns, rows) in ORDERED_LINES.items():
        wh.spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
        wh.spark.sql(f"INSERT INTO {table} {rows}")
    wh.sql(f"CREATE MATERIALIZED VIEW chain AS {CHAIN}")
    for change in CHANGES:
        wh.spark.sql(change)
    return wh


def refreshed(warehouse: Warehouse) -> None:
    epoch = warehouse.refresh(policy="incremental")
    assert set(strategies(epoch).values()) == {"incremental"}
    assert_exact(warehouse)
    assert_tidy(warehouse)


@pytest.mark.parametrize("values", [0, 1, 1 << 60])
def test_columns_with_far_fewer_or_more_values_than_is_believed(chain: Warehouse, values: int) -> None:
    """Whatever the ledger says of them."""
    seen = chain._ledger.observations()
    told: dict[str, Any] = {}
    for table, observed in seen.items():
        kept: Mapping[str, Any] = observed.details["distinct"]
        columns = {name: {**each, "values": values, "sketch": "?"} for name, each in kept["columns"].items()}
        told[table] = replace(observed, details={"distinct": {**kept, "columns": columns}})
    chain._ledger.observe(told)
    (_, situation) = chain._maintainer.plan(["lake.default.chain"], None)
    believed = [found for each in situation.distinct.values() for found in each.values()]
    assert believed
    assert all(found == values or found <= 100 for found in believed)
    refreshed(chain)


def test_a_ledger_with_something_else_in_the_place_of_statistics(chain: Warehouse) -> None:
    for kept in ("nothing", {"rows": 10, "columns": {"o": 5}}, {"version": 1, "columns": {"o": {}}}):
        seen = chain._ledger.observations()
        chain._ledger.observe(
            {table: replace(each, details={"distinct": kept}) for table, each in seen.items()}
        )
        chain.spark.sql("INSERT INTO line VALUES (3, 1, 1)")
        refreshed(chain)


def test_a_table_whose_values_cannot_be_counted(chain: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the sketches kept can be read: Spark refuses them."""
    chain.spark.sql("INSERT INTO orders SELECT INT(id), 1, 1 FROM range(100, 200)")
    seen = chain._ledger.observations()
    kept = seen["lake.default.orders"].details["distinct"]
    columns = {name: {**each, "sketch": "AAAA"} for name, each in kept["columns"].items()}
    broken = replace(seen["lake.default.orders"], details={"distinct": {**kept, "columns": columns}})
    chain._ledger.observe({"lake.default.orders": broken})
    refreshed(chain)
    chain.spark.sql("INSERT INTO orders SELECT INT(id), 1, 1 FROM range(500, 900)")
    monkeypatch.setattr("viewkeeper.execute.engine.sketched", lambda *_: 1 / 0)
    refreshed(chain)


@pytest.mark.parametrize("rows", [None, 0, 1, 1 << 62])
def test_tables_that_hold_fewer_or_more_rows_than_their_metadata_tells(
    chain: Warehouse, monkeypatch: pytest.MonkeyPatch, rows: int | None
) -> None:
    monkeypatch.setattr(IcebergSource, "row_count", lambda *_: rows)
    refreshed(chain)


@pytest.mark.parametrize(
    ("estimated", "actual"),
    [(1000, -1), (-1, 5), (0, 10**400), (10**400, 0)],
    ids=["less than nothing", "of less than nothing", "of nothing", "nothing"],
)
def test_absurd_lessons(
    chain: Warehouse, monkeypatch: pytest.MonkeyPatch, estimated: int, actual: int
) -> None:
    """Of what parts of joins held before."""
    names = ("customer", "orders", "line", "supplier", "nation")
    parts = [" ⋈ ".join(names[at:to]) for at in range(5) for to in range(at + 1, 6)]
    lessons = {"lake.default.chain": {part: Counted(estimated, actual) for part in parts}}
    observe = Workshop.observe

    def taught(self: Workshop, *arguments: Any, **options: Any) -> Any:
        return replace(observe(self, *arguments, **options), learned=lessons)

    monkeypatch.setattr(Workshop, "observe", taught)
    refreshed(chain)


RELATIONS = 25


@pytest.fixture
def snowflake(wh: Warehouse) -> Warehouse:
    """Facts with eight dimensions, each of which leads to another one, and that to a third."""
    keys = ", ".join(f"k{at} INT" for at in range(8))
    wh.spark.sql(f"CREATE TABLE fact (id INT, {keys}) USING iceberg")
    given = ", ".join(f"INT((id + {at}) % 7)" for at in range(8))
    wh.spark.sql(f"INSERT INTO fact SELECT INT(id), {given} FROM range(30)")
    for at in range(24):
        wh.spark.sql(f"CREATE TABLE d{at} (k INT, up INT, name STRING) USING iceberg")
        wh.spark.sql(f"INSERT INTO d{at} SELECT INT(id), INT(id % 5), concat('{at}-', id) FROM range(7)")
    return wh


def of_25_relations() -> str:
    names = ", ".join(f"d{at}.name AS n{at}" for at in range(24))
    joins = "".join(
        f" JOIN d{at} ON " + (f"fact.k{at} = d{at}.k" if at < 8 else f"d{at - 8}.up = d{at}.k")
        for at in range(24)
    )
    return f"SELECT fact.id, {names} FROM fact{joins}"


def test_a_view_over_25_relations(snowflake: Warehouse) -> None:
    spark, query = snowflake.spark, of_25_relations()
    seconds = {}
    started = time.monotonic()
    snowflake.sql(f"CREATE MATERIALIZED VIEW v WITH NO DATA AS {query}")
    seconds["define"] = time.monotonic() - started
    snowflake.refresh()
    spark.sql("INSERT INTO fact SELECT INT(100 + id), 1, 2, 3, 4, 5, 6, 0, NULL FROM range(3)")
    spark.sql("INSERT INTO fact SELECT INT(200 + id), 1, 2, 3, 4, 5, 6, 0, 1 FROM range(3)")
    spark.sql("UPDATE d3 SET name = 'new' WHERE k = 4")
    spark.sql("DELETE FROM d20 WHERE k = 1")
    spark.sql("INSERT INTO d20 VALUES (1, 1, 'twin'), (1, 1, 'twin')")
    plan, situation = snowflake._maintainer.plan(["lake.default.v"], "incremental")
    started = time.process_time()
    plan = plan_epoch(situation)
    seconds["plan"] = time.process_time() - started
    assert seconds["plan"] < 5, "a second on an idle machine"
    (told,) = plan.views[0].propagations
    assert told.how == "a good delta expression"
    assert len(told.inputs) == RELATIONS
    started = time.monotonic()
    refreshed(snowflake)
    seconds["refresh and verify"] = time.monotonic() - started
    print({what: round(each, 2) for what, each in seconds.items()})


def test_all_terms_of_25_relations_are_refused(snowflake: Warehouse) -> None:
    snowflake.sql(f"CREATE MATERIALIZED VIEW v AS {of_25_relations()}")
    for at in range(9):
        snowflake.spark.sql(f"INSERT INTO d{at} VALUES (1, 1, 'twin')")
    snowflake.options = vk.Options(joins=vk.Joins.ALL_TERMS)
    refused = assert_refused(snowflake, "VK-TOO-MANY-TERMS", lambda: snowflake.refresh(policy="incremental"))
    assert "511" in refused.message
    snowflake.options = vk.Options(joins=vk.Joins.N_TERM)
    refreshed(snowflake)
