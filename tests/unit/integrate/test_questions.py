"""How a question is put: in chunks of keys, and each row is told once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from viewkeeper.integrate import questions
from viewkeeper.integrate.bags import Row
from viewkeeper.integrate.questions import Question, _rows
from viewkeeper.sources.postgres_delta import PinnedTable


class AnyCase:
    """A server with a table whose collation takes upper and lower case for equal; PostgreSQL has such ones
    where it is built with ICU."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def cursor(self) -> AnyCase:
        return self

    @contextmanager
    def copy(self, query: str, values: Sequence[Sequence[str]]) -> Iterator[Any]:
        (asked,) = [{key.casefold() for key in column} for column in values]
        yield _Copied([row for row in self._rows if str(row[1]).casefold() in asked])


class _Copied:
    def __init__(self, rows: Sequence[Row]) -> None:
        self._found = rows

    def rows(self) -> Iterator[Row]:
        return iter(self._found)


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_texts_that_a_collation_takes_for_equal(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """A row is told once, however its key is written in other chunks of keys."""
    monkeypatch.setattr(questions, "_KEYS_AT_ONCE", at_once)
    names = PinnedTable("s", "names", (("n", "integer", "int", 23), ("name", "text", "string", 25)), ())
    question = Question(names, ("n", "name"), ("name",), ("text",), [("Ann",), ("ann",), ("bob",)])
    server: Any = AnyCase([("1", "Ann"), ("2", "ann"), ("3", "ANN"), ("4", "bob")])
    assert list(_rows(server, question, in_table=False)) == [("1", "Ann"), ("2", "ann"), ("4", "bob")]
