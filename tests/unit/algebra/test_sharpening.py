from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from viewkeeper.algebra.relations import (
    Field,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    Staged,
    TableAt,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, keep, words
from viewkeeper.algebra.sharpening import LISTED_AT_ONCE, Keys, Profile, sharpened
from viewkeeper.sql.printer import print_relation

LINES = TableAt("lake.shop.lines", "7", (Field("l_orderkey", "o"), Field("l_tax", "tax")), rows=60_000_000)
CHANGED = Staged("vk_extract_1", (Field("o_orderkey", "k"), Field("_vk_w", "_vk_w")))
KNOWN = {CHANGED.name: Profile(40, ("o_orderkey",), {"o_orderkey": Keys(3, 900)})}
EQUAL = (Scalar((Column("k"), " = ", Column("o"))),)


@dataclass
class FakeTables:
    """Tables of which any list spares enough, or any range, or neither; and what was asked of them."""

    list_spares: bool = False
    range_spares: bool = False
    texts: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)

    def holds_texts(self, table: TableAt, stored: str) -> bool:
        return self.texts

    def spares(self, table: TableAt, stored: str, keys: Keys) -> bool:
        self.asked.append((table.table, stored))
        return self.list_spares if keys.values else self.range_spares


def searched(lines: Relation, *, spared: bool) -> tuple[str, list[tuple[str, str]], dict[str, object]]:
    """The statement that searches lines, what was asked for it, and its parameters."""
    tables = FakeTables(range_spares=spared)
    found = sharpened(Join((CHANGED, lines), EQUAL), KNOWN, tables)
    return print_relation(found.relation), tables.asked, dict(found.values)


def test_a_range_that_spares_much_is_a_condition() -> None:
    sql, asked, values = searched(LINES, spared=True)
    assert "BETWEEN :vk_0 AND :vk_1" in sql
    assert values == {"vk_0": 3, "vk_1": 900}
    assert asked == [("lake.shop.lines", "l_orderkey")]


def test_a_range_that_spares_little_is_none() -> None:
    sql, _, values = searched(LINES, spared=False)
    assert "BETWEEN" not in sql
    assert not values


def test_the_column_of_the_table_is_asked_for_whatever_it_is_called_on_the_way() -> None:
    taxed = Filter(LINES, Scalar((Column("tax"), " > 0")))
    _, asked, _ = searched(Project(taxed, keep(("o",))), spared=True)
    assert asked == [("lake.shop.lines", "l_orderkey")]


def test_what_turned_out_large_is_not_broadcast() -> None:
    marked = OuterJoin(LINES, CHANGED, EQUAL, broadcast=True)
    for rows, hinted in ((40, True), (40_000_000, False)):
        known = {CHANGED.name: Profile(rows, ("o_orderkey",))}
        found = sharpened(marked, known, FakeTables())
        assert ("BROADCAST" in print_relation(found.relation)) is hinted


def conditions(
    relation: Relation, keys: Keys, tables: FakeTables, *, never_null: bool = True, ansi: bool = True
) -> tuple[int, dict[str, object]]:
    """How many lists a statement has that searches for these keys, and its parameters."""
    known = {CHANGED.name: Profile(5_000, ("o_orderkey",) if never_null else (), {"o_orderkey": keys})}
    found = sharpened(relation, known, tables, ansi=ansi)
    return print_relation(found.relation).count(" IN ("), dict(found.values)


JOINED = Join((CHANGED, LINES), EQUAL)
FEW = Keys(3, 900, (3, 17, 900))
MANY = Keys(0, 1000, tuple(range(2 * LISTED_AT_ONCE + 100)))
TEXTS = Keys("10", "9", ("10", "9"))


def test_few_keys_are_listed_without_asking_and_more_only_if_that_spares_much() -> None:
    assert conditions(JOINED, FEW, FakeTables()) == (1, {"vk_0": 3, "vk_1": 17, "vk_2": 900})
    lists, values = conditions(JOINED, MANY, FakeTables(list_spares=True, range_spares=True))
    assert lists == 3, "each so short that Iceberg looks at every value"
    assert list(values.values()) == list(MANY.values)
    assert conditions(JOINED, MANY, FakeTables(range_spares=True)) == (0, {"vk_0": 0, "vk_1": 1000})
    assert conditions(JOINED, MANY, FakeTables()) == (0, {})


def test_without_ansi_mode_nothing_is_listed_whose_type_may_differ() -> None:
    assert conditions(JOINED, FEW, FakeTables(), ansi=False) == (0, {})
    assert conditions(JOINED, TEXTS, FakeTables(texts=True), ansi=False)[0] == 1


def test_texts_are_looked_for_among_texts_only() -> None:
    """As numbers, 9 is less than 10, and ' 9' is the same."""
    assert conditions(JOINED, TEXTS, FakeTables(range_spares=True, texts=False)) == (0, {})
    assert conditions(JOINED, TEXTS, FakeTables(texts=True)) == (1, {"vk_0": "10", "vk_1": "9"})
    span = Keys("10", "9")
    assert conditions(JOINED, span, FakeTables(range_spares=True, texts=True))[1] == {
        "vk_0": "10",
        "vk_1": "9",
    }
    computed = Project(LINES, (Named("o", words("'9'")),))
    assert conditions(Join((CHANGED, computed), EQUAL), TEXTS, FakeTables(texts=True)) == (0, {}), (
        "of which type?"
    )


@pytest.mark.parametrize(("equal", "listed"), [(" = ", 1), (" == ", 1), (" <=> ", 0)])
def test_null_among_the_keys_matters_only_where_it_matches_null(equal: str, listed: int) -> None:
    join = Join((CHANGED, LINES), (Scalar((Column("k"), equal, Column("o"))),))
    assert conditions(join, FEW, FakeTables())[0] == 1
    assert conditions(join, FEW, FakeTables(), never_null=False)[0] == listed
    semi = SemiJoin(LINES, CHANGED, (("o", "k"),))
    assert conditions(semi, FEW, FakeTables())[0] == 1
    assert conditions(semi, FEW, FakeTables(), never_null=False)[0] == 0, "NULL finds NULL there"
