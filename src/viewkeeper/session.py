"""Spark sessions: the embedded one, and the sessions of our own in which work runs.

An embedded warehouse is a folder::

    <folder>/catalog.db     the Iceberg catalog, in SQLite
    <folder>/data/          the tables
    <folder>/spark.log      what the JVM has to say; its warnings would only clutter a terminal

All embedded warehouses of a process share one JVM; each has a session with a catalog ``lake`` of its own.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import SetupError
from viewkeeper.jars import jar_files
from viewkeeper.java import java_problem
from viewkeeper.sql.quoting import parse_path, quote, quote_path

__all__ = [
    "CATALOG",
    "close_work_session",
    "configured_session",
    "embedded_session",
    "is_connect",
    "java_problem",
    "require_views",
    "session_pins",
    "supports_views",
    "work_session",
]

CATALOG = "lake"
STORAGE_NAMESPACE = "_viewkeeper"

_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

# Settings that belong to one write of the user's; in a work session they would end up in our commits.
_NOT_INHERITED = ("spark.wap.", "spark.sql.iceberg.snapshot-property.")

# pyspark logs every failed query as JSON on the terminal, although it raises the same as an exception.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


def embedded_session(folder: Path) -> SparkSession:
    """A session on the embedded warehouse in ``folder``, starting Spark if this process has none yet."""
    folder = folder.absolute()
    if "?" in str(folder):
        raise SetupError(
            f"the warehouse folder {folder} has a question mark in its name",
            code="VK-SETUP-FOLDER",
            hint="SQLite's JDBC driver would read the rest as options; choose another name.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    running = _running_session()
    spark = (_start_spark(folder) if running is None else _checked(running)).newSession()
    _apply(spark, _catalog_settings(folder))
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path((CATALOG, 'default'))}")
    _use(spark, CATALOG, ("default",))
    return spark


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
            f"no Spark session on {remote or master}: {said[0] if said else type(error).__name__}",
            code="VK-SETUP-SPARK",
            hint="Check the connection; Spark Connect needs `pip install viewkeeper[connect]`.",
        ) from error


def is_connect(spark: SparkSession) -> bool:
    """Does this session speak to a server over Spark Connect?"""
    # By name: importing the Connect classes needs packages that a classic installation may lack.
    return type(spark).__module__.startswith("pyspark.sql.connect")


def cores(spark: SparkSession) -> int | None:
    """How many tasks run at a time; ``None`` where that cannot be asked."""
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def work_session(spark: SparkSession, pins: SessionPins | None = None) -> SparkSession:
    """A session of our own beside ``spark``: the same catalogs and settings, none of its temporary views,
    with everything that gives a query its meaning pinned. Without ``pins``, ``spark``'s own meaning."""
    work = _sibling(spark)
    if pins is None:
        pins = session_pins(spark)
    _apply(
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
    _use(work, pins.catalog, pins.namespace)
    return work


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
        time_zone=_setting(spark, "spark.sql.session.timeZone"),
        ansi=_setting(spark, "spark.sql.ansi.enabled") == "true",
        case_sensitive=_setting(spark, "spark.sql.caseSensitive") == "true",
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


def _running_session() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _checked(running: SparkSession) -> SparkSession:
    """The session that this process already has, if an embedded warehouse can live beside it."""
    if is_connect(running) or _EXTENSIONS not in _setting(running, "spark.sql.extensions", ""):
        raise SetupError(
            "this process already has a Spark session, started without Iceberg",
            code="VK-SETUP-SESSION",
            hint="Stop it first, or hand it over with connect(spark=session, catalog=…) once Iceberg's "
            "runtime jar and session extensions are configured.",
        )
    return running


def _start_spark(folder: Path) -> SparkSession:
    problem = java_problem()
    if problem:
        raise SetupError(problem, code="VK-SETUP-JAVA")
    jars = jar_files()
    log = folder / "spark.log"
    with as_file(files("viewkeeper.resources") / "log4j2.properties") as log4j:
        builder = SparkSession.builder.master("local[*]").appName("viewkeeper")
        for key, value in _engine_settings(folder, jars, log4j).items():
            builder = builder.config(key, value)
        try:
            with _stderr_to(log):
                return builder.getOrCreate()
        except Exception as error:  # pyspark raises anything from RuntimeError to Py4JError here
            raise SetupError(
                f"Spark did not start: {_tail(log) or error}",
                code="VK-SETUP-SPARK",
                hint=f"The whole story is in {log}. Too little memory? Set VIEWKEEPER_DRIVER_MEMORY.",
            ) from error


def _engine_settings(folder: Path, jars: tuple[Path, ...], log4j: Path) -> dict[str, str]:
    """What is fixed when the JVM starts. Nothing listens beyond this machine."""
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.sql.extensions": _EXTENSIONS,
        "spark.driver.memory": _driver_memory(),
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={log4j.as_uri()}"',
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # AQE joins small partitions again, so twice the cores costs small data little.
        "spark.sql.shuffle.partitions": str(max(2, 2 * (os.cpu_count() or 1))),
        "spark.sql.adaptive.enabled": "true",
        # Spark forgets all but 100 compiled pieces of queries. Refreshing a few views needs more than that,
        # and would compile all of them anew each time: as much CPU as the refresh itself.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }


def _catalog_settings(folder: Path) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        f"{catalog}.jdbc.schema-version": "V1",  # the first version that has views
        f"{catalog}.jdbc.busy_timeout": "30000",
        f"{catalog}.warehouse": str(folder / "data"),
        # A cached table hides what other processes committed in the last half minute.
        f"{catalog}.cache-enabled": "false",
    }


def _driver_memory() -> str:
    """``VIEWKEEPER_DRIVER_MEMORY``, else half of the machine's memory and at most 8 GiB."""
    asked = os.environ.get("VIEWKEEPER_DRIVER_MEMORY")
    if asked:
        if not re.fullmatch(r"\d+[kmgt]b?", asked, re.IGNORECASE):
            raise SetupError(
                f"VIEWKEEPER_DRIVER_MEMORY is {asked!r}, which is not an amount of memory",
                code="VK-SETUP-MEMORY",
                hint="Write a number and a unit, such as 2g or 900m.",
            )
        return asked
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return "2g"
    return f"{min(8 * 1024, max(1024, total // 2**21))}m"


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Let the JVM that is started in the block inherit ``log`` as its standard error.

    The JVM itself prints a warning about incubator modules that no setting turns off.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as sink:
            os.dup2(sink.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    telling = [line for line in lines if re.search(r"error|exception|could not", line, re.IGNORECASE)]
    return telling[0].strip() if telling else ""


def _sibling(spark: SparkSession) -> SparkSession:
    if is_connect(spark):
        return _clone_without_temporary_views(spark)
    sibling = spark.newSession()
    # A new session knows what Spark was started with; the rest was set on this session since.
    started_with = sibling.conf.getAll
    _apply(
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
    _apply(clone, _without_caches(clone))
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


def _apply(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)


def _use(spark: SparkSession, catalog: str, namespace: tuple[str, ...]) -> None:
    spark.sql(f"USE {quote_path((catalog, *namespace))}")


def _setting(spark: SparkSession, key: str, default: str | None = None) -> str:
    value = spark.conf.get(key) if default is None else spark.conf.get(key, default)
    return value or ""
