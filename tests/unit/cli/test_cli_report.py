"""The report: one file, whole and safe, made without Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from viewkeeper.cli.main import app
from viewkeeper.define.sources import SourceDefinition
from viewkeeper.ledger import Ledger, NewEpoch, SourceRecord
from viewkeeper.plan.codec import CODEC
from viewkeeper.testing.ledgers import paper_ledger

run = CliRunner().invoke
MARKUP = "<script>alert(1)</script>&'\""
EMPTY = {"meta", "br", "path", "rect", "line", "circle", "polygon", "polyline", "use", "img", "input", "link"}


class Page(HTMLParser):
    """Checks that what is opened is closed, and collects the text and what is loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    assert run(app, ["init", str(folder)]).exit_code == 0
    return folder


def reported(project: Path) -> str:
    file = project / "out.html"
    done = run(app, ["report", "--output", str(file), "--project", str(project), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["file"] == str(file)
    return file.read_text(encoding="utf-8")


def test_it_tells_all_and_loads_nothing(project: Path) -> None:
    paper_ledger(project / "warehouse", 12, 40, names=[MARKUP])
    text = reported(project)
    page = Page(text)
    for number in range(1, 12):
        assert f"lake.default.sales_by_{number}" in page.text
    assert MARKUP in page.text, "as text"
    assert "script" not in page.tags
    assert page.loaded == []
    outside = re.sub(r'xmlns="http://www\.w3\.org/2000/svg"', "", text)
    assert not re.search(r"https?://|url\(|@import", outside)
    assert page.tags.count("svg") == 2
    for said in ("<the disk> was full", "RECURSIVE_CTE", "Estimates of deltas", "sold", "Epoch 40 was"):
        assert said in page.text


def test_a_project_without_anything(project: Path) -> None:
    page = Page(reported(project))
    for said in ("No views yet.", "No epochs yet.", "None are declared."):
        assert said in page.text


def test_secrets_are_left_out(project: Path) -> None:
    url = paper_ledger(project / "warehouse", 2, 3)
    options = (("host", "db.example"), ("password_env", "SHOP_PASSWORD"), ("url", "jdbc:x://me:hush@db/x"))
    source = SourceDefinition("shop", "jdbc", options)
    with Ledger.open(url) as ledger:
        lease = ledger.acquire("somebody")
        epoch = ledger.begin(lease)
        definition = CODEC.encode(source)
        assert isinstance(definition, dict)
        record = SourceRecord("shop", definition, epoch)
        ledger.publish(lease, NewEpoch(epoch, {}, (), (), declare=(record,)))
        ledger.abandon(lease, ledger.begin(lease), "postgresql://me:hush@db refused password='hush'")
        ledger.release(lease)
    text = reported(project)
    assert "hush" not in text
    assert "db.example" in text and "password_env=SHOP_PASSWORD" in text


def test_it_starts_no_jvm(project: Path) -> None:
    paper_ledger(project / "warehouse", 3, 5)
    command = [sys.executable, "-X", "importtime", "-m", "viewkeeper", "report"]
    environment = {**os.environ, "JAVA_HOME": "/nowhere"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "pyspark" not in done.stderr
    assert (project / "viewkeeper-report.html").is_file()


def test_a_place_that_cannot_be_written(project: Path) -> None:
    shown = run(app, ["report", "--output", str(project / "no" / "where.html"), "--project", str(project)])
    assert shown.exit_code == 1
    assert "[VK-SETUP-FOLDER] the report cannot be written" in shown.stderr
    assert not list(project.glob(".*html*"))
