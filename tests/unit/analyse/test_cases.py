"""Queries and what becomes of them, one file per construct under ``tests/cases``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shop import read

from viewkeeper.sql.printer import print_relation

_CASES = Path(__file__).parents[2] / "cases"


def _cases() -> Iterator[tuple[str, list[str], str, str]]:
    """Blocks of ``-- # title``, ``-- columns: …``, the query, ``-- becomes``, the algebra as SQL."""
    for path in sorted(_CASES.glob("*.sql")):
        for block in path.read_text().split("-- # ")[1:]:
            given, becomes = block.split("\n-- becomes\n")
            title, columns, query = given.split("\n", 2)
            names = columns.removeprefix("-- columns: ").split(", ")
            yield f"{path.stem}: {title}", names, query, becomes.strip()


@pytest.mark.parametrize(
    ("columns", "query", "expected"), [pytest.param(*case[1:], id=case[0]) for case in _cases()]
)
def test_becomes(columns: list[str], query: str, expected: str) -> None:
    analysis = read(query, *columns)
    assert analysis.reason is None
    assert analysis.relation is not None
    assert print_relation(analysis.relation) == expected
    assert analysis.relation.columns == tuple(columns)
