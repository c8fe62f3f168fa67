"""A summary-delta from that of another view: whichever way it was made, the view is right afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

import pytest
from bag_algebra import evaluate
from random_relations import MemoryLeaves, random_leaves
from stored_groups import installed

from viewkeeper.algebra.aggregates import GROUP_COUNT, keep_for
from viewkeeper.algebra.derived_changes import (
    Joined,
    Upper,
    can_derive,
    derived_changes,
    derived_rows,
)
from viewkeeper.algebra.lattice import Edge, derives
from viewkeeper.algebra.preaggregation import preaggregation
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Join,
    Relation,
    Scan,
    Staged,
    scans,
)
from viewkeeper.algebra.rules.delta import delta, insert_only
from viewkeeper.algebra.rules.leaves import new, old
from viewkeeper.algebra.scalars import WEIGHT, column, compose
from viewkeeper.algebra.stars import Star, qualified, star_of
from viewkeeper.algebra.summary_delta import (
    ROW,
    Groups,
    groups_after,
    groups_from_rows,
    marked_keys,
    prepare_changes,
    recomputed,
    summary_delta,
    touched_by_summary_delta,
)

TABLES = {"f": ("a", "b", "m"), "d": ("a", "x"), "e": ("b", "z")}
FUNCTIONS = ("count", "sum", "sum", "min", "max", "bit_xor", "bit_and", "bool_or", "avg")
CASES = 3_000

Fresh: TypeAlias = Callable[[Relation | None], Relation]
"""Computes the groups of these keys anew."""


def scan(table: str) -> Scan:
    return Scan(table, tuple(Field(name, f"{table}_{name}") for name in TABLES[table]))


def random_groups(random: Random, *, upper: bool, functions: Sequence[str] = FUNCTIONS) -> Groups:
    """γ over the fact table f, joined with none, one or both of its dimensions."""
    dimensions = [table for table in ("d", "e") if random.random() < (0.25 if upper else 0.6)]
    child: Relation = scan("f")
    if dimensions:
        on = {
            "d": compose(column("f_a"), " = ", column("d_a")),
            "e": compose(column("e_b"), " = ", column("f_b")),
        }
        child = Join((child, *map(scan, dimensions)), tuple(on[table] for table in dimensions))
    if random.random() < 0.2:
        child = Filter(child, compose(column("f_a"), " > 0"))
    attributes = [name for name in child.columns if name != "f_m"]
    if upper:
        attributes = [name for name in attributes if name in ("f_a", "f_b") or random.random() < 0.5]
    else:
        attributes = random.sample(attributes, random.randint(0, 2))
    calls = []
    for at in range(random.randint(1, 4)):
        function, argument = random.choice(functions), random.choice(("f_m", "f_m", *child.columns))
        calls.append(AggregateCall(f"c{at}", function, (column(argument),)))
    aggregate = Aggregate(child, tuple(attributes), tuple(calls))
    kept, _ = keep_for(aggregate.calls, lambda argument: "int")
    types = ((GROUP_COUNT, "bigint"), *((each.name, "bigint") for each in kept))
    return Groups(child, aggregate.keys, kept, types)


def star(groups: Groups) -> Star:
    found = star_of(groups)
    assert found is not None
    return found


def stored_as(name: str, groups: Groups, leaves: MemoryLeaves) -> Staged:
    """The view's rows before the change, with their identities."""
    rows = evaluate(old(groups.rows, leaves), leaves.stored)
    columns = (*groups.rows.columns, ROW)
    leaves.stored[name] = (columns, Counter((*row, at) for at, row in enumerate(rows)))
    return Staged(name, tuple(Field(each, each) for each in columns))


def joined_tables(edge: Edge, lower: Groups, leaves: MemoryLeaves) -> list[Joined]:
    tables = []
    for each in scans(lower.child):
        if each.table in edge.joins:
            change = leaves.delta(each)
            names = {qualified(each.table, field.stored): field.name for field in each.fields}
            tables.append(Joined(leaves.new(each), leaves.old(each), change and change.relation, names))
    return tables


def touched_groups(
    name: str,
    groups: Groups,
    prepared: Relation,
    leaves: MemoryLeaves,
    only: bool,
    fresh: Fresh,
) -> tuple[Staged, Staged]:
    """The stored groups, and what the prepared changes make of some, as the executor does it."""
    sd = leaves.share(summary_delta(groups, prepared, insert_only=only), "sd")
    stored = stored_as(name, groups, leaves)
    draft = leaves.share(touched_by_summary_delta(groups, stored, sd, insert_only=only), "draft")
    if all(row[-1] != "R" for row in evaluate(draft, leaves.stored)):
        return stored, draft
    again = recomputed(groups, draft, fresh(marked_keys(groups, draft)))
    return stored, leaves.share(again, "touched")


def assert_kept(
    groups: Groups,
    prepared: Relation,
    leaves: MemoryLeaves,
    only: bool,
    case: str,
    fresh: Fresh | None = None,
) -> None:
    """The prepared changes, through the summary-delta and the touched groups, give the new rows."""
    from_rows = fresh or (lambda keys: groups_from_rows(groups, keys, leaves))
    stored, touched = touched_groups("lower", groups, prepared, leaves, only, from_rows)
    rows_before = evaluate(old(groups.rows, leaves), leaves.stored)
    found = installed(groups, rows_before, evaluate(touched, leaves.stored))
    after = evaluate(new(groups.rows, leaves), leaves.stored)
    assert found == after, case
    assert evaluate(groups_after(groups, stored, touched), leaves.stored) == after, case


def test_a_view_kept_by_the_summary_delta_of_another() -> None:
    derived = with_changed_joins = 0
    for seed in range(CASES):
        random = Random(seed)
        upper, lower = random_groups(random, upper=True), random_groups(random, upper=False)
        edge = derives(("lower", star(lower)), ("upper", star(upper)))
        if edge is None:
            continue
        leaves = random_leaves(random, TABLES)
        change = delta(upper.child, leaves)
        changed = bool(edge.joins & leaves.changed)
        if (change is None and not changed) or not can_derive(edge, lower, joins_changed=changed):
            continue
        derived, with_changed_joins = derived + 1, with_changed_joins + changed

        upper_only = insert_only(upper.child, leaves)
        sd_upper = touched = None
        if change is not None:
            above = prepare_changes(upper, change, insert_only=upper_only)
            sd_upper = leaves.share(summary_delta(upper, above, insert_only=upper_only), "sd")
            if random.random() < 0.5:
                # It is known which groups above are gone.
                _, touched = touched_groups(
                    "upper", upper, above, leaves, upper_only, partial(groups_from_rows, upper, leaves=leaves)
                )
        stored_upper = stored_as("upper", upper, leaves)
        before = Staged("upper", stored_upper.fields[:-1])
        tables = joined_tables(edge, lower, leaves)
        only = upper_only and not changed
        known = Upper(sd_upper, upper_only, before, touched)
        prepared = derived_changes(edge, lower, known, tables, insert_only=only)
        assert_kept(lower, prepared, leaves, only, f"seed {seed}: {edge}")
    assert derived > CASES / 10
    assert with_changed_joins > CASES / 50


def test_groups_that_lost_their_extremum_are_made_from_the_view_above() -> None:
    recomputations = 0
    for seed in range(CASES // 2):
        random = Random(seed)
        upper = random_groups(random, upper=True)
        lower = random_groups(random, upper=False, functions=("min", "max", "bool_or"))
        edge = derives(("lower", star(lower)), ("upper", star(upper)))
        if edge is None:
            continue
        for _ in range(5):
            leaves = random_leaves(random, TABLES)
            recomputations += recomputed_from_above(edge, upper, lower, leaves, f"seed {seed}: {edge}")
    assert recomputations > CASES / 100


def recomputed_from_above(edge: Edge, upper: Groups, lower: Groups, leaves: MemoryLeaves, case: str) -> bool:
    """Whether it had to be; then it is right."""
    change, above = delta(lower.child, leaves), delta(upper.child, leaves)
    if change is None:
        return False
    after: Relation = Staged("upper", stored_as("upper", upper, leaves).fields[:-1])
    if above is not None:
        only = insert_only(upper.child, leaves)
        prepared = prepare_changes(upper, above, insert_only=only)
        stored, touched = touched_groups(
            "upper", upper, prepared, leaves, only, lambda keys: groups_from_rows(upper, keys, leaves)
        )
        after = groups_after(upper, stored, touched)
    tables = [Joined(each.new, each.new, None, each.names) for each in joined_tables(edge, lower, leaves)]
    asked = []

    def from_above(keys: Relation | None) -> Relation:
        asked.append(keys)
        return derived_rows(edge, lower, after, tables, keys)

    only = insert_only(lower.child, leaves)
    assert_kept(lower, prepare_changes(lower, change, insert_only=only), leaves, only, case, from_above)
    return bool(asked)


def test_a_view_kept_by_changes_that_are_aggregated_before_they_are_joined() -> None:
    done = 0
    for seed in range(CASES):
        random = Random(seed)
        groups = random_groups(random, upper=False)
        found = preaggregation(groups, "f")
        leaves = random_leaves(random, TABLES)
        change = None if found is None else delta(found.upper.child, leaves)
        if found is None or change is None or found.edge.joins & leaves.changed:
            continue
        done += 1
        only = insert_only(found.upper.child, leaves)
        sd = summary_delta(
            found.upper, prepare_changes(found.upper, change, insert_only=only), insert_only=only
        )
        tables = joined_tables(found.edge, groups, leaves)
        prepared = derived_changes(found.edge, groups, Upper(sd, only, sd), tables, insert_only=only)
        assert_kept(groups, prepared, leaves, only, f"seed {seed}: {found.edge}")
    assert done > CASES / 15


def test_what_is_aggregated_first_keeps_no_more_than_the_join_needs() -> None:
    child = Join((scan("f"), scan("d")), (compose(column("f_a"), " = ", column("d_a")),))
    calls = (AggregateCall("s", "sum", (column("f_m"),)),)
    kept, _ = keep_for(calls, lambda argument: "int")
    types = ((GROUP_COUNT, "bigint"), *((each.name, "bigint") for each in kept))
    found = preaggregation(Groups(child, ("d_x", "f_b"), kept, types), "f")
    assert found is not None
    assert found.edge.joins == {"d"}
    # f's own key b and the column a that it is joined on; not the column that is summed.
    assert len(found.upper.keys) == 2
    assert preaggregation(Groups(scan("f"), ("f_b",), kept, types), "f") is None


def test_a_group_above_that_is_still_there_takes_no_extremum_away() -> None:
    """MIN(a) of all, from a view grouped by a: one of two rows with the least a is deleted."""
    lower = minimum_of_a(("f_b",))
    upper = Groups(lower.child, ("f_a", "f_b"), (), lower.types)
    edge = derives(("lower", star(lower)), ("upper", star(upper)))
    assert edge is not None
    columns = TABLES["f"]
    before, after = Counter({(1, 7, 0): 2, (2, 7, 0): 1}), Counter({(1, 7, 0): 1, (2, 7, 0): 1})
    leaves = MemoryLeaves(
        {
            "f@old": (columns, before),
            "f@new": (columns, after),
            "f@delta": ((*columns, WEIGHT), Counter([(1, 7, 0, -1)])),
        },
        frozenset("f"),
        frozenset(),
    )
    change = delta(upper.child, leaves)
    assert change is not None
    above = prepare_changes(upper, change, insert_only=False)
    sd_upper = leaves.share(summary_delta(upper, above, insert_only=False), "sd")
    _, touched = touched_groups("upper", upper, above, leaves, False, refuse)
    before_upper = Staged("upper", stored_as("upper", upper, leaves).fields[:-1])

    def kept(known: Upper, fresh: Fresh) -> None:
        prepared = derived_changes(edge, lower, known, [], insert_only=False)
        assert_kept(lower, prepared, leaves, only=False, case="", fresh=fresh)

    kept(Upper(sd_upper, False, before_upper, touched), refuse)
    with pytest.raises(AssertionError, match="computed anew"):
        kept(Upper(sd_upper, False, before_upper), refuse)


def minimum_of_a(keys: tuple[str, ...]) -> Groups:
    kept, _ = keep_for([AggregateCall("lo", "min", (column("f_a"),))], lambda argument: "int")
    types = ((GROUP_COUNT, "bigint"), *((each.name, "bigint") for each in kept))
    return Groups(scan("f"), keys, kept, types)


def refuse(keys: Relation | None) -> Relation:
    raise AssertionError("groups would be computed anew")
