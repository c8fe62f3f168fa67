"""Wherever Spark runs: a session of the user's, Spark Connect, a standalone cluster; any catalog and ledger.

Connect and the cluster each run in a process of their own: a process has either a classic Spark or a Connect
client, and the JVM of the test run is neither.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from world import assert_exact, assert_tidy, make_sales, strategies

import viewkeeper as vk
from viewkeeper.jars import jar_files

pytestmark = pytest.mark.spark


def test_a_catalog_of_another_name_and_a_ledger_in_postgresql(
    spark: SparkSession, tmp_path: Path, postgres_schema: Callable[[], str]
) -> None:
    ledger = postgres_schema()
    session = spark.newSession()
    for key, value in catalog_settings("other", tmp_path).items():
        session.conf.set(key, value)
    session.sql("CREATE NAMESPACE other.shop")
    session.sql("USE other.shop")
    make_sales(session)
    with vk.connect(spark=session, catalog="other", ledger=ledger) as warehouse:
        warehouse.sql(
            "CREATE MATERIALIZED VIEW by_store AS SELECT store, sum(qty) AS t FROM sales GROUP BY 1"
        )
        warehouse.sql("CREATE MATERIALIZED VIEW grand AS SELECT sum(t) AS t FROM shop.by_store")
        session.sql("INSERT INTO sales VALUES (3, 'nib', 4)")
        session.sql("DELETE FROM sales WHERE store = 1")
        assert set(strategies(warehouse.refresh(policy="incremental")).values()) == {"incremental"}
        assert_exact(warehouse)
        assert_tidy(warehouse, "other")
        assert warehouse.sql("SELECT t FROM grand").collect()[0][0] == 12
        assert warehouse.spark is session
        assert warehouse.views() == ["other.shop.by_store", "other.shop.grand"]
    with vk.connect(spark=session, catalog="other", ledger=ledger) as again:
        assert again.sql("SELECT t FROM other.shop.grand").collect()[0][0] == 12
        again.sql("DROP MATERIALIZED VIEW grand")


def catalog_settings(name: str, folder: Path) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": str(folder / "data"),
    }


def session_settings(folder: Path) -> dict[str, str]:
    return {
        **catalog_settings("shop", folder),
        "spark.jars": ",".join(str(jar) for jar in jar_files()),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "900m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


CHILD = textwrap.dedent(
    """
    import json, sys
    import viewkeeper as vk
    from viewkeeper.cli.retail import VIEWS, Retail
    from viewkeeper.plan import lookups
    from viewkeeper.session import configured_session

    lookups._LARGE_ROWS = 1  # the ranges of keys are asked for, and bound into statements, here too

    how, where, folder, settings = sys.argv[1:5]
    spark = configured_session(settings=json.loads(settings), **{how: where})
    spark.sql("CREATE NAMESPACE shop.retail")
    spark.sql("USE shop.retail")
    shop = Retail(spark, 500)
    shop.create()
    warehouse = vk.connect(spark=spark, catalog="shop", ledger=f"sqlite:///{folder}/ledger.db")
    for name, query in VIEWS.items():
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS {query}")
    filled = warehouse.refresh()
    shop.pass_day(1)
    epoch = warehouse.refresh(policy="incremental")
    print(json.dumps({
        "filled": sorted({view.strategy for view in filled.views}),
        "strategies": sorted({view.strategy for view in epoch.views}),
        "views": len(epoch.views),
        "exact": all(found.ok for found in warehouse.verify()),
        "rows": warehouse.sql("SELECT sum(TotalCount) FROM sR_sales").collect()[0][0]
        == spark.sql("SELECT count(*) FROM pos").collect()[0][0],
        "history": warehouse.history().to_spark().count(),
        "shown": warehouse.sql("SHOW MATERIALIZED VIEWS").count(),
    }), flush=True)
    """
)


def run_child(how: str, where: str, folder: Path, script: str = CHILD, **more: str) -> dict[str, object]:
    """What a script says that runs in a process of its own."""
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            script,
            how,
            where,
            str(folder),
            json.dumps({**session_settings(folder), **more}),
        ],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("SPARK_")},
            "SPARK_TESTING": "1",  # lets Connect take a free port instead of 15002
        },
    )
    # Spark's own stack traces come after ours, and are long.
    assert child.returncode == 0, child.stderr[child.stderr.find("Traceback") :][:6000]
    answer: dict[str, object] = json.loads(child.stdout.strip().splitlines()[-1])
    return answer


EXPECTED = {
    "filled": ["full"],
    "strategies": ["incremental"],
    "views": 5,
    "exact": True,
    "rows": True,
    "history": 10,
    "shown": 5,
}


def test_over_spark_connect(tmp_path: Path) -> None:
    assert run_child("remote", "local[2]", tmp_path) == EXPECTED


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """One master and two one-core workers, from the pip distribution."""
    home = Path(pyspark.__file__).parent
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        with (folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [str(home / "bin" / "spark-class"), *arguments], stdout=log, stderr=log, env=environment
            )

    ui = ("--webui-port", "0")
    running = [
        start("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), *ui)
    ]
    try:
        _wait_for(port)
        for _ in range(2):
            running.append(
                start("org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "700m", *ui, url)
            )
        yield url
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def _wait_for(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_on_a_standalone_cluster(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        answer = run_child("master", master, tmp_path, **{"spark.executor.memory": "600m"})
    assert answer == EXPECTED
