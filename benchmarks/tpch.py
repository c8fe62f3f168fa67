"""TPC-H for the benchmarks: the data in Iceberg tables, and changes to orders with their lineitems.

The generator is ``tpchgen-cli``; the tables are Iceberg v3, merge-on-read. Three patterns of change, each to
about 1 % of the orders:

* *append*: new orders only;
* *recent*: tables partitioned by month; deletes, inserts and updates in the last months;
* *spread*: deletes and inserts of the orders with ``pmod(hash(o_orderkey), 100) = round``, in every file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

TABLES = ("customer", "orders", "lineitem", "supplier", "nation", "region")
ALL_TABLES = (*TABLES, "part", "partsupp")
PATTERNS = ("append", "recent", "spread")

GROUP_BY = """\
SELECT l_orderkey, COUNT(*) AS lines, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS price
FROM lineitem
GROUP BY l_orderkey"""

JOIN = """\
SELECT c_custkey, c_name, o_orderkey, o_orderdate, l_linenumber, l_quantity, l_extendedprice, l_discount,
  s_suppkey, s_name, n_nationkey, n_name, r_regionkey, r_name
FROM customer
JOIN orders ON c_custkey = o_custkey
JOIN lineitem ON l_orderkey = o_orderkey
JOIN supplier ON l_suppkey = s_suppkey
JOIN nation ON s_nationkey = n_nationkey
JOIN region ON n_regionkey = r_regionkey"""

_PROPERTIES = (
    "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
)
_KEYS = 1_000_000_000
"""So many numbers of orders are set aside for each round; the generator uses the first ones."""
_PARTITIONS = {"orders": "month(o_orderdate)", "lineitem": "month(l_shipdate)"}


def generate(folder: Path, scale: float, tables: Sequence[str] = TABLES) -> Path:
    """The generated Parquet files, made once per folder."""
    target = folder / f"tpch-{scale:g}"
    tool = Path(sys.executable).with_name("tpchgen-cli")
    for table in tables:
        if not (target / f"{table}.done").exists():
            subprocess.run(
                [tool, "parquet", "-s", f"{scale:g}", "--tables", table, "--output-dir", target], check=True
            )
            (target / f"{table}.done").touch()
    return target


def load(spark: SparkSession, files: Path, pattern: str, tables: Sequence[str] = TABLES) -> None:
    """Make the tables in the current namespace."""
    for table in tables:
        partition = _PARTITIONS.get(table) if pattern == "recent" else None
        clause = f"PARTITIONED BY ({partition})" if partition else ""
        spark.sql(
            f"CREATE TABLE {table} USING iceberg {clause} TBLPROPERTIES ({_PROPERTIES}) "
            f"AS SELECT * FROM parquet.`{files / (table + '.parquet')}`"
        )


def load_keyed(spark: SparkSession, files: Path, table: str, key: Sequence[str]) -> None:
    """Make one table in the current namespace, with these columns as its identifier fields."""
    source = str(files / f"{table}.parquet")
    columns = ", ".join(
        f"{field.name} {field.dataType.simpleString()}{' NOT NULL' if field.name in key else ''}"
        for field in spark.read.parquet(source).schema.fields
    )
    spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ({_PROPERTIES})")
    if key:
        spark.sql(f"ALTER TABLE {table} SET IDENTIFIER FIELDS {', '.join(key)}")
    spark.sql(f"INSERT INTO {table} SELECT * FROM parquet.`{source}`")


def change(spark: SparkSession, pattern: str, round_: int) -> None:
    """One batch of changes: about 1 % of the orders, with their lineitems."""
    shift = (round_ + 1) * _KEYS
    match pattern:
        case "append":
            copy_orders(spark, f"pmod(hash(o_orderkey), 100) = {round_}", shift)
        case "spread":
            keys = f"o_orderkey < {_KEYS} AND pmod(hash(o_orderkey), 100) = {round_}"
            copy_orders(spark, keys, shift)
            delete_orders(spark, keys)
        case "recent":
            # The last three of 80 months hold 3.9 % of the orders; of 30 parts of them, four are copied, two
            # of these deleted and two changed in each round: 1 % of all orders, half of them new.
            gone, changed = recent_parts(round_)
            recent = (
                f"o_orderdate >= DATE'1998-05-01' AND o_orderkey < {_KEYS} AND pmod(hash(o_orderkey), 30)"
            )
            copy_orders(spark, f"{recent} IN ({_listed(*gone, *changed)})", shift)
            delete_orders(spark, f"{recent} IN ({_listed(*gone)})")
            update_orders(spark, f"{recent} IN ({_listed(*changed)})")
        case _:
            raise ValueError(pattern)


def recent_parts(round_: int) -> tuple[Sequence[int], Sequence[int]]:
    """Of the 30 parts of recent orders, those that go and those that change in a round: four new ones each
    time, and from the eighth round on those that had only changed.

    >>> [recent_parts(round_) for round_ in (0, 6, 7, 8, 13)]
    [((0, 1), (2, 3)), ((24, 25), (26, 27)), ((2, 3), (6, 7)), ((6, 7), (10, 11)), ((26, 27), (28, 29))]
    """
    untouched = tuple(range(28))
    left = (*(part for part in untouched if part % 4 >= 2), 28, 29)
    lot = untouched[4 * round_ : 4 * round_ + 4] or left[2 * round_ - 14 : 2 * round_ - 10]
    if len(lot) < 4:
        raise ValueError("there are recent orders for 14 rounds")
    return lot[:2], lot[2:]


def _listed(*parts: int) -> str:
    return ", ".join(map(str, parts))


def copy_orders(spark: SparkSession, orders: str, shift: int) -> None:
    """New orders: the chosen ones again under other keys, with their lineitems."""
    spark.sql(f"CREATE OR REPLACE TEMP VIEW chosen AS SELECT o_orderkey AS k FROM orders WHERE {orders}")
    chosen = spark.table("chosen").persist()
    chosen.count()
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        columns = [
            f"{name} + {shift} AS {name}" if name == key else name for name in spark.table(table).columns
        ]
        spark.sql(
            f"INSERT INTO {table} SELECT /*+ BROADCAST(chosen) */ {', '.join(columns)} "
            f"FROM {table} JOIN chosen ON {key} = k"
        )
    chosen.unpersist()


def delete_orders(spark: SparkSession, orders: str) -> None:
    """The chosen orders go, with their lineitems."""
    spark.sql(f"DELETE FROM lineitem WHERE l_orderkey IN (SELECT o_orderkey FROM orders WHERE {orders})")
    spark.sql(f"DELETE FROM orders WHERE {orders}")


def update_orders(spark: SparkSession, orders: str) -> None:
    """The chosen orders change, and their lineitems."""
    spark.sql(
        "UPDATE lineitem SET l_quantity = l_quantity + 1, l_extendedprice = l_extendedprice + 10 "
        f"WHERE l_orderkey IN (SELECT o_orderkey FROM orders WHERE {orders})"
    )
    spark.sql(f"UPDATE orders SET o_orderdate = date_add(o_orderdate, -1) WHERE {orders}")
