"""What it takes to keep a join of remote tables: SWEEP against reading the tables again.

Three PostgreSQL servers with a table of a million rows each, joined by a view; one row in a thousand of a
table changes, or of all of them. Counted are the questions and the rows that come back; beside them the rows
that reading the three tables again transfers, and both in seconds. The view must be the same in the end.

    python benchmarks/remote.py --save
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import report
import viewkeeper as vk
from viewkeeper.warehouse import Warehouse

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from postgres_server import PASSWORD, PostgresInstance, prepared

TABLES = {
    "east": ("orders", "id BIGINT, customer BIGINT, amount INT", "i, i::bigint * 7919 % {n}, i % 1000"),
    "west": (
        "customers",
        "id BIGINT, city BIGINT, name TEXT",
        "i, i::bigint * 104729 % {n}, 'customer ' || i",
    ),
    "north": ("cities", "id BIGINT, name TEXT", "i, 'city ' || i"),
}
VIEW = (
    "SELECT o.id, o.amount, c.name, t.name AS city FROM east.orders o "
    "JOIN west.customers c ON c.id = o.customer JOIN north.cities t ON t.id = c.city"
)
CHANGES = {
    "east": "UPDATE orders SET amount = amount + 1 WHERE id % 1000 = {at}",
    "west": "UPDATE customers SET name = name || '!' WHERE id % 1000 = {at}",
    "north": "UPDATE cities SET name = name || '!' WHERE id % 1000 = {at}",
}


def make(server: PostgresInstance, name: str, count: int) -> None:
    table, columns, values = TABLES[name]
    server.sql(
        f"CREATE TABLE {table} ({columns})",
        f"INSERT INTO {table} SELECT {values.format(n=count)} FROM generate_series(0, {count - 1}) i",
        *(
            f"CREATE INDEX ON {table} ({column})"
            for column in ("id", "customer", "city")
            if column in columns
        ),
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"ALTER TABLE {table} OWNER TO keeper",
        f"ANALYZE {table}",
    )


def measure(
    wh: Warehouse, servers: dict[str, PostgresInstance], changed: tuple[str, ...], at: int
) -> dict[str, object]:
    for name in changed:
        servers[name].sql(CHANGES[name].format(at=at))
    started = time.monotonic()
    wh.refresh()
    swept = time.monotonic() - started
    took = wh.swept("j")
    assert took is not None and took.questions
    before = sorted(
        map(
            tuple,
            wh.sql(
                "SELECT count(*), bit_xor(xxhash64(*)), sum(CAST(xxhash64(*) AS DECIMAL(38))) FROM j"
            ).collect(),
        )
    )
    started = time.monotonic()
    wh.refresh(policy="full")
    again = time.monotonic() - started
    assert (
        sorted(
            map(
                tuple,
                wh.sql(
                    "SELECT count(*), bit_xor(xxhash64(*)), sum(CAST(xxhash64(*) AS DECIMAL(38))) FROM j"
                ).collect(),
            )
        )
        == before
    )
    read = sum(
        server.sql(f"SELECT count(*) FROM {TABLES[name][0]}")[0][0] for name, server in servers.items()
    )
    return {
        "changed": " and ".join(changed),
        "changed rows": took.changed,
        "questions": took.questions,
        "rows back": took.rows,
        "rows read again": read,
        "fewer": f"{read / max(1, took.rows + took.changed):.0f}×",
        "swept, s": round(swept, 2),
        "read again, s": round(again, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = report.arguments(parser)
    os.environ["VK_TEST_PASSWORD"] = PASSWORD
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-remote-"))
    folder.chmod(0o755)
    servers = {name: prepared(folder / name, max_wal_size="8GB", shared_buffers="512MB") for name in TABLES}
    try:
        for name, server in servers.items():
            make(server, name, given.rows)
        wh = vk.connect(given.data / f"remote-{int(time.time())}")
        for name, server in servers.items():
            wh.sql(
                f"CREATE SOURCE {name} USING postgres OPTIONS ({server.options}, remote '{TABLES[name][0]}')"
            )
        started = time.monotonic()
        wh.sql(f"CREATE MATERIALIZED VIEW j AS {VIEW}")
        print(f"filled in {time.monotonic() - started:.1f} s")
        rows = []
        for at, changed in enumerate([tuple(TABLES), ("east",), ("west",), ("north",), tuple(TABLES)]):
            rows.append(measure(wh, servers, changed, at))
            print(rows[-1])
        rows.pop(0)  # the first one warms up
        print(report.table(rows))
        if given.save:
            report.save(
                "remote", f"SWEEP over three tables of {given.rows:,} rows, one in a thousand changed", rows
            )
        wh.close()
    finally:
        for server in servers.values():
            server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
