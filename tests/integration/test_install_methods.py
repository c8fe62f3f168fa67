"""Methods of installing (Labio et al. 2000, Section 3) that a definition asks for: exact, or refused."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_tidy

from viewkeeper.errors import DefinitionError
from viewkeeper.plan.prices import BELIEVED, Operation, Rate, Rates
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(wh: Warehouse) -> Warehouse:
    """Customers and their orders, each with a key."""
    spark = wh.spark
    spark.sql("CREATE TABLE customer (custkey INT NOT NULL, name STRING) USING iceberg")
    spark.sql("CREATE TABLE orders (orderkey INT NOT NULL, custkey INT, price DECIMAL(8,2)) USING iceberg")
    spark.sql("ALTER TABLE customer SET IDENTIFIER FIELDS custkey")
    spark.sql("ALTER TABLE orders SET IDENTIFIER FIELDS orderkey")
    spark.sql("INSERT INTO customer VALUES (1, 'ann'), (2, 'bob'), (3, NULL)")
    spark.sql("INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 2, NULL), (13, NULL, 8), (14, 3, 9)")
    return wh


def create(wh: Warehouse, view: str, method: str, query: str) -> None:
    wh.sql(f"CREATE MATERIALIZED VIEW {view} TBLPROPERTIES ('viewkeeper.install' = '{method}') AS {query}")


SALES = "SELECT orderkey, name, price FROM orders JOIN customer ON orders.custkey = customer.custkey"


def installed(wh: Warehouse) -> dict[str, str | None]:
    epoch = wh.refresh(policy="incremental")
    assert_exact(wh)
    return {view.view.rsplit(".", 1)[-1]: view.install for view in epoch.views}


def test_rows_are_deleted_by_a_derived_key(orders: Warehouse) -> None:
    create(orders, "sales", "keyinstall", SALES)
    spark = orders.spark
    spark.sql("DELETE FROM orders WHERE orderkey = 10")
    assert installed(orders) == {"sales": "apply bag by key"}
    # Rows that change keep their key: the old ones must go, and not the new ones.
    spark.sql("UPDATE customer SET name = 'bert' WHERE custkey = 2")
    spark.sql("UPDATE orders SET price = price + 1, custkey = 3 WHERE orderkey = 11")
    spark.sql("INSERT INTO orders VALUES (20, 2, 1)")
    assert installed(orders) == {"sales": "apply bag by key"}
    spark.sql("INSERT INTO orders VALUES (21, 2, 1)")
    assert installed(orders) == {"sales": "insert rows"}
    assert_tidy(orders)


def test_a_key_that_does_not_hold_is_noticed(orders: Warehouse) -> None:
    create(orders, "sales", "keyinstall", SALES)
    spark = orders.spark
    spark.sql("INSERT INTO orders VALUES (11, 2, 77)")  # Iceberg does not mind
    assert installed(orders) == {"sales": "insert rows"}
    spark.sql("DELETE FROM orders WHERE price = 77")
    assert installed(orders) == {"sales": "apply bag by value"}
    assert_tidy(orders)


def by_key_costs(seconds: float) -> Rates:
    """Recomputing never pays; the rest takes as long as it is believed to, but for deleting by key."""
    return {**BELIEVED, Operation.RECOMPUTE: Rate(30.0), Operation.DELETE_BY_KEY: Rate(seconds)}


@pytest.mark.parametrize(("seconds", "method"), [(0.01, "keyinstall"), (5.0, "geninstall")])
def test_the_key_is_used_where_that_is_cheaper(orders: Warehouse, seconds: float, method: str) -> None:
    orders.rates = by_key_costs(seconds)
    orders.sql(f"CREATE MATERIALIZED VIEW sales AS {SALES}")
    orders.spark.sql("UPDATE customer SET name = 'bert' WHERE custkey = 2")
    orders.spark.sql("DELETE FROM orders WHERE orderkey = 10")
    told = orders.explain("sales").text
    assert f"({method})" in told
    assert ("_vk_t.`orderkey`" in told) == (method == "keyinstall")
    done = orders.refresh().view("sales")
    how = "apply bag by key" if method == "keyinstall" else "apply bag by hash"
    assert (done.method, done.install) == (method, how)
    assert done.because is not None and "against 3" in done.because
    (row,) = orders.history(limit=1).to_spark().collect()
    assert (row["method"], row["because"], row["prices"].keys()) == (method, done.because, done.prices.keys())
    assert row["compute_install_ratio"] == row["compute_seconds"] / row["install_seconds"]
    assert_exact(orders)
    assert_tidy(orders)


def test_a_cheap_key_that_does_not_hold_is_not_tried_again(orders: Warehouse) -> None:
    orders.rates = by_key_costs(0.01)
    orders.sql("CREATE MATERIALIZED VIEW sales AS SELECT orderkey, price FROM orders")
    spark = orders.spark
    spark.sql("INSERT INTO orders VALUES (11, 2, 77), (11, 2, 78)")
    assert installed(orders) == {"sales": "insert rows"}
    spark.sql("DELETE FROM orders WHERE price = 77")
    assert installed(orders) == {"sales": "apply bag by value"}
    assert orders.history()[0].view("sales").method == "geninstall"
    spark.sql("DELETE FROM orders WHERE price = 78")
    told = orders.explain("sales").text
    assert "(geninstall)" in told
    assert "keyinstall" not in told
    assert installed(orders) == {"sales": "apply bag by value"}
    assert_tidy(orders)


def test_groups_with_null_keys_make_a_key(orders: Warehouse) -> None:
    orders.sql("CREATE MATERIALIZED VIEW by_name AS SELECT name, sum(price) AS s FROM "
               "orders JOIN customer ON orders.custkey = customer.custkey GROUP BY name")  # fmt: skip
    create(orders, "shown", "keyinstall", "SELECT name, s FROM by_name WHERE s > 0 OR s IS NULL")
    orders.spark.sql("UPDATE orders SET price = price + 1 WHERE custkey = 3")
    assert installed(orders)["shown"] == "apply bag by key"


def test_a_view_over_one_that_is_recomputed_is_kept_by_deltas_where_that_is_cheaper(
    orders: Warehouse,
) -> None:
    orders.rates = by_key_costs(5.0)
    orders.sql("CREATE MATERIALIZED VIEW named REFRESH POLICY full AS SELECT custkey, name FROM customer")
    orders.sql("CREATE MATERIALIZED VIEW sums AS SELECT name, count(*) AS n, sum(price) AS s FROM orders "
               "JOIN named ON orders.custkey = named.custkey GROUP BY name")  # fmt: skip
    orders.spark.sql("UPDATE customer SET name = 'bert' WHERE custkey = 2")
    orders.spark.sql("INSERT INTO customer VALUES (4, 'dan')")
    orders.spark.sql("INSERT INTO orders VALUES (20, 4, 1), (21, 1, 2)")
    epoch = orders.refresh()
    assert (epoch.view("named").strategy, epoch.view("sums").strategy) == ("full", "incremental")
    assert_exact(orders)
    orders.spark.sql("DELETE FROM customer WHERE custkey = 1")
    assert orders.refresh().view("sums").strategy == "incremental"
    assert_exact(orders)
    assert_tidy(orders)


@pytest.mark.parametrize("method", ["sdcursor", "sdbatch", "sdoverwrite"])
def test_views_over_one_that_is_pinned_stay_exact(orders: Warehouse, method: str) -> None:
    create(
        orders,
        "by_customer",
        method,
        "SELECT custkey, count(*) AS n, max(price) AS m FROM orders GROUP BY custkey",
    )
    orders.sql("CREATE MATERIALIZED VIEW busy AS SELECT n, count(*) AS c FROM by_customer GROUP BY n")
    spark = orders.spark
    spark.sql("DELETE FROM orders WHERE orderkey IN (11, 14)")
    spark.sql("INSERT INTO orders VALUES (30, 1, 2), (31, 4, 2)")
    orders.refresh("by_customer", policy="incremental")  # the other one lags behind
    spark.sql("UPDATE orders SET custkey = 4 WHERE orderkey = 12")
    orders.refresh(policy="incremental")
    assert_exact(orders)
    assert_tidy(orders)


@pytest.mark.parametrize(
    ("method", "query", "said"),
    [
        ("fastest", SALES, "keyinstall, geninstall"),
        ("sdbatch", SALES, "it is no aggregate"),
        ("keyinstall", "SELECT count(*) AS n FROM orders GROUP BY custkey", "it is an aggregate"),
        ("keyinstall", "SELECT price FROM orders", "no key of it is known"),
        ("fullrecomp", SALES, "REFRESH POLICY full"),
    ],
)
def test_a_method_that_cannot_be_had_is_refused(
    orders: Warehouse, method: str, query: str, said: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        create(orders, "v", method, query)
    assert refused.value.code == "VK-INSTALL-METHOD"
    assert said in f"{refused.value} {refused.value.hint}"
    assert orders.sql("SHOW MATERIALIZED VIEWS").count() == 0
