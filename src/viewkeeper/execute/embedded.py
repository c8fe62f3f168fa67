"""The embedded warehouse: Spark in this process, on a folder.

    <folder>/catalog.db     the Iceberg catalog, in SQLite
    <folder>/data/          the tables
    <folder>/spark.log      what the JVM has to say; its warnings would only clutter a terminal

All embedded warehouses of a process share one JVM; each has a session with a catalog ``lake`` of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SetupError
from viewkeeper.execute.ctrl_c import take_over_ctrl_c
from viewkeeper.jars import jar_files
from viewkeeper.java import java_problem
from viewkeeper.memory import driver_memory
from viewkeeper.session import BINDING, apply_settings, is_connect, setting, use
from viewkeeper.sql.quoting import quote_path

CATALOG = "lake"

_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_DELTA_EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"

# Hadoop starts a process, chmod, for every file that it writes, and one more for the file's checksum: a
# refresh writes hundreds of small ones. This does the same within the JVM. For the catalog's own tables only,
# and so beside the file systems that Hadoop keeps: it takes a link to a file for the file, and tells the
# length of the link.
_LOCAL_FILES = {
    "fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


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
    apply_settings(spark, _catalog_settings(folder))
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote_path((CATALOG, 'default'))}")
    use(spark, CATALOG, ("default",))
    return spark


def _running_session() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _checked(running: SparkSession) -> SparkSession:
    """The session that this process already has, if an embedded warehouse can live beside it."""
    if is_connect(running) or _EXTENSIONS not in setting(running, "spark.sql.extensions", ""):
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
    with as_file(files("viewkeeper.resources")) as resources:
        builder = SparkSession.builder.master("local[*]").appName("viewkeeper")
        for key, value in _engine_settings(folder, jars, resources).items():
            builder = builder.config(key, value)
        try:
            with _stderr_to(log):
                spark = builder.getOrCreate()
        except Exception as error:  # pyspark raises anything from RuntimeError to Py4JError here
            raise SetupError(
                f"Spark did not start: {_tail(log) or error}",
                code="VK-SETUP-SPARK",
                hint=f"The whole story is in {log}. Too little memory? Set VIEWKEEPER_DRIVER_MEMORY.",
            ) from error
    take_over_ctrl_c(spark)
    return spark


def _engine_settings(folder: Path, jars: tuple[Path, ...], resources: Path) -> dict[str, str]:
    """What is fixed when the JVM starts. Nothing listens beyond this machine."""
    log4j = resources / "log4j2.properties"
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.sql.extensions": f"{_EXTENSIONS},{_DELTA_EXTENSIONS}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Before Hadoop's own defaults: two thirds of them are for YARN and MapReduce.
        "spark.driver.extraClassPath": str(resources / "hadoop"),
        "spark.driver.memory": driver_memory(),
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={log4j.as_uri()}"',
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # AQE joins small partitions again, so twice the cores costs small data little.
        "spark.sql.shuffle.partitions": str(max(2, 2 * (os.cpu_count() or 1))),
        # Delta sorts a table's log into 50 partitions by itself: 50 tasks to learn its few files.
        "spark.databricks.delta.snapshotPartitions": "2",
        **BINDING,
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
        **{f"{catalog}.hadoop.{key}": value for key, value in _LOCAL_FILES.items()},
        # A cached table hides what other processes committed in the last half minute.
        f"{catalog}.cache-enabled": "false",
    }


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
