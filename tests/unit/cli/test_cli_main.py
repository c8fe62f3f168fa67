"""The command line itself: exit codes, errors, JSON, and that asking for help is quick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from viewkeeper import __version__
from viewkeeper.cli import reading
from viewkeeper.cli.commands import open_warehouse
from viewkeeper.cli.main import app
from viewkeeper.define.project import load_project
from viewkeeper.define.template import init_project

COMMANDS = [
    *("init", "plan", "refresh", "explain", "status", "verify", "repair", "history", "sources", "demo"),
    *("maintain", "calibrate", "propagate"),
]
run = CliRunner().invoke


def test_help_lists_every_command() -> None:
    shown = run(app, ["--help"])
    assert shown.exit_code == 0
    assert all(command in shown.output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str) -> None:
    shown = run(app, [command, "--help"])
    assert shown.exit_code == 0
    assert "--json" in shown.output


def test_version() -> None:
    assert run(app, ["--version"]).output.strip() == f"viewkeeper {__version__}"


def test_help_loads_neither_spark_nor_the_sql_parser() -> None:
    code = (
        "import sys, viewkeeper.cli.main; "
        "print([m for m in ('pyspark', 'sqlglot', 'sqlalchemy', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_commands_that_need_no_spark_do_not_load_it(tmp_path: Path) -> None:
    run(app, ["init", str(tmp_path / "shop")])
    code = (
        "import sys\nfrom viewkeeper.cli.main import app\n"
        f"app(['status', '--project', {str(tmp_path / 'shop')!r}], standalone_mode=False)\n"
        "print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert "No views yet" in done.stdout


def test_our_errors_are_a_message_and_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(app, ["status"])
    assert shown.exit_code == 1
    assert shown.stderr.startswith("[VK-PROJECT] no spark-pipeline.yml")
    assert "Hint: " in shown.stderr
    assert "Traceback" not in shown.stderr


def test_debug_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(app, ["--debug", "status"])
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr and "VK-PROJECT" in shown.stderr


def test_ctrl_c_is_a_message_and_exit_code_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "status", interrupted)
    shown = run(app, ["status", "--project", str(tmp_path)])
    assert shown.exit_code == 130
    assert shown.stderr == "Interrupted; nothing more was published.\n"


def test_a_cluster_that_is_none(tmp_path: Path) -> None:
    """In a process of its own, for there a session is made afresh."""
    run(app, ["init", str(tmp_path)])
    settings = "connection:\n  master: nonsense\n  catalog: lake\n"
    (tmp_path / "viewkeeper.yml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "viewkeeper", "plan", "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "[VK-SETUP-SPARK] no Spark session on nonsense: " in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_as_json(tmp_path: Path) -> None:
    shown = run(app, ["status", "--json", "--project", str(tmp_path)])
    assert shown.exit_code == 1
    document = json.loads(shown.stdout)
    assert document["format"] == 1
    assert document["error"]["code"] == "VK-PROJECT"
    assert set(document["error"]) == {"code", "message", "hint", "position"}


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["explain"], ["refresh", "--full", "--policy", "auto"], ["demo", "--rows", "0"]],
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str]) -> None:
    assert run(app, arguments).exit_code == 2


def test_a_warehouse_knows_the_foreign_keys_of_its_project(tmp_path: Path) -> None:
    init_project(tmp_path / "shop", "shop")
    (tmp_path / "shop" / "viewkeeper.yml").write_text(
        "keys: {orders: [id]}\nforeign_keys: [{table: line, columns: [of], references: orders}]\n"
    )
    with open_warehouse(load_project(tmp_path / "shop")) as warehouse:
        (known,) = warehouse.foreign_keys
    assert (known.table, known.references, known.referenced_columns) == ("line", "orders", ("id",))


def test_init_answers_with_the_next_steps_or_json(tmp_path: Path) -> None:
    shown = run(app, ["init", str(tmp_path / "a")])
    assert shown.exit_code == 0
    assert "viewkeeper refresh" in shown.stdout
    document = json.loads(run(app, ["init", str(tmp_path / "b"), "--json"]).stdout)
    assert document["project"] == str(tmp_path / "b")
    assert all(Path(file).is_file() for file in document["files"])


def test_demo_removes_no_folder_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    shown = run(app, ["demo", "--folder", str(tmp_path)])
    assert shown.exit_code == 1
    assert "VK-SETUP-FOLDER" in shown.stderr
    assert (tmp_path / "notes.txt").is_file()
