"""Table 1 of the summary-delta paper, over the plans that our planner makes of the statistics of Table 3."""

from __future__ import annotations

from retail import (
    FOREIGN_KEYS,
    POS_CHANGES,
    POS_ROWS,
    ROWS,
    SCD_EXTENDED,
    SIC,
    SID,
    SR,
    SUMMARY_DELTAS,
    stars,
)

from viewkeeper.algebra.lattice import lattice_of
from viewkeeper.algebra.tuple_access import (
    Statistics,
    counting,
    each_alone,
    recomputing,
    through_the_lattice,
)

LATTICE = lattice_of(stars(SID=SID, sCD=SCD_EXTENDED, SiC=SIC, sR=SR), FOREIGN_KEYS)
SIZES = Statistics(POS_ROWS, POS_CHANGES, ROWS, SUMMARY_DELTAS)


def test_table_1() -> None:
    expected = {
        recomputing: {"SID": 1_100_000, "sCD": 110_000, "SiC": 102_000, "sR": 2_010},
        each_alone: {"SID": 11_000, "sCD": 10_100, "SiC": 11_000, "sR": 10_010},
        through_the_lattice: {"SID": 11_000, "sCD": 1_100, "SiC": 2_000, "sR": 110},
        counting: {"SID": 22_000, "sCD": 20_200, "SiC": 512_000, "sR": 1_010_020},
    }
    found = {model: model(LATTICE, SIZES) for model in expected}
    assert found == expected
    totals = [sum(found[model].values()) for model in expected]
    assert totals == [1_314_010, 42_110, 14_210, 1_564_220]
