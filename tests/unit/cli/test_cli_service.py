"""``viewkeeper run`` and ``resume``, as far as they come without Spark."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from viewkeeper.cli.main import app
from viewkeeper.define.template import init_project


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    init_project(tmp_path / "shop", "shop")
    return tmp_path / "shop"


def refused(shop: Path, *options: str) -> str:
    shown = CliRunner().invoke(app, ["run", "--project", str(shop), *options])
    assert shown.exit_code == 1
    assert "Traceback" not in shown.output
    return shown.output


def test_a_port_in_use(shop: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused(shop, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert "VK-LISTEN" in said
    assert "Choose another port" in said


def test_an_address_that_others_can_reach_needs_a_token(shop: Path):
    assert "VK-LISTEN-OPEN" in refused(shop, "--listen", "0.0.0.0:0")
    settings = shop / "viewkeeper.yml"
    settings.write_text(settings.read_text() + "service: {token: {env: NO_SUCH_TOKEN}}\n")
    assert "NO_SUCH_TOKEN is not set" in refused(shop, "--listen", "0.0.0.0:0")


def test_a_broken_project_file_is_told_with_its_place(shop: Path):
    settings = shop / "viewkeeper.yml"
    before = len(settings.read_text().splitlines())
    settings.write_text(settings.read_text() + "target_lag: soonish\n")
    assert f"viewkeeper.yml:{before + 1}:1: target_lag" in refused(shop)
    settings.write_text("service: [\n")
    assert "viewkeeper.yml:2" in refused(shop)


def test_an_unknown_style_of_log_is_refused(shop: Path):
    shown = CliRunner().invoke(app, ["run", "--project", str(shop), "--log", "xml"])
    assert shown.exit_code == 2


def test_resume_of_a_view_that_nobody_knows(shop: Path):
    shown = CliRunner().invoke(app, ["resume", "nothing", "--project", str(shop), "--json"])
    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["error"]["code"] == "VK-UNKNOWN-VIEW"
