"""A table of any database that has a JDBC driver, by comparing: SQLite's, and PostgreSQL's as a stranger."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from postgres_server import PASSWORD, prepared
from viewkeeper.errors import ViewkeeperError
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark


class Shop:
    """A table of items in SQLite."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.db"
        self.sql(
            "CREATE TABLE items (id INTEGER, name VARCHAR(20), price REAL)",
            "INSERT INTO items VALUES (1, 'pen', 1.5), (2, NULL, NULL), (2, NULL, NULL), (3, 'ink', 2.0)",
        )

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.file) as connection:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        connection.close()
        return rows

    @property
    def options(self) -> str:
        return f"url 'jdbc:sqlite:{self.file}', table 'items'"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def same(wh: Warehouse, shop: Shop) -> None:
    ours = Counter(tuple(row) for row in wh.sql("SELECT * FROM items").collect())
    assert ours == Counter(shop.sql("SELECT * FROM items"))


def test_a_table_is_compared_with_what_was_seen(wh: Warehouse, shop: Shop):
    wh.sql(f"CREATE SOURCE items USING jdbc OPTIONS ({shop.options})")
    same(wh, shop)
    wh.sql("CREATE MATERIALIZED VIEW n AS SELECT name, COUNT(*) AS n FROM items GROUP BY name")
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    shop.sql(
        "DELETE FROM items WHERE rowid = 2",
        "INSERT INTO items VALUES (4, 'nib', 0), (4, 'nib', 0)",
        "UPDATE items SET price = 3 WHERE id = 3",
    )
    epoch = wh.refresh(policy="incremental")
    assert epoch.view("items").delta_rows == 5
    same(wh, shop)
    assert all(check.ok for check in wh.verify())
    shop.sql("DELETE FROM items")
    wh.refresh()
    same(wh, shop)
    shop.sql("INSERT INTO items VALUES (1, 'new', 1)")
    wh.refresh()
    same(wh, shop)
    wh.sql("DROP MATERIALIZED VIEW n")
    wh.sql("DROP SOURCE items")
    assert wh.sources() == []


def test_numbers_of_more_than_32_bits(wh: Warehouse, shop: Shop):
    shop.sql("INSERT INTO items VALUES (5000000000, 'far', 1)")
    wh.sql(f"CREATE SOURCE items USING jdbc OPTIONS ({shop.options}, where 'id > 1 AND id < 6000000000')")
    shop.sql("UPDATE items SET id = id + 1 WHERE name = 'far'")
    wh.refresh(policy="incremental")
    assert {row["id"] for row in wh.sql("SELECT id FROM items").collect()} == {2, 3, 5_000_000_001}


def test_with_a_key_and_only_what_is_wanted(wh: Warehouse, shop: Shop):
    options = f"{shop.options}, key 'id', columns 'name', where 'id > 1'"
    shop.sql("DELETE FROM items WHERE rowid = 3")
    wh.sql(f"CREATE SOURCE items USING jdbc OPTIONS ({options})")
    assert {tuple(row) for row in wh.sql("SELECT * FROM items").collect()} == {(2, None), (3, "ink")}
    shop.sql("UPDATE items SET name = 'quill' WHERE id = 3", "UPDATE items SET price = 9 WHERE id = 2")
    assert wh.refresh(policy="incremental").view("items").delta_rows == 2
    assert {tuple(row) for row in wh.sql("SELECT * FROM items").collect()} == {(2, None), (3, "quill")}
    shop.sql("INSERT INTO items VALUES (3, 'twice', 0)")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh(policy="incremental")
    assert "3" in str(refused.value)
    assert refused.value.code == "VK-KEY-TWICE"


def test_a_column_that_went_stops_the_source(wh: Warehouse, shop: Shop):
    wh.sql(f"CREATE SOURCE items USING jdbc OPTIONS ({shop.options})")
    shop.sql("ALTER TABLE items ADD more INTEGER")
    wh.refresh()
    shop.sql("ALTER TABLE items DROP COLUMN price")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-CHANGED"
    assert "price" in wh.check_sources()["items"][0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("url 'postgres://x', table 't'", "url: write jdbc:"),
        ("url 'jdbc:postgresql://h/d?socketFactory=evil', table 't'", "socketFactory may not be set"),
        ("url 'jdbc:mysql://h/d?autoDeserialize=true', table 't'", "autoDeserialize may not be set"),
        ("url 'jdbc:mysql://user:secret@h/d', table 't'", "a password in it would be kept"),
        ("url 'jdbc:sqlite:/x', table '(SELECT 1) AS t'", "the name of a table"),
        ("url 'jdbc:sqlite:/x', table 't', password 'secret'", "password_env"),
        ("url 'jdbc:sqlite:/x', table 't', sessionInitStatement 'DROP'", "no such option"),
    ],
)
def test_what_a_url_may_not_do(wh: Warehouse, options: str, told: str):
    with pytest.raises(ViewkeeperError) as refused:
        wh.sql(f"CREATE SOURCE s USING jdbc OPTIONS ({options})")
    assert refused.value.code == "VK-SOURCE-OPTION"
    if told != "no such option":
        assert told in str(refused.value)
    assert "secret" not in str(refused.value).replace("(password_file)", "")


def test_a_database_that_does_not_answer(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    wh = open_warehouse(tmp_path / "warehouse")
    server = prepared(tmp_path_factory.mktemp("pg"))
    try:
        server.sql("CREATE TABLE t (id INT, name TEXT, tags TEXT[])", "GRANT SELECT ON t TO keeper")
        server.sql("INSERT INTO t VALUES (1, 'a', '{x,NULL}')")
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?sslmode=disable"
        who = f"url '{url}', user 'keeper', password_env 'VK_TEST_PASSWORD'"
        with pytest.raises(ViewkeeperError) as refused:
            wh.sql(f"CREATE SOURCE t USING jdbc OPTIONS ({who}, table 'missing')")
        assert refused.value.code == "VK-SOURCE-UNREACHABLE"
        assert PASSWORD not in str(refused.value)
        wh.sql(f"CREATE SOURCE t USING jdbc OPTIONS ({who}, table 'public.t')")
        server.sql("INSERT INTO t VALUES (2, 'b')")
        wh.refresh()
        assert wh.sql("SELECT * FROM t").count() == 2
        server.sql("UPDATE t SET tags = '{NULL,x}' WHERE id = 1")
        wh.refresh()
        assert wh.sql("SELECT tags FROM t WHERE id = 1").collect()[0]["tags"] == [None, "x"]
    finally:
        server.stop("immediate")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-UNREACHABLE"
    assert PASSWORD not in str(refused.value)
    assert wh.sql("SELECT * FROM t").count() == 2
