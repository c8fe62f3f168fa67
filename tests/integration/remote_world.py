"""Three databases with a table each, a view over them, and a chronicle of what happened to them.

The chronicle is the databases' own: triggers write down what each transaction did, beside its number. So the
state after any set of transactions can be worked out without anything of ours.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from postgres_server import PostgresInstance, prepared
from viewkeeper.sources.postgres_triggers import install_sql
from viewkeeper.warehouse import Warehouse

World = dict[str, PostgresInstance]
Bag = Counter[tuple[Any, ...]]

TABLES = {"east": "orders", "west": "customers", "north": "nations"}
_COLUMNS = {
    "east": "id INT, customer INT, amount INT, note TEXT",
    "west": "id BIGINT, name TEXT, nation VARCHAR(2)",
    "north": "code TEXT, name TEXT",
}
_ROWS = {
    "east": "(1, 10, 5, 'a'), (2, 11, 7, NULL), (3, NULL, 9, 'n'), (4, 12, 1, 'small'), (5, 10, 5, 'b')",
    "west": "(10, 'ann', 'DE'), (11, 'bob', 'FR'), (12, 'eve', NULL)",
    "north": "('DE', 'Germany'), ('FR', 'France'), ('FR', 'Frankreich')",
}
VIEW = (
    "SELECT o.id, c.name, o.amount, n.name AS country, o.amount * 2 AS twice FROM east.orders o "
    "JOIN west.customers c ON c.id = o.customer JOIN north.nations n ON n.code = c.nation "
    "WHERE o.amount > 1"
)
_MOST = {"east": 60, "west": 12, "north": 6}
"""So many rows a table has at most, or the join would have millions."""
_CHRONICLE = """
CREATE TABLE s.chronicle (at BIGINT GENERATED ALWAYS AS IDENTITY, xid XID8, sign INT, row TEXT);
CREATE FUNCTION s.write_down() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO s.chronicle (xid, sign, row) VALUES (pg_current_xact_id(), -1, to_json(OLD)::text); END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO s.chronicle (xid, sign, row) VALUES (pg_current_xact_id(), 1, to_json(NEW)::text); END IF;
  RETURN NULL;
END $$;
"""


def servers(folder: Any, **settings: str) -> World:
    return {name: prepared(folder(f"pg_{name}"), **settings) for name in TABLES}


@contextmanager
def filled(world: World) -> Iterator[World]:
    """The tables as they are at first; whatever is left behind goes."""
    for name, server in world.items():
        table = f"s.{TABLES[name]}"
        server.sql("CREATE SCHEMA s AUTHORIZATION keeper")
        server.sql(
            "SET ROLE keeper",
            f"CREATE TABLE {table} ({_COLUMNS[name]})",
            f"ALTER TABLE {table} REPLICA IDENTITY FULL",
            f"INSERT INTO {table} VALUES {_ROWS[name]}",
            _CHRONICLE,
            f"CREATE TRIGGER chronicle AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW "
            "EXECUTE FUNCTION s.write_down()",
        )
    try:
        yield world
    finally:
        for server in world.values():
            clear(server)


def clear(server: PostgresInstance) -> None:
    for (slot,) in server.sql("SELECT slot_name FROM pg_replication_slots WHERE NOT active"):
        server.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    for (publication,) in server.sql("SELECT pubname FROM pg_publication"):
        server.sql(f'DROP PUBLICATION "{publication}"')
    server.sql("DROP SCHEMA IF EXISTS s CASCADE")
    server.sql("DROP SCHEMA IF EXISTS viewkeeper CASCADE")


def declare(wh: Warehouse, world: Mapping[str, PostgresInstance], **more: str) -> None:
    told = "".join(f", {key} '{value}'" for key, value in more.items())
    for name, server in world.items():
        options = f"{server.options}, remote 's.{TABLES[name]}'{told}"
        wh.sql(f"CREATE SOURCE {name} USING postgres OPTIONS ({options})")


def install_triggers(world: World) -> None:
    for name, server in world.items():
        server.sql("SET ROLE keeper", install_sql([f"s.{TABLES[name]}"], "keeper"))


def make(wh: Warehouse, world: World, capture: str = "log", clauses: str = "", **more: str) -> None:
    """The sources, and the view ``j`` over them."""
    if capture == "trigger":
        install_triggers(world)
    declare(wh, world, capture=capture, **more)
    wh.sql(f"CREATE MATERIALIZED VIEW j {clauses} AS {VIEW}")


def until(holds: Callable[[], Any], seconds: float = 20) -> None:
    """Wait; not for ever."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def now(world: World) -> dict[str, Bag]:
    """What the tables hold."""
    return {name: Counter(world[name].sql(f"SELECT * FROM s.{table}")) for name, table in TABLES.items()}


def joined(states: Mapping[str, Bag]) -> Bag:
    """The view, worked out here."""
    found: Bag = Counter()
    for (order, customer, amount, _), times in states["east"].items():
        for (key, name, nation), twice in states["west"].items():
            if customer is None or customer != key or amount is None or amount <= 1:
                continue
            for (code, country), thrice in states["north"].items():
                if code is not None and code == nation:
                    found[order, name, amount, country, amount * 2] += times * twice * thrice
    return found


def rows(wh: Warehouse, view: str = "j", epoch: int | None = None) -> Bag:
    reader = wh if epoch is None else wh.at(epoch)
    return Counter(tuple(row) for row in reader.sql(f"SELECT * FROM {view}").collect())


def transactions(wh: Warehouse, epoch: int | None = None) -> dict[str, list[int]]:
    """Those that brought the view to its state."""
    swept = wh.swept("j", epoch)
    assert swept is not None
    return swept.transactions


class Chronicle:
    """What happened since it was begun."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._states = now(world)
        self._begun = {
            name: server.sql("SELECT coalesce(max(at), 0) FROM s.chronicle")[0][0]
            for name, server in world.items()
        }
        self._left: dict[str, dict[int, list[tuple[int, tuple[Any, ...]]]]] = {name: {} for name in world}
        self._committed: dict[str, dict[int, float]] = {name: {} for name in world}
        """When each that was not taken in was committed."""

    def read(self) -> None:
        """What the databases have written down since; needs track_commit_timestamp."""
        for name, server in self._world.items():
            written = server.sql(
                "SELECT xid::text::bigint, sign, row::json, "
                "extract(epoch FROM pg_xact_commit_timestamp(xid::xid))::float FROM s.chronicle "
                f"WHERE at > {self._begun[name]} ORDER BY at"
            )
            for xid, sign, row, committed in written:
                self._left[name].setdefault(xid, []).append((sign, tuple(row.values())))
                self._committed[name][xid] = committed
            self._begun[name] = server.sql("SELECT coalesce(max(at), 0) FROM s.chronicle")[0][0]

    @property
    def unseen(self) -> int:
        """How many transactions were not taken in."""
        return sum(map(len, self._left.values()))

    def cover(self, transactions: Mapping[str, Iterable[int]], slack: float = 0.0) -> dict[str, Bag]:
        """These were taken in: the tables after that, and nothing else. They must be the next that were
        committed; ``slack``: by so many seconds those that commit side by side may not be in order."""
        for name, xids in transactions.items():
            taken = list(xids)
            times = [self._committed[name].pop(xid) for xid in taken]
            left = self._committed[name].values()
            assert not times or not left or max(times) <= min(left) + slack, f"{name}: out of order"
            for xid in taken:
                for sign, row in self._left[name].pop(xid):
                    self._states[name][row] += sign
            assert all(count >= 0 for count in self._states[name].values()), "what goes was there"
            self._states[name] += Counter()  # what has come to zero goes
        return self._states


def random_transaction(chance: random.Random, name: str) -> list[str]:
    """Some changes of one database, committed together; what is too much goes again."""
    table = f"s.{TABLES[name]}"
    trim = (
        f"DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} ORDER BY random() OFFSET {_MOST[name]})"
    )
    changes = [_change(chance, name) for _ in range(chance.randrange(1, 4))]
    if chance.random() < 0.3:  # a transaction within the transaction has a number of its own
        undo = chance.choice(["ROLLBACK TO SAVEPOINT vk_inner", "RELEASE SAVEPOINT vk_inner"])
        changes += ["SAVEPOINT vk_inner", _change(chance, name), undo]
    return [*changes, trim]


def _change(chance: random.Random, name: str) -> str:
    some = chance.randrange(10, 15)
    nation = chance.choice(["'DE'", "'FR'", "'IT'", "NULL"])
    one = f"ctid IN (SELECT ctid FROM s.{TABLES[name]} ORDER BY random() LIMIT {chance.randrange(1, 3)})"
    changes = {
        "east": [
            f"INSERT INTO s.orders VALUES ({chance.randrange(99)}, {some}, {chance.randrange(9)}, 'n')",
            f"INSERT INTO s.orders VALUES ({chance.randrange(99)}, {some}, {chance.randrange(9)}, NULL)",
            f"UPDATE s.orders SET amount = amount + 1, note = 'u' WHERE {one}",
            f"UPDATE s.orders SET customer = {chance.choice([some, 'NULL'])} WHERE {one}",
            f"DELETE FROM s.orders WHERE {one}",
        ],
        "west": [
            f"INSERT INTO s.customers VALUES ({some}, 'c{chance.randrange(9)}', {nation})",
            f"UPDATE s.customers SET nation = {nation} WHERE {one}",
            f"UPDATE s.customers SET id = {some} WHERE {one}",
            f"DELETE FROM s.customers WHERE {one} AND (SELECT count(*) FROM s.customers) > 3",
        ],
        "north": [
            f"INSERT INTO s.nations VALUES ({nation}, 'n{chance.randrange(4)}')",
            f"UPDATE s.nations SET name = name || 'x' WHERE {one}",
            f"DELETE FROM s.nations WHERE {one} AND (SELECT count(*) FROM s.nations) > 2",
        ],
    }
    return chance.choice(changes[name])
