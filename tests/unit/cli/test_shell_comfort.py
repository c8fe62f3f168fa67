"""Help on one screen, completion, watching, explanations in colour, errors and pipes."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from viewkeeper.cli.explaining import explained
from viewkeeper.cli.help import GROUPS
from viewkeeper.cli.main import app
from viewkeeper.cli.output import Output
from viewkeeper.explain import Explanation
from viewkeeper.ledger import Ledger, sqlite_url
from viewkeeper.overview import Overview
from viewkeeper.testing.ledgers import paper_ledger

run = CliRunner().invoke
VIEWKEEPER = [sys.executable, "-m", "viewkeeper"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comfort") / "shop"
    assert run(app, ["init", str(folder)]).exit_code == 0
    paper_ledger(folder / "warehouse", 12, 30)
    return folder


def shown_in(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VIEWKEEPER, *arguments],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_help_fits_a_screen() -> None:
    lines = shown_in(Path.cwd(), "--help", COLUMNS="80", LINES="24").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_the_help_names_each_command_once_with_what_it_is_for() -> None:
    lines = run(app, ["--help"]).stdout.splitlines()
    named = [word for line in lines[2:-2] for word in re.findall(r"^\w* +([\w-]+)  ", line)]
    assert sorted(named) == sorted(set(named))
    assert {"status", "refresh", "doctor", "sweep"} <= set(named)
    assert not any(line.endswith("...") for line in lines[2:])
    assert [line.split()[0] for line in lines if line[:1].islower()][:4] == list(GROUPS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("viewkeeper explain sales_by_1", ["sales_by_1", "sales_by_10", "sales_by_11"]),
        ("viewkeeper refresh lake.default.sales_by_11", ["lake.default.sales_by_11"]),
        ("viewkeeper verify nothing", []),
        ("viewkeeper stat", ["status"]),
    ],
)
def test_the_shell_completes_names(project: Path, words: str, expected: list[str]) -> None:
    count = str(len(words.split()) - 1)
    done = shown_in(
        project,
        _VIEWKEEPER_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=count,
        JAVA_HOME="/nowhere",
    )
    assert done.stdout.split() == expected
    assert done.stderr == ""


def test_completion_is_silent_where_there_is_no_project(tmp_path: Path) -> None:
    environment = {"_VIEWKEEPER_COMPLETE": "complete_bash", "COMP_WORDS": "viewkeeper explain a"}
    done = shown_in(tmp_path, **environment, COMP_CWORD="2")
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(tmp_path: Path, shell: str) -> None:
    done = shown_in(tmp_path, _VIEWKEEPER_COMPLETE=f"source_{shell}")
    assert done.returncode == 0 and "_VIEWKEEPER_COMPLETE" in done.stdout


def an_explanation(project: Path) -> Explanation:
    with Ledger.open(sqlite_url(project / "warehouse" / "ledger.db")) as ledger:
        return Overview(ledger, ("lake", "default")).explain_last("sales_by_4")


def drawn(found: Explanation, **settings: bool) -> str:
    console = Console(file=io.StringIO(), width=160, **settings)
    output = Output(results=console)
    output.say(explained(output, found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_explain_is_a_tree_in_colour_on_a_terminal(project: Path) -> None:
    found = an_explanation(project)
    shown = drawn(found, force_terminal=True)
    assert "\x1b[" in shown and "└── " in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    levels = {
        line.split(". ")[0].strip(" │├└─"): line.index(". ")
        for line in plain.splitlines()
        if "── " in line and ". " in line
    }
    assert len(levels) >= 3, "what a step reads from stands below it, further in"
    assert len(set(levels.values())) > 1
    assert "GROUP BY" in plain and "sales_by_4" in plain


def test_explain_is_plain_text_elsewhere(project: Path) -> None:
    found = an_explanation(project)
    assert drawn(found, force_terminal=False).split() == str(found).split()
    assert "\x1b[" not in drawn(found, force_terminal=True, no_color=True)
    piped = shown_in(project, "explain", "sales_by_4", "--stored")
    assert piped.stdout.split() == str(found).split()


def test_watch_draws_in_place_and_ends_cleanly(project: Path) -> None:
    """On a real terminal: a pty. Ctrl-C is the way to end it."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [*VIEWKEEPER, "status", "--watch", "0.3"],
        cwd=project,
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(follower)
    seen, deadline = b"", time.monotonic() + 50
    while seen.count(b"Ctrl-C") < 3 and time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            seen += os.read(leader, 65536)
    child.send_signal(signal.SIGINT)
    assert child.stderr is not None
    said = child.stderr.read()
    assert child.wait(30) == 0
    os.close(leader)
    child.stderr.close()
    assert seen.count(b"Ctrl-C") >= 3
    assert b"\x1b[1A" in seen, "the cursor goes up again"
    assert said == b""


def test_watch_into_a_pipe_says_one_after_the_other(project: Path) -> None:
    child = subprocess.Popen(
        [*VIEWKEEPER, "status", "--watch", "0.3"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    headings = 0
    for line in child.stdout:
        headings += b"Ctrl-C" in line
        if headings == 2:
            break
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert (child.returncode, said) == (0, b"")


@pytest.mark.parametrize(
    "arguments", [["status", "--watch", "--json"], ["status", "5"], ["status", "--watch", "0"]]
)
def test_watch_refuses_what_makes_no_sense(project: Path, arguments: list[str]) -> None:
    assert run(app, [*arguments, "--project", str(project)]).exit_code == 2


@pytest.mark.parametrize(
    "arguments", [["history", "--json"], ["history", "-n", "1000"], ["status"], ["--help"]]
)
def test_a_reader_that_has_gone_is_no_error_worth_a_word(project: Path, arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*VIEWKEEPER, *arguments],
        cwd=project,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


def test_an_error_that_nobody_foresaw_is_a_message(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> int:
        raise RuntimeError("lost\nand more")

    monkeypatch.setattr("viewkeeper.cli.reading.history", broken)
    shown = run(app, ["history", "--project", str(project)])
    assert shown.exit_code == 1
    assert shown.stderr.startswith("[VK-INTERNAL] RuntimeError: lost\n")
    assert "--debug" in shown.stderr and "Traceback" not in shown.stderr
    assert "Traceback" in run(app, ["--debug", "history", "--project", str(project)]).stderr


def test_an_error_whose_words_are_gone_is_a_message_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the JVM asks that for its message, and the JVM may have died."""

    class LostError(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    def broken(*_: object, **__: object) -> int:
        raise LostError

    monkeypatch.setattr("viewkeeper.cli.reading.history", broken)
    for arguments in (["history"], ["--debug", "history"]):
        shown = run(app, [*arguments, "--project", str(project)])
        assert shown.exit_code == 1
        assert "[VK-INTERNAL] LostError: no message\n" in shown.stderr


def test_a_broken_project_file_names_line_and_column(tmp_path: Path) -> None:
    run(app, ["init", str(tmp_path / "shop")])
    (tmp_path / "shop" / "viewkeeper.yml").write_text("policy: auto\nviews:\n  v: [a, b\n", encoding="utf-8")
    shown = run(app, ["status", "--project", str(tmp_path / "shop")])
    assert shown.exit_code == 1
    assert re.search(r"viewkeeper\.yml:4:1: ", shown.stderr)
