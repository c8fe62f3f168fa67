from __future__ import annotations

from viewkeeper.algebra.relations import Field, Filter, Join, OuterJoin, Project, Relation, Staged, TableAt
from viewkeeper.algebra.scalars import Column, Scalar, keep
from viewkeeper.algebra.sharpening import Keys, Profile, sharpened
from viewkeeper.sql.printer import print_relation

LINES = TableAt("lake.shop.lines", "7", (Field("l_orderkey", "o"), Field("l_tax", "tax")), rows=60_000_000)
CHANGED = Staged("vk_extract_1", (Field("o_orderkey", "k"), Field("_vk_w", "_vk_w")))
KNOWN = {CHANGED.name: Profile(40, ("o_orderkey",), {"o_orderkey": Keys(3, 900)})}
EQUAL = (Scalar((Column("k"), " = ", Column("o"))),)


def searched(lines: Relation, *, spared: bool) -> tuple[str, list[tuple[str, str]], dict[str, object]]:
    """The statement that searches lines, what was asked for it, and its parameters."""
    asked: list[tuple[str, str]] = []

    def spares(table: TableAt, stored: str, keys: Keys) -> bool:
        asked.append((table.table, stored))
        return spared

    found = sharpened(Join((CHANGED, lines), EQUAL), KNOWN, spares)
    return print_relation(found.relation), asked, dict(found.values)


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
        found = sharpened(marked, known, lambda table, stored, keys: True)
        assert ("BROADCAST" in print_relation(found.relation)) is hinted
