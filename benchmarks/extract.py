"""What extracting changes costs: comparing a delivery of files, and following a database's log.

*Files*: a delivery of 5 million rows, 1 % of them changed, is compared with what was seen; beside it Spark's
``EXCEPT ALL`` both ways. Every mode (keyed and bag, sort-merge and hash) over every kind of delivery is
checked to be the same change.

*PostgreSQL*: transactions are absorbed from the log, epoch after epoch, until none are left; beside it a
plain ``COPY`` of as many rows.

    python benchmarks/extract.py --save
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import report
import viewkeeper as vk
from viewkeeper.sources.differential import Differential, Form

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

COLUMNS = (
    ("id", "bigint"), ("customer", "int"), ("day", "date"), ("status", "string"), ("amount", "decimal(12,2)"),
    ("note", "string"),
)  # fmt: skip
NAMES = ", ".join(name for name, _ in COLUMNS)
DELIVERIES = {
    # A row changes where this is true; one in a hundred, in all.
    "insert-only": (0.01, 0.0, 0.0),
    "delete-only": (0.0, 0.01, 0.0),
    "update-only": (0.0, 0.0, 0.01),
    "mixed": (0.003, 0.003, 0.004),
}
"""The shares of rows that are new, gone and changed."""
TRANSACTION = 100


def rows(first: int, last: int, changed: str = "false") -> str:
    """Orders of these ids; those of which the condition holds have another state and amount."""
    return (
        f"SELECT id, CAST(id * 7919 % 150000 AS INT) AS customer, "
        f"date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS day, "
        f"IF({changed}, 'changed', element_at(array('open', 'paid', 'sent', 'back'), "
        "CAST(id % 4 AS INT) + 1)) AS status, "
        f"CAST(id % 100000 / 100 + IF({changed}, 1, 0) AS DECIMAL(12,2)) AS amount, "
        f"concat('order ', md5(CAST(id AS STRING))) AS note FROM range({first}, {last})"
    )


def deliver(spark: SparkSession, kind: str, count: int, folder: Path) -> str:
    """The files of a delivery, as a relation."""
    new, gone, changed = DELIVERIES[kind]
    part = 1_000
    edges = [round(part * gone), round(part * (gone + changed))]
    marked = f"pmod(hash(id), {part}) >= {edges[0]} AND pmod(hash(id), {part}) < {edges[1]}"
    delivered = spark.sql(rows(0, round(count * (1 + new)), marked))
    delivered.where(f"pmod(hash(id), {part}) >= {edges[0]}").repartition(8).write.parquet(str(folder / kind))
    return f"parquet.`{folder / kind}`"


def except_all(seen: str, there: str) -> str:
    """What everybody writes."""
    return (
        f"SELECT {NAMES}, 1L AS _vk_w FROM "
        f"(SELECT {NAMES} FROM {there} EXCEPT ALL SELECT {NAMES} FROM {seen})\nUNION ALL "
        f"SELECT {NAMES}, -1L FROM (SELECT {NAMES} FROM {seen} EXCEPT ALL SELECT {NAMES} FROM {there})"
    )


def net(spark: SparkSession, query: str) -> DataFrame:
    return spark.sql(
        f"SELECT {NAMES}, sum(_vk_w) AS w FROM ({query}) GROUP BY {NAMES} HAVING sum(_vk_w) <> 0"
    ).localCheckpoint()


def seconds(spark: SparkSession, query: str, rounds: int) -> float:
    """The median of some runs, after one to warm up."""
    found = []
    for _ in range(1 + rounds):
        started = time.perf_counter()
        spark.sql(query).write.format("noop").mode("overwrite").save()
        found.append(time.perf_counter() - started)
    return statistics.median(found[1:])


def compare_files(folder: Path, arguments: argparse.Namespace) -> None:
    spark = vk.connect(folder / "lake").spark
    spark.sql(f"CREATE TABLE seen USING iceberg AS {rows(0, arguments.rows)}")
    found: list[dict[str, object]] = []
    for kind in DELIVERIES:
        there = deliver(spark, kind, arguments.rows, folder)
        plain = except_all("seen", there)
        wanted = net(spark, plain)
        changed = wanted.count()
        timed = kind == "mixed"
        plain_seconds = seconds(spark, plain, arguments.rounds) if timed else 0.0
        for key, form in product(((), ("id",)), Form):
            query = Differential("seen", there, COLUMNS, key).sql(form)
            ours = net(spark, query)
            assert ours.exceptAll(wanted).isEmpty(), (kind, key, form)
            assert wanted.exceptAll(ours).isEmpty(), (kind, key, form)
            print(f"{kind}, {key}, {form.value}: the same {changed:,} rows", flush=True)
            if timed:
                taken = seconds(spark, query, arguments.rounds)
                row: dict[str, object] = {
                    "compared": "by key" if key else "as bags",
                    "form": form.value,
                    "changed rows": f"{changed:,}",
                    "seconds": f"{taken:.1f}",
                    "EXCEPT ALL both ways": f"{plain_seconds:.1f}",
                    "times faster": f"{plain_seconds / taken:.1f}",
                }
                print(row, flush=True)
                found.append(row)
    size = sum(file.stat().st_size for file in (folder / "mixed").glob("*.parquet"))
    chosen = Differential("seen", "there", COLUMNS).form(size).value
    if arguments.save:
        report.save(
            "extract-files",
            f"Snapshot differential of {arguments.rows:,} rows, about 1 % changed",
            found,
            f"Parquet files compared with an Iceberg table, {size >> 20} MiB; by itself viewkeeper takes the "
            f"form *{chosen}* for states of this size. The median of {arguments.rounds} runs, after one to "
            "warm up. Every form was checked to give the same change as `EXCEPT ALL`, as bags, both ways, "
            f"for each of these deliveries: {', '.join(DELIVERIES)}.",
        )


@contextmanager
def server(folder: Path) -> Iterator[object]:
    from postgres_server import PASSWORD, prepared

    os.environ["VK_TEST_PASSWORD"] = PASSWORD
    instance = prepared(folder / "pg")
    try:
        yield instance
    finally:
        instance.stop("immediate")


def follow_log(folder: Path, arguments: argparse.Namespace) -> None:
    with server(folder) as db:
        db.sql(
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT, day DATE, status TEXT, "
            "amount NUMERIC(12,2), note TEXT)",
            "ALTER TABLE orders OWNER TO keeper",
            "INSERT INTO orders SELECT i, i % 1000, DATE '2020-01-01' + i % 2000, 'open', i % 100, "
            f"md5(i::text) FROM generate_series(1, {arguments.changes}) AS i",
        )
        wh = vk.connect(folder / "log")
        wh.sql(f"CREATE SOURCE shop USING postgres OPTIONS ({db.options}, tables 'public.orders')")
        wh.sql(
            "CREATE MATERIALIZED VIEW by_day AS SELECT day, COUNT(*) AS n, SUM(amount) AS amount "
            "FROM shop.orders GROUP BY day"
        )
        taken, absorbed = [], 0
        for round_ in range(1 + arguments.rounds):
            change(db, arguments.changes, round_)
            started = time.perf_counter()
            epoch = wh.refresh()
            if round_:  # the first one warms up
                taken.append(time.perf_counter() - started)
                absorbed += arguments.changes
            assert epoch.view("shop.orders").strategy == "incremental", epoch
        copied = copy_seconds(db)
        assert all(check.ok for check in wh.verify("by_day"))
        (count,) = db.sql("SELECT count(*) FROM orders")[0]
        found = [
            {"what": "absorbed from the log, base view and a summary refreshed", "rows": f"{absorbed:,}",
             "seconds": f"{sum(taken):.1f}", "rows/s": f"{absorbed / sum(taken):,.0f}"},
            {"what": "plain COPY of the table", "rows": f"{count:,}", "seconds": f"{copied:.1f}",
             "rows/s": f"{count / copied:,.0f}"},
        ]  # fmt: skip
        print(report.table(found))
        if arguments.save:
            report.save(
                "extract-log",
                "Changes of a PostgreSQL database, absorbed from its log",
                found,
                f"Transactions of {TRANSACTION} changes each: half updates, a quarter each inserts and "
                f"deletes. {arguments.rounds} epochs of {arguments.changes:,} changes, after one to warm up.",
            )


def change(db: object, count: int, round_: int) -> None:
    """So many changes, in transactions: half updates, the rest inserts and deletes."""
    first = 10 * count * (round_ + 1)
    quarter, half = TRANSACTION // 4, TRANSACTION // 2
    with db.connect(autocommit=False) as connection:  # type: ignore[attr-defined]
        for at in range(count // TRANSACTION):
            low = at * half
            fresh = first + at * quarter
            connection.execute(
                "UPDATE orders SET amount = amount + 1, status = 'paid' "
                f"WHERE id > {low} AND id <= {low + half}"
            )
            connection.execute(
                f"INSERT INTO orders SELECT i, i % 1000, DATE '2024-01-01', 'new', 1, 'n' "
                f"FROM generate_series({fresh}, {fresh + quarter - 1}) AS i"
            )
            gone = count - round_ * count // 8 - at * quarter // 2
            connection.execute(
                "DELETE FROM orders WHERE id IN "
                f"(SELECT id FROM orders WHERE id <= {gone} ORDER BY id DESC LIMIT {quarter})"
            )
            connection.commit()


def copy_seconds(db: object) -> float:
    """A plain COPY of the table, its rows thrown away."""
    started = time.perf_counter()
    with db.connect() as connection, connection.cursor().copy("COPY orders TO STDOUT") as copy:  # type: ignore[attr-defined]
        for _ in copy:
            pass
    return time.perf_counter() - started


PARTS: dict[str, Callable[[Path, argparse.Namespace], None]] = {"files": compare_files, "log": follow_log}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; all, if none is named")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = report.arguments(parser)
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-", dir=arguments.data))
    try:
        for part in arguments.part or PARTS:
            PARTS[part](folder, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
