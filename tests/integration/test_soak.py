"""A short soak: the service is killed while a writer goes on. ``benchmarks/soak.py`` does it for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.spark
@pytest.mark.long
def test_killed_again_and_again(tmp_path: Path):
    patient = ["--minutes", "2", "--kill-every", "60", "--lag", "60", "--cycles", "3", "--rows", "20000"]
    done = subprocess.run(
        [sys.executable, str(SOAK), *patient], cwd=tmp_path, capture_output=True, text=True, timeout=580
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 wrong" in done.stdout
    assert "1 kills" in done.stdout
