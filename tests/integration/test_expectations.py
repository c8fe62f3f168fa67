"""What is expected of a view's rows: counted on what comes, dropped, or a reason to publish nothing."""

from __future__ import annotations

import pytest
from world import assert_exact, world

from viewkeeper.errors import DefinitionError, RefreshError
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(wh: Warehouse) -> Warehouse:
    wh.spark.sql("CREATE TABLE orders (id INT, customer INT, total DECIMAL(9,2))")
    wh.spark.sql("INSERT INTO orders VALUES (1, 1, 10), (2, NULL, 20), (3, 2, -5)")
    return wh


def rows(wh: Warehouse, view: str) -> set[tuple[object, ...]]:
    return {tuple(row) for row in wh.sql(f"SELECT * FROM {view}").collect()}


def test_warn_counts_what_comes_and_lets_it_in(orders: Warehouse) -> None:
    orders.sql("""CREATE MATERIALIZED VIEW v (CONSTRAINT paid EXPECT (total > 0), CONSTRAINT known EXPECT
        (customer IS NOT NULL) ON VIOLATION WARN) AS SELECT id, customer, total FROM orders""")
    assert orders.history()[0].view("v").violations == {"paid": 1, "known": 1}
    orders.spark.sql("INSERT INTO orders VALUES (4, 1, -1), (5, 1, NULL), (6, 1, 1)")
    orders.spark.sql("DELETE FROM orders WHERE id = 3")
    refreshed = orders.refresh(policy="incremental").view("v")
    assert (refreshed.strategy, refreshed.violations) == ("incremental", {"paid": 2})
    assert len(rows(orders, "v")) == 5
    orders.spark.sql("INSERT INTO orders VALUES (7, 1, 1)")
    assert orders.refresh(policy="incremental").view("v").violations == {}
    assert_exact(orders)


def test_what_was_counted_when_a_change_was_computed_is_told_when_it_is_installed(orders: Warehouse) -> None:
    orders.sql("""CREATE MATERIALIZED VIEW v (CONSTRAINT paid EXPECT (total > 0))
        AS SELECT id, customer, total FROM orders""")
    orders.spark.sql("INSERT INTO orders VALUES (4, 1, -1), (5, 1, NULL), (6, 1, 1)")
    orders.propagate(policy="incremental")
    assert orders.refresh(propagated=True).view("v").violations == {"paid": 2}
    assert_exact(orders)


def test_drop_row_leaves_it_out_and_counts_it(orders: Warehouse) -> None:
    orders.sql("""CREATE MATERIALIZED VIEW v (n, c, t, CONSTRAINT paid EXPECT (t > 0) ON VIOLATION DROP ROW)
        AS SELECT id, customer, total FROM orders""")
    assert orders.history()[0].view("v").violations == {"paid": 1}
    assert {row[0] for row in rows(orders, "v")} == {1, 2}
    orders.spark.sql("INSERT INTO orders VALUES (4, 1, -1), (5, 1, NULL), (6, 1, 1)")
    refreshed = orders.refresh(policy="incremental").view("v")
    assert (refreshed.strategy, refreshed.violations) == ("incremental", {"paid": 2})
    orders.spark.sql("UPDATE orders SET total = 3 WHERE id = 4")
    assert orders.refresh(policy="incremental").view("v").violations == {}
    assert {row[0] for row in rows(orders, "v")} == {1, 2, 4, 6}
    assert_exact(orders)


def test_groups_are_rows_too(orders: Warehouse) -> None:
    query = "SELECT customer, sum(total) AS total, count(*) AS n FROM orders GROUP BY customer"
    orders.sql(f"""CREATE MATERIALIZED VIEW dropped (CONSTRAINT few EXPECT (n < 3) ON VIOLATION DROP ROW)
        AS {query}""")
    orders.sql(f"CREATE MATERIALIZED VIEW warned (CONSTRAINT few EXPECT (n < 3)) AS {query}")
    orders.sql("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS groups FROM dropped")
    orders.spark.sql("INSERT INTO orders VALUES (4, 1, 1), (5, 1, 1), (6, 2, 1)")
    epoch = orders.refresh(policy="incremental")
    assert epoch.view("dropped").violations == {"few": 1}
    assert epoch.view("warned").violations == {"few": 1}
    assert {row[0] for row in rows(orders, "dropped")} == {None, 2}
    assert rows(orders, "above") == {(2,)}
    assert_exact(orders)


def test_parts_of_groups_are_looked_at_as_groups(orders: Warehouse) -> None:
    orders.sql("""CREATE MATERIALIZED VIEW v (CONSTRAINT few EXPECT (n < 3) ON VIOLATION FAIL EPOCH)
        TBLPROPERTIES ('viewkeeper.install' = 'sdappend')
        AS SELECT customer, count(*) AS n FROM orders GROUP BY customer""")
    orders.spark.sql("INSERT INTO orders VALUES (4, 1, 1), (5, 1, 1)")
    with pytest.raises(RefreshError, match="few"):
        orders.refresh(policy="incremental")


def test_fail_epoch_publishes_nothing(orders: Warehouse) -> None:
    orders.sql("""CREATE MATERIALIZED VIEW v (CONSTRAINT known EXPECT (id > 0) ON VIOLATION FAIL EPOCH)
        AS SELECT id, total FROM orders""")
    orders.sql("CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM orders")
    before = world(orders)
    orders.spark.sql("INSERT INTO orders VALUES (-4, 1, 1), (5, 1, 1)")
    for policy in ("incremental", "full"):
        with pytest.raises(RefreshError) as caught:
            orders.refresh(policy=policy)
        assert caught.value.code == "VK-EXPECTATION"
        assert "1 of the rows that came break the expectation known" in str(caught.value)
    assert world(orders) == before
    orders.spark.sql("DELETE FROM orders WHERE id < 0")
    orders.refresh()
    assert_exact(orders)


@pytest.mark.parametrize(
    ("expectation", "code"),
    [
        ("CONSTRAINT a EXPECT (nothing > 0)", "VK-EXPECTATION"),
        ("CONSTRAINT a EXPECT (rand() > 0.5)", "VK-EXPECTATION"),
        ("CONSTRAINT a EXPECT (id)", "VK-EXPECTATION"),
        ("CONSTRAINT a EXPECT (id IN (SELECT customer FROM orders))", "VK-EXPECTATION"),
        ("CONSTRAINT a EXPECT (id > 0) ON VIOLATION IGNORE", "VK-SYNTAX"),
        ("CONSTRAINT a EXPECT id > 0", "VK-SYNTAX"),
        ("CONSTRAINT a EXPECT ()", "VK-SYNTAX"),
        ("CONSTRAINT a EXPECT (id > 0), CONSTRAINT A EXPECT (id > 1)", "VK-SYNTAX"),
    ],
)
def test_refused(orders: Warehouse, expectation: str, code: str) -> None:
    before = world(orders)
    with pytest.raises(DefinitionError) as caught:
        orders.sql(f"CREATE MATERIALIZED VIEW v ({expectation}) AS SELECT id FROM orders")
    assert caught.value.code == code
    assert world(orders) == before
