"""The same project folder, run by Spark's own ``spark-pipelines`` into another catalog."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from viewkeeper.cli.main import app
from viewkeeper.execute.embedded import embedded_session
from viewkeeper.jars import jar_files

pytestmark = [
    pytest.mark.spark,
    # py4j leaves a socket behind for each thread that ends.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

VIEWS = ("orders_by_day", "sales_by_customer")


def other_catalog(folder: Path) -> dict[str, str]:
    catalog = "spark.sql.catalog.other"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": str(folder / "data"),
        f"{catalog}.cache-enabled": "false",
    }


def run_pipeline(project: Path, catalog_folder: Path) -> None:
    settings = {
        **other_catalog(catalog_folder),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jar_files()),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    # In spark-defaults.conf, as on a cluster: given with --conf, the catalog came up without its properties
    # (it looked for a Hive metastore).
    conf = catalog_folder / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    command = [str(Path(sys.executable).parent / "spark-pipelines"), "--remote", "local[2]", "run"]
    done = subprocess.run(
        [*command, "--spec", str(project / "spark-pipeline.yml")],
        cwd=project,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(conf)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_spark_pipelines_runs_the_project_to_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    assert CliRunner().invoke(app, ["init", str(project)]).exit_code == 0
    runpy.run_path(str(project / "make_orders.py"))
    refreshed = CliRunner().invoke(app, ["--debug", "refresh", "--project", str(project)])
    assert refreshed.exit_code == 0, refreshed.output

    session = embedded_session(project / "warehouse")
    (tmp_path / "other").mkdir()
    for key, value in other_catalog(tmp_path / "other").items():
        session.conf.set(key, value)
    session.sql("CREATE NAMESPACE other.default")
    session.sql("CREATE TABLE other.default.orders USING iceberg AS SELECT * FROM lake.default.orders")
    # Spark takes the catalog from the spec; ours stands in viewkeeper.yml. All else is the same project.
    with (project / "spark-pipeline.yml").open("a") as spec:
        spec.write("catalog: other\n")
    run_pipeline(project, tmp_path / "other")

    for view in VIEWS:
        kept = sorted(map(tuple, session.table(f"lake.default.{view}").collect()))
        assert kept == sorted(map(tuple, session.table(f"other.default.{view}").collect()))
        assert kept, "an empty view would prove nothing"
