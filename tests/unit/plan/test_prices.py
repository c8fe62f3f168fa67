"""The price model, given the costs of the paper (Labio et al. 2000), says what the paper says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewkeeper.plan.methods import OF_GROUPS, Method
from viewkeeper.plan.prices import (
    BELIEVED,
    Operation,
    Rate,
    Sizes,
    break_even,
    cheapest_install,
    methods_for,
    prices,
)

MILLISECOND = 1e-3

TABLE_1 = {
    Operation.DELETE_ROWS: Rate(changed_row=1.94 * MILLISECOND),
    Operation.INSERT: Rate(changed_row=0.57 * MILLISECOND),
    Operation.COUNT_DOWN: Rate(changed_row=2.49 * MILLISECOND),
    Operation.COUNT_UP: Rate(changed_row=4.48 * MILLISECOND),
}

INDEXED = {
    **TABLE_1,
    Operation.RECOMPUTE: Rate(read_row=0.05 * MILLISECOND, changed_row=0.57 * MILLISECOND),
    Operation.PROPAGATE: Rate(changed_row=0.05 * MILLISECOND),
    Operation.TOUCH: Rate(changed_row=0.1 * MILLISECOND),
    # A look-up by the index for every group, however many are stored.
    Operation.MERGE: Rate(changed_row=5 * MILLISECOND),
    # Their DBMS found the rows to delete by a scan.
    Operation.DELETE_ROWS: Rate(read_row=0.005 * MILLISECOND, changed_row=0.2 * MILLISECOND),
    Operation.DELETE_BY_KEY: Rate(changed_row=0.2 * MILLISECOND),
    Operation.REBUILD: Rate(read_row=0.05 * MILLISECOND),
}
"""A DBMS with an index on the groups: of the order of Figures 20 to 27."""

METHODS = methods_for(groups=True)


def sizes(base: float, changed: float, *, fixed_size: bool) -> Sizes:
    """V_large has a group for every fourth row of the base, V_small has seven."""
    stored = 7 if fixed_size else base / 4
    touched = 7 if fixed_size else changed / 2
    return Sizes(base, 0, 0, 0, changed, stored, 0, 0, 0, updated=touched)


def sensitivities(*, fixed_size: bool, by_base: bool) -> dict[Method, float]:
    """How much longer each method takes for a larger base, or a larger delta."""
    before = sizes(600_000, 6_000, fixed_size=fixed_size)
    after = sizes(1_200_000 if by_base else 600_000, 6_000 if by_base else 60_000, fixed_size=fixed_size)
    found = [{each.method: each.total for each in prices(at, INDEXED, METHODS)} for at in (before, after)]
    return {method: found[1][method] - found[0][method] for method in METHODS}


@pytest.mark.parametrize(
    ("deleted", "inserted", "expected"), [(1, 1, 2.8), (0, 1, 7.9), (1, 0, 1.3)], ids=["both", "ins", "del"]
)
def test_counts_pay_from_the_multiplicity_of_table_1(
    deleted: float, inserted: float, expected: float
) -> None:
    assert round(break_even(TABLE_1, deleted, inserted), 1) == expected


def test_table_2_fixed_ratio_by_the_delta() -> None:
    found = sensitivities(fixed_size=False, by_base=False)
    assert found[Method.FULLRECOMP] == 0
    assert 0 < found[Method.SDOVERWRITE] < found[Method.SDBATCH] < found[Method.SDCURSOR]


def test_table_2_fixed_ratio_by_the_base() -> None:
    found = sensitivities(fixed_size=False, by_base=True)
    assert found[Method.SDCURSOR] == 0
    assert 0 < found[Method.SDBATCH] < found[Method.SDOVERWRITE] < found[Method.FULLRECOMP]


def test_table_2_fixed_size_by_the_delta() -> None:
    found = sensitivities(fixed_size=True, by_base=False)
    assert found[Method.FULLRECOMP] == 0
    assert len({round(found[method], 9) for method in OF_GROUPS}) == 1
    assert found[Method.SDBATCH] > 0


def test_table_2_fixed_size_by_the_base() -> None:
    found = sensitivities(fixed_size=True, by_base=True)
    assert all(found[method] == 0 for method in OF_GROUPS)
    assert found[Method.FULLRECOMP] > 0


def test_the_paper_guidelines_for_fixed_ratio_aggregates() -> None:
    """SDCURSOR for large bases and small deltas, SDOVERWRITE for small bases and large deltas."""
    large, small = sizes(10_000_000, 600, fixed_size=False), sizes(60_000, 24_000, fixed_size=False)
    assert prices(large, INDEXED, METHODS)[0].method is Method.SDCURSOR
    assert prices(small, INDEXED, METHODS)[0].method is Method.SDOVERWRITE
    between = sizes(600_000, 6_000, fixed_size=False)
    assert prices(between, INDEXED, METHODS)[0].method is Method.SDBATCH


def test_without_an_index_a_merge_reads_what_is_stored() -> None:
    scanned = {**INDEXED, Operation.MERGE: Rate(read_row=0.05 * MILLISECOND, changed_row=0.5 * MILLISECOND)}
    small, large = (sizes(base, 6_000, fixed_size=False) for base in (600_000, 6_000_000))
    cursor = {
        at: next(each for each in prices(at, scanned, METHODS) if each.method is Method.SDCURSOR).total
        for at in (small, large)
    }
    assert cursor[large] > cursor[small]


def test_a_larger_change_never_gets_cheaper() -> None:
    before = sizes(600_000, 6_000, fixed_size=False)
    after = replace(before, inserted=1_000, deleted=1_000)
    cheaper = {each.method: each.total for each in prices(before, INDEXED, METHODS)}
    for each in prices(after, INDEXED, METHODS):
        assert each.total >= cheaper[each.method]


def test_rows_that_have_copies_are_looked_up_first() -> None:
    alone = Sizes(600_000, 0, 0, 0, 6_000, 600_000, 0, 3_000, 3_000)
    before, after = (
        {each.method: each.install for each in prices(at, INDEXED, methods_for(groups=False, keyed=True))}
        for at in (alone, replace(alone, copies=True))
    )
    looked_up = 3_000 * INDEXED[Operation.TOUCH].changed_row
    assert after[Method.GENINSTALL] == pytest.approx(before[Method.GENINSTALL] + looked_up)
    assert all(after[each] == before[each] for each in (Method.KEYINSTALL, Method.FULLRECOMP))


def test_every_table_that_is_joined_is_paid_and_every_row_that_is_looked_up_in_it() -> None:
    alone = Sizes(600_000, 24e6, 600_000, 24e6, 60_000, 600_000, 40, 30_000, 30_000)
    before, after = (
        {each.method: each.total for each in prices(at, BELIEVED, (Method.GENINSTALL, Method.FULLRECOMP))}
        for at in (alone, replace(alone, partners=3))
    )
    opened = 3 * BELIEVED[Operation.LOOK_UP].fixed
    assert after[Method.FULLRECOMP] == pytest.approx(before[Method.FULLRECOMP] + opened)
    assert after[Method.GENINSTALL] > before[Method.GENINSTALL] + opened


def test_rows_that_went_before_are_read_again_and_paid_for() -> None:
    fresh = sizes(600_000, 6_000, fixed_size=True)
    worn = replace(fresh, passed_over=500_000)
    before, after = (
        {each.method: each.total for each in prices(at, BELIEVED, METHODS)} for at in (fresh, worn)
    )
    assert after[Method.FULLRECOMP] == before[Method.FULLRECOMP]
    assert all(after[each] > before[each] + 0.2 for each in METHODS if each is not Method.FULLRECOMP)


def test_recomputing_from_a_view_that_changes_first_adds_its_change_to_it() -> None:
    read = Sizes(600_000, 24e6, 6_000, 24e4, 6_000, 1_000, 40, 0, 0, updated=500, grouped=True)
    changing = replace(read, applied_rows=600_000, applied_bytes=24e6)
    before, after = (
        {each.method: each.total for each in prices(at, BELIEVED, METHODS)} for at in (read, changing)
    )
    assert after[Method.FULLRECOMP] > before[Method.FULLRECOMP]
    assert all(after[method] == before[method] for method in OF_GROUPS)


def test_a_change_that_others_ask_for_is_made_explicit() -> None:
    """SDBATCH has ∇V and ΔV, and here SDCURSOR and SDOVERWRITE have them, too; who recomputes compares."""
    alone = Sizes(600_000, 24e6, 6_000, 24e4, 6_000, 100_000, 40, 0, 0, updated=500, grouped=True)
    every = (*METHODS, Method.SDAPPEND)
    before, after = (
        {each.method: each for each in prices(at, BELIEVED, every)}
        for at in (alone, replace(alone, told=True))
    )
    group = BELIEVED[Operation.GROUP]
    compared = group.fixed + group.read_row * 200_000 + group.read_byte * 8e6
    assert after[Method.FULLRECOMP].tell == pytest.approx(compared)
    assert after[Method.SDAPPEND].tell > BELIEVED[Operation.TOUCH].fixed
    for method in every:
        told, untold = after[method], before[method]
        assert (told.compute, told.install, untold.tell) == (untold.compute, untold.install, 0.0)
        assert told.total == pytest.approx(untold.total + told.tell)
    assert all(after[method].tell == 0.0 for method in OF_GROUPS)


def test_what_a_recomputed_parent_changed_is_found_by_comparing() -> None:
    read = Sizes(600_000, 24e6, 6_000, 24e4, 6_000, 1_000, 40, 0, 0, updated=500, grouped=True)
    comparing = replace(read, compared_rows=600_000, compared_bytes=24e6)
    before, after = (
        {each.method: each.total for each in prices(at, BELIEVED, METHODS)} for at in (read, comparing)
    )
    assert after[Method.FULLRECOMP] == before[Method.FULLRECOMP]
    assert all(after[method] > before[method] + 1 for method in OF_GROUPS)


def test_what_was_paid_before_corrects_the_choice_once_the_change_is_counted() -> None:
    def chosen(**paid: float) -> Method:
        corrected = {Method(name): factor for name, factor in paid.items()}
        return cheapest_install(OF_GROUPS, BELIEVED, 100, 40, (10, 0, 500), corrected)

    believed = chosen()
    assert chosen(**{believed.value: 1.0}) is believed
    assert chosen(**{believed.value: 5.0}) is not believed
    assert chosen(**dict.fromkeys((method.value for method in OF_GROUPS), 5.0)) is believed
