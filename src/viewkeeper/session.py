"""Spark sessions: the user's, on a cluster or a Connect server, and those of our own in which work runs."""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import SetupError
from viewkeeper.redacting import redacted
from viewkeeper.sql.quoting import parse_path, quote, quote_path

STORAGE_NAMESPACE = "_viewkeeper"
_ROW_COUNT = re.compile(r"rowCount=([0-9.E+]+)")

# Settings that belong to one write of the user's; in a work session they would end up in our commits.
_NOT_INHERITED = ("spark.wap.", "spark.sql.iceberg.snapshot-property.")

_MEANING = re.compile(
    r"spark\.sql\.((legacy|parser|function|jsonGenerator|ansi|decimalOperations|lateralColumnAlias)\..+"
    r"|timestampType|mapKeyDedupPolicy|storeAssignmentPolicy|(order|group)ByOrdinal|groupByAliases"
    r"|session\.collation\.default)"
)
"""Settings under which the same words mean something else. A definition has five of them pinned; of the
others work sessions know Spark's defaults: a view must not change its meaning with who refreshes it."""

# pyspark logs every failed query as JSON on the terminal, although it raises the same as an exception.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


def configured_session(
    *, master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session on a cluster of the user's: its jars, catalogs and the rest come from ``settings`` and from
    Spark's own configuration files."""
    builder = SparkSession.builder.appName("viewkeeper")
    if remote:
        builder = builder.remote(remote)
    elif master:
        builder = builder.master(master)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # pyspark raises anything from ImportError to RuntimeError here
        said = str(error).strip().splitlines()[:1]
        raise SetupError(
            redacted(f"no Spark session on {remote or master}: {said[0] if said else type(error).__name__}"),
            code="VK-SETUP-SPARK",
            hint="Check the connection; Spark Connect needs `pip install viewkeeper[connect]`.",
        ) from error


def is_connect(spark: SparkSession) -> bool:
    """Does this session speak to a server over Spark Connect?"""
    # By name: importing the Connect classes needs packages that a classic installation may lack.
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def time_limit(spark: SparkSession, seconds: float) -> Iterator[threading.Event]:
    """What Spark runs for this thread in the block is stopped after so many seconds; the event tells if it
    was."""
    tag, over = f"viewkeeper-{uuid.uuid4().hex}", threading.Event()
    tags = spark if is_connect(spark) else None
    if tags is not None:
        tags.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)  # of the thread, whichever session runs the query

    def stop() -> None:
        over.set()
        if tags is not None:
            tags.interruptTag(tag)
        else:
            spark.sparkContext.cancelJobsWithTag(tag)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()
        if tags is not None:
            tags.removeTag(tag)
        else:
            spark.sparkContext.removeJobTag(tag)


def cores(spark: SparkSession) -> int | None:
    """How many tasks run at a time; ``None`` where that cannot be asked."""
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def rows_read(spark: SparkSession, query: str, values: Mapping[str, object] | None = None) -> int | None:
    """About how many rows a query reads from the files of its only table that it cannot skip, without a job;
    ``None`` where Spark does not tell. ``values``: those of its parameters."""
    try:
        told = spark.sql(f"EXPLAIN COST {query}", args=dict(values) if values else None).collect()[0][0]
    except PySparkException:
        return None  # a condition that needs the definition's own settings, say
    optimized = told.partition("== Physical Plan ==")[0]
    counts = _ROW_COUNT.findall(optimized)
    return round(float(counts[-1])) if counts else None  # the table is the last of the plan's lines


def work_session(spark: SparkSession, pins: SessionPins | None = None) -> SparkSession:
    """A session of our own beside ``spark``: the same catalogs and settings, none of its temporary views,
    with everything that gives a query its meaning pinned. Without ``pins``, ``spark``'s own meaning."""
    work = _sibling(spark)
    _forget_meanings(work)
    if pins is None:
        pins = session_pins(spark)
    apply_settings(
        work,
        {
            "spark.sql.ansi.enabled": str(pins.ansi).lower(),
            "spark.sql.caseSensitive": str(pins.case_sensitive).lower(),
            "spark.sql.session.timeZone": pins.time_zone,
            "spark.sql.sources.partitionOverwriteMode": "static",
            # Spark would replace ${…} even inside quoted names.
            "spark.sql.variable.substitute": "false",
            **_without_caches(work),
        },
    )
    use(work, pins.catalog, pins.namespace)
    return work


def _forget_meanings(work: SparkSession) -> None:
    for key in work.conf.getAll:
        if _MEANING.fullmatch(key) and key not in BINDING:
            with suppress(PySparkException):  # a setting of the whole JVM stays as it is
                work.conf.unset(key)


def close_work_session(work: SparkSession) -> None:
    """Give up a work session; the session that it stands beside, and Spark itself, stay up."""
    if is_connect(work):
        # Not stop(): on a local server that would take the server down as well.
        with suppress(PySparkException):
            _connect_client(work).release_session()


def session_pins(spark: SparkSession) -> SessionPins:
    """The settings of a session that give a query its meaning, as they are now."""
    namespace = spark.catalog.currentDatabase()
    return SessionPins(
        catalog=spark.catalog.currentCatalog(),
        namespace=parse_path(namespace) if namespace else (),
        time_zone=setting(spark, "spark.sql.session.timeZone"),
        ansi=setting(spark, "spark.sql.ansi.enabled") == "true",
        case_sensitive=setting(spark, "spark.sql.caseSensitive") == "true",
    )


def supports_views(spark: SparkSession, catalog: str) -> bool:
    """Can this catalog hold views? Found out by creating one and dropping it again."""
    try:
        _try_a_view(spark, catalog)
    except PySparkException:
        return False
    return True


def require_views(spark: SparkSession, catalog: str) -> None:
    """Raise ``VK-SETUP-NO-VIEWS``, with the remedy, unless the catalog can hold views."""
    try:
        _try_a_view(spark, catalog)
    except PySparkException as error:
        said = str(error).strip().splitlines()[0][:300]
        raise SetupError(
            f"catalog {quote(catalog)} cannot hold views: {said}",
            code="VK-SETUP-NO-VIEWS",
            hint="Use an Iceberg catalog with views: type rest, hive or nessie, or type jdbc with "
            f"spark.sql.catalog.{catalog}.jdbc.schema-version=V1.",
        ) from error


def _try_a_view(spark: SparkSession, catalog: str) -> None:
    probe = quote_path((catalog, STORAGE_NAMESPACE, f"probe_{os.getpid()}_{os.urandom(4).hex()}"))
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path((catalog, STORAGE_NAMESPACE))}")
    spark.sql(f"CREATE VIEW {probe} AS SELECT 1 AS one")
    spark.sql(f"DROP VIEW {probe}")


BINDING = {"spark.sql.legacy.parameterSubstitution.constantsOnly": "true"}
"""Delta's parser knows nothing of the new way in which Spark 4.1 binds the parameters of a statement, and
loses them; earlier versions know nothing of this setting, and need it not."""


def _sibling(spark: SparkSession) -> SparkSession:
    if is_connect(spark):
        return _clone_without_temporary_views(spark)  # where a view over bound parameters needs the new way
    sibling = _new_session(spark)
    if "io.delta." in setting(spark, "spark.sql.extensions", ""):
        apply_settings(sibling, BINDING)
    return sibling


def _new_session(spark: SparkSession) -> SparkSession:
    sibling = spark.newSession()
    # A new session knows what Spark was started with; the rest was set on this session since.
    started_with = sibling.conf.getAll
    apply_settings(
        sibling,
        {
            key: value
            for key, value in spark.conf.getAll.items()
            if started_with.get(key) != value and not key.startswith(_NOT_INHERITED)
        },
    )
    return sibling


def _clone_without_temporary_views(spark: SparkSession) -> SparkSession:
    """Connect has no ``newSession``; a clone brings the settings along, but the temporary views too."""
    clone: SparkSession = spark.cloneSession()  # type: ignore[attr-defined]  # only the Connect class has it
    # At exit an open client would knock for ten minutes on a server that may be gone. And a session must
    # not be collected as garbage before: its __del__ joins pyspark's release threads, and hangs for ever
    # when it runs in one of them. The reference that is registered here prevents both.
    atexit.register(_close_client, clone)
    for key in clone.conf.getAll:
        if key.startswith(_NOT_INHERITED):
            clone.conf.unset(key)
    apply_settings(clone, _without_caches(clone))
    for row in clone.sql("SHOW VIEWS IN `spark_catalog`.`default`").collect():
        if row["isTemporary"] and not row["namespace"]:
            clone.catalog.dropTempView(row["viewName"])
    return clone


def _without_caches(spark: SparkSession) -> dict[str, str]:
    """Each session has its own instance of a catalog. Iceberg's keep tables for half a minute, in which one
    session of ours would not see what another has just committed."""
    return {
        f"{key}.cache-enabled": "false"
        for key, value in spark.conf.getAll.items()
        if re.fullmatch(r"spark\.sql\.catalog\.[^.]+", key) and value.startswith("org.apache.iceberg.spark.")
    }


def _connect_client(spark: SparkSession) -> Any:
    return cast(Any, spark).client


def _close_client(spark: SparkSession) -> None:
    _connect_client(spark).close()


def apply_settings(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set them on the session."""
    for key, value in settings.items():
        spark.conf.set(key, value)


def use(spark: SparkSession, catalog: str, namespace: tuple[str, ...]) -> None:
    """Make these the session's current catalog and namespace."""
    spark.sql(f"USE {quote_path((catalog, *namespace))}")


def setting(spark: SparkSession, key: str, default: str | None = None) -> str:
    """A setting of the session, empty where it has none."""
    value = spark.conf.get(key) if default is None else spark.conf.get(key, default)
    return value or ""
