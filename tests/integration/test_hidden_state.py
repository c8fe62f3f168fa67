"""Inner results that are kept as hidden views: shared, exact, and gone with their last reader."""

from __future__ import annotations

import pytest
from world import assert_exact, assert_tidy

from viewkeeper import hidden_views
from viewkeeper.errors import DefinitionError
from viewkeeper.plan.hidden_state import Trial
from viewkeeper.upkeep import Keeping
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

KEEP = "TBLPROPERTIES ('viewkeeper.hidden-state' = 'keep')"
VIEWS = {
    # The same inner result under other names: customers and how many orders they have.
    "spread": "SELECT n, count(*) AS customers FROM "
    "(SELECT customer, count(*) AS n FROM orders GROUP BY customer) GROUP BY n",
    "busy": "SELECT c.name, o.k FROM customers c JOIN "
    "(SELECT x.customer AS id, count(*) AS k FROM orders AS x GROUP BY x.customer) o ON o.id = c.id "
    "WHERE o.k > 1",
    "above": "SELECT id, total FROM orders WHERE total > (SELECT avg(total) FROM orders)",
    "some": "SELECT name FROM customers WHERE id IN "
    "(SELECT customer FROM orders GROUP BY customer HAVING sum(total) > 20)",
    "ranked": "SELECT c.name, r.id FROM customers c LEFT JOIN "
    "(SELECT id, customer, rank() OVER (PARTITION BY customer ORDER BY total DESC) AS place FROM orders) r "
    "ON r.customer = c.id AND r.place = 1",
    "deep": "SELECT max(most) AS most FROM (SELECT day, max(n) AS most FROM "
    "(SELECT day, customer, count(*) AS n FROM orders GROUP BY day, customer) GROUP BY day)",
    # One inner result stands in the other.
    "best": "WITH t AS (SELECT customer, sum(total) AS total FROM orders GROUP BY customer) "
    "SELECT customer, total FROM t WHERE total = (SELECT max(total) FROM t)",
    "reader": "SELECT count(*) AS n, max(k) AS most FROM busy",
}
CHANGES = (
    "INSERT INTO orders VALUES (6, 3, DATE'2024-05-03', 10), (7, 2, DATE'2024-05-03', NULL), "
    "(8, NULL, NULL, 3)",
    "DELETE FROM orders WHERE customer = 1",
    "UPDATE orders SET total = total + 7, customer = 2 WHERE id % 2 = 1",
    "INSERT INTO customers VALUES (9, 'Zoe'), (NULL, 'Nil')",
    "DELETE FROM orders",
    "INSERT INTO orders VALUES (1, 9, DATE'2024-06-01', 4)",
)


@pytest.fixture
def shop(wh: Warehouse) -> Warehouse:
    wh.spark.sql("CREATE TABLE customers (id INT, name STRING)")
    wh.spark.sql("CREATE TABLE orders (id INT, customer INT, day DATE, total DECIMAL(9,2))")
    wh.spark.sql("INSERT INTO customers VALUES (1, 'Ann'), (2, 'Ben'), (3, 'Cleo')")
    wh.spark.sql(
        "INSERT INTO orders VALUES (1, 1, DATE'2024-05-01', 20), (2, 1, DATE'2024-05-02', 50), "
        "(3, 2, DATE'2024-05-02', 5), (4, 1, DATE'2024-05-02', 5), (5, NULL, NULL, NULL)"
    )
    return wh


def hidden(wh: Warehouse) -> list[str]:
    return [name for name, view in wh._library().views.items() if view.hidden]


def test_replacing_a_view_follows_those_that_share_an_inner_result(shop: Warehouse) -> None:
    often = (
        "SELECT customer, n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) WHERE n > 1"
    )
    shop.sql(f"CREATE MATERIALIZED VIEW spread {KEEP} AS {VIEWS['spread']}")
    shop.sql(f"CREATE MATERIALIZED VIEW often {KEEP} AS SELECT max(customer) AS c FROM ({often})")
    assert len(hidden(shop)) >= 1
    shop.spark.sql("ALTER TABLE orders ALTER COLUMN customer TYPE BIGINT")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW spread {KEEP} AS {VIEWS['spread']}")
    assert shop.sql("SELECT c FROM often").schema["c"].dataType.simpleString() == "bigint"
    shop.spark.sql("INSERT INTO orders VALUES (8, 5000000000, NULL, 1), (9, 5000000000, NULL, 2)")
    shop.refresh()
    assert_exact(shop)
    assert shop.sql("SELECT c FROM often").collect()[0]["c"] == 5_000_000_000


def test_kept_shared_exact_and_removed(shop: Warehouse) -> None:
    for name, query in VIEWS.items():
        shop.sql(f"CREATE MATERIALIZED VIEW {name} {KEEP} AS {query}")
    library = shop._library()
    counts = library.hidden_parents(shop.full_name("spread"))
    assert counts == library.hidden_parents(shop.full_name("busy"))
    assert len(library.hidden_parents(shop.full_name("deep"))) == 2
    assert library.hidden_parents(shop.full_name("reader")) == ()
    assert not set(hidden(shop)) & {*shop.views(), *(each.view for each in shop.status())}
    assert_exact(shop)
    for changes in (CHANGES[:2], CHANGES[2:4], CHANGES[4:]):
        for change in changes:
            shop.spark.sql(change)
        epoch = shop.refresh(policy="incremental strict")
        assert {view.strategy for view in epoch.views} <= {"incremental", "unchanged"}
        assert_exact(shop)
    before = hidden(shop)
    shop.sql(f"CREATE MATERIALIZED VIEW again {KEEP} AS {VIEWS['deep'].replace('most', 'top')}")
    shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW spread COMMENT 'another' {KEEP} AS {VIEWS['spread']}")
    assert hidden(shop) == before  # and none of them is made anew
    assert {each.strategy for each in shop.refresh().views} == {"unchanged"}
    shop.sql("DROP MATERIALIZED VIEW again")
    for name in reversed(VIEWS):
        assert hidden(shop)
        shop.sql(f"DROP MATERIALIZED VIEW {name}")
    assert hidden(shop) == []
    assert_tidy(shop)


def test_a_view_that_reads_it_alone_lags_and_catches_up(shop: Warehouse) -> None:
    for name in ("spread", "busy"):
        shop.sql(f"CREATE MATERIALIZED VIEW {name} {KEEP} AS {VIEWS[name]}")
    shop.spark.sql(CHANGES[0])
    shop.refresh("busy")
    shop.spark.sql(CHANGES[1])
    shop.refresh("busy")
    assert_exact(shop)
    shop.refresh(policy="incremental strict")
    assert_exact(shop)


def test_set_and_taken_back(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW spread AS {VIEWS['spread']}")
    shop.sql("CREATE MATERIALIZED VIEW reader AS SELECT max(n) AS n FROM spread")
    assert hidden(shop) == []
    shop.sql("ALTER MATERIALIZED VIEW spread SET TBLPROPERTIES ('viewkeeper.hidden-state' = 'keep')")
    assert len(hidden(shop)) == 1
    said = str(shop.explain("spread"))
    assert f"{hidden(shop)[0]} keeps" in said
    assert "GROUP BY customer" in said
    shop.spark.sql(CHANGES[0])
    shop.refresh(policy="incremental strict")
    assert_exact(shop)
    shop.sql("ALTER MATERIALIZED VIEW spread SET TBLPROPERTIES ('viewkeeper.hidden-state' = 'none')")
    assert hidden(shop) == []
    shop.spark.sql(CHANGES[1])
    shop.refresh(policy="incremental strict")
    assert_exact(shop)
    assert_tidy(shop)


def test_verify_sees_a_hidden_view_that_is_wrong(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW spread {KEEP} AS {VIEWS['spread']}")
    library = shop._library()
    state = library.states[hidden(shop)[0]]
    shop.spark.sql(f"DELETE FROM {state.storage} WHERE customer = 2")
    snapshot = shop.spark.sql(f"SELECT max_by(snapshot_id, committed_at) FROM {state.storage}.snapshots")
    with shop._maintainer.shop.lease() as lease:
        wrong = shop._maintainer.shop.library()
        moved = str(snapshot.collect()[0][0])
        keeping = Keeping(shop._ledger, shop._engine, wrong, lease, lambda event: None)
        keeping._publish({state.view: moved}, {state.view: None}, 0.0)
    (found,) = shop.verify("spread")
    assert not found.ok


def test_tried_kept_and_given_up_after_what_refreshes_took(
    shop: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW spread AS {VIEWS['spread']}")
    took = [5.0, 6.0, 7.0]
    monkeypatch.setattr(hidden_views, "_seconds", lambda *_: took)
    assert shop.maintain("spread")[0].hidden_state == "keep"
    assert len(hidden(shop)) == 1
    assert shop._library().views[shop.full_name("spread")].trial == Trial(6.0)
    took = [2.0, 3.0, 2.0]
    assert shop.maintain("spread")[0].hidden_state is None
    took = [7.0, 8.0, 7.0]
    assert shop.maintain("spread")[0].hidden_state == "none"
    assert hidden(shop) == []
    assert shop.maintain("spread")[0].hidden_state is None  # it is not tried again
    assert_exact(shop)


def test_the_seconds_are_those_of_the_ledger(shop: Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW spread {KEEP} AS {VIEWS['spread']}")
    for change in CHANGES[:3]:
        shop.spark.sql(change)
        shop.refresh()
    library, name = shop._library(), shop.full_name("spread")
    parents = library.hidden_parents(name)
    found = hidden_views._seconds(shop._ledger, library, library.views[name], parents)
    paid = [
        sum(view.compute_seconds + view.install_seconds for view in epoch.views)
        for epoch in shop.history("spread")[:3]
    ]
    assert found == pytest.approx(paid)


def test_what_it_reads_may_be_replaced_and_change(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW base AS SELECT id, customer, total FROM orders")
    shop.sql(
        f"CREATE MATERIALIZED VIEW rows {KEEP} AS SELECT count(*) AS n FROM (SELECT DISTINCT * FROM base)"
    )
    for columns in ("id, customer", "id, customer, total, day", "id, customer, total"):
        shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW base AS SELECT {columns} FROM orders")
        assert len(hidden(shop)) == 1
        shop.spark.sql("INSERT INTO orders VALUES (9, 9, NULL, 1)")
        shop.refresh()
        assert_exact(shop)
    shop.sql(f"CREATE MATERIALIZED VIEW spread {KEEP} AS {VIEWS['spread']}")
    shop.spark.sql("ALTER TABLE orders ALTER COLUMN customer TYPE BIGINT")
    shop.spark.sql("INSERT INTO orders VALUES (10, 10, NULL, 1)")
    for name, query in (("base", "SELECT id, customer, total FROM orders"), ("spread", VIEWS["spread"])):
        shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW {name} {KEEP} AS {query}")
    shop.refresh()
    assert_exact(shop)
    assert_tidy(shop)


def test_a_word_that_is_none_is_refused(shop: Warehouse) -> None:
    with pytest.raises(DefinitionError) as refused:
        shop.sql(
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('viewkeeper.hidden-state' = 'some') AS "
            "SELECT id FROM orders"
        )
    assert refused.value.code == "VK-HIDDEN-STATE"
