"""Views over remote tables of real PostgreSQL servers: swept, and always a state that the databases had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from postgres_server import PASSWORD, PostgresInstance, prepared
from viewkeeper.sources.postgres_triggers import install_sql
from viewkeeper.warehouse import Warehouse

VIEW = (
    "SELECT o.id, c.name, o.amount, n.name AS country, o.amount * 2 AS twice FROM east.orders o "
    "JOIN west.customers c ON c.id = o.customer JOIN north.nations n ON n.code = c.nation "
    "WHERE o.amount > 1"
)
TABLES = {
    "east": ("orders", "id INT PRIMARY KEY, customer INT, amount INT, note TEXT"),
    "west": ("customers", "id BIGINT PRIMARY KEY, name TEXT, nation VARCHAR(2)"),
    "north": ("nations", "code TEXT, name TEXT"),
}
ROWS = {
    "east": "(1, 10, 5, 'a'), (2, 11, 7, NULL), (3, NULL, 9, 'n'), (4, 12, 1, 'small'), (5, 10, 5, 'b')",
    "west": "(10, 'ann', 'DE'), (11, 'bob', 'FR'), (12, 'eve', NULL)",
    "north": "('DE', 'Germany'), ('FR', 'France'), ('FR', 'Frankreich')",
}
Bag = Counter[tuple[object, ...]]
World = dict[str, PostgresInstance]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    instances = {name: prepared(tmp_path_factory.mktemp(f"pg_{name}")) for name in TABLES}
    yield instances
    for each in instances.values():
        each.stop("immediate")


@pytest.fixture
def world(servers: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The tables, as they were at first."""
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    for name, server in servers.items():
        table, columns = TABLES[name]
        server.sql(
            "CREATE SCHEMA s AUTHORIZATION keeper",
            "SET ROLE keeper",
            f"CREATE TABLE s.{table} ({columns})",
            f"ALTER TABLE s.{table} REPLICA IDENTITY FULL",
            f"INSERT INTO s.{table} VALUES {ROWS[name]}",
        )
    yield servers
    for server in servers.values():
        for (slot,) in server.sql("SELECT slot_name FROM pg_replication_slots WHERE NOT active"):
            server.sql(f"SELECT pg_drop_replication_slot('{slot}')")
        for (publication,) in server.sql("SELECT pubname FROM pg_publication"):
            server.sql(f'DROP PUBLICATION "{publication}"')
        server.sql("DROP SCHEMA s CASCADE", "DROP SCHEMA IF EXISTS viewkeeper CASCADE")


def declare(wh: Warehouse, world: World, **more: str) -> None:
    told = "".join(f", {key} '{value}'" for key, value in more.items())
    for name, server in world.items():
        options = f"{server.options}, remote 's.{TABLES[name][0]}'{told}"
        wh.sql(f"CREATE SOURCE {name} USING postgres OPTIONS ({options})")


def expected(world: World) -> Bag:
    """The view, worked out here."""
    orders = world["east"].sql("SELECT id, customer, amount FROM s.orders")
    customers = world["west"].sql("SELECT id, name, nation FROM s.customers")
    nations = world["north"].sql("SELECT code, name FROM s.nations")
    return Counter(
        (order, name, amount, country, amount * 2)
        for order, customer, amount in orders
        if amount is not None and amount > 1
        for key, name, nation in customers
        if key == customer
        for code, country in nations
        if code == nation and code is not None
    )


def rows(wh: Warehouse, view: str = "j") -> Bag:
    return Counter(tuple(row) for row in wh.sql(f"SELECT * FROM {view}").collect())


@pytest.mark.parametrize("capture", ["log", "trigger"])
def test_a_view_over_three_databases(wh: Warehouse, world: World, capture: str):
    if capture == "trigger":
        for name, server in world.items():
            server.sql("SET ROLE keeper", install_sql([f"s.{TABLES[name][0]}"], "keeper"))
    declare(wh, world, capture=capture)
    wh.sql(f"CREATE MATERIALIZED VIEW j AS {VIEW}")
    assert rows(wh) == expected(world)
    assert len(rows(wh)) > 2
    wh.sql("CREATE MATERIALIZED VIEW n AS SELECT country, COUNT(*) AS n FROM j GROUP BY country")
    world["east"].transaction(
        "INSERT INTO s.orders VALUES (6, 11, 20, 'x'), (7, 11, 20, 'y')",
        "DELETE FROM s.orders WHERE id = 1",
        "UPDATE s.orders SET customer = 12 WHERE id = 5",
    )
    world["west"].sql("UPDATE s.customers SET nation = 'DE' WHERE id = 12")
    world["west"].sql("INSERT INTO s.customers VALUES (13, 'new', 'FR')")
    world["north"].sql("DELETE FROM s.nations WHERE name = 'France'")
    world["north"].sql("INSERT INTO s.nations VALUES ('DE', 'Germany')")
    epoch = wh.refresh()
    assert rows(wh) == expected(world)
    assert {view.strategy for view in epoch.views} == {"incremental"}
    assert all(check.ok for check in wh.verify("j", "n"))
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    world["west"].sql("DELETE FROM s.customers")
    wh.refresh()
    assert not rows(wh)
    assert not rows(wh, "n")
    wh.sql("DROP MATERIALIZED VIEW n")
    wh.sql("DROP MATERIALIZED VIEW j")
    for server in world.values():
        assert server.sql("SELECT count(*) FROM pg_replication_slots") == [(0,)]
        assert server.sql("SELECT count(*) FROM pg_publication") == [(0,)]
    for name in world:
        wh.sql(f"DROP SOURCE {name}")
