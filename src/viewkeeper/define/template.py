"""A small project to start from: two views on a table of orders, and a script that makes orders."""

from __future__ import annotations

import re
from pathlib import Path

from viewkeeper.errors import DefinitionError

_SPEC = """\
# Spark's own pipeline format: `spark-pipelines run` runs this project too.
name: {name}
storage: {storage}
database: default
libraries:
  - glob:
      include: transformations/**
"""

_SETTINGS = """\
# What Spark's format has no word for. Everything here is optional.
connection:
  warehouse: warehouse        # an embedded warehouse in this folder; nothing else to start
  # Or your own Spark and catalog:
  # remote: sc://localhost:15002
  # catalog: lake
  # ledger: {env: VIEWKEEPER_LEDGER}
policy: auto                  # auto | incremental | incremental strict | full
keys:
  orders: [order_id]
"""

_DAILY = """\
CREATE MATERIALIZED VIEW orders_by_day
COMMENT 'Number and value of the orders of each day and customer'
AS SELECT day, customer, COUNT(*) AS orders, SUM(amount) AS amount
FROM orders
GROUP BY day, customer;
"""

_BEST = """\
-- A view on a view: both move to the same state of the orders, in one step.
CREATE MATERIALIZED VIEW sales_by_customer
AS SELECT customer, SUM(orders) AS orders, SUM(amount) AS amount
FROM orders_by_day
GROUP BY customer;
"""

_MAKE_ORDERS = '''\
"""Makes the table of orders; each further run adds a day, and cancels an order."""

from pathlib import Path

import viewkeeper as vk

wh = vk.connect(Path(__file__).parent / "warehouse")
spark = wh.spark
spark.sql(
    "CREATE TABLE IF NOT EXISTS orders (order_id BIGINT, day DATE, customer STRING, amount DECIMAL(10, 2)) "
    "USING iceberg"
)
last, first = spark.sql("SELECT COALESCE(MAX(order_id), 0), COALESCE(MIN(order_id), 0) FROM orders").head()
spark.sql(
    "INSERT INTO orders SELECT :last + id + 1, "
    "date_add(DATE'2026-01-01', CAST((:last + id) DIV 1000 AS INT)), "
    "concat('customer ', id % 50), CAST(id % 97 + 0.5 AS DECIMAL(10, 2)) FROM range(1000)",
    args={"last": last},
)
spark.sql("DELETE FROM orders WHERE order_id = :first", args={"first": first})
print(f"orders: {spark.table('orders').count()}. Next: viewkeeper plan, viewkeeper refresh")
wh.close()
'''

_IGNORE = "warehouse/\npipeline-storage/\n"


def init_project(folder: Path, name: str) -> list[Path]:
    """Write the example into ``folder``, which must be new or empty; the files that were written."""
    if not re.fullmatch(r"[\w][\w .-]*", name):
        raise DefinitionError(
            f"{name!r} does not do as a project's name",
            code="VK-PROJECT",
            hint="Use letters, digits, spaces, dots, dashes and underscores.",
        )
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DefinitionError(
            f"{folder} exists and is not an empty folder",
            code="VK-PROJECT",
            hint="Choose another name; nothing was written.",
        )
    contents = {
        "spark-pipeline.yml": _SPEC.format(
            name=_yaml_string(name), storage=_yaml_string((folder / "pipeline-storage").as_uri())
        ),
        "viewkeeper.yml": _SETTINGS,
        "transformations/orders_by_day.sql": _DAILY,
        "transformations/sales_by_customer.sql": _BEST,
        "make_orders.py": _MAKE_ORDERS,
        ".gitignore": _IGNORE,
    }
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return [folder / path for path in contents]


def _yaml_string(text: str) -> str:
    """Single-quoted YAML, which knows no escapes but the doubled quote."""
    return "'" + text.replace("'", "''") + "'"
