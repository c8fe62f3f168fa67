"""Three databases at full speed, joined by a view that is swept all the while; servers die on the way.

Every published epoch is compared with the join of states that the databases had, worked out from what they
themselves wrote down of each transaction.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from remote_world import (
    VIEW,
    Chronicle,
    World,
    declare,
    filled,
    joined,
    now,
    random_transaction,
    rows,
    servers,
    transactions,
)

from postgres_server import PASSWORD
from viewkeeper.errors import SourceError
from viewkeeper.warehouse import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

AWAY = {"VK-SOURCE-UNREACHABLE", "VK-SOURCE-REFUSED", "VK-SOURCE-LIMIT"}


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
    instances = servers(tmp_path_factory.mktemp, track_commit_timestamp="on", max_connections="30")
    with filled(instances):
        yield instances
    for each in instances.values():
        each.stop("immediate")


class Writer(threading.Thread):
    """Commits one random transaction after the other; comes back when its server does."""

    def __init__(self, world: World, name: str, seed: int, pause: float = 0.0) -> None:
        super().__init__(name=f"writer of {name}", daemon=True)
        self._server = world[name]
        self._of = name
        self._chance = random.Random(seed)
        self._pause = pause
        self._stop_asked = threading.Event()
        self.committed = 0
        self.slowest = 0.0

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                with self._server.connect(autocommit=False) as connection:
                    while not self._stop_asked.is_set():
                        started = time.monotonic()
                        for statement in random_transaction(self._chance, self._of):
                            connection.execute(statement)
                        connection.commit()
                        self.committed += 1
                        self.slowest = max(self.slowest, time.monotonic() - started)
                        time.sleep(self._pause)
            except psycopg.Error:
                time.sleep(0.2)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(timeout=30)
        assert not self.is_alive()


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("seconds", "deaths"), [(12, 1), pytest.param(60, 5, marks=pytest.mark.long)], ids=["short", "minute"]
)
def test_databases_at_full_speed(wh: Warehouse, world: World, seconds: int, deaths: int):
    declare(wh, world, rest_seconds="0", rows_per_answer="5000000")
    wh.sql(f"CREATE MATERIALIZED VIEW j AS {VIEW} AND o.id % 7 = 0")
    chronicle = Chronicle(world)
    first = wh.history(limit=1)[0].id
    writers = [Writer(world, name, seed) for seed, name in enumerate(sorted(world) * 2)]
    errors = 0
    begun = time.monotonic()
    for writer in writers:
        writer.start()
    try:
        died = 0
        while (passed := time.monotonic() - begun) < seconds or died < deaths:
            if died < deaths and passed > (died + 0.5) * seconds / deaths:
                victim = world[sorted(world)[died % 3]]
                threading.Timer(0.3, victim.restart).start()  # somewhere in the next refresh
                died += 1
            try:
                wh.refresh()
            except SourceError as error:
                assert error.code in AWAY, error
                errors += 1
                time.sleep(0.5)
    finally:
        for writer in writers:
            writer.stop()
    time.sleep(1)
    wh.refresh()
    epochs = [epoch.id for epoch in reversed(wh.history()) if epoch.id > first]
    taken = 0
    chronicle.read()
    for epoch in epochs:
        covered = transactions(wh, epoch)
        taken += sum(map(len, covered.values()))
        expected = {
            row: n for row, n in joined(chronicle.cover(covered, slack=0.1)).items() if row[0] % 7 == 0
        }
        assert dict(rows(wh, epoch=epoch)) == expected, epoch
    committed = sum(writer.committed for writer in writers)
    print(f"{len(epochs)} epochs, {taken:,} transactions taken in, {committed:,} committed, {errors} errors")
    assert len(epochs) >= 2
    assert chronicle.unseen == 0
    assert {row: n for row, n in joined(now(world)).items() if row[0] % 7 == 0} == dict(rows(wh))
    assert max(writer.slowest for writer in writers) < 20, "a writer waited"


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("count", [9, pytest.param(300, marks=pytest.mark.long)])
def test_every_transaction_of_paced_writers_has_its_epoch(wh: Warehouse, world: World, count: int):
    declare(wh, world)
    wh.sql(f"CREATE MATERIALIZED VIEW j CONSISTENCY COMPLETE AS {VIEW}")
    chronicle = Chronicle(world)
    first = wh.history(limit=1)[0].id
    chance = random.Random(count)
    written = 0

    def write() -> None:
        nonlocal written
        for _ in range(count):
            name = chance.choice(sorted(world))
            # Always a change of some row, so that there is something to be told.
            change = {
                "east": "INSERT INTO s.orders VALUES (1, 10, 3, 'paced')",
                "west": "INSERT INTO s.customers VALUES (10, 'paced', 'DE')",
                "north": "INSERT INTO s.nations VALUES ('IT', 'paced')",
            }[name]
            world[name].transaction(change, *random_transaction(chance, name))
            written += 1
            time.sleep(0.1)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        wh.refresh()
    writer.join()
    wh.refresh()
    epochs = [epoch.id for epoch in reversed(wh.history()) if epoch.id > first]
    assert len(epochs) == written == count
    chronicle.read()
    for epoch in epochs:
        covered = transactions(wh, epoch)
        assert sum(map(len, covered.values())) == 1
        assert rows(wh, epoch=epoch) == joined(chronicle.cover(covered)), epoch
    assert rows(wh) == joined(now(world))
