"""Queries that others wrote, as views: is each kept by deltas, and exact after random changes of its tables?

    python benchmarks/foreign_queries.py --tables ddl.sql --queries folder

``ddl.sql`` holds CREATE TABLE statements, ``folder`` a query in each file (``*.sql``). Each query becomes a
view over small tables of its own, whose random rows are made of the constants that its conditions name, so
that some of them meet these. A query in which two columns have one name gets a column list.

What it is for: the 99 queries of TPC-DS, which are not ours to ship, or a project that is to move here.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import sqlglot
from sqlglot import exp

import report
import viewkeeper as vk
from viewkeeper.session import apply_settings
from viewkeeper.testing import Oracle
from viewkeeper.testing.cases import Case, Cycle, View
from viewkeeper.testing.changes import Changes
from viewkeeper.testing.oracle import TINY
from viewkeeper.testing.tables import Table

ROWS = 12
KEYS = ("1", "2", "3")
MOST_VALUES = 6
Schema = Mapping[str, tuple[tuple[str, str], ...]]


def schema_of(ddl: str) -> Schema:
    """The tables that CREATE TABLE statements make, with their columns and types."""
    found = {}
    for statement in sqlglot.parse(ddl, dialect="spark"):
        if isinstance(statement, exp.Create) and isinstance(statement.this, exp.Schema):
            columns = statement.this.find_all(exp.ColumnDef)
            found[statement.this.this.name] = tuple(
                (column.name, _storable(column.args["kind"].sql(dialect="spark").lower()))
                for column in columns
            )
    return found


def _storable(kind: str) -> str:
    """Iceberg has no CHAR or VARCHAR."""
    return "string" if kind.startswith(("char", "varchar")) else kind.replace(" ", "")


def constants(query: str) -> Mapping[str, list[str]]:
    """By column: what it, or something made of it, is compared with."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in sqlglot.parse_one(query, dialect="spark").walk():
        match node:
            case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
                compared = [(node.this, node.expression), (node.expression, node.this)]
            case exp.In():
                compared = [(node.this, each) for each in node.expressions]
            case exp.Between():
                compared = [(node.this, node.args[end]) for end in ("low", "high")]
            case _:
                continue
        for side, value in compared:
            text, column = _text(value), side.find(exp.Column)
            if text is not None and column is not None:
                found[column.name.lower()].append(text)
    return found


def _text(node: exp.Expr) -> str | None:
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, exp.Neg) and isinstance(inner.this, exp.Literal):
        return f"-{inner.this.this}"
    return str(inner.this) if isinstance(inner, exp.Literal) else None


def values(column: str, kind: str, compared: Sequence[str]) -> tuple[str, ...]:
    """A few values for a column, as SQL: those that it is compared with, and some beside them."""
    own = [value for text in compared if (value := _literal(text, kind)) is not None]
    if kind == "int" and re.search(r"_(sk|number)$", column):
        return KEYS
    match kind:
        case "int":
            near = [str(int(value) + step) for value in own[:3] for step in (-1, 0, 1)]
            found = [*own, *near] or ["1", "2", "10"]
        case "date":
            dates = own or ["DATE'2000-02-01'"]
            found = [*dates, *(f"date_add({day}, {step})" for day in dates[:2] for step in (5, 20, 400))]
        case "string":
            found = [*own[:MOST_VALUES], "'a'", "'b'"]
        case _:
            found = [*own[:MOST_VALUES], "1.00", "2.50", "80.00"]
    return tuple(dict.fromkeys(found))


def _literal(text: str, kind: str) -> str | None:
    try:
        if kind == "int":
            return str(int(float(text)))
        if kind == "date":
            return f"DATE'{text}'" if re.fullmatch(r"\d{4}-\d\d?-\d\d?", text) else None
        if kind == "string":
            return None if "'" in text else f"'{text[:60]}'"
        float(text)
    except ValueError:
        return None
    return text


def case_of(name: str, query: str, schema: Schema, columns: Sequence[str], seed: int, cycles: int) -> Case:
    """The query as a view over small tables of its own, and changes to them."""
    random, compared = Random(f"{name}{seed}"), constants(query)
    tables = [
        Table(table, typed, values={each: values(each, kind, compared.get(each, ())) for each, kind in typed})
        for table, typed in schema.items()
        if re.search(rf"\b{table}\b", query, re.IGNORECASE)
    ]
    changes = Changes(tables, random, ROWS)
    setup = changes.fill()
    view = View(name, query, tuple(columns), incremental=False)
    return Case(setup, (view,), tuple(Cycle(changes.cycle()) for _ in range(cycles)))


def queries(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    for file in sorted(folder.glob("*.sql")):
        yield re.sub(r"\W", "_", file.stem), file.read_text("utf-8").strip().rstrip(";")


def listed(wh: vk.Warehouse, query: str) -> list[str]:
    """Names for the view's columns, if those of the query will not do."""
    names = [name.lower() for name in wh.spark.sql(query).columns]
    return [] if len(set(names)) == len(names) else [f"c{at + 1}" for at in range(len(names))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=2)
    parser.add_argument("--name", default="foreign_queries", help="of the table of results")
    arguments = report.arguments(parser)
    schema = schema_of(arguments.tables.read_text("utf-8"))
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="viewkeeper-") as folder, vk.connect(folder) as wh:
        apply_settings(wh.spark, TINY)
        for table, columns in schema.items():
            typed = ", ".join(f"{column} {kind}" for column, kind in columns)
            wh.spark.sql(f"CREATE TABLE {table} ({typed}) USING iceberg")
        for name, query in queries(arguments.queries):
            if arguments.only and name not in arguments.only:
                continue
            started = time.monotonic()
            case = case_of(name, query, schema, listed(wh, query), arguments.seed, arguments.cycles)
            outcome = Oracle(wh.spark, wh.catalog).run(case, skip_invalid=True)
            kept = "incremental" if outcome.views["incremental"] else "full"
            rows.append(
                {
                    "query": name,
                    "kept": kept,
                    "compared": outcome.compared,
                    "exact": outcome.ok,
                    "said": "; ".join(str(each) for each in outcome.failures),
                    "seconds": round(time.monotonic() - started, 1),
                }
            )
            print(rows[-1], flush=True)
    counted = Counter(f"{row['kept']}, {'exact' if row['exact'] else 'NOT exact'}" for row in rows)
    told = f"{len(rows)} queries: " + "; ".join(f"{what}: {count}" for what, count in counted.items()) + "."
    print(told)
    if arguments.save:
        kept_columns = [{key: row[key] for key in ("query", "kept", "compared", "exact")} for row in rows]
        report.save(arguments.name, "Queries that others wrote, as views", kept_columns, told)


if __name__ == "__main__":
    main()
