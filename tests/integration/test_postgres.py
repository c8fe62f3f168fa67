"""PostgreSQL as a source: whole transactions from the server's log, nothing lost and nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from postgres_server import PASSWORD, PostgresInstance, prepared
from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.sources import postgres_capture
from viewkeeper.sources.pgoutput import Decoder, Transaction
from viewkeeper.sources.postgres_server import Server, Snapshot
from viewkeeper.sources.postgres_slot import Slot
from viewkeeper.sources.postgres_triggers import install_sql
from viewkeeper.warehouse import Warehouse


@pytest.fixture(scope="module", params=[16, 18])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresInstance]:
    instance = prepared(tmp_path_factory.mktemp("pg"), request.param)
    yield instance
    instance.stop("immediate")


@pytest.fixture
def db(server: PostgresInstance, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresInstance]:
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    server.sql("DROP SCHEMA IF EXISTS shop CASCADE", "CREATE SCHEMA shop AUTHORIZATION keeper")
    server.sql(
        "SET ROLE keeper",
        "CREATE TABLE shop.accounts (id INT PRIMARY KEY, owner TEXT, balance NUMERIC(12,2))",
        "CREATE TABLE shop.moves (account INT, amount NUMERIC(12,2))",
        "ALTER TABLE shop.moves REPLICA IDENTITY FULL",
        "INSERT INTO shop.accounts VALUES (1, 'ann', 10), (2, 'bob', 20.50), (3, NULL, NULL)",
        "INSERT INTO shop.moves VALUES (1, 10), (2, 20.50), (2, 20.50)",
    )
    yield server
    for (slot,) in server.sql("SELECT slot_name FROM pg_replication_slots WHERE NOT active"):
        server.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    for (publication,) in server.sql("SELECT pubname FROM pg_publication"):
        server.sql(f'DROP PUBLICATION "{publication}"')
    server.sql("DROP SCHEMA shop CASCADE")


def declare(
    wh: Warehouse, db: PostgresInstance, tables: str = "shop.accounts, shop.moves", **more: str
) -> None:
    options = "".join(f", {key} '{value}'" for key, value in more.items())
    wh.sql(f"CREATE SOURCE bank USING postgres OPTIONS ({db.options}, tables '{tables}'{options})")


def same(wh: Warehouse, db: PostgresInstance, *tables: str) -> None:
    for table in tables or ("accounts", "moves"):
        ours = Counter(tuple(row) for row in wh.sql(f"SELECT * FROM bank.{table}").collect())
        assert ours == Counter(db.sql(f"SELECT * FROM shop.{table}")), table


def test_the_first_copy_and_what_comes_after_it(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    same(wh, db)
    wh.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(balance) AS total FROM bank.accounts")
    db.transaction(
        "UPDATE shop.accounts SET balance = balance - 5 WHERE id = 2",
        "INSERT INTO shop.moves VALUES (2, -5)",
        "INSERT INTO shop.accounts VALUES (4, 'dan', 5)",
        "UPDATE shop.accounts SET id = 40, owner = 'dän' WHERE id = 4",
    )
    db.sql("DELETE FROM shop.moves WHERE ctid IN (SELECT min(ctid) FROM shop.moves WHERE amount = 20.50)")
    db.sql("DELETE FROM shop.accounts WHERE id = 3")
    epoch = wh.refresh()
    same(wh, db)
    assert {view.strategy for view in epoch.views} == {"incremental"}
    assert wh.sql("SELECT total FROM total").collect()[0]["total"] == 30.50
    assert all(check.ok for check in wh.verify("total"))
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    db.sql("INSERT INTO shop.accounts VALUES (5, 'eve', 1)", "DELETE FROM shop.accounts WHERE id = 5")
    wh.refresh()
    same(wh, db)


def test_the_tables_of_a_database_move_together(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    wh.sql("CREATE MATERIALIZED VIEW a AS SELECT COUNT(*) AS n FROM bank.accounts")
    db.transaction("INSERT INTO shop.accounts VALUES (9, 'x', 1)", "INSERT INTO shop.moves VALUES (9, 1)")
    epoch = wh.refresh("a")
    assert {view.view.rsplit(".", 1)[-1] for view in epoch.views} == {"a", "accounts", "moves"}
    assert len(set(epoch.source_versions.values())) == 1
    same(wh, db)


def test_truncate_is_a_delete_of_everything(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.transaction(
        "INSERT INTO shop.accounts VALUES (7, 'gone', 1)",
        "TRUNCATE shop.accounts, shop.moves",
        "INSERT INTO shop.accounts VALUES (8, 'new', 2)",
        "INSERT INTO shop.moves VALUES (8, 2)",
    )
    wh.refresh()
    same(wh, db)


def test_a_large_value_that_was_not_touched_stays(wh: Warehouse, db: PostgresInstance):
    db.sql(
        "ALTER TABLE shop.accounts ALTER owner SET STORAGE EXTERNAL",
        "UPDATE shop.accounts SET owner = repeat('long ', 2000) WHERE id = 1",
    )
    declare(wh, db)
    db.sql("UPDATE shop.accounts SET balance = 11 WHERE id = 1")
    db.sql("UPDATE shop.accounts SET balance = 12, id = 100 WHERE id = 1")
    db.sql("INSERT INTO shop.accounts VALUES (6, repeat('other ', 2000), 1)")
    db.sql("UPDATE shop.accounts SET balance = 2 WHERE id = 6")
    wh.refresh()
    same(wh, db, "accounts")
    assert all(row[1] is None or row[1] for row in wh.sql("SELECT * FROM bank.accounts").collect())


def test_a_slot_that_does_not_know_of_the_last_epoch(
    wh: Warehouse, db: PostgresInstance, monkeypatch: pytest.MonkeyPatch
):
    """More changes than are read at a time lie between where the slot stands and where we are."""
    monkeypatch.setattr(postgres_capture, "MOST_CHANGES", 5)
    declare(wh, db)
    db.sql("INSERT INTO shop.moves SELECT n, n FROM generate_series(10, 20) AS n")
    with monkeypatch.context() as patched:
        patched.setattr(Slot, "acknowledge", lambda *_: None)
        wh.refresh()
    for _ in range(2):
        db.sql("INSERT INTO shop.accounts VALUES ((SELECT max(id) + 1 FROM shop.accounts), 'late', 1)")
        wh.refresh()
        wh.refresh()
        same(wh, db)


def test_a_table_that_had_another_name_for_a_while(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.sql(
        "ALTER TABLE shop.accounts RENAME TO others",
        "DELETE FROM shop.others WHERE id = 1",
        "ALTER TABLE shop.others RENAME TO accounts",
    )
    with pytest.raises(SourceError, match="another name") as caught:
        wh.refresh()
    assert caught.value.code == "VK-SOURCE-CHANGED"


def test_dates_that_spark_would_read_as_others(wh: Warehouse, db: PostgresInstance):
    db.sql("SET ROLE keeper", "CREATE TABLE shop.days (id INT PRIMARY KEY, day DATE)")
    declare(wh, db, "shop.days")
    db.sql("INSERT INTO shop.days VALUES (1, '0044-03-15 BC')")
    with pytest.raises(ViewkeeperError, match="before Christ"):
        wh.refresh()
    db.sql("UPDATE shop.days SET day = '0044-03-15'")
    wh.refresh()
    assert str(wh.sql("SELECT * FROM bank.days").collect()[0]["day"]) == "0044-03-15"


def test_types(wh: Warehouse, db: PostgresInstance):
    db.sql("DROP TYPE IF EXISTS shop.mood", "CREATE TYPE shop.mood AS ENUM ('sad', 'ok')")
    db.sql(
        "SET ROLE keeper",
        "CREATE TABLE shop.all_types (id BIGINT PRIMARY KEY, s SMALLINT, r REAL, d DOUBLE PRECISION, "
        "n NUMERIC, b BOOLEAN, day DATE, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID, bin BYTEA, j JSON, jb JSONB, "
        "m shop.mood, c CHAR(3), a INT[], t TEXT[], tod TIME)",
    )
    values = [
        "1, -3, 1.5, 'NaN', 12.5, true, '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56+02', "
        "'11111111-2222-3333-4444-555555555555', '\\x00ff', '{\"a\": 1}', '{\"a\": [1, 2]}', 'sad', 'x', "
        "'{1,NULL,3}', '{\"a,b\",\"say \\\"hi\\\"\",NULL,plain}', '01:02:03'",
        "2" + ", NULL" * 17,
    ]
    db.sql(f"INSERT INTO shop.all_types VALUES ({values[0]})")
    declare(wh, db, "shop.all_types")
    db.sql(f"INSERT INTO shop.all_types VALUES ({values[0].replace('1, -3', '3, -3', 1)}), ({values[1]})")
    wh.refresh()
    rows = {row["id"]: row for row in wh.sql("SELECT * FROM bank.all_types").collect()}
    first, third = rows[1].asDict(), rows[3].asDict()
    assert {**first, "id": 3, "d": None} == {**third, "d": None}
    assert str(first["d"]) == str(third["d"]) == "nan"
    assert first["n"] == first["n"].__class__("12.5")
    assert (first["a"], first["t"]) == ([1, None, 3], ["a,b", 'say "hi"', None, "plain"])
    assert (bytes(first["bin"]), first["c"], first["m"]) == (b"\x00\xff", "x  ", "sad")
    assert set(rows[2].asDict().values()) == {2, None}
    db.sql("INSERT INTO shop.all_types (id, n) VALUES (4, 'NaN')")
    with pytest.raises(ViewkeeperError):
        wh.refresh()


@pytest.mark.parametrize(
    ("ddl", "code", "told"),
    [
        ("CREATE TABLE shop.t (a INT)", "VK-SOURCE-IDENTITY", 'ALTER TABLE "shop"."t" REPLICA IDENTITY FULL'),
        ("CREATE TABLE shop.t (a INT PRIMARY KEY, i INTERVAL)", "VK-SOURCE-TYPE", "column i"),
        ("CREATE TABLE shop.t (a INT PRIMARY KEY, i NUMERIC(50, 2))", "VK-SOURCE-TYPE", "numeric(50,2)"),
        ("SELECT 1", "VK-SOURCE-MISSING", "shop.t"),
    ],
)
def test_tables_that_cannot_be_kept(wh: Warehouse, db: PostgresInstance, ddl: str, code: str, told: str):
    db.sql("SET ROLE keeper", ddl)
    with pytest.raises(ViewkeeperError) as refused:
        declare(wh, db, "shop.t")
    assert refused.value.code == code
    assert told in str(refused.value)
    assert (wh.sources(), wh.views()) == ([], [])
    assert db.sql("SELECT * FROM pg_replication_slots") == []


def test_dropping_a_source_gives_the_slot_back(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    assert len(db.sql("SELECT * FROM pg_replication_slots")) == 1
    wh.sql("DROP SOURCE bank")
    assert db.sql("SELECT * FROM pg_replication_slots") == []
    assert db.sql("SELECT * FROM pg_publication") == []
    assert wh.views() == []


def test_the_position_is_acknowledged_only_after_the_epoch_is_published(
    open_warehouse: Callable[..., Warehouse], tmp_path: Path, db: PostgresInstance
):
    seen: list[str] = []
    confirmed = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"

    def watch(event: object) -> None:
        if type(event).__name__ == "EpochPublished" and armed:
            seen.extend(row[0] for row in db.sql(confirmed))

    armed = False
    wh = open_warehouse(tmp_path / "warehouse", on_event=watch)
    declare(wh, db)
    (before,) = (row[0] for row in db.sql(confirmed))
    armed = True
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    epoch = wh.refresh()
    assert seen == [before]
    assert [row[0] for row in db.sql(confirmed)] == list(set(epoch.source_versions.values()))


def lost(db: PostgresInstance, slot: str) -> None:
    db.sql(f"SELECT pg_drop_replication_slot('{slot}')")


def recreated(db: PostgresInstance, slot: str) -> None:
    lost(db, slot)
    db.sql("INSERT INTO shop.accounts VALUES (10, 'missed', 1)")
    db.sql(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")


def ahead(db: PostgresInstance, slot: str) -> None:
    db.sql("INSERT INTO shop.accounts VALUES (10, 'missed', 1)")
    db.sql(f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_flush_lsn())")


@pytest.mark.parametrize("harm", [lost, recreated, ahead])
def test_a_slot_that_is_not_where_we_left_it_stops_the_refresh(
    wh: Warehouse, db: PostgresInstance, harm: Callable[[PostgresInstance, str], None]
):
    declare(wh, db)
    ((slot,),) = db.sql("SELECT slot_name FROM pg_replication_slots")
    harm(db, slot)
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SLOT-LOST"
    assert "CREATE OR REPLACE SOURCE" in str(refused.value)
    assert wh.sql("SELECT * FROM bank.accounts").count() == 3
    options = f"{db.options}, tables 'shop.accounts, shop.moves'"
    wh.sql(f"CREATE OR REPLACE SOURCE bank USING postgres OPTIONS ({options})")
    same(wh, db)


def test_a_server_that_crashes_and_comes_back(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    wh.refresh()
    db.stop("immediate")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-UNREACHABLE"
    db.start()
    db.sql("UPDATE shop.accounts SET balance = 2 WHERE id = 9")
    wh.refresh()
    same(wh, db)


def test_columns_that_come_and_go(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.sql("ALTER TABLE shop.accounts ADD more TEXT", "INSERT INTO shop.accounts VALUES (9, 'x', 1, 'y')")
    wh.refresh()
    assert wh.sql("SELECT * FROM bank.accounts WHERE id = 9").collect()[0].asDict() == {
        "id": 9, "owner": "x", "balance": 1
    }  # fmt: skip
    db.sql("ALTER TABLE shop.accounts DROP owner", "INSERT INTO shop.accounts VALUES (10, 1, 'y')")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-CHANGED"
    assert "owner" in refused.value.message


def test_a_column_that_is_retyped(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.sql(
        "ALTER TABLE shop.accounts ALTER owner TYPE VARCHAR(10)",
        "INSERT INTO shop.accounts VALUES (9, 'x', 1)",
    )
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-CHANGED"


def test_the_password_is_nowhere_to_be_found(
    wh: Warehouse,
    db: PostgresInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    declare(wh, db)
    wh.sql("CREATE MATERIALIZED VIEW a AS SELECT COUNT(*) AS n FROM bank.accounts")
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    told = [str(wh.plan()), str(wh.explain("a")), str(wh.sources()), str(wh.refresh()), str(wh.history())]
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD + "x")
    with pytest.raises(ViewkeeperError) as refused:
        given = f"{db.options}, tables 'shop.accounts', password '{PASSWORD}'"
        wh.sql(f"CREATE SOURCE other USING postgres OPTIONS ({given})")
    told += [str(refused.value), repr(refused.value)]
    told += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    told += list(capfd.readouterr())
    assert not any(PASSWORD in each for each in told)


def test_what_a_server_lacks_is_said(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    (problem,) = wh.check_sources()["bank"]
    assert "max_slot_wal_keep_size is unlimited" in problem
    db.sql("ALTER ROLE keeper NOREPLICATION")
    try:
        assert any("ALTER ROLE keeper REPLICATION" in each for each in wh.check_sources("bank")["bank"])
    finally:
        db.sql("ALTER ROLE keeper REPLICATION")


def test_an_idle_slot_moves_on(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    wh.refresh()
    db.sql("CREATE TABLE shop.noise AS SELECT generate_series(1, 1000) AS a")
    ((before,),) = db.sql("SELECT confirmed_flush_lsn FROM pg_replication_slots")
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    ((after,),) = db.sql(f"SELECT confirmed_flush_lsn > '{before}'::pg_lsn FROM pg_replication_slots")
    assert after
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    wh.refresh()
    same(wh, db)


def test_with_the_right_to_read_and_replicate_alone(wh: Warehouse, db: PostgresInstance):
    db.sql(
        "CREATE TABLE shop.theirs (id INT PRIMARY KEY)",
        "INSERT INTO shop.theirs VALUES (1)",
        "GRANT SELECT ON shop.theirs TO keeper",
    )
    with pytest.raises(ViewkeeperError) as refused:
        declare(wh, db, "shop.theirs")
    assert refused.value.code == "VK-SOURCE-SETUP"
    assert 'CREATE PUBLICATION viewkeeper FOR TABLE "shop"."theirs"' in str(refused.value)
    assert db.sql("SELECT * FROM pg_replication_slots") == []
    db.sql("CREATE PUBLICATION viewkeeper FOR TABLE shop.theirs")
    declare(wh, db, "shop.theirs", publication="viewkeeper")
    db.sql("INSERT INTO shop.theirs VALUES (2)")
    wh.refresh()
    same(wh, db, "theirs")
    wh.sql("DROP SOURCE bank")
    assert db.sql("SELECT pubname FROM pg_publication") == [("viewkeeper",)]


def test_a_connection_that_is_cut_loses_nothing(
    wh: Warehouse, db: PostgresInstance, monkeypatch: pytest.MonkeyPatch
):
    declare(wh, db)
    db.sql("INSERT INTO shop.moves SELECT i, i FROM generate_series(1, 1000) AS i")
    decode = Decoder.transactions

    def cut(self: Decoder, messages: Iterable[bytes]) -> Iterator[Transaction]:
        db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'viewkeeper'")
        raise psycopg.OperationalError("server closed the connection unexpectedly")
        yield from decode(self, messages)

    with monkeypatch.context() as meddling:
        meddling.setattr(Decoder, "transactions", cut)
        with pytest.raises(ViewkeeperError) as refused:
            wh.refresh()
    assert refused.value.code == "VK-SOURCE-UNREACHABLE"
    wh.refresh()
    same(wh, db)


def test_a_server_without_free_connections(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    taken = []
    with pytest.raises(psycopg.OperationalError):
        while True:
            taken.append(db.connect(user="keeper", password=PASSWORD))
    try:
        with pytest.raises(ViewkeeperError) as refused:
            wh.refresh()
        assert refused.value.code == "VK-SOURCE-UNREACHABLE"
    finally:
        for connection in taken:
            connection.close()
    wh.refresh()
    same(wh, db)


def test_changes_captured_by_triggers(wh: Warehouse, db: PostgresInstance):
    with pytest.raises(ViewkeeperError) as refused:
        declare(wh, db, capture="trigger")
    assert refused.value.code == "VK-SOURCE-SETUP"
    assert "viewkeeper sources install" in str(refused.value)
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture="trigger")
    same(wh, db)
    assert db.sql("SELECT * FROM pg_replication_slots") == []
    # One that began before another, and commits after a refresh has seen that one: no position in a sequence
    # would tell.
    with db.connect(autocommit=False) as early:
        early.execute(
            "UPDATE shop.accounts SET owner = 'a \"quoted\", (list)\\ ', balance = NULL WHERE id = 1"
        )
        db.transaction(
            "UPDATE shop.accounts SET id = 20 WHERE id = 2", "INSERT INTO shop.moves VALUES (20, 1)"
        )
        wh.refresh()
        assert wh.sql("SELECT owner FROM bank.accounts WHERE id = 1").collect()[0]["owner"] == "ann"
    wh.refresh()
    same(wh, db)
    db.sql("DELETE FROM shop.moves WHERE account = 2", "DELETE FROM shop.accounts WHERE id = 3")
    db.transaction("TRUNCATE shop.moves", "INSERT INTO shop.moves VALUES (1, NULL)")
    wh.refresh()
    same(wh, db)
    assert db.sql("SELECT count(*) FROM viewkeeper.changes") == [(0,)]
    db.sql("ALTER TABLE shop.accounts ADD more INT", "INSERT INTO shop.accounts VALUES (9, 'x', 1, 2)")
    wh.refresh()
    assert wh.sql("SELECT * FROM bank.accounts WHERE id = 9").count() == 1
    db.sql("ALTER TABLE shop.accounts DROP owner", "INSERT INTO shop.accounts VALUES (10, 1, 2)")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-CHANGED"


@pytest.mark.parametrize("capture", ["log", "trigger", "diff"])
def test_base_views_are_verified_against_the_database(wh: Warehouse, db: PostgresInstance, capture: str):
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture=capture)
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    wh.refresh()
    found = {check.view: check.ok for check in wh.verify()}
    assert found == {"lake.bank.accounts": True, "lake.bank.moves": True}
    db.sql("UPDATE shop.accounts SET balance = 2 WHERE id = 9")
    still = {"lake.bank.moves"} if capture == "diff" else set()  # there each table has a version of its own
    assert {check.view for check in wh.verify()} == still
    with pytest.raises(ViewkeeperError) as refused:
        wh.verify("bank.accounts")
    assert refused.value.code == "VK-NO-HISTORY"
    wh.refresh()
    same(wh, db)
    (slots,) = db.sql("SELECT count(*) FROM pg_replication_slots WHERE temporary")[0]
    assert slots == 0, "no snapshot is left open"


def test_triggers_with_two_readers_and_without_gaps(wh: Warehouse, db: PostgresInstance):
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture="trigger")
    options = f"{db.options}, tables 'shop.accounts', capture 'trigger'"
    wh.sql(f"CREATE SOURCE other USING postgres OPTIONS ({options})")
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)", "INSERT INTO shop.moves VALUES (9, 1)")
    behind = {each.name: each.lag_transactions for each in wh.sources()}
    assert behind == {"bank": 2, "other": 1}
    wh.refresh("bank.accounts")
    same(wh, db)  # and the change that the other one has not read yet is still there
    db.sql(install_sql(["shop.accounts", "shop.moves"], "keeper"))  # again, which changes nothing
    wh.refresh("other.accounts")
    assert wh.sql("SELECT * FROM other.accounts WHERE id = 9").count() == 1
    assert db.sql("SELECT count(*) FROM viewkeeper.changes") == [(0,)]
    wh.sql("DROP SOURCE other")
    assert len(db.sql("SELECT * FROM viewkeeper.readers")) == 1

    db.sql(
        "ALTER TABLE shop.moves DISABLE TRIGGER viewkeeper_rows",
        "INSERT INTO shop.moves VALUES (7, 7)",
        "ALTER TABLE shop.moves ENABLE TRIGGER viewkeeper_rows",
    )
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SLOT-LOST"
    options = f"{db.options}, tables 'shop.accounts, shop.moves', capture 'trigger'"
    again = f"CREATE OR REPLACE SOURCE bank USING postgres OPTIONS ({options})"
    with pytest.raises(ViewkeeperError) as refused:
        wh.sql(again)
    assert refused.value.code == "VK-SOURCE-SETUP"
    assert 'no triggers that always fire on "shop"."moves"' in refused.value.message
    db.sql(install_sql(["shop.moves"], "keeper"))
    wh.sql(again)
    same(wh, db)
    db.sql("DELETE FROM viewkeeper.readers")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SLOT-LOST"


def test_triggers_of_others_that_fire_before_ours(wh: Warehouse, db: PostgresInstance):
    """What is copied and what is swept read the same changes."""
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture="trigger")
    options = f"{db.options}, remote 'shop.accounts, shop.moves', capture 'trigger'"
    wh.sql(f"CREATE SOURCE away USING postgres OPTIONS ({options})")
    joined = "SELECT m.account, m.amount, a.balance FROM {0}.moves m JOIN {0}.accounts a ON a.id = m.account"
    wh.sql(f"CREATE MATERIALIZED VIEW swept AS {joined.format('away')}")
    for table, column, key in (("accounts", "balance", "id"), ("moves", "amount", "account")):
        db.sql(
            f"CREATE FUNCTION shop.{table}() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN "
            f"UPDATE shop.{table} SET {column} = {column} + 100 WHERE {key} = NEW.{key}; RETURN NULL; END $$",
            f"CREATE TRIGGER audit AFTER INSERT ON shop.{table} FOR EACH ROW EXECUTE FUNCTION shop.{table}()",
        )
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)", "INSERT INTO shop.moves VALUES (9, 1), (2, 3)")
    wh.refresh()
    same(wh, db)
    there = Counter(db.sql(joined.format("shop")))
    assert Counter(tuple(row) for row in wh.sql("SELECT * FROM swept").collect()) == there


def test_how_much_waits_and_since_when(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    (status,) = wh.sources()
    assert (status.lag_transactions, status.lag_seconds, status.behind) == (0, 0, False)
    db.transaction("INSERT INTO shop.accounts VALUES (9, 'x', 1)", "INSERT INTO shop.moves VALUES (9, 1)")
    db.sql("INSERT INTO shop.accounts VALUES (10, 'y', 1)", "SELECT pg_sleep(0.2)")
    (status,) = wh.sources()
    assert (status.lag_transactions, status.behind, status.problem) == (2, True, None)
    assert 0.2 <= (status.lag_seconds or 0) < 60
    wh.refresh()
    assert [each.behind for each in wh.sources()] == [False]
    db.stop("fast")
    (status,) = wh.sources()
    assert "no connection" in (status.problem or "")
    assert status.lag_transactions is None
    db.start()


def test_a_source_that_cannot_be_filled_leaves_no_slot(wh: Warehouse, db: PostgresInstance):
    db.sql("CREATE TABLE shop.n (id INT PRIMARY KEY, n NUMERIC)", "ALTER TABLE shop.n OWNER TO keeper")
    db.sql("INSERT INTO shop.n VALUES (1, 0.1234567890123456789)")
    with pytest.raises(ViewkeeperError) as refused:
        declare(wh, db, "shop.n")
    assert "digits behind the point" in str(refused.value)
    assert db.sql("SELECT * FROM pg_replication_slots") == []
    declare(wh, db, "shop.accounts")
    options = f"{db.options}, tables 'shop.accounts, shop.n'"
    with pytest.raises(ViewkeeperError):
        wh.sql(f"CREATE OR REPLACE SOURCE bank USING postgres OPTIONS ({options})")
    assert len(db.sql("SELECT * FROM pg_replication_slots")) == 1
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    wh.refresh()
    same(wh, db, "accounts")


def test_changes_found_by_comparing(wh: Warehouse, db: PostgresInstance):
    db.sql("INSERT INTO shop.accounts SELECT i, 'n' || i, i FROM generate_series(100, 3000) AS i")
    declare(wh, db, capture="diff")
    same(wh, db)
    db.sql(
        "UPDATE shop.accounts SET balance = NULL WHERE id IN (100, 2000)",
        "DELETE FROM shop.accounts WHERE id = 3",
        "INSERT INTO shop.accounts VALUES (5000, NULL, 1)",
        "DELETE FROM shop.moves WHERE ctid IN (SELECT min(ctid) FROM shop.moves WHERE account = 2)",
    )
    told = str(wh.explain("bank.accounts"))
    assert "of 16 parts compared" in told
    epoch = wh.refresh()
    same(wh, db)
    assert epoch.view("lake.bank.accounts").delta_rows == 6
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    db.sql("TRUNCATE shop.moves")
    epoch = wh.refresh()
    assert epoch.view("lake.bank.accounts").strategy == "unchanged"
    same(wh, db)
    assert wh.check_sources() == {"bank": []}
    db.sql("ALTER TABLE shop.accounts DROP owner")
    with pytest.raises(ViewkeeperError) as refused:
        wh.refresh()
    assert refused.value.code == "VK-SOURCE-CHANGED"
    assert db.sql("SELECT * FROM pg_replication_slots") == []


def test_reading_whole_again_does_not_lose_the_slot(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    db.sql("INSERT INTO shop.accounts VALUES (9, 'x', 1)")
    wh.plan(policy="full")
    wh.refresh()
    same(wh, db)
    db.sql("INSERT INTO shop.accounts VALUES (10, 'x', 1)")
    epoch = wh.refresh("bank.accounts", policy="full")
    assert {view.strategy for view in epoch.views} == {"full"}
    same(wh, db)
    db.sql("INSERT INTO shop.accounts VALUES (11, 'x', 1)")
    assert {view.strategy for view in wh.refresh().views} == {"incremental", "unchanged"}
    same(wh, db)


@pytest.mark.parametrize("capture", ["log", "trigger", "diff"])
def test_a_number_that_gets_more_digits_is_not_rounded(wh: Warehouse, db: PostgresInstance, capture: str):
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture=capture)
    db.sql("ALTER TABLE shop.moves ALTER amount TYPE NUMERIC(14,4)")
    db.sql("INSERT INTO shop.moves VALUES (1, 1.2345)")
    with pytest.raises(SourceError) as raised:
        wh.refresh()
    assert raised.value.code == "VK-SOURCE-CHANGED"
    assert "amount" in raised.value.message


@pytest.mark.parametrize("capture", ["log", "trigger"])
def test_a_column_that_was_dropped_and_added_again(wh: Warehouse, db: PostgresInstance, capture: str):
    """No row event tells that all its values are others."""
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture=capture)
    db.sql("ALTER TABLE shop.accounts DROP balance", "ALTER TABLE shop.accounts ADD balance NUMERIC(12,2)")
    with pytest.raises(SourceError) as raised:
        wh.refresh()
    assert raised.value.code == "VK-SOURCE-CHANGED"
    assert "balance" in raised.value.message


def test_tables_of_a_database_are_skipped_together(wh: Warehouse, db: PostgresInstance):
    """One that cannot be read stops the others of its database: a transaction is never shown in part."""
    declare(wh, db)
    wh.spark.sql("CREATE TABLE t (a INT) USING iceberg")
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    wh.spark.sql("INSERT INTO t VALUES (1)")
    db.transaction(
        "UPDATE shop.accounts SET balance = 'NaN' WHERE id = 1",
        "INSERT INTO shop.moves VALUES (1, 7)",
    )
    epoch = wh.refresh(on_error="skip")
    assert {name.rsplit(".", 1)[-1] for name in epoch.skipped} == {"accounts", "moves"}
    assert wh.sql("SELECT count(*) FROM v").collect()[0][0] == 1
    db.sql("UPDATE shop.accounts SET balance = 17 WHERE id = 1")
    wh.refresh()
    same(wh, db)


def test_tables_of_a_database_are_repaired_together(wh: Warehouse, db: PostgresInstance):
    declare(wh, db)
    wh.repair("bank.accounts")
    same(wh, db)
    db.transaction(
        "UPDATE shop.accounts SET balance = 3 WHERE id = 1", "INSERT INTO shop.moves VALUES (1, -7)"
    )
    wh.refresh()
    same(wh, db)


@pytest.mark.parametrize("capture", ["log", "trigger", "diff"])
@pytest.mark.parametrize("harm", ["TRUNCATE shop.accounts", "ALTER TABLE shop.accounts ADD n BIGSERIAL"])
def test_a_table_that_is_emptied_or_rewritten_while_it_is_copied(
    wh: Warehouse, db: PostgresInstance, monkeypatch: pytest.MonkeyPatch, capture: str, harm: str
):
    """Neither heeds snapshots: who reads an older one finds no rows."""
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.accounts", "shop.moves"], "keeper"))
    declare(wh, db, capture=capture)
    with monkeypatch.context() as meddling:

        def harmed(begin: Callable[..., Snapshot]) -> Callable[..., Snapshot]:
            def begun(self: Any, given: Any) -> Snapshot:
                snapshot = begin(self, given)
                db.sql(harm)
                return snapshot

            return begun

        meddling.setattr(Server, "snapshot", harmed(Server.snapshot))
        meddling.setattr(Slot, "begin", harmed(Slot.begin))
        with pytest.raises(SourceError, match=r"shop\.accounts was emptied or rewritten") as raised:
            wh.refresh(policy="full")
    assert raised.value.code == "VK-SOURCE-LIMIT"
    assert wh.sql("SELECT * FROM bank.accounts").count() == 3
    wh.refresh(policy="full")
    ours = Counter(tuple(row) for row in wh.sql("SELECT * FROM bank.accounts").collect())
    assert ours == Counter(db.sql("SELECT id, owner, balance FROM shop.accounts"))


@pytest.mark.parametrize("capture", ["log", "trigger"])
@pytest.mark.parametrize("kind", ["CHAR(8)", "TIMESTAMP(0)", "VARCHAR(2)", "VARCHAR(9)", "VARCHAR"])
def test_values_that_are_rewritten_to_fit_their_type(
    wh: Warehouse, db: PostgresInstance, capture: str, kind: str
):
    """No row event tells so; a VARCHAR that may be longer leaves them as they are."""
    db.sql(
        "SET ROLE keeper",
        "CREATE TABLE shop.fits (id INT PRIMARY KEY, c CHAR(5), t TIMESTAMP, v VARCHAR(4))",
        "INSERT INTO shop.fits VALUES (1, 'abc', '2024-02-29 12:34:56.789', 'abcd')",
    )
    db.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE", install_sql(["shop.fits"], "keeper"))
    declare(wh, db, "shop.fits", capture=capture)
    column = kind[0].lower()
    db.sql(f"ALTER TABLE shop.fits ALTER {column} TYPE {kind} USING {column}::{kind}")
    if kind in ("VARCHAR(9)", "VARCHAR"):
        db.sql("INSERT INTO shop.fits VALUES (2, 'x', NULL, 'abcd')")
        wh.refresh()
        same(wh, db, "fits")
        return
    with pytest.raises(SourceError, match=f"in column {column}, which was ") as raised:
        wh.refresh()
    assert raised.value.code == "VK-SOURCE-CHANGED"
