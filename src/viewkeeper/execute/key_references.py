"""Asks Spark whether foreign keys hold: on the rows touched, of several at once, or on whole tables."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.empty_terms import KeyReference
from viewkeeper.algebra.reading_costs import SMALL_ROWS
from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.sql.quoting import quote

logger = logging.getLogger("viewkeeper")


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """The rows that came to a parent, and those that changed in its child, each as statements; ``now``: the
    parent with what came, as FROM has it; ``rows``: of all these, at most."""

    reference: KeyReference
    parents: tuple[str, ...]
    children: tuple[str, ...]
    now: str
    rows: int


@dataclass(frozen=True, slots=True)
class Violations:
    """How many of the keys that came were there before, and how many values that came are no key now."""

    old_keys: int
    orphans: int


def violations(session: SparkSession, touched: Sequence[TouchedRows]) -> list[Violations | None]:
    """Of each foreign key, by one statement; ``None`` where Spark cannot tell."""
    try:
        with ExitStack() as named:
            name = _naming(session, named)
            asked = [_question(at, each, name) for at, each in enumerate(touched)]
            rows = session.sql("\nUNION ALL\n".join(asked)).collect()
    except Exception:  # Iceberg's own errors come as Java's
        logger.debug("foreign keys cannot be checked", exc_info=True)
        return [None] * len(touched)
    found = {row["at"]: Violations(row["old_keys"], row["orphans"]) for row in rows}
    return [found.get(at) for at in range(len(touched))]


def holds(session: SparkSession, reference: KeyReference, child: str, parent: str) -> bool:
    """Whether every row of the child refers to one of the parent, both as FROM has them."""
    columns = [f"c.{quote(column)}" for column in reference.columns]
    keys = [f"p.{quote(column)}" for column in reference.key]
    given = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    equal = " AND ".join(f"{one} = {two}" for one, two in zip(columns, keys, strict=True))
    orphan = f"SELECT 1 FROM {child} AS c LEFT ANTI JOIN {parent} AS p ON {equal} WHERE {given} LIMIT 1"
    try:
        return not session.sql(orphan).collect()
    except Exception:
        logger.debug("a foreign key cannot be checked", exc_info=True)
        return False


def _naming(session: SparkSession, named: ExitStack) -> Callable[[Sequence[str]], str | None]:
    """Gives what statements read together a name. Each is analysed by itself: Spark 4.1 loads a table once
    per statement, whatever stretch of its history is asked for."""

    def name(statements: Sequence[str]) -> str | None:
        if not statements:
            return None
        view = f"vk_touched_{uuid.uuid4().hex[:12]}"
        reduce(DataFrame.unionAll, map(session.sql, statements)).createOrReplaceTempView(view)
        named.callback(session.catalog.dropTempView, view)
        return view

    return name


def _question(at: int, touched: TouchedRows, name: Callable[[Sequence[str]], str | None]) -> str:
    """A key was there before if it is there more often than it came. NULL is no key, and refers to none."""
    reference = touched.reference
    names = [f"k{place}" for place in range(len(reference.key))]
    sides = (
        (name(touched.parents), reference.key, f"{WEIGHT} AS came, 0 AS refer", "true"),
        (name(touched.children), reference.columns, "0 AS came, 1 AS refer", f"{WEIGHT} > 0"),
    )
    rows = " UNION ALL ".join(_side(view, columns, *rest) for view, columns, *rest in sides if view)
    listed = ", ".join(names)
    keys = f"SELECT {listed}, sum(came) AS came, max(refer) AS refer FROM ({rows}) GROUP BY {listed}"
    equal = " AND ".join(
        f"p.{quote(column)} = t.{one}" for column, one in zip(reference.key, names, strict=True)
    )
    few = "/*+ BROADCAST(t) */ " if touched.rows <= SMALL_ROWS else ""
    there = (
        f"SELECT {few}{', '.join(f't.{one}' for one in names)}, 0 AS came, 0 AS refer, 1 AS there "
        f"FROM {touched.now} AS p JOIN ({keys}) AS t ON {equal}"
    )
    both = (
        f"SELECT {listed}, sum(came) AS came, max(refer) AS refer, sum(there) AS there "
        f"FROM (SELECT {listed}, came, refer, 0 AS there FROM ({keys}) UNION ALL {there}) GROUP BY {listed}"
    )
    return (
        f"SELECT {at} AS at, count_if(came > 0 AND there > came) AS old_keys, "
        f"count_if(refer > 0 AND there = 0) AS orphans FROM ({both})"
    )


def _side(view: str, columns: Sequence[str], counted: str, which: str) -> str:
    listed = ", ".join(f"{quote(column)} AS k{place}" for place, column in enumerate(columns))
    given = " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns)
    return f"SELECT {listed}, {counted} FROM {view} WHERE {which} AND {given}"
