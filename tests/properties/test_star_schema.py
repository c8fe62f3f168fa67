"""The shapes of a retail star schema's reports: each is kept by deltas, and is what recomputing gives.

Three channels sell items on days to customers, with keys that may be NULL or point to nothing. The views
stand in ``star_schema.sql``: for every construct that such reports use, two or more.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from view_files import case_of

from viewkeeper.testing import Oracle, check
from viewkeeper.testing.tables import Table

VIEWS = Path(__file__).parent / "star_schema.sql"

_DAYS = tuple(str(day) for day in range(1, 7))
_KEYS = ("1", "2", "3", "4")


def channel(name: str, prefix: str) -> Table:
    columns = ("day", "item", "customer", "qty", "price")
    kinds = ("int", "int", "int", "int", "decimal(7,2)")
    values = (_DAYS, _KEYS, _KEYS, ("1", "2", "5"), ("1.00", "2.50", "9.99"))
    names = [f"{prefix}_{column}" for column in columns]
    return Table(name, tuple(zip(names, kinds, strict=True)), values=dict(zip(names, values, strict=True)))


STAR = (
    channel("store_sales", "ss"),
    channel("web_sales", "ws"),
    channel("catalog_sales", "cs"),
    Table(
        "date_dim",
        (("d_day", "int"), ("d_year", "int"), ("d_month", "int")),
        values={"d_day": _DAYS, "d_year": ("2001", "2002"), "d_month": ("1", "2")},
    ),
    Table(
        "item",
        (("i_item", "int"), ("i_class", "string"), ("i_brand", "string"), ("i_price", "decimal(7,2)")),
        values={
            "i_item": _KEYS,
            "i_class": ("'shoes'", "'books'"),
            "i_brand": ("'a'", "'b'", "'c'"),
            "i_price": ("1.00", "3.00", "8.00"),
        },
    ),
    Table(
        "customer",
        (("c_customer", "int"), ("c_state", "string")),
        values={"c_customer": _KEYS, "c_state": ("'TX'", "'CA'", "'NY'")},
    ),
)


@pytest.mark.spark
def test_reports_over_a_star_schema(oracle: Oracle) -> None:
    check(oracle, case_of(VIEWS, STAR, 1, 2, rows=10), seed=1)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(2, 5))
def test_reports_over_a_star_schema_through_many_changes(oracle: Oracle, seed: int) -> None:
    check(oracle, case_of(VIEWS, STAR, seed, 6, rows=10), seed=seed)
