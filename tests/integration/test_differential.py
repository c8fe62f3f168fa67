"""Snapshot differential on Spark: every form, over every sort of delivery, against the bags themselves."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.sources.differential import HASH_FROM_BYTES, KEY_TWICE, Differential, Form

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

COLUMNS = (
    ("delivery", "string"), ("part", "string"), ("id", "int"), ("na`me", "string"), ("it's", "string"),
    ("o", "double"), ("n", "float"), ("price", "decimal(8,2)"), ("wide", "decimal(38,10)"),
    ("at", "timestamp"), ("day", "date"), ("raw", "binary"), ("ok", "boolean"),
)  # fmt: skip
"""Some have names that get in the way of an alias, or of a quote."""
KEY = ("delivery", "part", "id")
Row = tuple[Any, ...]
_NUMBERS = count()

TEXTS = (("a", "bc"), ("ab", "c"), ("a,b", "c"), ("a", "b,c"), ("", None), (None, ""), (None, None), ("", ""),
         ("a\0b", "'"), ("\N{SNOWMAN}", "`\\`"))  # fmt: skip
"""Pairs that are the same once they are strung together."""
DOUBLES = (0.0, -0.0, math.nan, math.inf, -math.inf, None, 1.5, 5e-324)
FLOATS = (0.0, -0.0, math.nan, None, 0.5)
PRICES = (Decimal("0.00"), Decimal("-0.01"), Decimal("999999.99"), None)
WIDE = (Decimal("0E-10"), Decimal("1234567890123456789012345678.0000000001"), None)
TIMES = (
    datetime(2024, 6, 30, 12, 30, 0, 1),
    datetime(2024, 6, 30, 12, 30),
    datetime(1969, 12, 31, 23, 59),
    None,
)
DAYS = (date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31), None)
BINARY = (b"", b"\0", b"\0\0", b"\xff\xfe", None)
PARTS = ("a", "", None, "a,1", "1")


def values(chance: random.Random) -> Row:
    """What a row holds beside its key."""
    first, second = chance.choice(TEXTS)
    others = (DOUBLES, FLOATS, PRICES, WIDE, TIMES, DAYS, BINARY, (True, False, None))
    return first, second, *(chance.choice(each) for each in others)


def keyed_state(chance: random.Random) -> list[Row]:
    keys = [(part, number) for part in PARTS for number in (None, *range(9))]
    return [(*key, *values(chance)) for key in chance.sample(keys, 45)]


def bag_state(chance: random.Random) -> list[Row]:
    rows = keyed_state(chance)
    return [*rows, *chance.choices(rows, k=10), rows[0], rows[0]]


def insert(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    return [*seen, *((part, 100 + at, *values(chance)) for at, part in enumerate(PARTS))]


def delete(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    """Of rows that come several times some copies only."""
    return chance.sample(list(seen), len(seen) // 2)


def update(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    """Of each column one value becomes another, and one becomes NULL; each in a row of its own."""
    rows = list(seen)
    untouched = chance.sample(range(len(rows)), len(rows))
    for column in range(2, len(rows[0])):
        told = [at for at in untouched if rows[at][column] is not None]
        for at, is_null in zip(told, (False, True), strict=False):
            row, other = rows[at], None if is_null else another(chance, rows[at], column)
            rows[at] = (*row[:column], other, *row[column + 1 :])
            untouched.remove(at)
    return rows


def another(chance: random.Random, row: Row, column: int) -> object:
    found = (values(chance)[column - 2] for _ in range(100))
    return next(each for each in found if each is not None and normal((each,)) != normal((row[column],)))


def shifted(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    """A NULL goes to the column beside it, and its value comes to where that was."""
    return [(*row[:2], row[3], row[2], *row[4:]) for row in seen]


def mixed(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    return insert(chance, update(chance, delete(chance, seen)))


def nothing(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    """In another order, with the other zero."""

    def other(value: object) -> object:
        return -value if isinstance(value, float) and value == 0 else value

    return [tuple(other(value) for value in row) for row in chance.sample(list(seen), len(seen))]


def everything(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    return [(*row[:2], *values(chance)) for row in seen]


def emptied(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    return []


def filled(chance: random.Random, seen: Sequence[Row]) -> list[Row]:
    return list(seen)


Delivery = Callable[[random.Random, Sequence[Row]], list[Row]]


def normal(row: Iterable[object]) -> Row:
    """As Spark compares: a NaN is a NaN, and zero is zero."""

    def value(each: object) -> object:
        if isinstance(each, float):
            return "NaN" if math.isnan(each) else each + 0.0
        return bytes(each) if isinstance(each, bytearray) else each

    return tuple(value(each) for each in row)


def bag_difference(seen: Iterable[Row], there: Iterable[Row]) -> dict[Row, int]:
    found = Counter(normal(row) for row in there)
    found.subtract(Counter(normal(row) for row in seen))
    return {row: weight for row, weight in found.items() if weight}


def relation(spark: SparkSession, rows: Sequence[Row], columns: Sequence[tuple[str, str]] = COLUMNS) -> str:
    name = f"state_{next(_NUMBERS)}"
    schema = ", ".join(f"`{column.replace('`', '``')}` {kind}" for column, kind in columns)
    spark.createDataFrame(list(rows), schema).coalesce(2).createOrReplaceTempView(name)
    return name


def delta(spark: SparkSession, found: Differential, form: Form) -> list[tuple[Row, int]]:
    return [(normal(row[:-1]), row[-1]) for row in spark.sql(found.sql(form)).collect()]


def summed(rows: Iterable[tuple[Row, int]]) -> dict[Row, int]:
    total: Counter[Row] = Counter()
    for row, weight in rows:
        total[row] += weight
    return {row: weight for row, weight in total.items() if weight}


FORMS = pytest.mark.parametrize("form", Form, ids=lambda form: form.value)
KEYS = pytest.mark.parametrize("key", [KEY, ()], ids=["keyed", "bag"])


def check(
    spark: SparkSession, seen: Sequence[Row], there: Sequence[Row], key: tuple[str, ...], form: Form
) -> None:
    expected = bag_difference(seen, there)
    found = Differential(relation(spark, seen), relation(spark, there), COLUMNS, key)
    rows = delta(spark, found, form)
    assert summed(rows) == expected
    if key or form is Form.SORT_MERGE or not expected:
        # No row that did not change is read into the delta, only to cancel out there.
        assert len(rows) == len(expected)


@FORMS
@KEYS
def test_the_delta_is_the_difference_of_the_bags(
    spark: SparkSession, key: tuple[str, ...], form: Form
) -> None:
    """Every sort of delivery at once; each of them alone is among the long tests."""
    seen, there = [], []
    for deliver in (insert, delete, update, shifted, mixed, nothing, everything):
        before, after = delivered(deliver, key)
        seen += before
        there += after
    check(spark, seen, there, key, form)


@FORMS
@KEYS
@pytest.mark.parametrize(
    "deliver",
    [
        nothing,
        emptied,
        filled,
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (insert, delete, update, shifted, mixed, everything)
        ),
    ],
)
def test_the_delta_of_one_sort_of_delivery(
    spark: SparkSession, deliver: Delivery, key: tuple[str, ...], form: Form
) -> None:
    seen, there = delivered(deliver, key)
    check(spark, seen, there, key, form)


def delivered(deliver: Delivery, key: tuple[str, ...]) -> tuple[list[Row], list[Row]]:
    """What was seen, and what is there."""
    chance = random.Random(f"{deliver.__name__} {key}")
    state = keyed_state(chance) if key else bag_state(chance)
    there = deliver(chance, state)
    seen = [] if deliver is filled else state
    assert bool(bag_difference(seen, there)) == (deliver is not nothing), "the test itself"
    return [(deliver.__name__, *row) for row in seen], [(deliver.__name__, *row) for row in there]


@FORMS
def test_a_key_that_comes_twice_is_named(spark: SparkSession, form: Form) -> None:
    columns = (("part", "string"), ("id", "int"), ("qty", "int"))
    seen = relation(spark, [("a", None, 0), ("b", 2, 0)], columns)
    there = relation(spark, [("b", 2, 0), ("a", None, 5), ("a", None, 6)], columns)
    # Where several tasks fail, Spark's error comes as Java tells it.
    with pytest.raises((PySparkException, Py4JJavaError)) as refused:
        spark.sql(Differential(seen, there, columns, ("part", "id")).sql(form)).collect()
    assert f"{KEY_TWICE} (a, NULL)" in str(refused.value)


def test_small_states_are_compared_whole_and_large_ones_by_their_fingerprints() -> None:
    flat = Differential("a", "b", COLUMNS)
    assert flat.form(HASH_FROM_BYTES - 1) is Form.SORT_MERGE
    assert flat.form(HASH_FROM_BYTES) is Form.HASH
    for kind in ("array<int>", "map<string,int>", "struct<a:int>", "variant"):
        assert Differential("a", "b", (*COLUMNS, ("more", kind))).form(1 << 50) is Form.SORT_MERGE


@pytest.mark.parametrize("key", [("id",), ()], ids=["keyed", "bag"])
def test_nested_values_are_compared_whole(spark: SparkSession, key: tuple[str, ...]) -> None:
    columns = (("id", "int"), ("more", "struct<a:array<int>,b:struct<c:string,d:double>>"))
    one, other = ([1, None], ("x", math.nan)), ([1], (None, -0.0))
    seen = relation(spark, [(1, one), (2, other), (3, None), (4, one)], columns)
    there = relation(spark, [(1, one), (2, one), (3, other), (4, None)], columns)
    found = Differential(seen, there, columns, key)
    rows = spark.sql(found.sql(found.form(1))).collect()
    expected = [(2, other, -1), (2, one, 1), (3, None, -1), (3, other, 1), (4, one, -1), (4, None, 1)]
    assert sorted(repr(plain(row)) for row in rows) == sorted(repr(plain(row)) for row in expected)


def plain(value: Any) -> Any:
    """A struct comes as a row, which is a tuple; zero is zero."""
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    return value + 0.0 if isinstance(value, float) else value
