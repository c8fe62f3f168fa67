"""Comparisons of columns with constants: none that a row need not meet, whatever the predicate looks like."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.scalars import Column, Scalar, compose
from viewkeeper.analyse.comparisons import Comparison, comparisons


def predicate(text: str) -> Scalar:
    """``{a} > 3`` with holes for columns."""
    parts: list[str | Column] = []
    for piece in text.split("{"):
        name, closed, rest = piece.partition("}")
        parts += [Column(name), rest] if closed else [piece]
    return Scalar(tuple(part for part in parts if part != ""))


def found(text: str) -> list[str]:
    return [f"{each.column} {each.operator} {each.constant}" for each in comparisons(predicate(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a} > 3", ["a > 3"]),
        ("3 > {a}", ["a < 3"]),
        ("{a} = 'x' AND {b} <> 2", ["a = 'x'"]),
        ("{d} < DATE '2024-01-01' + INTERVAL '1' YEAR", ["d < DATE '2024-01-01' + INTERVAL '1' YEAR"]),
        ("{a} BETWEEN 1 AND 5 AND {b} <= -2", ["a >= 1", "a <= 5", "b <= -2"]),
        ("({a} > 1 AND ({b} < 2))", ["a > 1", "b < 2"]),
        ("NOT {a} > 1 AND {b} < 2", ["b < 2"]),
        ("({a} > 1 OR {b} < 2) AND {c} = 3", ["c = 3"]),
    ],
)
def test_what_must_be_true_is_found(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{a} > 1 OR {b} < 2 AND {c} = 3",
        "{a} > 1 AND {b} < 2 OR {c} = 3",
        "CASE WHEN {a} AND {b} > 1 AND {c} THEN true END",
        "{a} > 1 = false",
        "{a} > {b}",
        "{a} + 1 > 3",
        "{a} > abs(3)",
        "{a} > rand()",
        "{a} > 3 IS NULL",
        "{a} BETWEEN 1 AND {b} AND 3 > 2",
        "{a} NOT BETWEEN 1 AND 5",
        "exists({a}, x -> x > 1 AND x < 5)",
        "{a} > (SELECT 3)",
        "{a} <=> 3",
        "{a} > 'unclosed",
    ],
)
def test_what_need_not_be_true_is_not(text: str) -> None:
    assert found(text) == []


def test_conditions_that_were_put_together_are_taken_apart() -> None:
    both = compose(
        predicate("{a} > 1"), " AND ", compose(predicate("{b} < 2"), " AND ", predicate("{c} = 3"))
    )
    assert [each.column for each in comparisons(both)] == ["a", "b", "c"]


def test_a_bound_decides() -> None:
    assert Comparison("a", ">=", "5").possible("1", "4") == "4 >= (5)"
    assert Comparison("a", "<", "5").possible("6", "9") == "6 < (5)"
    assert Comparison("a", "=", "5").possible("6", "9") == "(5) BETWEEN 6 AND 9"


def test_strings_lose_their_order_among_numbers() -> None:
    (number,) = comparisons(predicate("{a} > 500"))
    (text,) = comparisons(predicate("{a} > '500'"))
    assert not number.suits("string") and number.suits("int")
    assert text.suits("string") and text.suits("date")
