"""The Python of the README and of the docs is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def python_blocks(page: Path = README) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_first_view(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = next(block for block in python_blocks() if "CREATE MATERIALIZED VIEW" in block)
    exec(compile(first, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "incremental, sdoverwrite" in shown, "the cheapest way for a storage of this size"
    assert "INSERT OVERWRITE" in shown


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_the_docs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in python_blocks(page):
        exec(compile(block, page.name, "exec"), {})


def test_every_python_block_compiles():
    for block in python_blocks():
        compile(block, "README.md", "exec")
