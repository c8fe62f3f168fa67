"""The code blocks of the documentation, and somebody who follows a page: runs what it says, in its order.

A block is run by its language, unless a comment above it says otherwise:

- ``<!-- not run: reason -->``: it needs what a test does not have;
- ``<!-- run by tests/… -->``: another test does, with a world of its own;
- ``<!-- on PostgreSQL -->``: by the database, not by Spark.

``text`` is output, or no code at all. A block with a ``title`` is a file, and written. Lines of ``console``
that begin with ``$`` are commands, the others what they answer.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

import viewkeeper as vk
from viewkeeper.cli.main import app
from viewkeeper.define.place import PipelineSpec
from viewkeeper.define.project import split_statements
from viewkeeper.define.settings import Settings
from viewkeeper.define.sources import SourceDefinition, checked_options
from viewkeeper.define.yaml_files import read_yaml

DOCS = Path(__file__).parents[2] / "docs"
RUN = ("python", "sql", "yaml", "json", "bash", "console")
OUTPUT = "text"

_FENCE = re.compile(r"(?m)^```(.*)\n((?:.*\n)*?)^```[ ]*$")
_COMMENT = re.compile(r"<!-- ((?:(?!-->)[\s\S])*) -->\Z")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, what it is, and what the comment above says of it."""

    page: str
    line: int
    language: str
    title: str | None
    text: str
    note: str = ""

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        return self.note.removeprefix("not run:").strip() if self.note.startswith("not run") else None

    @property
    def test(self) -> str | None:
        """The test that runs it instead."""
        return self.note.removeprefix("run by ") if self.note.startswith("run by ") else None

    @property
    def is_run(self) -> bool:
        return self.language in RUN and self.reason is None and self.test is None

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}"


def pages() -> list[str]:
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def blocks(page: str) -> Iterator[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        language, _, more = found[1].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', more)
        above = _COMMENT.search(text[: found.start()].rstrip().rpartition("\n\n")[2])
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, language, title and title[1], found[2], above[1] if above else "")


@dataclass
class Reader:
    """Somebody who follows one page, in a folder of their own."""

    folder: Path
    go: Callable[[Path], None]
    """Changes the working directory."""
    project: Callable[[], Path]
    """A project that is ready, for pages that do not make one."""
    names: dict[str, Any] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the page, and what stands for them here."""
    database: Callable[[str], object] | None = None
    inside: bool = False

    def follow(self, block: Block) -> None:
        text = block.text
        for told, here in self.elsewhere.items():
            text = text.replace(told, here)
        try:
            self._follow(block, text)
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{block}: {error}\n{text}") from error

    def _follow(self, block: Block, text: str) -> None:
        if block.title:
            target = Path.cwd() / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        match block.language:
            case "python":
                exec(compile(text, block.page, "exec"), self.names)
            case "yaml":
                self._check_yaml(text)
            case "json":
                json.loads(text)
            case "sql" if block.note == "on PostgreSQL":
                assert self.database is not None
                for statement in filter(str.strip, text.split(";\n")):
                    self.database(statement)
            case "sql" if not block.title:
                for statement in filter(str.strip, text.split(";\n")):
                    self.warehouse.sql(statement)
            case "sql":
                assert list(split_statements(text, Path(block.page)))
            case "bash" | "console":
                for command in _commands(text, marked=block.language == "console"):
                    self._run(command)

    @property
    def warehouse(self) -> Any:
        if "wh" not in self.names:
            self.names["wh"] = vk.connect(self.folder / "warehouse")
        return self.names["wh"]

    def _check_yaml(self, text: str) -> None:
        file = self.folder / "checked.yml"
        file.write_text(text, encoding="utf-8")
        if "libraries" in yaml.safe_load(text):
            read_yaml(file, PipelineSpec)
            return
        for name, source in read_yaml(file, Settings).sources.items():
            checked_options(SourceDefinition(name, source.kind, source.told(self.folder)))

    def _run(self, command: str) -> None:
        program, *arguments = shlex.split(command)
        if not self.inside and not (program == "viewkeeper" and arguments[0] in ("init", "sweep", "--help")):
            self.go(self.project())
            self.inside = True
        match program:
            case "cd":
                self.go(Path.cwd() / arguments[0])
            case "python":
                runpy.run_path(arguments[0])
            case "viewkeeper":
                shown = CliRunner().invoke(app, arguments)
                assert shown.exit_code == 0, f"{command}: {shown.output}"
                self.inside = self.inside or arguments[0] == "init"
            case _:
                raise AssertionError(f"{command} cannot be run here: say why above it")


def _commands(text: str, *, marked: bool) -> Iterator[str]:
    for line in text.splitlines():
        if marked and not line.startswith("$ "):
            continue
        for command in line.removeprefix("$ ").partition(" #")[0].split("&&"):
            if command.strip() and not command.startswith("#"):
                yield command.strip()
