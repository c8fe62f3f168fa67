"""Which Java is found, and what is said when it does not do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from viewkeeper import java

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pretended java is a shell script")


def pretend(folder: Path, version: str | None, *, release: bool = False) -> Path:
    """A JAVA_HOME whose java says that version, or fails."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    answer = f"echo 'openjdk version \"{version}\"' >&2" if version and not release else "exit 1"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.1"])
def test_17_and_21_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend(tmp_path, version)))
    assert java.java_problem() is None


def test_a_release_file_saves_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend(tmp_path, "17.0.1", release=True)))
    assert java.java_problem() is None


@pytest.mark.parametrize(
    ("version", "words"), [("1.8.0_292", "is Java 8"), ("11.0.2", "is Java 11"), (None, "does not run")]
)
def test_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, words: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend(tmp_path, version)))
    problem = java.java_problem()
    assert problem is not None
    assert words in problem and "Spark needs Java 17 or 21" in problem


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Java was not found" in str(java.java_problem())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "no bin/java" in str(java.java_problem())


def test_the_makefile_runs_the_file_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", java.__file__],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Spark needs Java 17 or 21" in done.stderr and "Traceback" not in done.stderr
