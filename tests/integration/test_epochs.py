"""What an epoch is: one version vector, views that lag behind their parents, time travel, definitions."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_refused, assert_tidy, strategies

from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

CREATE = "CREATE MATERIALIZED VIEW "


def one(warehouse: Warehouse, query: str) -> object:
    return warehouse.sql(query).collect()[0][0]


def test_a_descendant_that_lags_behind(sales: Warehouse) -> None:
    """The parent went through several epochs alone; the child takes them all at once, exactly."""
    spark = sales.spark
    sales.sql(CREATE + "parent AS SELECT store, sum(qty) AS total, count(*) AS n FROM sales GROUP BY store")
    sales.sql(CREATE + "child AS SELECT n, sum(total) AS total, max(total) AS most FROM parent GROUP BY n")
    sales.sql(CREATE + "both AS SELECT s.item, p.total FROM sales AS s JOIN parent AS p ON s.store = p.store")
    spark.sql("INSERT INTO sales VALUES (1, 'nib', 20), (5, 'pen', 50)")
    sales.refresh("parent", policy="incremental")
    spark.sql("DELETE FROM sales WHERE store = 2")
    sales.refresh("parent", policy="incremental")
    spark.sql("UPDATE sales SET qty = qty + 1 WHERE item = 'pen'")
    sales.refresh("parent", policy="full")
    assert_exact(sales)  # the children are as they were, at the versions recorded for them
    assert one(sales, "SELECT sum(total) FROM child") == 16

    # Nothing moved in the source since; the child still has three epochs of its parent to take in.
    epoch = sales.refresh("child", policy="incremental")
    assert strategies(epoch) == {"parent": "unchanged", "child": "incremental"}
    assert one(sales, "SELECT sum(total) FROM child") == 3 + 1 + 5 + 20 + 50 + 1
    spark.sql("INSERT INTO sales VALUES (5, NULL, 5)")
    epoch = sales.refresh("both", policy="incremental")
    assert strategies(epoch) == {"parent": "incremental", "both": "incremental"}
    sales.refresh(policy="incremental")
    assert_exact(sales)
    assert_tidy(sales)
    assert set(strategies(sales.refresh()).values()) == {"unchanged"}


def test_time_travel_over_all_views(sales: Warehouse) -> None:
    sales.sql(CREATE + "a AS SELECT store FROM sales")
    sales.sql(CREATE + "b AS SELECT count(*) AS n FROM a")
    first = sales.history(limit=1)[0].id
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 2)")
    second = sales.refresh(policy="incremental").id
    sales.spark.sql("DELETE FROM sales")
    third = sales.refresh().id
    both = "SELECT (SELECT count(*) FROM a), (SELECT n FROM b)"
    for epoch, rows in ((first, 4), (second, 5), (third, 0)):
        assert tuple(sales.at(epoch).sql(both).collect()[0]) == (rows, rows)
    assert tuple(sales.sql(both).collect()[0]) == (0, 0)
    # A replaced view is read as it was then, with the columns of the time.
    sales.sql("CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT store, item FROM sales")
    assert sales.sql("SELECT * FROM a").columns == ["store", "item"]
    assert sales.at(second).sql("SELECT * FROM a").columns == ["store"]
    # And b did not exist before its epoch.
    before_b = sales.at(sales.history()[-1].id)
    with pytest.raises(Exception, match="b"):
        before_b.sql("SELECT n FROM nowhere.b").collect()
    assert [epoch.id for epoch in sales.history()] == sorted((e.id for e in sales.history()), reverse=True)


def test_nothing_new_is_no_epoch(sales: Warehouse) -> None:
    sales.sql(CREATE + "a AS SELECT store FROM sales")
    current = sales.history(limit=1)[0].id
    epoch = sales.refresh()
    assert (epoch.id, strategies(epoch)) == (current, {"a": "unchanged"})
    assert epoch.source_versions.keys() == {"lake.default.sales"}
    # Rows that the view does not read: the version moves, the rows do not.
    sales.sql(CREATE + "big AS SELECT qty FROM sales WHERE qty > 1000")
    snapshot = sales._ledger.states()["lake.default.big"].snapshot
    sales.spark.sql("INSERT INTO sales VALUES (1, 'ink', 1)")
    epoch = sales.refresh(policy="incremental")
    assert epoch.view("big").delta_rows == 0
    assert sales._ledger.states()["lake.default.big"].snapshot == snapshot
    assert_exact(sales)
    assert_tidy(sales)


def test_replace_moves_the_readers_along(sales: Warehouse) -> None:
    sales.sql(CREATE + "parent AS SELECT store, qty FROM sales")
    sales.sql(CREATE + "child AS SELECT store, sum(qty) AS total FROM parent GROUP BY store")
    sales.sql("CREATE OR REPLACE MATERIALIZED VIEW parent AS SELECT store, qty * 10 AS qty FROM sales")
    assert one(sales, "SELECT sum(total) FROM child") == 160
    assert one(sales, "SELECT sum(total) FROM lake.default.child") == 160
    assert sales.spark.sql("SELECT sum(total) FROM child").collect()[0][0] == 160
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 1)")
    assert strategies(sales.refresh(policy="incremental")) == {
        "parent": "incremental",
        "child": "incremental",
    }
    assert_exact(sales)
    sales.sql("DROP MATERIALIZED VIEW child")
    sales.sql("DROP MATERIALIZED VIEW parent")
    sales.sql(CREATE + "IF NOT EXISTS parent AS SELECT item FROM sales")
    sales.sql(CREATE + "IF NOT EXISTS parent AS SELECT item, qty FROM sales")
    assert sales.sql("SELECT * FROM parent").columns == ["item"]
    assert_exact(sales)
    assert_tidy(sales)


def test_with_no_data(sales: Warehouse) -> None:
    sales.sql(CREATE + "empty WITH NO DATA AS SELECT store FROM sales")
    for act in (
        lambda: sales.sql("SELECT * FROM empty"),
        lambda: sales.verify("empty"),
        lambda: sales.repair("empty"),
    ):
        assert_refused(sales, "VK-NO-DATA", act)
    assert sales.verify() == []
    assert sales.status()[0].stale
    epoch = sales.sql("REFRESH MATERIALIZED VIEW empty").collect()
    assert epoch[0]["strategy"] == "full"
    assert one(sales, "SELECT count(*) FROM empty") == 4
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 1)")
    assert strategies(sales.refresh(policy="incremental")) == {"empty": "incremental"}
    assert_exact(sales)


def test_clauses_are_carried_through(sales: Warehouse) -> None:
    sales.sql(
        CREATE + "v (shop COMMENT 'where', total) COMMENT 'sales, it''s said' "
        "PARTITIONED BY (bucket(4, shop)) CLUSTER BY (total) "
        "TBLPROPERTIES ('keeper' = 'o''brien', 'team' = 'retail') "
        "REFRESH POLICY incremental "
        "AS SELECT store, sum(qty) FROM sales GROUP BY store"
    )
    described = {
        row["col_name"]: row for row in sales.spark.sql("DESCRIBE TABLE EXTENDED lake.default.v").collect()
    }
    assert described["shop"]["comment"] == "where"
    assert described["Comment"]["data_type"] == "sales, it's said"
    properties = {
        row["key"]: row["value"] for row in sales.spark.sql("SHOW TBLPROPERTIES lake.default.v").collect()
    }
    assert properties["team"] == "retail"
    assert properties["keeper"] == "o'brien"
    storage = sales._ledger.states()["lake.default.v"].storage
    created = sales.spark.sql(f"SHOW CREATE TABLE {storage}").collect()[0][0]
    assert "bucket(4, shop)" in created
    assert "sort-order" in created
    sales.spark.sql("DELETE FROM sales WHERE store = 1")
    assert strategies(sales.refresh()) == {"v": "incremental"}
    assert_exact(sales)


def test_each_view_keeps_the_meaning_of_its_session(sales: Warehouse) -> None:
    """A time zone is part of the definition; overflow and bad casts are errors in any session."""
    spark = sales.spark
    spark.sql("CREATE TABLE visits (at TIMESTAMP, who STRING) USING iceberg")
    query = "SELECT date(at) AS day, count(*) AS n FROM visits GROUP BY date(at)"
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.sql("INSERT INTO visits VALUES (TIMESTAMP '2026-01-01 23:30:00', 'a')")
    sales.sql(f"{CREATE}utc AS {query}")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    sales.sql(f"{CREATE}tokyo AS {query}")
    sales.sql(f"{CREATE}hours AS SELECT hour(at) AS h FROM visits")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.sql("INSERT INTO visits VALUES (TIMESTAMP '2026-01-05 23:30:00', 'b')")
    for policy in ("incremental", "full"):
        assert set(strategies(sales.refresh(policy=policy)).values()) == {policy}
        days = {
            view: [str(row[0]) for row in sales.sql(f"SELECT day FROM {view} ORDER BY day").collect()]
            for view in ("utc", "tokyo")
        }
        assert days == {"utc": ["2026-01-01", "2026-01-06"], "tokyo": ["2026-01-02", "2026-01-06"]}
        assert [row[0] for row in sales.sql("SELECT h FROM hours ORDER BY h").collect()] == [8, 13]
        assert_exact(sales)
    # ANSI is pinned on, whatever the session says.
    spark.sql("INSERT INTO visits VALUES (NULL, 'not a number')")
    assert_refused(
        sales, "VK-REFRESH-FAILED", lambda: sales.sql(CREATE + "cast_it AS SELECT int(who) AS w FROM visits")
    )


def test_what_is_made_of_groups_keeps_the_time_zone_of_the_definition(sales: Warehouse) -> None:
    """Whoever reads it has one of their own, and so has the view that reads this one."""
    spark = sales.spark
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.sql("CREATE TABLE visits (at TIMESTAMP, who STRING) USING iceberg")
    spark.sql("INSERT INTO visits VALUES (TIMESTAMP '2026-01-02 08:30:00', 'a')")
    last = "SELECT who, date(max(at)) AS last FROM visits GROUP BY who HAVING max(at) >= '2026-01-02'"
    sales.sql(f"{CREATE}lasts AS {last}")
    sales.sql(f"{CREATE}ranked AS SELECT *, rank() OVER (ORDER BY last DESC) AS r FROM ({last})")
    ranked = "rank() OVER (ORDER BY CAST(max(at) AS DATE)) AS r"
    by_day = f"SELECT who, max(at) AS at, {ranked} FROM visits GROUP BY who"
    sales.sql(f"{CREATE}by_day AS {by_day}")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    sales.sql(f"{CREATE}days AS SELECT last, count(*) AS n FROM lasts GROUP BY last")
    for change in (
        "INSERT INTO visits VALUES (TIMESTAMP '2026-01-02 23:00:00', 'b')",
        "INSERT INTO visits VALUES (TIMESTAMP '2026-01-03 23:00:00', 'a'), (NULL, 'c')",
        "DELETE FROM visits WHERE who = 'b'",
    ):
        spark.sql(change)
        assert set(strategies(sales.refresh(policy="incremental strict")).values()) == {"incremental"}
        assert_exact(sales)
    assert [tuple(map(str, row)) for row in sales.sql("SELECT * FROM lasts").collect()] == [
        ("a", "2026-01-04")
    ]
    assert [tuple(map(str, row)) for row in sales.sql("SELECT * FROM ranked").collect()] == [
        ("a", "2026-01-04", "1")
    ]
    assert [tuple(map(str, row)) for row in sales.sql("SELECT * FROM days").collect()] == [
        ("2026-01-04", "1")
    ]


def test_a_date_that_becomes_an_instant_keeps_the_time_zone_of_the_definition(sales: Warehouse) -> None:
    """No stored column is an instant, but what is made of them when they are read."""
    spark = sales.spark
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.sql("CREATE TABLE paid (who STRING, day DATE) USING iceberg")
    spark.sql("INSERT INTO paid VALUES ('a', DATE'2026-02-10')")
    for name, made in (
        ("months", "date_trunc('MONTH', max(day))"),
        ("due", "max(day) + INTERVAL '17' HOUR"),
        ("soon", "dateadd(DAY, 1, max(day))"),
        ("texts", "date_trunc('HOUR', max(CAST(day AS STRING)))"),
    ):
        sales.sql(f"{CREATE}{name} AS SELECT who, {made} AS at FROM paid GROUP BY who")
    ranked = "SELECT *, rank() OVER (ORDER BY at) AS r FROM (SELECT who, max(day) + INTERVAL 17 HOUR AS at"
    sales.sql(f"{CREATE}ranked AS {ranked} FROM paid GROUP BY who)")
    late = "HAVING date_trunc('HOUR', max(day)) < TIMESTAMP'2026-02-10 09:00:00+09:00'"
    sales.sql(f"{CREATE}late AS SELECT who FROM paid GROUP BY who {late}")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    sales.sql(f"{CREATE}by_month AS SELECT at, count(*) AS n FROM months GROUP BY at")
    spark.sql("INSERT INTO paid VALUES ('b', DATE'2026-02-11')")
    assert set(strategies(sales.refresh(policy="incremental strict")).values()) == {"incremental"}
    for name, instant in (
        ("months", "2026-01-31 15:00:00"),  # the first of February in Tokyo
        ("due", "2026-02-10 08:00:00"),
        ("soon", "2026-02-10 15:00:00"),
        ("texts", "2026-02-09 15:00:00"),
        ("ranked", "2026-02-10 08:00:00"),
    ):
        (row,) = sales.sql(f"SELECT CAST(at AS STRING) FROM {name} WHERE who = 'a'").collect()
        assert (name, row[0]) == (name, instant)
    assert [row[0] for row in sales.sql("SELECT who FROM late").collect()] == ["a"]
    assert [row[0] for row in sales.sql("SELECT n FROM by_month").collect()] == [2]
    assert_exact(sales)


def test_a_column_added_later_takes_the_place_of_no_other(sales: Warehouse) -> None:
    """Neither of one around a subquery, nor of one to the left in the select list."""
    spark = sales.spark
    spark.sql("CREATE TABLE customers (id INT, name STRING) USING iceberg")
    spark.sql("CREATE TABLE orders (customer INT) USING iceberg")
    spark.sql("INSERT INTO customers VALUES (1, 'Ann'), (2, 'Ben')")
    spark.sql("INSERT INTO orders VALUES (1)")
    sales.sql(
        CREATE
        + "bought AS SELECT name FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE customer = id)"
    )
    sales.sql(CREATE + "steps AS SELECT id + 1 AS more, more + 1 AS most FROM customers")
    spark.sql("ALTER TABLE orders ADD COLUMN id INT")
    spark.sql("ALTER TABLE customers ADD COLUMN more INT")
    spark.sql("INSERT INTO orders VALUES (2, 7)")
    spark.sql("INSERT INTO customers VALUES (3, 'Cleo', 100)")
    for policy in ("incremental", "full"):
        sales.refresh(policy=policy)
        assert {row[0] for row in sales.sql("SELECT name FROM bought").collect()} == {"Ann", "Ben"}
        assert {tuple(row) for row in sales.sql("SELECT * FROM steps").collect()} == {(2, 3), (3, 4), (4, 5)}
        assert_exact(sales)


def test_case_of_names_does_not_matter(sales: Warehouse) -> None:
    sales.sql(CREATE + "Mixed AS SELECT STORE, Qty FROM sales")
    sales.sql(CREATE + "child AS SELECT store, sum(qty) AS total FROM Mixed GROUP BY Store")
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 1)")
    assert strategies(sales.refresh("CHILD", policy="incremental")) == {
        "Mixed": "incremental",
        "child": "incremental",
    }
    assert one(sales, "SELECT sum(TOTAL) FROM CHILD") == 17
    assert_exact(sales)


def test_many_views_at_once(sales: Warehouse) -> None:
    """More installs than threads, at several levels, in one epoch."""
    for number in range(4):
        sales.sql(f"{CREATE}low_{number} AS SELECT store, sum(qty + {number}) AS t FROM sales GROUP BY store")
        sales.sql(f"{CREATE}high_{number} AS SELECT sum(t) AS t, count(*) AS n FROM low_{number}")
    sales.spark.sql("INSERT INTO sales VALUES (3, 'nib', 1), (1, 'cap', 4)")
    sales.spark.sql("DELETE FROM sales WHERE store = 2 AND item = 'pen'")
    epoch = sales.refresh(policy="incremental")
    assert set(strategies(epoch).values()) == {"incremental"}
    assert len({str(epoch.source_versions)}) == 1
    assert_exact(sales)
    assert_tidy(sales)


def test_an_empty_source_and_a_constant_view(wh: Warehouse) -> None:
    wh.spark.sql("CREATE TABLE nothing (a INT) USING iceberg")
    wh.sql(CREATE + "counted AS SELECT count(*) AS n, sum(a) AS s FROM nothing")
    wh.sql(CREATE + "rows AS SELECT a FROM nothing")
    assert tuple(wh.sql("SELECT n, s FROM counted").collect()[0]) == (0, None)
    assert one(wh, "SELECT count(*) FROM rows") == 0
    wh.spark.sql("INSERT INTO nothing VALUES (1), (NULL)")
    assert set(strategies(wh.refresh(policy="incremental")).values()) == {"incremental"}
    assert tuple(wh.sql("SELECT n, s FROM counted").collect()[0]) == (2, 1)
    wh.spark.sql("DELETE FROM nothing WHERE a = 1")
    wh.refresh(policy="incremental")
    assert tuple(wh.sql("SELECT n, s FROM counted").collect()[0]) == (1, None)
    wh.sql(CREATE + "constant AS SELECT 1 AS one")
    assert one(wh, "SELECT one FROM constant") == 1
    wh.refresh()
    assert_exact(wh)
