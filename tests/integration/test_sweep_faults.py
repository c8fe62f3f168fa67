"""What goes wrong with views over remote tables: refused, waited for or told; never half."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from remote_world import TABLES, VIEW, World, declare, install_triggers, joined, make, now, rows

from viewkeeper.errors import DefinitionError, SourceError, ViewkeeperError
from viewkeeper.integrate.members import Members
from viewkeeper.integrate.remote import LoggedRemote, TriggeredRemote
from viewkeeper.integrate.transport import SweptSource
from viewkeeper.sources.postgres_server import Snapshot
from viewkeeper.warehouse import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


@pytest.mark.parametrize(("query", "told"), [
    ("SELECT o.id FROM east.orders o LEFT JOIN west.customers c ON c.id = o.customer", "LEFT OUTER"),
    ("SELECT o.id, c.id AS c FROM east.orders o CROSS JOIN west.customers c", "shares no column"),
    ("SELECT o.id, c.id AS c FROM east.orders o JOIN west.customers c ON o.id < c.id", "shares no column"),
    ("SELECT customer, COUNT(*) AS n FROM east.orders GROUP BY customer", "another one, over it"),
    ("SELECT DISTINCT customer FROM east.orders", "another one, over it"),
    ("SELECT o.id FROM east.orders o JOIN here h ON h.id = o.id", "as well, which is here"),
    ("SELECT o.id FROM east.orders o WHERE o.id IN (SELECT id FROM west.customers)", "remote"),
])  # fmt: skip
def test_views_that_cannot_be_swept(wh: Warehouse, world: World, query: str, told: str):
    declare(wh, world)
    wh.sql("CREATE TABLE here (id INT) USING iceberg")
    with pytest.raises(DefinitionError) as refused:
        wh.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert refused.value.code == "VK-SWEEP-UNSUITED"
    assert told in str(refused.value)
    assert "tables" in (refused.value.hint or "")
    for server in world.values():
        assert server.sql("SELECT count(*) FROM pg_replication_slots") == [(0,)]


def test_sources_and_clauses_that_do_not_fit(wh: Warehouse, world: World):
    east = world["east"]

    def refused(statement: str, code: str) -> ViewkeeperError:
        with pytest.raises(ViewkeeperError) as caught:
            wh.sql(statement)
        assert caught.value.code == code, caught.value
        return caught.value

    east.sql("CREATE TABLE s.keyed (id INT PRIMARY KEY)", "ALTER TABLE s.keyed OWNER TO keeper")
    error = refused(
        f"CREATE SOURCE x USING postgres OPTIONS ({east.options}, remote 's.keyed')", "VK-SOURCE-IDENTITY"
    )
    assert error.hint == 'ALTER TABLE "s"."keyed" REPLICA IDENTITY FULL'
    for options in ("remote 's.orders', capture 'diff'", "remote 's.orders WHERE (id > 1)'", "capture 'log'"):
        refused(f"CREATE SOURCE x USING postgres OPTIONS ({east.options}, {options})", "VK-SOURCE-OPTION")
    refused("CREATE SOURCE x USING sweep OPTIONS (join 'x')", "VK-SOURCE-KIND")
    wh.sql("CREATE TABLE t (id INT) USING iceberg")
    refused("CREATE MATERIALIZED VIEW v CONSISTENCY COMPLETE AS SELECT id FROM t", "VK-CONSISTENCY")
    install_triggers(world)
    declare(wh, world, capture="trigger")
    refused(f"CREATE MATERIALIZED VIEW v CONSISTENCY COMPLETE AS {VIEW}", "VK-CONSISTENCY")
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
    refused("DROP SOURCE east", "VK-VIEW-IN-USE")
    refused("DROP SOURCE `local.default.v`", "VK-UNKNOWN-SOURCE")
    refused(
        f"CREATE OR REPLACE SOURCE east USING postgres OPTIONS ({east.options}, tables 's.orders', "
        "capture 'trigger')",
        "VK-VIEW-IN-USE",
    )


def test_a_database_that_is_away_does_not_stop_the_others(wh: Warehouse, world: World):
    wh.sql("CREATE TABLE t (id INT) USING iceberg")
    wh.sql("CREATE MATERIALIZED VIEW here AS SELECT id FROM t")
    make(wh, world, rest_seconds="2")
    wh.sql("CREATE MATERIALIZED VIEW n AS SELECT country, COUNT(*) AS n FROM j GROUP BY country")
    before = rows(wh)
    world["east"].sql("UPDATE s.orders SET amount = 100")
    world["north"].stop("immediate")
    try:
        codes = []
        for at in range(4):
            wh.sql(f"INSERT INTO t VALUES ({at})")
            epoch = wh.refresh()
            assert {name.rsplit(".", 1)[-1] for name in epoch.skipped} == {"j", "n"}
            (told,) = {error.split("]")[0][1:] for error in epoch.skipped.values()}
            codes.append(told)
            assert len(rows(wh, "here")) == at + 1
        assert codes[0] == "VK-SOURCE-UNREACHABLE"
        assert codes[-1] == "VK-SOURCE-RESTING"
        assert rows(wh) == before
        with pytest.raises(SourceError):
            wh.refresh("j")
    finally:
        world["north"].start()
    time.sleep(2.1)
    assert not wh.refresh().skipped
    assert rows(wh) == joined(now(world))


def test_a_database_that_is_waited_for(wh: Warehouse, world: World):
    make(wh, world, patience="20")
    world["east"].sql("UPDATE s.orders SET amount = 100")
    world["west"].stop("immediate")
    back = threading.Timer(2.0, world["west"].start)
    back.start()
    try:
        assert not wh.refresh().skipped
    finally:
        back.join()
    assert rows(wh) == joined(now(world))


def test_limits(wh: Warehouse, world: World):
    make(wh, world, rows_per_answer="2", statement_seconds="1", rest_seconds="0")
    world["west"].sql("INSERT INTO s.customers SELECT 10, 'ten', 'DE' FROM generate_series(1, 5)")
    before = rows(wh)
    world["east"].sql("UPDATE s.orders SET amount = 60 WHERE id = 1")
    with pytest.raises(SourceError, match="more than 2 rows") as caught:
        wh.refresh()
    assert caught.value.code == "VK-SOURCE-LIMIT"
    assert rows(wh) == before
    world["west"].sql("DELETE FROM s.customers WHERE name = 'ten'")
    with world["west"].connect(autocommit=False) as connection:
        connection.execute("LOCK TABLE s.customers IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SourceError, match="longer than 1 s"):
            wh.refresh()
        assert rows(wh) == before
    wh.refresh()
    assert rows(wh) == joined(now(world))


def test_a_slot_that_is_gone_stops_the_view(wh: Warehouse, world: World):
    make(wh, world)
    before = rows(wh)
    world["east"].sql("UPDATE s.orders SET amount = 60")
    for (slot,) in world["east"].sql("SELECT slot_name FROM pg_replication_slots"):
        world["east"].sql(f"SELECT pg_drop_replication_slot('{slot}')")
    for _ in range(2):
        with pytest.raises(SourceError) as caught:
            wh.refresh()
        assert caught.value.code == "VK-SLOT-LOST"
    assert rows(wh) == before
    wh.sql(f"CREATE OR REPLACE MATERIALIZED VIEW j AS {VIEW}")
    assert rows(wh) == joined(now(world))


def test_replacing_a_view_gives_the_slots_back(wh: Warehouse, world: World):
    make(wh, world)
    (old,) = world["east"].sql("SELECT slot_name FROM pg_replication_slots")
    wh.sql(f"CREATE OR REPLACE MATERIALIZED VIEW j AS {VIEW} AND o.amount < 9")
    (new,) = world["east"].sql("SELECT slot_name FROM pg_replication_slots")
    assert new != old
    assert rows(wh) == Counter({row: n for row, n in joined(now(world)).items() if row[2] < 9})
    wh.sql("CREATE TABLE t (id INT) USING iceberg")
    wh.sql("CREATE OR REPLACE MATERIALIZED VIEW j AS SELECT id FROM t")
    for server in world.values():
        assert not server.sql("SELECT 1 FROM pg_replication_slots")
    for name in world:
        wh.sql(f"DROP SOURCE {name}")


def test_an_epoch_that_fails_loses_nothing(wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch):
    make(wh, world)
    before = rows(wh)
    world["east"].sql("UPDATE s.orders SET amount = amount + 10")
    world["north"].sql("INSERT INTO s.nations VALUES ('FR', 'La France')")
    with monkeypatch.context() as patch:

        def failing(self: SweptSource, version: object) -> None:
            raise SourceError("not now")

        patch.setattr(SweptSource, "confirm", failing)
        with pytest.raises(SourceError, match="not now"):
            wh.refresh()
    assert rows(wh) == before
    world["east"].sql("DELETE FROM s.orders WHERE id = 2")
    wh.refresh()
    assert rows(wh) == joined(now(world))


@pytest.mark.parametrize("capture", ["log", "trigger"])
@pytest.mark.parametrize("change", [
    "CREATE TABLE s.more () INHERITS (s.customers)",
    "ALTER TABLE s.customers ALTER id TYPE TEXT",
    "DROP TABLE s.customers; CREATE TABLE s.customers (id BIGINT, name TEXT, nation VARCHAR(2)); "
    "ALTER TABLE s.customers REPLICA IDENTITY FULL; ALTER TABLE s.customers OWNER TO keeper",
    "ALTER TABLE s.customers DROP nation",
])  # fmt: skip
def test_a_table_that_is_not_what_it_was_stops_the_view(
    wh: Warehouse, world: World, capture: str, change: str
):
    make(wh, world, capture)
    before = rows(wh)
    world["west"].sql(change)
    world["east"].sql("UPDATE s.orders SET amount = amount + 1")
    for _ in range(2):
        with pytest.raises(SourceError) as caught:
            wh.refresh()
        assert caught.value.code in ("VK-SOURCE-CHANGED", "VK-SLOT-LOST"), caught.value
    assert rows(wh) == before


def test_a_source_that_is_declared_anew_must_have_the_same_tables(wh: Warehouse, world: World):
    make(wh, world)
    west = world["west"]
    again = f"CREATE OR REPLACE SOURCE west USING postgres OPTIONS ({west.options}, remote 's.customers'%s)"
    wh.sql(again % ", patience '1'")
    west.sql("UPDATE s.customers SET name = 'ANN' WHERE id = 10")
    wh.refresh()
    assert rows(wh) == joined(now(world))
    west.sql("ALTER TABLE s.customers ALTER id TYPE NUMERIC USING id * 100")
    with pytest.raises(DefinitionError) as refused:
        wh.sql(again % "")
    assert refused.value.code == "VK-VIEW-IN-USE"
    wh.sql("DROP MATERIALIZED VIEW j")
    wh.sql(again % "")


def test_joins_of_one_database_by_two_names_and_without_data(wh: Warehouse, world: World):
    declare(wh, world)
    east = world["east"]
    wh.sql(f"CREATE SOURCE twin USING postgres OPTIONS ({east.options}, remote 's.orders')")
    elsewhere = east.options.replace("127.0.0.1", "localhost")
    wh.sql(f"CREATE SOURCE alias USING postgres OPTIONS ({elsewhere}, remote 's.orders')")
    for statement in (
        "CREATE MATERIALIZED VIEW v AS SELECT a.id FROM east.orders a JOIN twin.orders b ON a.id = b.id",
        "CREATE MATERIALIZED VIEW v AS SELECT a.id FROM east.orders a JOIN alias.orders b ON a.id = b.id",
        f"CREATE MATERIALIZED VIEW v WITH NO DATA AS {VIEW}",
    ):
        with pytest.raises(DefinitionError) as refused:
            wh.sql(statement)
        assert refused.value.code == "VK-SWEEP-UNSUITED"
        assert not east.sql("SELECT 1 FROM pg_replication_slots")


def test_a_view_of_other_databases_gives_back_what_the_first_had(wh: Warehouse, world: World):
    make(wh, world)
    wh.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW j AS SELECT c.name, n.name AS country FROM west.customers c "
        "JOIN north.nations n ON n.code = c.nation WHERE c.name <> '50%'"
    )
    assert not world["east"].sql("SELECT 1 FROM pg_replication_slots")
    assert not world["east"].sql("SELECT 1 FROM pg_publication")
    world["north"].sql("INSERT INTO s.nations VALUES ('DE', 'Allemagne')")
    wh.refresh()
    assert ("ann", "Allemagne") in rows(wh)
    wh.sql("ALTER MATERIALIZED VIEW j SET TBLPROPERTIES ('viewkeeper.representation' = 'cnt')")
    world["north"].sql("INSERT INTO s.nations VALUES ('DE', 'Allemagne')")
    wh.refresh()
    assert rows(wh)["ann", "Allemagne"] == 2
    wh.repair("j")
    assert rows(wh)["ann", "Allemagne"] == 2


def test_a_view_can_be_dropped_while_a_database_is_away(wh: Warehouse, world: World):
    make(wh, world)
    world["east"].stop("immediate")
    try:
        with pytest.raises(SourceError, match="is left there") as caught:
            wh.sql("DROP MATERIALIZED VIEW j")
        assert "pg_drop_replication_slot" in (caught.value.hint or "")
    finally:
        world["east"].start()
    assert wh.views() == []
    assert not world["west"].sql("SELECT 1 FROM pg_replication_slots")


def test_an_idle_database_does_not_hold_its_log_back(wh: Warehouse, world: World):
    make(wh, world)
    north = world["north"]
    place = "SELECT confirmed_flush_lsn FROM pg_replication_slots"
    before = north.sql(place)
    for at in range(2):
        north.sql("CREATE TABLE IF NOT EXISTS s.else_where (id INT)", "INSERT INTO s.else_where VALUES (1)")
        world["east"].sql(f"UPDATE s.orders SET amount = {50 + at}")
        wh.refresh()
    assert north.sql(place) > before
    north.sql("INSERT INTO s.nations VALUES ('DE', 'after')")
    wh.refresh()
    assert rows(wh) == joined(now(world))


def test_a_reader_that_came_back_further_on_is_noticed(wh: Warehouse, world: World):
    make(wh, world, "trigger")
    before = rows(wh)
    east = world["east"]
    east.sql("UPDATE s.orders SET amount = 70")
    east.sql("DELETE FROM viewkeeper.readers", "DELETE FROM viewkeeper.changes")
    wh.plan(policy="full")
    with pytest.raises(SourceError) as caught:
        wh.refresh()
    assert caught.value.code == "VK-SLOT-LOST"
    assert rows(wh) == before


def test_rows_that_a_policy_hides_are_an_error(wh: Warehouse, world: World):
    make(wh, world)
    before = rows(wh)
    world["west"].sql(
        "CREATE POLICY hides ON s.customers USING (id > 10)",
        "ALTER TABLE s.customers ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE s.customers FORCE ROW LEVEL SECURITY",
    )
    world["east"].sql("UPDATE s.orders SET amount = 70")
    with pytest.raises(SourceError, match="row-level security"):
        wh.refresh()
    assert rows(wh) == before


@pytest.mark.parametrize("capture", ["log", "trigger"])
@pytest.mark.parametrize("harm", ["TRUNCATE s.customers", "ALTER TABLE s.customers ADD n BIGSERIAL"])
def test_a_table_that_is_emptied_or_rewritten_while_it_is_copied(
    wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch, capture: str, harm: str
):
    """Neither heeds snapshots: who reads an older one finds no rows."""
    make(wh, world, capture)
    before = rows(wh)
    with monkeypatch.context() as meddling:
        for sort in (LoggedRemote, TriggeredRemote):

            def harmed(self: Any, begin: Callable[[Any], Snapshot] = sort.begin) -> Snapshot:
                snapshot = begin(self)
                if self.server.source == "west":
                    world["west"].sql(harm)
                return snapshot

            meddling.setattr(sort, "begin", harmed)
        with pytest.raises(SourceError, match=r"s\.customers was emptied or rewritten") as caught:
            wh.refresh(policy="full")
    assert caught.value.code == "VK-SOURCE-LIMIT"
    assert rows(wh) == before
    wh.refresh(policy="full")
    states = {**now(world), "west": Counter(world["west"].sql("SELECT id, name, nation FROM s.customers"))}
    assert rows(wh) == joined(states)


def test_a_table_that_had_another_name_for_a_while(wh: Warehouse, world: World):
    make(wh, world)
    before = rows(wh)
    world["east"].sql(
        "ALTER TABLE s.orders RENAME TO others",
        "DELETE FROM s.others WHERE id = 1",
        "ALTER TABLE s.others RENAME TO orders",
    )
    for _ in range(2):
        with pytest.raises(SourceError, match="another name") as caught:
            wh.refresh()
        assert caught.value.code == "VK-SOURCE-CHANGED"
    assert rows(wh) == before
    wh.sql(f"CREATE OR REPLACE MATERIALIZED VIEW j AS {VIEW}")
    assert rows(wh) == joined(now(world))


def test_tables_of_one_name_in_two_databases(wh: Warehouse, world: World):
    """What a transaction changed is told by its database, and not by the name alone."""
    east, west = world["east"], world["west"]
    for server in (east, west):
        server.sql(
            "SET ROLE keeper",
            "CREATE TABLE s.twins (id INT, of TEXT)",
            "ALTER TABLE s.twins REPLICA IDENTITY FULL",
            "INSERT INTO s.twins VALUES (1, 'one'), (2, 'two')",
        )
    for name, server in (("here", east), ("there", west)):
        wh.sql(f"CREATE SOURCE {name} USING postgres OPTIONS ({server.options}, remote 's.twins')")
    wh.sql(
        "CREATE MATERIALIZED VIEW twins AS SELECT a.id, a.of, b.of AS other FROM here.twins a "
        "JOIN there.twins b ON a.id = b.id"
    )
    east.sql("UPDATE s.twins SET of = 'ONE' WHERE id = 1")
    west.sql("INSERT INTO s.twins VALUES (2, 'again')")
    wh.refresh()
    assert rows(wh, "twins") == Counter([(1, "ONE", "one"), (2, "two", "two"), (2, "two", "again")])


def test_all_that_captured_changes_goes_with_a_view(
    wh: Warehouse, world: World, monkeypatch: pytest.MonkeyPatch
):
    """Also what could not be given back when the view was replaced."""
    make(wh, world)

    def failing(self: Members, slot: str, sources: object) -> None:
        raise SourceError("not now")

    with monkeypatch.context() as meddling:
        meddling.setattr(Members, "release", failing)
        wh.sql(f"CREATE OR REPLACE MATERIALIZED VIEW j AS {VIEW} AND o.amount < 9")
    assert len(world["east"].sql("SELECT 1 FROM pg_replication_slots")) == 2
    wh.sql("DROP MATERIALIZED VIEW j")
    for server in world.values():
        assert not server.sql("SELECT 1 FROM pg_replication_slots")
        assert not server.sql("SELECT 1 FROM pg_publication")


def test_a_publication_that_tells_of_other_tables_too(wh: Warehouse, world: World):
    """They bring no epochs, and do not hold back the log."""
    east, west, north = world.values()
    for name, server in world.items():
        server.sql("CREATE TABLE s.other (id INT)", "ALTER TABLE s.other REPLICA IDENTITY FULL")
        server.sql(f"CREATE PUBLICATION shared FOR TABLE s.{TABLES[name]}, s.other")
    make(wh, world, clauses="CONSISTENCY COMPLETE", publication="shared")
    place = "SELECT confirmed_flush_lsn FROM pg_replication_slots"
    before = north.sql(place)
    for at in range(2):
        north.sql(f"INSERT INTO s.other VALUES ({at})")
        east.sql(f"UPDATE s.orders SET amount = {50 + at} WHERE id = 1", f"INSERT INTO s.other VALUES ({at})")
        west.sql(f"INSERT INTO s.other VALUES ({at})")
        epoch = wh.refresh()
        assert {view.strategy for view in epoch.views} == {"incremental"}
        assert rows(wh) == joined(now(world))
    assert north.sql(place) > before
    assert {view.strategy for view in wh.refresh().views} == {"unchanged"}
