"""The doctor: what it looks at, what it says, and that it changes nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from viewkeeper.cli.main import app
from viewkeeper.errors import LedgerError
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.overview import Overview
from viewkeeper.testing.ledgers import paper_ledger

run = CliRunner().invoke


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    assert run(app, ["init", str(folder)]).exit_code == 0
    return folder


def looked(folder: Path, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    done = run(app, ["doctor", "--json", "--project", str(folder), *arguments])
    assert done.exit_code == exit_code, done.output
    document = json.loads(done.stdout)
    assert document["ok"] is (exit_code == 0)
    return {check["name"]: check for check in document["checks"]}


def test_a_new_project_is_well_and_stays_as_it_is(project: Path) -> None:
    before = sorted(project.rglob("*"))
    found = looked(project)
    assert list(found) == [
        "Python",
        "PySpark",
        "Java",
        "memory",
        "jars",
        "disk",
        "project",
        "ledger",
        "catalog",
    ]
    assert "2 views" in found["project"]["found"]
    assert "none yet" in found["ledger"]["found"]
    assert sorted(project.rglob("*")) == before


def test_outside_of_a_project_the_machine_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(app, ["doctor"])
    assert shown.exit_code == 0
    assert "warn  project  none here" in shown.stdout
    assert "viewkeeper init" in shown.stdout


def test_java_that_is_missing_fails_with_what_to_install(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = looked(project, exit_code=1)["Java"]
    assert java["state"] == "fail" and "JAVA_HOME" in java["found"] and "17 or 21" in java["remedy"]


def test_java_is_not_needed_for_a_spark_elsewhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    settings = "connection: {remote: 'sc://spark.example:15002', catalog: lake}\n"
    (project / "viewkeeper.yml").write_text(settings, encoding="utf-8")
    found = looked(project)
    assert "not needed" in found["Java"]["found"]
    assert "sc://spark.example:15002" in found["catalog"]["found"]


@pytest.mark.parametrize(
    ("memory", "state"), [("2g", "ok"), ("100m", "warn"), ("900t", "fail"), ("much", "fail")]
)
def test_memory(project: Path, monkeypatch: pytest.MonkeyPatch, memory: str, state: str) -> None:
    monkeypatch.setenv("VIEWKEEPER_DRIVER_MEMORY", memory)
    found = looked(project, exit_code=int(state == "fail"))["memory"]
    assert found["state"] == state
    assert bool(found["remedy"]) is (state != "ok")


def test_jars_that_are_not_there_yet_are_no_failure(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIEWKEEPER_CACHE", str(tmp_path / "cache"))
    jars = looked(project)["jars"]
    assert jars["state"] == "warn" and "viewkeeper.jars" in jars["remedy"]
    assert not (tmp_path / "cache").exists()


def test_a_project_file_that_is_broken(project: Path) -> None:
    (project / "viewkeeper.yml").write_text("polcy: full\n", encoding="utf-8")
    found = looked(project, exit_code=1)
    assert "viewkeeper.yml:1:1" in found["project"]["found"]
    assert "ledger" not in found


def test_a_ledger_its_schema_and_its_lease(project: Path) -> None:
    url = paper_ledger(project / "warehouse", 3, 4)
    assert "schema version" in looked(project)["ledger"]["found"]
    assert "epoch 4" in looked(project)["ledger"]["found"]
    with Ledger.open(url) as ledger:
        ledger.acquire("somebody else")
    held = looked(project)["ledger"]
    assert held["state"] == "warn" and "somebody else is refreshing" in held["found"]


def test_a_ledger_that_is_none(project: Path) -> None:
    (project / "warehouse").mkdir()
    (project / "warehouse" / "ledger.db").write_text("this is no database, " * 100, encoding="utf-8")
    (project / "warehouse" / "catalog.db").write_text("nor is this one, " * 100, encoding="utf-8")
    found = looked(project, exit_code=1)
    assert found["ledger"]["state"] == "fail" and "backup" in found["ledger"]["remedy"]
    assert found["catalog"]["state"] == "fail"


def test_an_old_ledger_is_not_migrated_by_looking(project: Path) -> None:
    paper_ledger(project / "warehouse", 3, 4)
    file = project / "warehouse" / "ledger.db"
    with sqlite3.connect(file) as opened:
        opened.execute("DELETE FROM vk_schema WHERE version = (SELECT max(version) FROM vk_schema)")
        (before,) = opened.execute("SELECT max(version) FROM vk_schema").fetchone()
    opened.close()
    assert "to become" in looked(project)["ledger"]["found"]
    with sqlite3.connect(file) as opened:
        assert opened.execute("SELECT max(version) FROM vk_schema").fetchone() == (before,)
    opened.close()


def test_a_database_that_does_not_answer(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "viewkeeper.yml").write_text("connection: {ledger: {env: SHOP_LEDGER}}\n", encoding="utf-8")
    assert "SHOP_LEDGER is not set" in looked(project, exit_code=1)["ledger"]["found"]
    monkeypatch.setenv("SHOP_LEDGER", "postgresql://keeper:secret@127.0.0.1:1/shop")
    ledger = looked(project, exit_code=1)["ledger"]
    assert "cannot be reached" in ledger["found"] and "secret" not in json.dumps(ledger)


def test_the_ledger_of_a_folder_is_found_by_its_url(project: Path) -> None:
    """An embedded warehouse may be elsewhere in the project."""
    (project / "viewkeeper.yml").write_text("connection: {warehouse: there}\n", encoding="utf-8")
    paper_ledger(project / "there", 2, 3)
    assert sqlite_url(project / "there" / "ledger.db") in looked(project)["ledger"]["found"]


def test_the_token_of_a_spark_elsewhere_is_not_told(project: Path) -> None:
    settings = "connection: {remote: 'sc://host:15002/;token=HUSH;user_id=me', catalog: lake}\n"
    (project / "viewkeeper.yml").write_text(settings)
    done = run(app, ["doctor", "--project", str(project)])
    assert "sc://host:15002" in done.stdout
    assert "HUSH" not in done.stdout


def test_a_spark_that_refuses_is_a_finding_and_hides_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def sql(text: str) -> None:
        asked.append(text)
        raise RuntimeError("no such catalog\nJVM stacktrace")

    spark = SimpleNamespace(version="4.1", sql=sql)
    monkeypatch.setattr(
        "viewkeeper.cli.commands.open_warehouse",
        lambda project: nullcontext(SimpleNamespace(spark=spark, catalog="my-lake")),
    )
    done = run(app, ["doctor", "--json", "--project", str(project), "--spark"])
    checks = json.loads(done.stdout)["checks"]
    assert [each["found"] for each in checks if each["name"] == "Spark"] == ["4.1 starts", "no such catalog"]
    assert asked == ["SHOW NAMESPACES IN `my-lake`"]
    assert done.exit_code == 1


def test_sources_that_cannot_be_asked_are_a_finding(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper_ledger(project / "warehouse", 2, 3)

    def sources(overview: object) -> None:
        raise LedgerError("the ledger went away")

    monkeypatch.setattr(Overview, "sources", sources)
    found = looked(project, exit_code=1)
    assert found["sources"]["found"] == "the ledger went away"
    assert found["ledger"]["state"] == "ok"
