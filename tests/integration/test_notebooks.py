"""The notebooks in examples/ run from the first cell to the last, each in a kernel of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
_RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def cells(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return found


def test_there_are_two() -> None:
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_they_are_kept_without_outputs(notebook: Path) -> None:
    """Outputs name the machine on which they were made."""
    code = [cell for cell in cells(notebook) if cell["cell_type"] == "code"]
    assert code and all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


@pytest.mark.spark
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_they_run(notebook: Path, tmp_path: Path) -> None:
    executed = tmp_path / notebook.name
    command = [sys.executable, "-c", _RUN, str(notebook), str(executed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = [
        "".join(output["data"]["text/html"])
        for cell in cells(executed)
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert len(shown) >= 4, "the warehouse, an explanation, an epoch and the history"
    for each in shown:
        ElementTree.fromstring(f"<div>{each}</div>".replace("<br>", "<br/>"))
    assert sum("<svg" in each for each in shown) >= 2
