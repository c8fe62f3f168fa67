"""Spark's words in ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from shop import PINS, resolve

from viewkeeper.analyse.reading import analyse
from viewkeeper.analyse.spark_errors import translate_spark_error
from viewkeeper.errors import DefinitionError


@dataclass
class Context:
    start: int
    stop: int

    def startIndex(self) -> int:  # noqa: N802
        return self.start

    def stopIndex(self) -> int:  # noqa: N802
        return self.stop


@dataclass
class Said(Exception):
    """An exception of Spark, as far as we look at it."""

    condition: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    contexts: Sequence[Context] = ()
    text: str = ""

    def getCondition(self) -> str:  # noqa: N802
        return self.condition

    def getMessageParameters(self) -> Mapping[str, str]:  # noqa: N802
        return self.parameters

    def getQueryContext(self) -> Sequence[Context]:  # noqa: N802
        return self.contexts

    def __str__(self) -> str:
        return self.text


QUERY = "SELECT stor\nFROM poss WHERE"

CASES = [
    (
        Said(
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`stor`", "proposal": "`store`, `p`.`a b`"},
            [Context(7, 10)],
        ),
        "VK-UNKNOWN-COLUMN",
        "(line 1, column 8)\nHint: Did you mean one of these columns: store, p.`a b`?",
    ),
    (
        Said("TABLE_OR_VIEW_NOT_FOUND", {"relationName": "`poss`"}, [Context(17, 20)]),
        "VK-UNKNOWN-TABLE",
        "There is no table or view poss (line 2, column 6)",
    ),
    (
        Said(
            "AMBIGUOUS_REFERENCE",
            {"name": "`stor`", "referenceNames": "[`p`.`stor`, `s`.`stor`]"},
            [Context(7, 10)],
        ),
        "VK-AMBIGUOUS-COLUMN",
        "Say which one: p.stor, s.stor.",
    ),
    (
        Said(
            "PARSE_SYNTAX_ERROR",
            text="\n[PARSE_SYNTAX_ERROR] Syntax error at or near end. SQLSTATE: 42601 (line 2, pos 15)\n",
        ),
        "VK-SYNTAX",
        "(line 2, column 16)",
    ),
    (Said("UNRESOLVED_ROUTINE", {"routineName": "`f`"}), "VK-UNKNOWN-FUNCTION", "There is no function f"),
    (Said("DATATYPE_MISMATCH", text="[DATATYPE_MISMATCH] Cannot add."), "VK-INVALID-QUERY", "Cannot add."),
]


@pytest.mark.parametrize(("said", "code", "shown"), CASES)
def test_translates(said: Said, code: str, shown: str) -> None:
    error = translate_spark_error(said, QUERY)
    assert error.code == code
    assert shown in str(error)


def test_the_original_is_judged_by_spark_and_near_tables_are_named() -> None:
    def refuses(_: str) -> list[tuple[str, str]]:
        raise Said("TABLE_OR_VIEW_NOT_FOUND", {"relationName": "`poss`"}, [Context(17, 20)])

    with pytest.raises(DefinitionError) as error:
        analyse(
            "SELECT qty  FROM poss",
            session=PINS,
            resolve=resolve,
            referee=refuses,
            candidates=lambda: ["lake.shop.pos", "lake.shop.stores"],
        )
    assert error.value.code == "VK-UNKNOWN-TABLE"
    assert error.value.hint == "Did you mean lake.shop.pos?"


def test_other_exceptions_pass() -> None:
    def fails(_: str) -> list[tuple[str, str]]:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        analyse("SELECT qty FROM pos", session=PINS, resolve=resolve, referee=fails)
