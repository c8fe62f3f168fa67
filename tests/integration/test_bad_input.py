"""What is refused is refused with its code, in words that help, and nothing is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from world import assert_exact, assert_refused, strategies, world

import viewkeeper as vk
from viewkeeper.errors import LedgerError, SetupError, ViewkeeperError
from viewkeeper.sql.quoting import quote
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CREATE = "CREATE MATERIALIZED VIEW "

# Statement, code, words that the error must have.
REFUSED = (
    (CREATE + "v AS SELECT * FROM sale", "VK-UNKNOWN-TABLE", ("sale", "sales")),
    (CREATE + "v AS SELECT * FROM nowhere.sales", "VK-UNKNOWN-TABLE", ("nowhere.sales",)),
    (CREATE + "v AS SELECT quantity, stor FROM sales", "VK-UNKNOWN-COLUMN", ("quantity",)),
    (CREATE + "v AS SELECT stor FROM sales", "VK-UNKNOWN-COLUMN", ("stor", "store", "line 1, column 38")),
    (
        CREATE + "v AS SELECT item FROM sales AS a JOIN sales AS b ON a.store = b.store",
        "VK-AMBIGUOUS-COLUMN",
        ("item",),
    ),
    (CREATE + "v AS SELECT store,, item FROM sales", "VK-SYNTAX", ("line 1",)),
    (CREATE + "v AS SELECT store\nFROM sales\nWHERE = 3", "VK-SYNTAX", ("line 3",)),
    (CREATE + "v SELECT 1", "VK-SYNTAX", ("line 1",)),
    (CREATE + "v AS", "VK-SYNTAX", ()),
    (CREATE + "by_store AS SELECT 1 AS one FROM sales", "VK-VIEW-EXISTS", ("by_store", "OR REPLACE")),
    (CREATE + "BY_STORE AS SELECT 1 AS one FROM sales", "VK-VIEW-EXISTS", ("by_store",)),
    (CREATE + "sales AS SELECT 1 AS one FROM sales", "VK-NAME-TAKEN", ("sales",)),
    (CREATE + "plain AS SELECT 1 AS one FROM sales", "VK-NAME-TAKEN", ("plain",)),
    (CREATE + "_viewkeeper.v AS SELECT store FROM sales", "VK-RESERVED-NAME", ("_viewkeeper",)),
    (CREATE + "_vk_v AS SELECT store FROM sales", "VK-RESERVED-NAME", ("_vk_v",)),
    (CREATE + "v AS SELECT store AS _vk_w FROM sales", "VK-RESERVED-NAME", ("_vk_w",)),
    (CREATE + "v AS SELECT store, item AS STORE FROM sales", "VK-DUPLICATE-COLUMN", ("STORE",)),
    (CREATE + "v (a) AS SELECT store, item FROM sales", "VK-COLUMN-COUNT", ("v",)),
    (CREATE + "v AS SELECT store FROM plain", "VK-SOURCE-KIND", ("plain",)),
    (CREATE + "v AS SELECT id FROM spark_catalog.default.files", "VK-SOURCE-KIND", ("files",)),
    (CREATE + "v AS SELECT * FROM temporary", "VK-UNKNOWN-TABLE", ("temporary",)),
    (CREATE + "v AS SELECT rand() AS r FROM sales", "VK-NONDETERMINISTIC", ("rand",)),
    (CREATE + "v AS SELECT 1 AS one; DROP TABLE sales", "VK-NOT-A-QUERY", ()),
    (CREATE + "v AS DELETE FROM sales", "VK-NOT-A-QUERY", ()),
    ("CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT n FROM big_stores", "VK-CYCLE", ("by_store",)),
    ("CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT store FROM by_store", "VK-CYCLE", ("by_store",)),
    (
        "CREATE OR REPLACE MATERIALIZED VIEW by_store AS SELECT store FROM sales",
        "VK-BREAKS-READER",
        ("big_stores",),
    ),
    ("DROP MATERIALIZED VIEW by_store", "VK-VIEW-IN-USE", ("by_store", "big_stores")),
    ("DROP MATERIALIZED VIEW by_stor", "VK-UNKNOWN-VIEW", ("by_store",)),
    ("REFRESH MATERIALIZED VIEW by_stor", "VK-UNKNOWN-VIEW", ("by_store",)),
    ("EXPLAIN MATERIALIZED VIEW nothing_like_it", "VK-UNKNOWN-VIEW", ("SHOW MATERIALIZED VIEWS",)),
    (CREATE + "v PARTITIONED BY (nothing) AS SELECT store FROM sales", "VK-UNSTORABLE", ("nothing",)),
    (CREATE + "v AS SELECT store, INTERVAL '1' DAY AS d FROM sales", "VK-UNSTORABLE", ()),
)


def test_statements(sales: Warehouse) -> None:
    spark = sales.spark
    spark.sql("CREATE VIEW plain AS SELECT store FROM sales")
    spark.sql("CREATE TABLE IF NOT EXISTS spark_catalog.default.files (id INT) USING parquet")
    spark.sql("CREATE TEMPORARY VIEW temporary AS SELECT 1 AS one")
    sales.sql(CREATE + "by_store AS SELECT store, count(*) AS n FROM sales GROUP BY store")
    sales.sql(CREATE + "big_stores AS SELECT store, n FROM by_store WHERE n > 1")
    before = world(sales)
    wrong = []
    for statement, code, words in REFUSED:
        try:
            sales.sql(statement)
            wrong.append(f"{statement}\n  was carried out")
        except ViewkeeperError as error:
            lacking = [word for word in words if word not in str(error)]
            if error.code != code or lacking:
                wrong.append(f"{statement}\n  not {code} with {lacking}:\n  {error}")
        except Exception as error:  # any other exception is a defect, whatever it says
            wrong.append(f"{statement}\n  {type(error)}: {str(error)[:300]}")
    spark.sql("DROP TABLE spark_catalog.default.files")
    assert not wrong, "\n".join(wrong)
    assert world(sales) == before
    assert sales._ledger.holder() is None
    assert_exact(sales)


def test_policies_and_epochs_that_do_not_exist(sales: Warehouse) -> None:
    sales.sql(CREATE + "v AS SELECT store FROM sales")
    assert_refused(sales, "VK-POLICY", lambda: sales.refresh(policy="sometimes"))
    assert_refused(sales, "VK-UNKNOWN-VIEW", lambda: sales.refresh("w"))
    assert_refused(sales, "VK-UNKNOWN-EPOCH", lambda: sales.at(99))


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DROP MATERIALIZED VIEW v", "VK-READ-ONLY"),
        ("DELETE FROM sales", "VK-READ-ONLY"),
        ("INSERT INTO sales SELECT * FROM sales", "VK-READ-ONLY"),
        ("FROM v INSERT INTO sales SELECT store, 'x', 1", "VK-READ-ONLY"),
        ("CREATE TABLE backup AS SELECT * FROM v", "VK-READ-ONLY"),
        ("SELECT * FROM v TABLESAMPLE (5 ROWS)", "VK-NOT-UNDERSTOOD"),
        ("SELECT * FROM v JOIN v USING (store)", "VK-NOT-UNDERSTOOD"),
    ],
)
def test_a_past_epoch_is_read_and_nothing_else(sales: Warehouse, statement: str, code: str) -> None:
    sales.sql(CREATE + "v AS SELECT store FROM sales")
    before, rows = world(sales), sales.spark.table("sales").count()
    assert_refused(sales, code, lambda: sales.at(1).sql(statement))
    assert (world(sales), sales.spark.table("sales").count()) == (before, rows)


def test_a_past_epoch_is_read_through_pipes(sales: Warehouse) -> None:
    sales.sql(CREATE + "v AS SELECT store, qty FROM sales")
    sales.sql(CREATE + "w AS SELECT DISTINCT store FROM sales")
    then = sales.history(limit=1)[0].id
    piped = "FROM v |> JOIN w USING (store) |> SELECT store"
    rows = sales.at(then).sql(piped).count()
    sales.spark.sql("DELETE FROM sales")
    sales.refresh()
    assert (sales.at(then).sql(piped).count(), sales.sql(piped).count()) == (rows, 0)


def test_a_table_that_a_pipe_joins_is_followed(sales: Warehouse) -> None:
    sales.spark.sql("CREATE TABLE names (store INT, name STRING) USING iceberg")
    sales.sql(CREATE + "v AS FROM sales |> JOIN names USING (store) |> SELECT store, name")
    sales.spark.sql("INSERT INTO names VALUES (1, 'first')")
    assert sales.refresh().view("v").strategy == "full"
    assert_exact(sales)
    assert sales.sql("SELECT * FROM v").count() > 0


def test_no_warehouse_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        vk.connect(tmp_path / "missing", create=False)
    assert caught.value.code == "VK-WAREHOUSE-MISSING"
    assert not (tmp_path / "missing").exists()
    with pytest.raises(LedgerError) as caught:
        vk.connect()
    assert caught.value.code == "VK-LEDGER-MISSING"


def test_corrupt_and_newer_ledgers(tmp_path: Path) -> None:
    """Neither is touched."""
    (tmp_path / "corrupt").mkdir()
    ledger = tmp_path / "corrupt" / "ledger.db"
    ledger.write_bytes(b"not a database, and longer than the header of one" * 40)
    with pytest.raises(LedgerError) as caught:
        vk.connect(tmp_path / "corrupt")
    assert caught.value.code == "VK-LEDGER-CORRUPT"
    assert ledger.read_bytes().startswith(b"not a database")

    vk.connect(tmp_path / "newer").close()
    with sqlite3.connect(tmp_path / "newer" / "ledger.db") as database:
        database.execute("INSERT INTO vk_schema VALUES (999, '2030-01-01 00:00:00')")
    database.close()
    with pytest.raises(LedgerError) as caught:
        vk.connect(tmp_path / "newer")
    assert caught.value.code == "VK-LEDGER-NEWER"


def test_a_source_that_disappears(sales: Warehouse) -> None:
    sales.sql(CREATE + "v AS SELECT store FROM sales")
    sales.spark.sql("INSERT INTO sales VALUES (9, 'gone', 1)")
    assert sales.plan().epoch.view("lake.default.v").changed
    sales.spark.sql("DROP TABLE sales")
    for act in (lambda: sales.refresh(), lambda: sales.refresh(policy="full"), lambda: sales.explain("v")):
        error = assert_refused(sales, "VK-SOURCE-MISSING", act)
        assert "sales" in error.message
    # What was published stays readable, and the view can go.
    assert sales.sql("SELECT count(*) FROM v").collect()[0][0] == 4
    sales.sql("DROP MATERIALIZED VIEW v")
    assert sales.views() == []


def test_catalogs_that_cannot_hold_views(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.hadoop", "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set("spark.sql.catalog.hadoop.type", "hadoop")
    session.conf.set("spark.sql.catalog.hadoop.warehouse", str(tmp_path / "hadoop"))
    warehouse = vk.connect(spark=session, catalog="hadoop", ledger=f"sqlite:///{tmp_path / 'ledger.db'}")
    with warehouse, pytest.raises(SetupError) as caught:
        warehouse.sql(CREATE + "v AS SELECT 1 AS one FROM hadoop.default.t")
    assert caught.value.code == "VK-SETUP-NO-VIEWS"
    assert "jdbc.schema-version" in str(caught.value)


HOSTILE = (
    "a`;drop table x; --",
    "dots.in a\tnäme – 表",
    'it\'s "quoted" \\ and /slashed/',
    "x" * 200,
)


def test_hostile_names_make_the_round_trip(wh: Warehouse) -> None:
    """As table, column and view at once: create, change, refresh by deltas, verify, read, drop."""
    spark = wh.spark
    named = {
        name: tuple(quote(f"{name}{suffix}"[-200:]) for suffix in ("_t", "", "_sum", "_v", "_w"))
        for name in HOSTILE
    }
    for name, (table, column, total, view, child) in named.items():
        spark.sql(f"CREATE TABLE {table} ({column} STRING, n INT) USING iceberg")
        spark.sql(f"INSERT INTO {table} VALUES ('a', 1), ('b', 2)")
        wh.sql(f"{CREATE}{view} WITH NO DATA AS SELECT {column}, sum(n) AS {total} FROM {table} GROUP BY 1")
        wh.sql(f"{CREATE}{child} WITH NO DATA COMMENT {_literal(name)} AS SELECT v.{column} FROM {view} AS v")
    assert set(strategies(wh.refresh()).values()) == {"full"}
    for table, *_ in named.values():
        spark.sql(f"INSERT INTO {table} VALUES ('a', 5), ('c', 7)")
    assert set(strategies(wh.refresh(policy="incremental strict")).values()) == {"incremental"}
    assert_exact(wh)
    for _, column, total, view, child in named.values():
        rows = wh.sql(f"SELECT {column}, {total} FROM {view} ORDER BY 1").collect()
        assert [tuple(row) for row in rows] == [("a", 6), ("b", 2), ("c", 7)]
        assert spark.sql(f"SELECT count({column}) FROM {child}").collect()[0][0] == 3
    str(wh.plan(policy="full"))
    for table, _, _, view, child in named.values():
        wh.sql(f"DROP MATERIALIZED VIEW {child}")
        wh.sql(f"DROP MATERIALIZED VIEW {view}")
        spark.sql(f"DROP TABLE {table}")
    left = world(wh)
    assert (left.views, left.tables, left.catalog_views, left.storages) == (
        (),
        frozenset(),
        frozenset(),
        frozenset(),
    )


def test_hostile_namespaces(wh: Warehouse) -> None:
    wh.spark.sql("CREATE NAMESPACE lake.`a``;b.c`")
    wh.spark.sql("USE lake.`a``;b.c`")
    wh.spark.sql("CREATE TABLE t (a INT) USING iceberg")
    wh.sql(CREATE + "v AS SELECT a FROM t")
    wh.spark.sql("INSERT INTO t VALUES (1), (2)")
    assert strategies(wh.refresh(policy="incremental"))["v"] == "incremental"
    assert_exact(wh)
    assert wh.sql("SELECT sum(a) FROM v").collect()[0][0] == 3
    wh.sql("DROP MATERIALIZED VIEW v")


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_a_view_named_like_a_hidden_table(sales: Warehouse, open_warehouse: Callable[..., Warehouse]) -> None:
    sales.sql(CREATE + "v AS SELECT store FROM sales")
    storage = sales._ledger.states()["lake.default.v"].storage
    hidden = storage.rsplit(".", 1)[-1]
    assert_refused(
        sales,
        "VK-RESERVED-NAME",
        lambda: sales.sql(f"{CREATE}_viewkeeper.{hidden} AS SELECT 1 AS a FROM sales"),
    )
    # In the user's own namespace the name is free, and means something else.
    sales.sql(f"{CREATE}{hidden} AS SELECT item FROM sales")
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 1)")
    sales.refresh()
    assert_exact(sales)
