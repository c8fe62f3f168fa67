"""The SQL and the YAML of ``docs/sources.md`` and of the README, run on a real server and real files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from postgres_server import PASSWORD, prepared
from viewkeeper.analyse.statements import CreateSource, parse_statement
from viewkeeper.declaring import declaration
from viewkeeper.define.project import load_project
from viewkeeper.define.sources import SourceDefinition, checked_options
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_sources_of_the_page_work_as_written(
    open_warehouse: Callable[..., Warehouse],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    deliveries = tmp_path / "deliveries" / "orders"
    deliveries.mkdir(parents=True)
    (deliveries / "one.csv").write_text("id,amount\n1,2.50\n2,\n")
    server = prepared(tmp_path_factory.mktemp("pg"))
    try:
        server.sql(
            "CREATE TABLE customers (id INT PRIMARY KEY, name TEXT)",
            "CREATE TABLE orders (id INT PRIMARY KEY, customer INT)",
            "ALTER TABLE customers OWNER TO keeper",
            "ALTER TABLE orders OWNER TO keeper",
            "INSERT INTO customers VALUES (1, 'ann'), (2, 'bob')",
            "INSERT INTO orders VALUES (1, 1), (2, 1), (3, 2)",
        )
        here = {
            "/deliveries": str(tmp_path / "deliveries"),
            "'db.example', database 'shop'": f"'127.0.0.1', port '{server.port}', database 'postgres'",
        }
        wh = open_warehouse(tmp_path / "warehouse")
        script, other = blocks("docs/sources.md", "sql")
        for statement in filter(str.strip, script.split(";\n")):
            for told, ours in here.items():
                statement = statement.replace(told, ours)
            wh.sql(statement.strip().removesuffix(";"))
        statement = parse_statement(other)
        assert isinstance(statement, CreateSource)
        checked_options(declaration(statement))
        (declared,) = (block for block in blocks("README.md", "sql") if "CREATE SOURCE" in block)
        assert declared.strip() in script
        server.transaction("INSERT INTO customers VALUES (3, 'cem')", "INSERT INTO orders VALUES (4, 3)")
        (deliveries / "two.csv").write_text("id,amount\n3,4.00\n")
        wh.refresh()
        found = {row["name"]: row["n"] for row in wh.sql("SELECT * FROM by_customer").collect()}
        assert found == {"ann": 2, "bob": 1, "cem": 1}
        assert wh.sql("SELECT * FROM orders").count() == 3
    finally:
        server.stop("immediate")


def test_the_project_of_the_page_can_be_loaded(tmp_path: Path):
    (text,) = (block for block in blocks("docs/sources.md", "yaml") if "sources:" in block)
    assert yaml.safe_load(text)
    (tmp_path / "spark-pipeline.yml").write_text("name: shop\nstorage: storage\nlibraries: []\n")
    (tmp_path / "viewkeeper.yml").write_text(text)
    project = load_project(tmp_path)
    assert list(project.settings.sources) == ["orders", "shop"]
    for name, settings in project.settings.sources.items():
        checked_options(SourceDefinition(name, settings.kind, settings.told(project.folder)))
