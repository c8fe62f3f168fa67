"""The reference pages are what the code says now, and leave nothing out."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Annotated

import pytest
import typer.main
from pydantic import BaseModel, BeforeValidator, Field

from viewkeeper.cli.main import app
from viewkeeper.define.settings import Settings
from viewkeeper.reference import settings_page
from viewkeeper.reference.__main__ import PAGES
from viewkeeper.reference.cli_page import ENVIRONMENT

ROOT = Path(__file__).parents[3]
CODE = re.compile(r"VK-[A-Z0-9-]+")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_every_error_code_is_explained() -> None:
    found: dict[str, str] = {}
    for path in (ROOT / "src").rglob("*.py"):
        if path.parent.name == "reference" or path.name == "reason_page.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found[node.value] = f"{path.relative_to(ROOT)}:{node.lineno}"
    assert len(found) > 100
    rows = [line.split(" | ") for line in PAGES["reference/errors.md"]().splitlines() if "| `VK-" in line]
    told = {row[0].strip("| `"): row[1].strip() for row in rows}
    unexplained = {code: where for code, where in found.items() if not told.get(code)}
    assert not unexplained, "say what they mean, in reference/codes.py"
    assert len(rows) == len(told), "a code stands there twice"
    assert set(told) <= set(found), f"nobody raises {sorted(set(told) - set(found))}"


def test_every_command_and_option_is_listed() -> None:
    page = PAGES["reference/cli.md"]()

    def look(path: str, group: object) -> None:
        for name, command in getattr(group, "commands", {}).items():
            if not hasattr(command, "commands"):
                assert f"## {path} {name}\n" in page
                _, _, part = page.partition(f"## {path} {name}\n")
                for option in (word for each in command.params for word in each.opts):
                    assert f"`{option}" in part.partition("\n## ")[0] or not option.startswith("-"), option
            look(f"{path} {name}", command)

    look("viewkeeper", typer.main.get_command(app))
    assert "## viewkeeper sources\n" in page


def test_every_variable_of_the_environment_is_listed() -> None:
    read = re.compile(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"")
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    assert {name for text in sources for name in read.findall(text)} == set(ENVIRONMENT)


def test_intervals_are_told_as_people_write_them() -> None:
    class Waiting(BaseModel):
        """How long."""

        poll: Annotated[int, BeforeValidator(len)] = 10
        port: Annotated[int, Field(ge=1)] = 80

    page = settings_page._table("waiting", Waiting)
    assert "| `poll` | interval, such as `5 minutes` | `10 seconds` |" in page
    assert "| `port` | number | `80` |" in page


def test_every_setting_is_listed() -> None:
    page = PAGES["reference/yaml.md"]()
    for name in Settings.model_fields:
        assert f"| `{name}` |" in page
