"""The lattice of the paper's views (Section 5), and what else can and cannot be derived."""

from __future__ import annotations

import pytest
from retail import FOREIGN_KEYS, ITEMS, SCD, SCD_EXTENDED, SIC, SID, SR, STORES, SUMMARY_DELTAS, star, stars

from viewkeeper.algebra.lattice import Edge, cheapest, derives, lattice_of
from viewkeeper.algebra.scalars import column
from viewkeeper.algebra.stars import qualified


def edge(lower: str, upper: str) -> Edge | None:
    found = stars(lower=lower, upper=upper)
    return derives(("lower", found["lower"]), ("upper", found["upper"]), FOREIGN_KEYS)


def joined(edges: list[Edge]) -> dict[tuple[str, str], set[str]]:
    return {(each.upper, each.lower): set(each.joins) for each in edges}


def test_the_derives_relation_of_example_5_1() -> None:
    lattice = lattice_of(stars(SID=SID, sCD=SCD, SiC=SIC, sR=SR), FOREIGN_KEYS)
    assert joined(list(lattice.edges)) == {
        ("SID", "sCD"): {STORES},
        ("SID", "SiC"): {ITEMS},
        ("SID", "sR"): {STORES},
        # not from sCD: that would join with stores on city, which is no key there
        ("SiC", "sR"): {STORES},
    }


def test_the_lattice_of_figure_9() -> None:
    lattice = lattice_of(stars(SID=SID, sCD=SCD_EXTENDED, SiC=SIC, sR=SR), FOREIGN_KEYS)
    assert joined(lattice.shown) == {
        ("SID", "sCD"): {STORES},
        ("SID", "SiC"): {ITEMS},
        ("sCD", "sR"): set(),
        ("SiC", "sR"): {STORES},
    }
    chosen = cheapest(lattice, 10_000, SUMMARY_DELTAS)
    assert {(each.upper, lower) for lower, each in chosen.items()} == {
        ("SID", "sCD"),
        ("SID", "SiC"),
        ("sCD", "sR"),
    }
    assert not any(each.needs for each in chosen.values())


def test_a_table_is_dropped_only_along_a_foreign_key() -> None:
    found = edge(SR, SIC)
    assert found is not None
    assert {fk.parent for fk in found.needs} == {ITEMS}
    without = stars(lower=SR, upper=SIC)
    assert derives(("lower", without["lower"]), ("upper", without["upper"])) is None


def test_aggregates_over_a_key_of_the_parent() -> None:
    found = edge(SIC, SID)
    assert found is not None
    earliest = next(source for name, source in found.sources.items() if name.startswith("_vk_min"))
    assert (earliest.kept, earliest.argument) == (None, column("date"))
    assert [each.columns for each in found.on] == [{qualified(ITEMS, "itemID"), "itemID"}]


@pytest.mark.parametrize(
    ("lower", "upper", "why"),
    [
        ("SELECT storeID, sum(price) AS p FROM pos GROUP BY storeID", SID, "price is not kept"),
        ("SELECT storeID, count(*) AS n FROM pos WHERE qty > 1 GROUP BY storeID", SID, "qty is no key"),
        (SID, "SELECT storeID, count(*) AS n FROM pos WHERE qty > 1 GROUP BY storeID", "rows are missing"),
        ("SELECT price, count(*) AS n FROM pos GROUP BY price", SID, "price is no key"),
        ("SELECT storeID, median(qty) AS m FROM pos GROUP BY storeID", SID, "a median is holistic"),
        ("SELECT cost, count(*) AS n FROM pos, items GROUP BY cost", SID, "a product with items"),
        (SID, SCD, "finer than its parent"),
    ],
)
def test_what_cannot_be_derived(lower: str, upper: str, why: str) -> None:
    assert edge(lower, upper) is None, why


@pytest.mark.parametrize(
    "lower",
    [
        "SELECT storeID, count(*) AS n FROM pos WHERE itemID > 3 GROUP BY storeID",
        "SELECT itemID + 1 AS i, sum(qty) AS q, avg(qty) AS a FROM pos GROUP BY itemID + 1",
        "SELECT count(*) AS n, sum(itemID) AS s, count(date) AS d FROM pos",
        "SELECT category, min(cost) AS c, count(*) AS n FROM pos p JOIN items i ON i.itemID = p.itemID"
        " WHERE i.cost > 2 GROUP BY category",
    ],
)
def test_what_else_can_be_derived(lower: str) -> None:
    assert edge(lower, SID.replace("SUM(qty)", "SUM(qty) AS s, AVG(qty)")) is not None


def test_views_with_the_same_groups_derive_from_each_other_in_one_direction() -> None:
    lattice = lattice_of(stars(one=SID, two=SID))
    assert joined(list(lattice.edges)) == {("one", "two"): set()}


def test_no_star() -> None:
    twice = "SELECT a.qty AS q, count(*) AS n FROM pos a, pos b WHERE a.itemID = b.itemID GROUP BY a.qty"
    assert star(twice) is None
    nested = (
        "SELECT n, count(*) AS m FROM (SELECT storeID, count(*) AS n FROM pos GROUP BY storeID) GROUP BY n"
    )
    assert star(nested) is None
