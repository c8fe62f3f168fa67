"""The Python of the README is run as it stands; ``test_docs.py`` does it for the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_first_view(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = next(block for block in python_blocks() if "CREATE MATERIALIZED VIEW" in block)
    exec(compile(first, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "incremental, sdoverwrite" in shown, "the cheapest way for a storage of this size"
    assert "INSERT OVERWRITE" in shown


def test_every_python_block_compiles():
    for block in python_blocks():
        compile(block, "README.md", "exec")
