"""Lattice-friendly changes (Section 5.2), proposed from what a project declares."""

from __future__ import annotations

from collections.abc import Mapping

from retail import PINS, SCD, SIC, SID, SR, TABLES, relation

from viewkeeper.analyse.analysis import Analysis, QueryText, TableHole
from viewkeeper.analyse.widening import widened
from viewkeeper.define.definitions import ViewDefinition
from viewkeeper.define.settings import Settings
from viewkeeper.extending import extensions
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.layout import layout_of

NO_KEYS: Mapping[str, str] = {}


def known(name: str, query: str, keys: Mapping[str, str] = NO_KEYS) -> KnownView:
    found = relation(query)
    tables = [table for table in TABLES if f"lake.shop.{table}" in repr(found)]
    text = QueryText(("SELECT ", *(TableHole(f"lake.shop.{table}", None) for table in tables)))
    layout = layout_of(
        found, [(each, "int") for each in found.columns], lambda asked: dict.fromkeys(asked.columns, "int")
    )
    sources = {
        f"lake.shop.{table}": {
            "columns": [[column, "int", 1] for column in TABLES[table].split()],
            "key": [keys[table]] if table in keys else [],
        }
        for table in tables
    }
    definition = ViewDefinition(("lake", "shop", name), query, PINS)
    return KnownView(f"lake.shop.{name}", "id", definition, Analysis(text, found, None), layout, sources)


def library(**queries: str) -> Library:
    views = [known(name, query) for name, query in queries.items()]
    return Library({view.name: view for view in views}, {})


SETTINGS = Settings.model_validate(
    {
        "keys": {"stores": ["storeID"], "items": ["itemID"]},
        "dependencies": [{"table": "stores", "columns": ["city"], "determine": ["region"]}],
    }
)


def test_example_5_4() -> None:
    (found,) = extensions(library(SID=SID, sCD=SCD, SiC=SIC, sR=SR), SETTINGS)
    assert (found.view, found.columns, found.lets_derive) == ("lake.shop.sCD", ("region",), ("lake.shop.sR",))
    assert found.query.endswith("GROUP BY city, date, region")
    assert extensions(library(sCD=found.query, sR=SR), SETTINGS) == []


def test_the_keys_that_tables_declare_themselves_count_too() -> None:
    query = "SELECT {0} AS k, COUNT(*) AS n FROM pos, stores WHERE pos.storeID = stores.storeID GROUP BY {0}"
    by_store, by_city = query.format("stores.storeID"), query.format("city")
    for keys, columns in ((NO_KEYS, []), ({"stores": "storeID"}, [("city",)])):
        views = [known("fine", by_store, keys), known("coarse", by_city, keys)]
        found = extensions(Library({view.name: view for view in views}, {}), Settings())
        assert [each.columns for each in found] == columns


def test_aggregates_that_a_finer_view_lacks() -> None:
    revenue = "SELECT city, SUM(price) AS revenue, AVG(qty) AS usual, COUNT(*) AS n "
    revenue += "FROM pos, stores WHERE pos.storeID = stores.storeID GROUP BY city"
    (found,) = extensions(library(SID=SID, by_city=revenue), Settings())
    assert (found.view, found.columns, found.lets_derive) == ("lake.shop.SID", (), ("lake.shop.by_city",))
    added = ("sum(price) AS sum_price", "avg(qty) AS avg_qty")
    assert found.aggregates == added
    assert found.query.splitlines()[0].endswith(f"AS TotalQuantity, {', '.join(added)}")
    assert extensions(library(SID=found.query, by_city=revenue), Settings()) == []


def test_views_of_equal_groups_are_left_alone() -> None:
    by_item = "SELECT itemID, {0} AS a FROM pos GROUP BY itemID"
    views = library(one=by_item.format("SUM(qty)"), other=by_item.format("SUM(price)"))
    assert extensions(views, Settings()) == []


def test_nothing_is_proposed_that_was_not_declared() -> None:
    assert extensions(library(sCD=SCD, sR=SR), Settings()) == []


def test_queries_that_are_widened() -> None:
    assert widened("SELECT a FROM t GROUP BY ALL HAVING b > 1", ["c"]) == (
        "SELECT a, c FROM t GROUP BY ALL HAVING b > 1"
    )
    assert widened("SELECT a FROM (SELECT b FROM t GROUP BY b) GROUP BY a ORDER BY a", ["c"]) == (
        "SELECT a, c FROM (SELECT b FROM t GROUP BY b) GROUP BY a, c ORDER BY a"
    )
    assert widened("WITH q AS (SELECT 1) SELECT a FROM q GROUP BY a", ["c"]) is None
    assert widened("SELECT a FROM t", ["c"]) is None
