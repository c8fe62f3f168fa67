"""The tables under ``benchmarks/results``, read back: for the report, and for what is judged by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Row = Mapping[str, str]


@dataclass(frozen=True)
class Result:
    """One file: its title, the machine and the date, its rows as they stand, and what is said of them."""

    name: str
    title: str
    conditions: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    drawing: Path | None


class NotMeasured(Exception):
    """There is no such result yet."""


@dataclass(frozen=True)
class Results:
    """All of them, by name."""

    found: Mapping[str, Result]

    def __getitem__(self, name: str) -> Result:
        if name not in self.found:
            raise NotMeasured(name)
        return self.found[name]

    def rows(self, names: Iterable[str]) -> list[Row]:
        """The rows of several, one after the other."""
        return [row for name in names for row in self[name].rows]


def read_results(folder: Path) -> Results:
    """Every table of the folder."""
    return Results({path.stem: read_result(path) for path in sorted(folder.glob("*.md"))})


def read_result(path: Path) -> Result:
    """A title, a paragraph on the conditions, a table, and paragraphs."""
    head, conditions, *parts = path.read_text(encoding="utf-8").strip().split("\n\n")
    tables = [part for part in parts if part.startswith("|")]
    drawing = path.with_suffix(".svg")
    return Result(
        path.stem,
        head.removeprefix("# "),
        conditions,
        tuple(rows_of(tables[0])) if tables else (),
        tuple(part for part in parts if part not in tables[:1]),
        drawing if drawing.is_file() else None,
    )


def rows_of(table: str) -> list[Row]:
    """The rows of a Markdown table.

    >>> rows_of("| a | b |\\n| --- | --- |\\n| 1 | x |")
    [{'a': '1', 'b': 'x'}]
    """
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
    columns, _, *cells = lines
    return [dict(zip(columns, each, strict=True)) for each in cells]


def number(text: str) -> float:
    """A cell as a number.

    >>> number("1,000,500"), number("750×")
    (1000500.0, 750.0)
    """
    return float(text.replace(",", "").rstrip("×%"))
