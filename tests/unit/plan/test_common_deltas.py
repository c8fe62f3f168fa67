"""Deltas of joined tables that several views need are computed once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, permutations
from random import Random

import pytest

from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes
from viewkeeper.algebra.reading_costs import ReadingCosts
from viewkeeper.algebra.relations import Aggregate, AggregateCall, Field, Join, Project, Scan
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, compose
from viewkeeper.algebra.search import find_optimal
from viewkeeper.learning import held, lessons, told
from viewkeeper.plan.common_deltas import CommonPart, Prices, Problem, cheapest_parts, choose_common
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.references import staged_by
from viewkeeper.plan.situation import Joins, Options, Situation, ViewInput
from viewkeeper.plan.steps import EpochPlan, Extract, Publish, Share

from .world import SALES, STORES, FakeChange, joined, large, rows, situation, view

AT_ONE = {SALES: "1", STORES: "1"}
per_city = Aggregate(joined, ("city",), (AggregateCall("total", "max", (column("amount"),)),))


def both_changed(*views: ViewInput) -> Situation:
    changed = situation(*views, sales=FakeChange(), stores=FakeChange(1, 1))
    return replace(changed, policy="incremental")


def common(plan: EpochPlan) -> list[Share]:
    return [step for step in plan.steps if isinstance(step, Share) and "several views" in step.what]


def readers(plan: EpochPlan, name: str) -> set[str]:
    """The views of the steps that read what is staged under that name."""
    steps = (step for step in plan.steps if not isinstance(step, (Publish, Extract)))
    return {step.view for step in steps if staged_by(step, [name])[name]}


def test_the_delta_of_a_join_that_two_views_have_is_computed_once() -> None:
    one = view("rows", rows, (SALES, STORES), vector=AT_ONE)
    other = view("per_city", per_city, (SALES, STORES), vector=AT_ONE)
    plan = plan_epoch(both_changed(one, other))
    (share,) = common(plan)
    assert share.what == "Δ(sales ⋈ stores), for several views,"
    assert share.staged
    assert readers(plan, share.name) == {one.name, other.name}
    for extract in (step for step in plan.steps if isinstance(step, Extract)):
        assert readers(plan, extract.name) == {share.view}
        assert not extract.staged, "only the shared delta reads it, once"
    (told,) = plan.views[0].propagations
    assert any("computed once for several views" in line for line in told.lines())

    # It is read for neither: what it reads is read once, for both.
    for each in plan.views:
        (propagation,) = each.propagations
        *_, last = propagation.lines()
        assert last == "read sales 0, stores 0 times; n − 1 is 1"

    n_term = plan_epoch(replace(both_changed(one, other), options=Options(joins=Joins.N_TERM)))
    assert not common(n_term)


def test_a_common_part_is_counted_once_and_told_of_every_view() -> None:
    one = view("rows", rows, (SALES, STORES), vector=AT_ONE)
    other = view("per_city", per_city, (SALES, STORES), vector=AT_ONE)
    plan = plan_epoch(both_changed(one, other))
    (share,) = common(plan)
    assert share.counts == "sales ⋈ stores"
    learned = {}
    for each in plan.views:
        told_of = {"parts": told(each, {share.name: 700})}
        assert held(each, told_of) == [{0b11: 700}]
        (propagation,) = each.propagations
        assert sum("700 in that epoch" in line for line in propagation.lines({0b11: 700})) == 1
        learned |= lessons([(1, each.view, told_of)])
    assert {view: list(parts) for view, parts in learned.items()} == {
        one.name: ["sales ⋈ stores"],
        other.name: ["sales ⋈ stores"],
    }

    again = plan_epoch(replace(both_changed(one, other), learned=learned))
    (share,) = common(again)
    assert share.counts is None, "it is known"
    for each in again.views:
        (propagation,) = each.propagations
        assert dict(propagation.rows)[0b11] == pytest.approx(700, rel=0.01)


def test_a_condition_above_the_join_is_applied_to_what_is_shared() -> None:
    one = view("rows", rows, (SALES, STORES), vector=AT_ONE)
    assert common(plan_epoch(both_changed(one, view("large", large, (SALES, STORES), vector=AT_ONE))))


def test_views_in_another_time_zone_or_at_other_versions_share_nothing() -> None:
    one = view("rows", rows, (SALES, STORES), vector=AT_ONE)
    other = view("per_city", per_city, (SALES, STORES), vector=AT_ONE)
    pins = replace(other.definition.session, time_zone="Asia/Tokyo")
    elsewhere = replace(other, definition=replace(other.definition, session=pins))
    assert not common(plan_epoch(both_changed(one, elsewhere)))
    older = replace(other, vector={SALES: "0", STORES: "1"})
    changed = both_changed(one, older)
    changed = replace(changed, changes={**changed.changes, (SALES, "0", "2"): FakeChange()})
    assert not common(plan_epoch(changed))


def test_a_view_over_25_tables_is_planned_in_seconds() -> None:
    tables = [f"lake.default.t{at}" for at in range(25)]
    inputs = [Scan(table, (Field("k", f"k{at}"), Field("n", f"n{at}"))) for at, table in enumerate(tables)]
    links = [Scalar((Column(f"n{at}"), " = ", Column(f"k{at + 1}"))) for at in range(24)]
    many = Project(Join(tuple(inputs), tuple(links)), (Named("k", column("k0")),))
    wide = view("wide", many, tuple(tables), vector=dict.fromkeys(tables, "1"))
    changed = Situation(
        (wide,),
        dict.fromkeys(tables, "2"),
        {(table, "1", "2"): FakeChange(at, 10) for at, table in enumerate(tables)},
        rows={table: 1_000 * (at + 1) for at, table in enumerate(tables)},
        policy="incremental",
    )
    started = time.process_time()
    plan = plan_epoch(changed)
    assert time.process_time() - started < 5
    (told,) = plan.views[0].propagations
    assert told.how == "a good delta expression"
    assert told.cost < told.n_term_cost / 2

    # Nothing is known of them: a worse plan, but a plan.
    unknown = replace(changed, rows={})
    assert plan_epoch(unknown).views[0].strategy.value == "incremental"


TABLES = [f"lake.default.t{at}" for at in range(12)]


def overlapping(random: Random, views: int, relations: int, *, tables: int) -> list[Problem]:
    """Views that join some of a chain of tables, so that their parts overlap and contain each other."""
    sizes = [10 ** random.uniform(4, 7) for _ in range(tables)]
    changes = [rows * 10 ** random.uniform(-3, -1) if random.random() < 0.8 else None for rows in sizes]
    problems = []
    for number in range(views):
        first = random.randrange(tables - relations + 1)
        joined_tables = range(first, first + relations)
        inputs = [Scan(TABLES[at], (Field("k", f"k{at}"), Field("n", f"n{at}"))) for at in joined_tables]
        links = [compose(column(f"n{at}"), " = ", column(f"k{at + 1}")) for at in joined_tables[:-1]]
        relation = Join(tuple(inputs), tuple(links))
        known = tuple(
            JoinInput(TABLES[at], frozenset(scan.columns), sizes[at], sizes[at], changes[at], width=16.0)
            for at, scan in zip(joined_tables, inputs, strict=True)
        )
        one = view(f"v{number}", relation, tuple(TABLES), vector={})
        problems.append(
            Problem(one, relation, JoinSizes(known, relation.conjuncts), lambda table: (table, "1", "2"))
        )
    return problems


def prices(problems: Sequence[Problem]) -> Prices:
    shared: dict[CommonPart, list[tuple[int, int]]] = {}
    for at, problem in enumerate(problems):
        for mask in problem.sets():
            found = problem.common(mask)
            assert found is not None
            shared.setdefault(found[0], []).append((at, mask))
    shared = {part: where for part, where in shared.items() if len(where) > 1}
    return Prices([ReadingCosts(problem.sizes) for problem in problems], problems, shared)


def test_the_parts_chosen_are_nearly_the_best_of_all_sets_of_parts() -> None:
    ratios, nested = [], 0
    for seed in range(25):
        problems = overlapping(Random(seed), 3, 3, tables=4)
        known = prices(problems)
        chosen = cheapest_parts(known)
        sets = chain.from_iterable(
            combinations(known.shared, count) for count in range(len(known.shared) + 1)
        )
        least = min(known.total(each) for each in sets)
        ratios.append(known.total(chosen) / least)
        nested += any(one.part.tables < other.part.tables for one, other in permutations(chosen, 2))
        assert set(choose_common(problems)) == set(chosen)
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) <= 1.1, ratios
    assert sum(ratio <= 1 + 1e-9 for ratio in ratios) >= 20, ratios
    assert nested, "a part that another one is made of"


def test_another_view_may_make_another_partition_the_best() -> None:
    differ = 0
    for seed in range(25):
        problems = overlapping(Random(seed), 3, 4, tables=6)
        known = prices(problems)
        chosen = cheapest_parts(known)
        for at, problem in enumerate(problems):
            reading = ReadingCosts(problem.sizes)
            given = [mask for part in chosen for where, mask in known.shared[part] if where == at]
            found, alone = find_optimal(reading, given=given).tree, find_optimal(reading).tree
            differ += found != alone
    assert differ


def test_many_views_are_planned_together_in_seconds() -> None:
    problems = overlapping(Random(1), 20, 9, tables=12)
    started = time.process_time()
    assert choose_common(problems)
    assert time.process_time() - started < 15, "two seconds on an idle machine"
