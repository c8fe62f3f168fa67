"""LIMIT by the rows that are kept beyond it: whatever changes, the first are right, or known to be few."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from bag_algebra import Bag, evaluate

from viewkeeper.algebra.deltas import Delta, apply
from viewkeeper.algebra.first_rows import FirstRows, Order, first, first_rows, limited, up_to_last
from viewkeeper.algebra.relations import Distinct, Field, Filter, Scan, Staged, Window
from viewkeeper.algebra.scalars import WEIGHT, column, compose

COLUMNS = ("a", "b")
DIRECTIONS = ("", " ASC NULLS LAST", " DESC NULLS LAST", " DESC NULLS FIRST", " ASC NULLS FIRST")
CASES = 100
CYCLES = 5


def rows_at(name: str) -> Staged:
    return Staged(name, tuple(Field(each, each) for each in COLUMNS))


def random_rows(random: Random, most: int) -> Bag:
    values = (None, 0, 1, 2, 3)
    return Counter((random.choice(values), random.choice(values)) for _ in range(random.randrange(most)))


def shown(order: Order, most: int, rows: Bag) -> Bag:
    """What LIMIT shows of rows, without their numbers."""
    found: Bag = Counter()
    for row, count in evaluate(limited(rows_at("r"), order, "n", 0, most), {"r": (COLUMNS, rows)}).items():
        found[row[:-1]] += count
    return found


@pytest.mark.parametrize("lot", range(4))
def test_what_is_kept_tells_the_first_rows_or_that_there_are_too_few(lot: int) -> None:
    for seed in range(lot * CASES, (lot + 1) * CASES):
        kept_through_changes(Random(seed))


def kept_through_changes(random: Random) -> None:
    order = tuple((name, random.choice(DIRECTIONS)) for name in random.sample(COLUMNS, 2))
    k = random.randrange(1, 5)
    most = k + random.randrange(1, 4)
    everything = random_rows(random, 14)
    stored = evaluate(first(rows_at("r"), order, most), {"r": (COLUMNS, everything)})
    keeps_all = stored.total() < most
    for _ in range(CYCLES):
        gone = Counter(random.sample(list(everything.elements()), random.randrange(everything.total() + 1)))
        come = random_rows(random, 5)
        change = Counter(come)
        change.subtract(gone)
        everything = +(everything - gone + come)
        signed = Counter({(*row, count): 1 for row, count in change.items() if count})
        known = {"s": (COLUMNS, stored), "d": ((*COLUMNS, WEIGHT), signed), "r": (COLUMNS, everything)}
        delta = Delta(Staged("d", tuple(Field(each, each) for each in (*COLUMNS, WEIGHT))))
        reaching = delta if keeps_all else up_to_last(delta, rows_at("s"), order)
        stored = evaluate(first(apply(rows_at("s"), reaching), order, most), known)
        if stored.total() < k and not keeps_all:
            stored = evaluate(first(rows_at("r"), order, most), known)
            keeps_all = True
        keeps_all = keeps_all and stored.total() < most
        assert shown(order, k, stored) == shown(order, k, everything)
        # And what was promised of them: whatever is not behind the last one is there.
        assert stored == everything if keeps_all else stored - everything == Counter()


def test_a_limit_is_recognised_with_its_order() -> None:
    rows = Scan("t", (Field("a", "a"), Field("b", "b")))
    order = (("a", " DESC NULLS LAST"), ("b", ""))
    assert first_rows(limited(rows, order, "n", 0, 10)) == FirstRows(rows, order, 10)
    assert first_rows(limited(rows, order, "n", 5, 10)) == FirstRows(rows, order, 15)


def test_what_has_no_last_row_or_is_something_else_is_not() -> None:
    rows = Scan("t", (Field("a", "a"), Field("b", "b")))
    without_end = limited(rows, (("a", ""),), "n", 5, None)
    assert first_rows(without_end) is None
    assert first_rows(Distinct(rows)) is None
    assert isinstance(without_end.child, Window)
    assert first_rows(Filter(without_end.child, compose(column("n"), " <= ", column("a")))) is None
