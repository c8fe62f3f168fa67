"""Commands that only read the ledger start no JVM, load no pyspark, and read only what they show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from viewkeeper.cli.main import app
from viewkeeper.testing.ledgers import paper_ledger

VIEWS, EPOCHS = 50, 2000
GENEROUS_SECONDS = 5.0
"""Of processor time, so that a busy machine keeps it; what a person waits for is printed by
benchmarks/cold_start.py."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with 50 views and 2,000 epochs."""
    folder = tmp_path_factory.mktemp("cold") / "shop"
    assert CliRunner().invoke(app, ["init", str(folder)]).exit_code == 0
    paper_ledger(folder / "warehouse", VIEWS, EPOCHS)
    return folder


@pytest.fixture
def no_java(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which java leaves a mark and fails, and the file that it leaves."""
    marker, home = tmp_path / "java-was-started", tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n", encoding="utf-8")
    java.chmod(0o755)
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "JAVA_HOME": str(home), "PATH": path}, marker


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["status"], "sales_by_49"),
        (["history"], "2000"),
        (["history", "sales_by_4"], "2000"),
        (["history", "--estimates", "-n", "20"], "sales"),
        (["plan", "--stored"], "because of lake.default.pos"),
        (["explain", "sales_by_4", "--stored"], "for epoch 2000, published 2026-01-07"),
        (["lattice", "show"], "sales_by_4"),
        (["sources"], "No sources are declared"),
        (["--help"], "status"),
    ],
)
def test_no_jvm_and_no_pyspark(
    project: Path, no_java: tuple[dict[str, str], Path], arguments: list[str], expected: str
) -> None:
    environment, marker = no_java
    command = [sys.executable, "-X", "importtime", "-m", "viewkeeper", *arguments]
    before = os.times()
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert "pyspark" not in {
        line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()
    }
    assert not marker.exists()
    after = os.times()
    took = after.children_user + after.children_system - before.children_user - before.children_system
    assert took < GENEROUS_SECONDS


def test_the_mark_is_left_when_spark_starts(project: Path, no_java: tuple[dict[str, str], Path]) -> None:
    """The test above could not fail otherwise."""
    environment, marker = no_java
    command = [sys.executable, "-m", "viewkeeper", "plan"]
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert marker.exists()


def test_a_cluster_is_not_asked_for_the_status(tmp_path: Path, no_java: tuple[dict[str, str], Path]) -> None:
    environment, marker = no_java
    CliRunner().invoke(app, ["init", str(tmp_path / "shop")])
    settings = "connection:\n  master: spark://nowhere:7077\n  catalog: lake\n"
    (tmp_path / "shop" / "viewkeeper.yml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "viewkeeper", "status", "--project", str(tmp_path / "shop")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, marker.exists()) == (0, False), done.stderr


def test_status_asks_the_ledger_as_often_for_many_views_as_for_few(tmp_path: Path) -> None:
    from sqlalchemy import event

    from viewkeeper.ledger import Ledger
    from viewkeeper.overview import Overview

    def questions(views: int) -> int:
        asked: list[str] = []
        with Ledger.open(paper_ledger(tmp_path / str(views), views, 12)) as ledger:
            event.listen(
                ledger._database._engine, "before_cursor_execute", lambda *given: asked.append(given[2])
            )
            assert len(Overview(ledger, ("lake", "default")).status()) == views
        return len(asked)

    assert questions(30) == questions(3)


def test_people_see_the_last_epochs_and_machines_all(project: Path) -> None:
    run = CliRunner().invoke
    shown = run(app, ["history", "--project", str(project)])
    assert "Older epochs" in shown.stdout and " 1980 " not in shown.stdout
    assert "Older epochs" not in run(app, ["history", "-n", "3", "--project", str(project)]).stdout
    document = json.loads(run(app, ["history", "--json", "--project", str(project)]).stdout)
    assert len(document["epochs"]) == EPOCHS


def test_a_view_over_a_view_that_is_behind_is_behind(project: Path) -> None:
    """The last epoch refreshed the views 0 to 4, the sales have moved on for the others."""
    shown = CliRunner().invoke(app, ["status", "--json", "--project", str(project)])
    stale = {view["view"].split("_")[-1]: view["stale"] for view in json.loads(shown.stdout)["views"]}
    assert not any(stale[str(number)] for number in range(5))
    assert all(stale[str(number)] for number in range(5, VIEWS))


def test_what_is_stored_is_said_with_its_time(project: Path) -> None:
    run = CliRunner().invoke
    document = json.loads(run(app, ["plan", "--stored", "--json", "--project", str(project)]).stdout)
    assert document["plan"] is None and document["pending"] is None
    tables = ("lake.default.pos", "lake.default.items")
    assert document["seen"] == dict.fromkeys(tables, "2026-01-07T22:40:00+00:00")
    found = {view["view"].split("_")[-1]: (view["strategy"], view["changed"]) for view in document["views"]}
    assert found["0"] == ("unchanged", [])
    assert found["5"] == ("incremental", ["lake.default.pos"])
    assert found["9"] == ("incremental", ["lake.default.sales_by_8"])
    assert found["49"][0] == "full"
    assert run(app, ["plan", "--stored", "--policy", "full", "--project", str(project)]).exit_code == 2


def test_no_plan_is_stored_yet(tmp_path: Path) -> None:
    run = CliRunner().invoke
    run(app, ["init", str(tmp_path / "shop")])
    shown = run(app, ["explain", "nothing", "--stored", "--project", str(tmp_path / "shop")])
    assert shown.exit_code == 1 and "VK-UNKNOWN-VIEW" in shown.stderr
