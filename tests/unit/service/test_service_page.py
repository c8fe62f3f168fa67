"""What ``docs/service.md`` shows is what is there."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import yaml
from typer.testing import CliRunner

from viewkeeper.analyse.statements import CreateView, RetimeView, parse_statement
from viewkeeper.cli.main import app
from viewkeeper.define.project import load_project
from viewkeeper.define.settings import Settings
from viewkeeper.define.timing import Schedule, TargetLag
from viewkeeper.service.alerts import Alert
from viewkeeper.service.metrics import Metrics

PAGE = Path(__file__).parents[3] / "docs" / "service.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_statements_are_understood():
    (script,) = blocks("sql")
    found = [parse_statement(statement) for statement in script.split(";\n") if statement.strip()]
    lag, schedule, altered, unset = found
    assert isinstance(lag, CreateView) and lag.timing == TargetLag(300)
    assert isinstance(schedule, CreateView) and schedule.timing == Schedule("0 6 * * 1-5", "Europe/Berlin")
    assert isinstance(altered, RetimeView) and altered.timing == TargetLag(5400)
    assert isinstance(unset, RetimeView) and unset.timing is None


def test_the_settings_can_be_loaded_and_none_is_left_out(tmp_path: Path):
    ours, rule = blocks("yaml")
    (tmp_path / "spark-pipeline.yml").write_text("name: shop\nstorage: storage\nlibraries: []\n")
    (tmp_path / "viewkeeper.yml").write_text(ours)
    settings = load_project(tmp_path).settings
    assert settings.timing_of("lake.default.orders_by_day") == TargetLag(300)
    assert settings.timing_of("elsewhere") == TargetLag(900)
    told = yaml.safe_load(ours)["service"]
    assert told.keys() == Settings().service.__class__.model_fields.keys()
    assert (
        set(re.findall(r"viewkeeper_\w+", yaml.safe_load(rule)["groups"][0]["rules"][0]["expr"])) <= metrics()
    )


def metrics() -> set[str]:
    lines = Metrics().text().decode().splitlines()
    kinds = (line.split()[2] for line in lines if line.startswith("# TYPE"))
    return {name for name in kinds if not name.endswith("_created")}


def test_every_metric_is_listed_and_no_other():
    assert set(re.findall(r"^\| `(viewkeeper_\w+)`", TEXT, re.MULTILINE)) == metrics()


def test_the_fields_of_an_alert_are_those_shown():
    (shown,) = blocks("json")
    assert list(json.loads(shown)) == [each.name for each in fields(Alert)]


def test_the_commands_exist():
    (script,) = blocks("bash")
    for line in script.splitlines():
        if line.startswith("viewkeeper "):
            name, *options = line.partition("#")[0].split()[1:]
            shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
            assert shown.exit_code == 0
            assert all(option in shown.output for option in options if option.startswith("--"))
