"""The retail warehouse of the summary-delta paper (Section 2): its tables, its four views, its statistics."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.algebra.lattice import ForeignKey
from viewkeeper.algebra.relations import Relation
from viewkeeper.algebra.stars import Star, qualified, star_of
from viewkeeper.analyse.analysis import TableInfo
from viewkeeper.analyse.reading import analyse
from viewkeeper.define.definitions import SessionPins
from viewkeeper.plan.layout import layout_of

PINS = SessionPins("lake", ("shop",), "UTC")
TABLES = {
    "pos": "storeID itemID date qty price",
    "stores": "storeID city region",
    "items": "itemID name category cost",
}
SID = """SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
FROM pos GROUP BY storeID, itemID, date"""
SCD = """SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
FROM pos, stores WHERE pos.storeID = stores.storeID GROUP BY city, date"""
SCD_EXTENDED = """SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity, region
FROM pos, stores WHERE pos.storeID = stores.storeID GROUP BY city, date, region"""
SIC = """SELECT storeID, category, COUNT(*) AS TotalCount, MIN(date) AS Earliest, SUM(qty) AS TotalQuantity
FROM pos, items WHERE pos.itemID = items.itemID GROUP BY storeID, category"""
SR = """SELECT region, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
FROM pos, stores WHERE pos.storeID = stores.storeID GROUP BY region"""

POS, STORES, ITEMS = (f"lake.shop.{name}" for name in TABLES)
FOREIGN_KEYS = (
    ForeignKey((qualified(POS, "storeID"),), (qualified(STORES, "storeID"),)),
    ForeignKey((qualified(POS, "itemID"),), (qualified(ITEMS, "itemID"),)),
)

# Table 3: rows, and rows of the summary-delta for 10,000 changed rows of pos.
ROWS = {"SID": 100_000, "sCD": 10_000, "SiC": 2_000, "sR": 10}
SUMMARY_DELTAS = {"SID": 1_000, "sCD": 100, "SiC": 1_000, "sR": 10}
POS_ROWS, POS_CHANGES = 1_000_000, 10_000


def star(query: str) -> Star | None:
    """A query as a star, without Spark: every column is an INT."""
    return star_of_relation(relation(query))


def relation(query: str) -> Relation:
    columns = [item.split()[-1] for item in query.partition("FROM")[0].removeprefix("SELECT ").split(", ")]

    def resolve(parts: tuple[str, ...]) -> TableInfo | None:
        name = parts[-1].lower()
        if name not in TABLES:
            return None
        return TableInfo(f"lake.shop.{name}", tuple((column, "int") for column in TABLES[name].split()))

    found = analyse(
        query, session=PINS, resolve=resolve, referee=lambda _: [(name, "int") for name in columns]
    ).relation
    assert found is not None
    return found


def star_of_relation(relation: Relation) -> Star | None:
    def types(asked: Relation) -> Mapping[str, str]:
        return dict.fromkeys(asked.columns, "int")

    groups = layout_of(relation, [(name, "int") for name in relation.columns], types).groups
    return None if groups is None else star_of(groups)


def stars(**queries: str) -> dict[str, Star]:
    found = {name: star(query) for name, query in queries.items()}
    return {name: each for name, each in found.items() if each is not None}
