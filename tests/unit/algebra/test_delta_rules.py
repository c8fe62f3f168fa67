"""Every rule of the algebra, tried on random relations and changes: what was, plus the delta, is what is."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from bag_algebra import Bag, evaluate, net, scalar_value
from random_relations import MemoryLeaves, RandomRelations, random_leaves
from stored_groups import installed

from viewkeeper.algebra.aggregates import FUNCTIONS, GROUP_COUNT, Class, keep_for
from viewkeeper.algebra.deltas import Delta, apply, consolidate
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Field,
    Project,
    Relation,
    Scan,
    Staged,
    TableAt,
    UnionAll,
)
from viewkeeper.algebra.relations import leaves as leaves_of
from viewkeeper.algebra.rules.delta import delta, insert_only
from viewkeeper.algebra.rules.leaves import new, old
from viewkeeper.algebra.rules.read_once import LARGE_ROWS
from viewkeeper.algebra.scalars import column, keep
from viewkeeper.algebra.summary_delta import (
    OPERATION,
    ROW,
    Groups,
    adds_up,
    as_parts,
    folded,
    groups_before,
    groups_from_rows,
    is_self_maintainable,
    marked_keys,
    prepare_changes,
    recomputed,
    summary_delta,
    touched_by_recomputing,
    touched_by_summary_delta,
)

ALGEBRAIC = [name for name, function in FUNCTIONS.items() if function.kind is Class.ALGEBRAIC]
CASES = 300
BATCHES = range(5)


def both_states(relation: Relation, leaves: MemoryLeaves) -> tuple[Bag, Bag]:
    return evaluate(old(relation, leaves), leaves.stored), evaluate(new(relation, leaves), leaves.stored)


@pytest.mark.parametrize("size", [None, LARGE_ROWS])
@pytest.mark.parametrize("batch", BATCHES)
def test_old_plus_delta_is_new(batch: int, size: int | None) -> None:
    """Tables that are large are read once, and what they were is worked out."""
    for seed in range(batch * CASES, (batch + 1) * CASES):
        random = Random(seed)
        relation = RandomRelations(random).relation(random.randint(1, 4))
        leaves = random_leaves(random)
        leaves.rows = size
        before, after = both_states(relation, leaves)
        change = delta(relation, leaves)
        found = Counter() if change is None else net(change, leaves.stored)
        expected = {row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]}
        assert found == expected, f"seed {seed}: {relation}"
        if change is None:
            continue
        assert evaluate(apply(old(relation, leaves), change), leaves.stored) == after, f"seed {seed}"
        if insert_only(relation, leaves):
            assert all(row[-1] > 0 for row in evaluate(change.relation, leaves.stored)), f"seed {seed}"


@pytest.mark.parametrize(("size", "read"), [(None, {"old": 1, "new": 1}), (LARGE_ROWS, {"new": 1})])
def test_a_large_table_is_read_once_as_it_is_now(size: int | None, read: dict[str, int]) -> None:
    table = Scan("a", (Field("x", "x"), Field("y", "y")))
    largest = Aggregate(table, ("x",), (AggregateCall("m", "max", (column("y"),)),))
    for relation in (largest, Distinct(table)):
        leaves = random_leaves(Random(1))
        leaves.changed, leaves.rows = frozenset({"a"}), size
        change = delta(relation, leaves)
        assert change is not None
        made = [leaf for each in (change.relation, *leaves.shared) for leaf in leaves_of(each)]
        assert Counter(leaf.version for leaf in made if isinstance(leaf, TableAt)) == read


def test_consolidated_deltas_hold_every_row_once_and_none_of_weight_0() -> None:
    for seed in range(CASES):
        random = Random(seed)
        relation = RandomRelations(random).relation(random.randint(1, 3))
        leaves = random_leaves(random)
        change = delta(relation, leaves)
        if change is None:
            continue
        rows = evaluate(consolidate(change).relation, leaves.stored)
        assert net(consolidate(change), leaves.stored) == net(change, leaves.stored), f"seed {seed}"
        assert all(count == 1 and row[-1] != 0 for row, count in rows.items()), f"seed {seed}"
        assert len({row[:-1] for row in rows}) == len(rows), f"seed {seed}"


def grouped(random: Random) -> tuple[Aggregate, Groups]:
    """A random aggregate, and how it is stored."""
    aggregate = RandomRelations(random).aggregate(random.randint(0, 2))
    if random.random() < 0.3:
        function = random.choice(ALGEBRAIC)
        arguments = [column(random.choice(aggregate.child.columns)) for _ in range(2)]
        call = AggregateCall("algebraic", function, tuple(arguments[: FUNCTIONS[function].arguments]))
        aggregate = Aggregate(aggregate.child, aggregate.keys, (*aggregate.calls, call))
    kept, _ = keep_for(aggregate.calls, lambda argument: "int")
    types = ((GROUP_COUNT, "bigint"), *((each.name, "bigint") for each in kept))
    return aggregate, Groups(aggregate.child, aggregate.keys, kept, types)


@pytest.mark.parametrize("batch", BATCHES)
def test_touched_groups_merged_into_the_stored_are_the_new_groups(batch: int) -> None:
    for seed in range(batch * CASES, (batch + 1) * CASES):
        random = Random(seed)
        _, groups = grouped(random)
        leaves = random_leaves(random)
        before, after = both_states(groups.rows, leaves)
        columns = (*groups.rows.columns, ROW)
        leaves.stored["storage"] = (columns, Counter((*row, at) for at, row in enumerate(before)))
        stored = Staged("storage", tuple(Field(name, name) for name in columns))
        change = delta(groups.child, leaves)
        if change is None:
            assert before == after, f"seed {seed}"
            continue
        touched = touched_by_recomputing(groups, stored, change, leaves)
        assert touched.columns == (*columns, OPERATION)
        assert installed(groups, before, evaluate(touched, leaves.stored)) == after, f"seed {seed}"
        only_insertions = insert_only(groups.child, leaves)
        prepared = prepare_changes(groups, change, insert_only=only_insertions)
        sd = leaves.share(summary_delta(groups, prepared, insert_only=only_insertions), "summary-delta")
        few = random.random() < 0.5
        touched = touched_by_summary_delta(groups, stored, sd, insert_only=only_insertions, few=few)
        draft = leaves.share(touched, "draft")
        marked = any(row[-1] == "R" for row in evaluate(draft, leaves.stored))
        if is_self_maintainable(groups.kept, insert_only=only_insertions):
            assert not marked, f"seed {seed}"
        fresh = groups_from_rows(groups, marked_keys(groups, draft), leaves)
        final = recomputed(groups, draft, fresh) if marked else draft
        assert installed(groups, before, evaluate(final, leaves.stored)) == after, f"seed {seed}"

        remembering = touched_by_summary_delta(
            groups, stored, sd, insert_only=only_insertions, few=few, remembered=True
        )
        plain = Project(remembering, keep(touched.columns))
        assert evaluate(plain, leaves.stored) == evaluate(touched, leaves.stored), f"seed {seed}"
        identities = {row[-2] for row in evaluate(touched, leaves.stored)}
        was = evaluate(groups_before(groups, leaves.share(remembering, "remembering")), leaves.stored)
        stored_rows = leaves.stored["storage"][1]
        assert was == Counter(row[:-1] for row in stored_rows if row[-1] in identities), f"seed {seed}"

        if only_insertions:
            counting = touched_by_summary_delta(groups, stored, sd, insert_only=True, few=few, counts=True)
            plain = Project(counting, keep(touched.columns))
            assert evaluate(plain, leaves.stored) == evaluate(touched, leaves.stored), f"seed {seed}"
            now = counting.columns.index(GROUP_COUNT)
            came = sum(row[now] - (row[-1] or 0) for row in evaluate(counting, leaves.stored).elements())
            assert came == net_rows(change, leaves), f"seed {seed}"


def net_rows(change: Delta, leaves: MemoryLeaves) -> int:
    """By how many rows the relation grows."""
    return sum(row[-1] * copies for row, copies in evaluate(change.relation, leaves.stored).items())


def test_parts_of_groups_fold_into_the_new_groups() -> None:
    tried = 0
    for seed in range(4 * CASES):
        random = Random(seed)
        _, groups = grouped(random)
        leaves = random_leaves(random)
        change = delta(groups.child, leaves)
        if change is None or not adds_up(groups):
            continue
        tried += 1
        before, after = both_states(groups.rows, leaves)
        leaves.stored["storage"] = (groups.rows.columns, before)
        stored = Staged("storage", tuple(Field(name, name) for name in groups.rows.columns))
        prepared = prepare_changes(groups, change, insert_only=True)
        parts = as_parts(groups, summary_delta(groups, prepared, insert_only=True))
        both = UnionAll((stored, Project(parts, keep(stored.columns))))
        counted = parts.columns.index(GROUP_COUNT)
        came = sum(row[counted] or 0 for row in evaluate(parts, leaves.stored).elements())
        assert came == net_rows(change, leaves), f"seed {seed}"
        assert evaluate(folded(groups, stored), leaves.stored) == before, f"seed {seed}"
        assert evaluate(folded(groups, both), leaves.stored) == after, f"seed {seed}"
    assert tried > CASES / 4


def rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def test_what_is_kept_gives_what_was_asked_for() -> None:
    for seed in range(CASES):
        random = Random(seed)
        aggregate, groups = grouped(random)
        leaves = random_leaves(random)
        _, values = keep_for(aggregate.calls, lambda argument: "int")
        kept = evaluate(new(groups.rows, leaves), leaves.stored)
        shown = Counter(
            (
                *row[: len(groups.keys)],
                *(
                    rounded(scalar_value(values[call.name], groups.rows.columns, row))
                    for call in aggregate.calls
                ),
            )
            for row in kept
        )
        assert shown == evaluate(new(aggregate, leaves), leaves.stored), f"seed {seed}: {aggregate}"
