from __future__ import annotations

import pytest

from viewkeeper.sources.iceberg_bounds import MOST_RANGES, BoundColumn, BoundedFile, Bounds, pruning_predicate

ID = BoundColumn("id", "int")
NAME = BoundColumn("the name", "string")


def file(low: object, high: object, nulls: int | None = 0, values: int | None = 10) -> BoundedFile:
    def text(value: object) -> str | None:
        return None if value is None else str(value)

    return BoundedFile(10, (Bounds(text(low), text(high), nulls, values),))


OTHERS = [file(1000 + i, 1000 + i) for i in range(20)]


def test_ranges_that_overlap_are_joined() -> None:
    wanted = [file(1, 5), file(4, 9), file(20, 20)]
    assert pruning_predicate(wanted, [*wanted, *OTHERS], [ID]) == (
        "(`id` BETWEEN CAST('1' AS INT) AND CAST('9' AS INT) "
        "OR `id` BETWEEN CAST('20' AS INT) AND CAST('20' AS INT))"
    )


def test_numbers_sort_as_numbers() -> None:
    wanted = [file(9, 100)]
    assert pruning_predicate(wanted, [*wanted, file(2, 8), file(101, 1000)], [ID]) is not None
    assert pruning_predicate(wanted, [*wanted, file(50, 60)], [ID]) is None


@pytest.mark.parametrize("nulls", [1, None])
def test_nulls_are_let_through_unless_there_are_none(nulls: int | None) -> None:
    wanted = [file(1, 5, nulls=nulls)]
    predicate = pruning_predicate(wanted, [*wanted, *OTHERS], [ID])
    assert predicate is not None
    assert predicate.endswith(" OR `id` IS NULL)")


def test_a_file_of_nulls_only_needs_no_bounds() -> None:
    wanted = [file(None, None, nulls=10)]
    assert pruning_predicate(wanted, [*wanted, *OTHERS], [ID]) == "(`id` IS NULL)"


def test_missing_bounds_rule_a_column_out() -> None:
    wanted = [file(1, 5), file(None, 7)]
    assert pruning_predicate(wanted, [*wanted, *OTHERS], [ID]) is None
    assert pruning_predicate([], OTHERS, [ID]) is None
    assert pruning_predicate(OTHERS, OTHERS, []) is None


def test_what_spares_little_is_left_out() -> None:
    wanted = [file(1, 2000)]
    assert pruning_predicate(wanted, [*wanted, *OTHERS], [ID]) is None


def test_many_ranges_become_wider_ones() -> None:
    wanted = [file(3 * i, 3 * i) for i in range(1000)]
    predicate = pruning_predicate(
        wanted, [*wanted, *(file(10_000 + i, 10_000 + i) for i in range(9000))], [ID]
    )
    assert predicate is not None
    assert predicate.count("BETWEEN") <= MOST_RANGES
    assert "'0'" in predicate
    assert "'2997'" in predicate


def test_text_is_quoted_and_odd_text_is_not_written_at_all() -> None:
    others = [file("x", "y") for _ in range(9)]
    wanted = [file("it's", "j\\k")]
    assert pruning_predicate(wanted, [*wanted, *others], [NAME]) == (
        "(`the name` BETWEEN 'it\\'s' AND 'j\\\\k')"
    )
    for odd in ("${env:HOME}", "a\nb", "\x00"):
        wanted = [file(odd, odd)]
        assert pruning_predicate(wanted, [*wanted, *others], [NAME]) is None


@pytest.mark.parametrize(
    ("type_", "text", "literal"),
    [
        ("bigint", "-9223372036854775808", "CAST('-9223372036854775808' AS BIGINT)"),
        ("decimal(10,2)", "-0.50", "CAST('-0.50' AS DECIMAL(10,2))"),
        ("date", "2024-02-29", "CAST('2024-02-29' AS DATE)"),
        ("timestamp", "1700000000000000", "timestamp_micros(1700000000000000)"),
        ("timestamp_ntz", "2024-01-01 00:00:00.5", "CAST('2024-01-01 00:00:00.5' AS TIMESTAMP_NTZ)"),
    ],
)
def test_literals_keep_their_type(type_: str, text: str, literal: str) -> None:
    assert BoundColumn.suits("c", type_)
    column = BoundColumn("c", type_)
    key = column.key(text)
    assert key is not None
    assert column.literal(key) == literal


def test_types_without_an_order_to_rely_on_are_left_out() -> None:
    for type_ in ("double", "float", "boolean", "binary", "struct<a:int>", "array<int>"):
        assert not BoundColumn.suits("c", type_)
    assert not BoundColumn.suits("a.b", "int")
    assert BoundColumn("c", "date").key("+10000-01-01") is None
