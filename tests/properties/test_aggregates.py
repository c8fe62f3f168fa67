"""Every aggregate function, whatever happens to its rows: maintained equals recomputed.

NULLs, duplicates, FILTER and DISTINCT; several functions in one view, which share what is kept for them;
groups that come, go and change; views that are derived from each other along the lattice.
"""

from __future__ import annotations

from random import Random

import pytest

from aggregate_functions import CALLS, COLUMNS, named
from viewkeeper.testing import Case, Cycle, Oracle, View, check
from viewkeeper.testing.changes import Changes
from viewkeeper.testing.tables import Table

GROUPINGS = ("", "GROUP BY k", "GROUP BY k, g", "GROUP BY upper(g)")


def views(groupings: int) -> list[View]:
    """Each list of calls, by so many different keys; grouping sets, joins with a dimension, a view on one."""
    made = []
    for at, (name, calls) in enumerate(CALLS.items()):
        listed = named(calls)
        for grouping in (GROUPINGS[(at + more) % 4] for more in range(groupings)):
            keys = grouping.removeprefix("GROUP BY ")
            key_items = {"upper(g)": "upper(g) AS u"}.get(keys, keys)
            items = ", ".join(filter(None, (key_items, listed)))
            suffix = "total" if not keys else "by_" + "".join(filter(str.isalpha, keys))
            made.append(View(f"{name}_{suffix}", f"SELECT {items} FROM r {grouping}".strip()))
    made += [
        View("having", "SELECT k, sum(i) AS c FROM r GROUP BY k HAVING min(j) < 5 AND count(*) > 1"),
        View(
            "rolled_up", "SELECT k, g, count(*) AS n, min(i) AS m, sum(k) AS s FROM r GROUP BY ROLLUP (k, g)"
        ),
        View(
            "cubed",
            "SELECT k, upper(g) AS u, grouping_id() AS l, max(n) AS m FROM r GROUP BY CUBE (k, upper(g))",
        ),
        View(
            "sets", "SELECT g, d, grouping(g) AS z, avg(i) AS a FROM r GROUP BY GROUPING SETS ((g, d), g, ())"
        ),
        View(
            "dimension",
            "SELECT o.w, count(*) AS n, sum(r.i) AS s, min(r.k) AS m FROM r JOIN o ON r.k = o.k GROUP BY o.w",
        ),
        View(
            "dimension_by_g",
            "SELECT o.w, g, sum(n) AS s, max(o.y) AS m FROM r JOIN o ON r.k = o.k GROUP BY o.w, g",
        ),
        View("on_a_view", "SELECT c0, count(*) AS n, max(c1) AS m FROM counts_total GROUP BY c0"),
    ]
    return made


def case(seed: int, *, groupings: int, cycles: int) -> Case:
    random = Random(seed)
    merge_on_read = {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
    }
    r = Table(
        "r",
        tuple((name, kind) for name, (kind, _) in COLUMNS.items()),
        merge_on_read,
        values={name: values for name, (_, values) in COLUMNS.items()},
    )
    o = Table(
        "o",
        (("k", "int"), ("w", "string"), ("y", "int")),
        merge_on_read,
        values={"k": ("0", "1", "2"), "w": ("'u'", "'v'"), "y": ("1", "2", "3")},
    )
    changes = Changes((r, o), random, 14)
    setup = changes.fill()
    return Case(setup, tuple(views(groupings)), tuple(Cycle(changes.cycle()) for _ in range(cycles)))


@pytest.mark.spark
def test_every_function(oracle: Oracle) -> None:
    outcome = check(oracle, case(1, groupings=1, cycles=2), seed=1)
    assert outcome.incremental >= len(views(1))


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_every_function_often(oracle: Oracle, seed: int) -> None:
    check(oracle, case(seed, groupings=3, cycles=8), seed=seed)
