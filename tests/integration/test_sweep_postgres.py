"""Views over remote tables of real PostgreSQL servers: swept, and always a state that the databases had."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from remote_world import (
    Chronicle,
    World,
    declare,
    install_triggers,
    joined,
    make,
    now,
    random_transaction,
    rows,
    transactions,
    until,
)

from postgres_server import PASSWORD, PostgresInstance
from viewkeeper.define.sources import PostgresOptions
from viewkeeper.errors import RefreshError, SourceError
from viewkeeper.integrate import questions
from viewkeeper.integrate.members import PartOfShelf
from viewkeeper.integrate.questions import Question, answering
from viewkeeper.integrate.remote import LoggedRemote, TriggeredRemote
from viewkeeper.sources.horizons import Horizons
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server
from viewkeeper.sources.postgres_tables import pinned_table
from viewkeeper.warehouse import Warehouse


class Shelf(dict[str, Any]):
    """What a source remembers."""

    load = dict.get
    save = dict.__setitem__

    def forget_others(self, version: str) -> None: ...


pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


@pytest.mark.parametrize("capture", ["log", "trigger"])
def test_a_view_over_three_databases(wh: Warehouse, world: World, capture: str):
    make(wh, world, capture)
    assert rows(wh) == joined(now(world))
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
    (source,) = [each for each in wh.sources() if each.kind == "sweep"]
    assert source.lag_transactions == 5
    epoch = wh.refresh()
    assert rows(wh) == joined(now(world))
    assert {view.strategy for view in epoch.views} == {"incremental"}
    assert all(check.ok for check in wh.verify("j", "n"))
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    taken = transactions(wh)
    wh.sql("CREATE MATERIALIZED VIEW other AS SELECT name FROM j")
    assert transactions(wh) == taken, "another epoch does not make it forget"
    wh.sql("DROP MATERIALIZED VIEW other")
    world["west"].sql("DELETE FROM s.customers")
    with pytest.raises(RefreshError, match="moved on"):
        wh.verify("j")
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


@pytest.mark.parametrize("capture", ["log", "trigger"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 9))])
def test_every_question_is_interfered_with(
    wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch, capture: str, seed: int
):
    """Before and after each answer something is committed, in whichever database."""
    chance = random.Random(seed)

    def interfere() -> None:
        name = chance.choice(sorted(world))
        world[name].transaction(*random_transaction(chance, name))

    make(wh, world, capture)
    chronicle = Chronicle(world)
    for sort in (LoggedRemote, TriggeredRemote):

        def ask(self: Any, question: Question, _ask: Callable[..., Any] = sort.ask) -> Any:
            interfere()
            reply = _ask(self, question)
            interfere()
            return reply

        monkeypatch.setattr(sort, "ask", ask)
    for _ in range(5):
        for _ in range(3):
            interfere()
        wh.refresh()
        chronicle.read()
        states = chronicle.cover(transactions(wh), slack=0.0 if capture == "log" else 3600.0)
        assert rows(wh) == joined(states)
    monkeypatch.undo()
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    wh.refresh()
    assert rows(wh) == joined(now(world))


def test_what_is_in_the_log_before_it_is_seen(wh: Warehouse, world: World):
    """A transaction that waits for a standby is committed, and told by the log, and nobody sees it yet."""
    make(wh, world)
    east = world["east"]
    before = now(world)
    east.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    stuck = threading.Thread(target=lambda: east.sql("INSERT INTO s.orders VALUES (50, 10, 50, 'stuck')"))
    try:
        time.sleep(0.5)
        stuck.start()
        until(lambda: east.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
        # Committed after it, and seen at once: what is seen is no beginning of the log.
        east.sql("SET synchronous_commit = local", "INSERT INTO s.orders VALUES (51, 10, 51, 'seen')")
        world["west"].sql("UPDATE s.customers SET name = 'ANN' WHERE id = 10")
        wh.refresh()
        shown = {**now(world), "east": before["east"]}
        assert rows(wh) == joined(shown)
        assert any(row[1] == "ANN" for row in rows(wh))
        assert not any(row[2] in (50, 51) for row in rows(wh))
    finally:
        east.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        stuck.join(timeout=20)
    wh.refresh()
    assert rows(wh) == joined(now(world))
    assert {row[2] for row in rows(wh)} >= {50, 51}


def test_nothing_that_is_not_seen_yet_is_let_go(wh: Warehouse, world: World):
    """A slot that nothing is taken from moves on, but not past what waits to be seen."""
    make(wh, world)
    east = world["east"]
    east.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    stuck = threading.Thread(target=lambda: east.sql("INSERT INTO s.orders VALUES (50, 10, 50, 'stuck')"))
    try:
        time.sleep(0.5)
        stuck.start()
        until(lambda: east.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
        assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
    finally:
        east.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        stuck.join(timeout=20)
    wh.refresh()
    assert rows(wh) == joined(now(world))
    assert any(row[2] == 50 for row in rows(wh))


def test_what_is_prepared_is_taken_in_when_it_is_committed(wh: Warehouse, world: World):
    make(wh, world)
    east = world["east"]
    east.sql("BEGIN", "UPDATE s.orders SET amount = 60 WHERE id = 1", "PREPARE TRANSACTION 'p'")
    world["west"].sql("UPDATE s.customers SET name = 'ANN' WHERE id = 10")
    wh.refresh()
    assert rows(wh) == joined(now(world))
    east.sql("INSERT INTO s.orders VALUES (51, 10, 51, 'after')")
    east.sql("COMMIT PREPARED 'p'")
    wh.refresh()
    assert rows(wh) == joined(now(world))
    assert {row[2] for row in rows(wh)} >= {60, 51}


def test_what_is_committed_asynchronously(wh: Warehouse, world: World):
    """It is seen before its log is on disk."""
    make(wh, world)
    for server in world.values():
        server.sql("ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()")
    try:
        chance = random.Random(0)
        for _ in range(3):
            for name, server in world.items():
                for _ in range(4):
                    server.transaction(*random_transaction(chance, name))
            wh.refresh()
        until(lambda: wh.refresh() and rows(wh) == joined(now(world)))
    finally:
        for server in world.values():
            server.sql("ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()")


def test_a_table_that_is_emptied_is_read_anew(wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch):
    make(wh, world)
    world["west"].sql("TRUNCATE s.customers")
    world["west"].sql("INSERT INTO s.customers VALUES (11, 'again', 'DE')")
    epoch = wh.refresh()
    assert rows(wh) == joined(now(world))
    assert {view.strategy for view in epoch.views} == {"full"}
    world["east"].sql("UPDATE s.orders SET amount = amount + 1")
    ask = LoggedRemote.ask

    def emptying(self: LoggedRemote, question: Question) -> Any:
        world["north"].sql("TRUNCATE s.nations")
        return ask(self, question)

    monkeypatch.setattr(LoggedRemote, "ask", emptying)
    before = rows(wh)
    with pytest.raises(SourceError, match="emptied") as caught:
        wh.refresh()
    assert caught.value.code == "VK-SOURCE-LIMIT"
    assert rows(wh) == before
    monkeypatch.setattr(LoggedRemote, "ask", ask)
    wh.refresh()
    assert rows(wh) == joined(now(world)) == Counter()


def test_every_transaction_has_its_epoch(wh: Warehouse, world: World):
    make(wh, world, clauses="CONSISTENCY COMPLETE")
    (status,) = wh.status()
    assert status.consistency == "complete"
    assert status.reads == ("east.orders", "west.customers", "north.nations")
    chronicle = Chronicle(world)
    chance = random.Random(4)
    for at in range(6):
        name = sorted(world)[at % 3]
        world[name].transaction(*random_transaction(chance, name))
    # A transaction that changes nothing in the end has an epoch, too.
    world["east"].transaction(
        "INSERT INTO s.orders VALUES (0, 1, 2, '')", "DELETE FROM s.orders WHERE id = 0"
    )
    first = wh.history(limit=1)[0].id
    wh.refresh()
    epochs = [epoch.id for epoch in reversed(wh.history()) if epoch.id > first]
    chronicle.read()
    for epoch in epochs:
        covered = transactions(wh, epoch)
        assert sum(map(len, covered.values())) == 1
        assert rows(wh, epoch=epoch) == joined(chronicle.cover(covered)), epoch
    assert chronicle.unseen == 0
    assert rows(wh) == joined(now(world))


@pytest.mark.parametrize("may_make_tables", [True, False])
def test_many_keys(wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch, may_make_tables: bool):
    monkeypatch.setattr(questions, "KEYS_IN_ARRAYS", 3)
    monkeypatch.setattr(questions, "_KEYS_AT_ONCE", 7)
    make(wh, world)
    grant = "GRANT TEMP ON DATABASE postgres TO PUBLIC"
    if not may_make_tables:
        for server in world.values():
            server.sql("REVOKE TEMP ON DATABASE postgres FROM PUBLIC")
    try:
        world["west"].sql("INSERT INTO s.customers SELECT i, 'c' || i, 'DE' FROM generate_series(20, 60) i")
        world["east"].sql("INSERT INTO s.orders SELECT i, i, 2 + i, 'x' FROM generate_series(1, 50) i")
        wh.refresh()
        assert rows(wh) == joined(now(world))
    finally:
        for server in world.values():
            server.sql(grant)


def test_a_table_joined_with_itself_and_odd_types(wh: Warehouse, world: World):
    east = world["east"]
    east.sql(
        "CREATE TABLE s.people (id UUID, boss UUID, born DATE, pay NUMERIC(8,2), tags TEXT[], raw BYTEA, "
        "good BOOLEAN, seen TIMESTAMPTZ)",
        "CREATE TABLE s.days (day DATE, name VARCHAR(9))",
        "ALTER TABLE s.people OWNER TO keeper",
        "ALTER TABLE s.days OWNER TO keeper",
        "ALTER TABLE s.people REPLICA IDENTITY FULL",
        "ALTER TABLE s.days REPLICA IDENTITY FULL",
    )
    one, two = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
    east.sql(
        f"INSERT INTO s.people VALUES ('{one}', NULL, '2024-02-29', 1.50, '{{a,NULL}}', '\\x00ff', true, "
        f"'2024-01-01 12:00+02'), ('{two}', '{one}', '2024-03-01', NULL, NULL, NULL, NULL, NULL)",
        "INSERT INTO s.days VALUES ('2024-02-29', 'leap'), ('2024-03-01', 'spring')",
    )
    wh.sql(f"CREATE SOURCE hr USING postgres OPTIONS ({east.options}, remote 's.people, s.days')")
    wh.sql(
        "CREATE MATERIALIZED VIEW staff AS SELECT p.id, b.id AS boss, b.pay, b.tags, b.raw, b.good, b.seen, "
        "d.name FROM hr.people p JOIN hr.people b ON p.boss = b.id JOIN hr.days d ON d.day = b.born "
        "WHERE b.good"
    )
    (row,) = wh.sql("SELECT * FROM staff").collect()
    first = tuple(row)
    assert row["tags"] == ["a", None]
    assert bytes(row["raw"]) == b"\x00\xff"
    east.transaction(
        f"UPDATE s.people SET boss = '{one}'", "INSERT INTO s.days VALUES ('2024-02-29', 'twice')"
    )
    epoch = wh.refresh()
    assert {view.strategy for view in epoch.views} == {"incremental"}
    found = [tuple(row) for row in wh.sql("SELECT * FROM staff").collect()]
    assert len(found) == 4
    assert first in found
    assert all(check.ok for check in wh.verify("staff"))
    east.sql("UPDATE s.people SET good = false, tags = '{}'")
    wh.refresh()
    assert wh.sql("SELECT * FROM staff").count() == 0


def test_views_of_one_epoch_show_one_state(wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch):
    """Whatever is committed while the first of them is read."""
    declare(wh, world)
    east = world["east"]
    wh.sql(f"CREATE SOURCE copy USING postgres OPTIONS ({east.options}, tables 's.orders')")
    wh.sql("CREATE MATERIALIZED VIEW a AS SELECT o.id, o.amount FROM east.orders o")
    wh.sql("CREATE MATERIALIZED VIEW b AS SELECT o.id, o.amount, o.note FROM east.orders o")
    start = LoggedRemote.start

    def interfered(self: LoggedRemote, position: str, horizon: Any) -> Any:
        found = start(self, position, horizon)
        east.sql("INSERT INTO s.orders VALUES (77, 10, 77, 'late')")
        return found

    monkeypatch.setattr(LoggedRemote, "start", interfered)
    for _ in range(3):
        east.sql("INSERT INTO s.orders VALUES (70, 10, 70, 'early')")
        wh.refresh()
        counts = {wh.sql(f"SELECT * FROM {view}").count() for view in ("a", "b", "copy.orders")}
        assert len(counts) == 1, counts


def server_of(instance: PostgresInstance, tables: str, **more: Any) -> Server:
    given = {"host": "127.0.0.1", "port": instance.port, "database": "postgres", "user": "postgres"}
    return Server("east", PostgresOptions.model_validate({**given, **more, "tables": tables}))


def test_a_column_that_goes_while_a_view_is_swept_by_triggers(world: World):
    """Triggers write values by the place of their columns."""
    east = world["east"]
    server = server_of(east, "s.orders (id, note)", capture="trigger")
    install_triggers({"east": east})
    (table,) = (pinned_table(each) for each in server.tables())
    remote = TriggeredRemote(server, "vk_reader", [table])
    snapshot = remote.begin()
    snapshot.close()
    assert remote.start(snapshot.position, Horizons().of(server)) == []
    east.sql("ALTER TABLE s.orders DROP amount", "ALTER TABLE s.orders ADD more TEXT")
    east.sql("INSERT INTO s.orders VALUES (9, 10, 'a note', 'more')")
    with pytest.raises(SourceError, match="are not what they were") as caught:
        remote.ask(Question(table, ("id", "note"), ("id",), ("bigint",), [("9",)]))
    assert caught.value.code == "VK-SOURCE-CHANGED"


def test_a_copy_waits_for_what_is_at_work_and_not_for_ever(world: World):
    east = world["east"]
    server = server_of(east, "s.orders", statement_seconds=1)
    (table,) = (pinned_table(each) for each in server.tables())
    remote = LoggedRemote(server, "vk_reader", [table], PartOfShelf(Shelf(), "east"))
    with east.connect(autocommit=False) as long, ThreadPoolExecutor(1) as pool:
        long.execute("SELECT pg_current_xact_id()")
        beginning = pool.submit(remote.begin)
        done, _ = wait([beginning], timeout=10)
        long.rollback()
    assert done, "it waited for as long as the transaction took"
    error = beginning.exception()
    assert isinstance(error, SourceError)
    assert (error.code, "at work for longer than 1 s" in error.message) == ("VK-SOURCE-LIMIT", True)
    assert not east.sql("SELECT 1 FROM pg_replication_slots")
    remote.begin().close()


def test_a_copy_waits_for_what_is_not_seen_yet(world: World):
    """The snapshot of a slot has what waits for a standby, though it be the newest transaction of all."""
    east = world["east"]
    server = server_of(east, "s.orders", statement_seconds=5)
    (table,) = (pinned_table(each) for each in server.tables())
    remote = LoggedRemote(server, "vk_reader", [table], PartOfShelf(Shelf(), "east"))
    begun: list[Any] = []

    def begin() -> None:
        try:
            begun.append(remote.begin())
        except SourceError as error:
            begun.append(error)

    beginning = threading.Thread(target=begin)
    stuck = threading.Thread(target=lambda: east.sql("INSERT INTO s.orders VALUES (50, 10, 50, 'stuck')"))
    first, second = (east.connect(autocommit=False) for _ in range(2))
    try:
        # A slot waits for whoever is at work when it is begun, and then for whoever is at work after that.
        (one,) = first.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or ()
        beginning.start()
        until(lambda: blocked(east, one))
        (two,) = second.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or ()
        first.rollback()
        until(lambda: blocked(east, two))
        east.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        time.sleep(0.5)
        stuck.start()
        until(lambda: east.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
        second.rollback()
        beginning.join(timeout=20)
        ((seen,),) = east.sql("SELECT count(*) FROM s.orders WHERE id = 50")
        assert seen == 0
        (error,) = begun
        assert isinstance(error, SourceError)
        assert "waits for a standby" in error.message
    finally:
        first.close()
        second.close()
        east.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        stuck.join(timeout=20)
        beginning.join(timeout=20)


def blocked(server: PostgresInstance, xid: int) -> list[Any]:
    """Whoever waits for a transaction to end."""
    return server.sql(
        f"SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND transactionid = '{xid}'"
    )


def test_the_server_that_answers_is_the_one_whose_log_is_read(
    world: World, tmp_path_factory: pytest.TempPathFactory
):
    east = world["east"]
    (oid,) = east.sql("SELECT 's.orders'::regclass::oid::bigint")[0]
    table = PinnedTable("s", "orders", (("id", "integer", "int", 23),), (), oid, "f")
    question = Question(table, ("id",), ("id",), ("bigint",), [("1",)])

    def refused(instance: PostgresInstance, primary: str) -> None:
        with (
            pytest.raises(SourceError, match="not the server any more"),
            answering(server_of(instance, "s.orders"), primary, question),
        ):
            raise AssertionError("never reached")

    server = server_of(east, "s.orders")
    primary = questions.primary_of(server)
    with answering(server, primary, question) as (_, visible, found):
        assert list(found) == [("1",)]
        assert visible.sees(3)
    refused(east, "7/00000001")

    standby = PostgresInstance.beside(east, tmp_path_factory.mktemp("standby"))
    try:
        standby.start()
        refused(standby, primary)
        standby.promote()
        until(lambda: standby.sql("SELECT 1 WHERE NOT pg_is_in_recovery()"))
        refused(standby, primary)
    finally:
        standby.stop("immediate")


def test_what_is_told_of_a_view_over_remote_tables(wh: Warehouse, world: World, tmp_path: Path):
    make(wh, world)
    world["east"].sql("UPDATE s.orders SET amount = 8 WHERE id = 1")
    explained = str(wh.explain("j"))
    assert "recommended: " in explained
    assert "swept: transactions 1 of east" in explained
    assert "recommended: " in str(wh.plan())
    wh.refresh()
    assert "as in the last 1" in str(wh.explain("j"))
    told = [explained, str(wh.plan()), str(wh.history()), str(wh.status()), str(wh.sources())]
    assert not any(PASSWORD in text for text in told)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert PASSWORD.encode() not in file.read_bytes(), file


def test_the_page_works_as_written(wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EAST_PASSWORD", PASSWORD)
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    page = (Path(__file__).parents[2] / "docs" / "remote.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    for name, database in (("east", "shop"), ("west", "crm")):
        told = f"'{name}.example', database '{database}'"
        assert told in script
        here = f"'127.0.0.1', port '{world[name].port}', database 'postgres'"
        script = script.replace(told, here)
    for statement in filter(str.strip, script.split(";\n")):
        wh.sql(statement)
    assert {row["name"] for row in wh.sql("SELECT * FROM by_customer").collect()} == {"ann", "bob"}
    world["west"].sql("UPDATE s.customers SET name = 'zoe' WHERE id = 10")
    wh.refresh()
    assert {row["name"] for row in wh.sql("SELECT * FROM by_customer").collect()} == {"zoe", "bob"}
