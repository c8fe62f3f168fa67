"""Which staged results large tables are searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Join,
    OuterJoin,
    Project,
    SemiJoin,
    Staged,
    TableAt,
)
from viewkeeper.algebra.scalars import Column, Named, Scalar, column, words
from viewkeeper.explain import ToldStep, _told
from viewkeeper.plan.lookups import all_lookups
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Situation, ViewInput
from viewkeeper.plan.steps import Extract, Share

from .world import SALES, STORES, FakeChange, by_store, rows, situation, view

LARGE = 20_000_000
AT_ONE = {SALES: "1", STORES: "1"}


def fields(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, name) for name in names)


big = TableAt("lake.big", "1", fields("k", "v"), rows=LARGE)
small = TableAt("lake.small", "1", fields("k_2", "w"), rows=100)
keys = Staged("vk_keys", (Field("stored_k", "key"), *fields("other")), 1000)
equal = Scalar((Column("key"), " = ", Column("k")))


@pytest.mark.parametrize(
    ("relation", "found"),
    [
        (SemiJoin(big, keys, (("k", "key"),)), {"vk_keys": {"stored_k"}}),
        (
            SemiJoin(big, Project(keys, (Named("x", column("key")),)), (("k", "x"),)),
            {"vk_keys": {"stored_k"}},
        ),
        (SemiJoin(big, Project(keys, (Named("x", words("1")),)), (("k", "x"),)), {}),
        (SemiJoin(big, Aggregate(keys, ("key",), ()), (("k", "key"),)), {"vk_keys": {"stored_k"}}),
        (SemiJoin(big, keys, (("k", "key"),), anti=True), {}),
        (SemiJoin(small, keys, (("w", "key"),)), {}),
        (SemiJoin(big, replace(keys, rows=LARGE // 2), (("k", "key"),)), {}),
        (SemiJoin(big, replace(keys, rows=None), (("k", "key"),)), {}),
        (Join((keys, big), (equal,)), {"vk_keys": {"stored_k"}}),
        (Filter(Join((big, keys), (equal,)), words("true")), {"vk_keys": {"stored_k"}}),
        (Join((big, keys), (Scalar((Column("key"), " < ", Column("k"))),)), {}),
        (OuterJoin(big, keys, (equal,), broadcast=True), {"vk_keys": {"stored_k"}}),
        (OuterJoin(big, keys, (equal,)), {}),
        (
            Join((big, keys, small), (equal, Scalar((Column("other"), " = ", Column("w"))))),
            {"vk_keys": {"stored_k"}},
        ),
    ],
)
def test_what_is_looked_up(relation: SemiJoin | Join | Filter, found: dict[str, set[str]]) -> None:
    assert all_lookups([relation]) == found


def changed(*views: ViewInput, rows: int) -> Situation:
    made = situation(*views, sales=FakeChange(10, 0))
    return replace(made, rows={SALES: rows, STORES: rows}, policy="incremental")


def searching(situation: Situation) -> Sequence[Extract | Share]:
    steps = plan_epoch(situation).steps
    return [step for step in steps if isinstance(step, (Extract, Share)) and step.looked_up]


def test_a_delta_that_is_read_once_is_staged_only_where_a_large_table_is_searched_for_it() -> None:
    joined = view("joined", rows, (SALES, STORES), vector=AT_ONE)
    (step,) = searching(changed(joined, rows=LARGE))
    assert isinstance(step, Extract)
    assert step.looked_up == ("store",)
    assert step.staged
    assert not searching(changed(joined, rows=1000))
    (extract,) = [s for s in plan_epoch(changed(joined, rows=1000)).steps if isinstance(s, Extract)]
    assert not extract.staged


def test_the_groups_of_a_large_view_are_looked_up_by_their_key() -> None:
    groups = replace(view("groups", by_store, (SALES,), vector=AT_ONE), rows=LARGE)
    (step,) = searching(changed(groups, rows=LARGE))
    assert isinstance(step, Share)
    assert step.looked_up == ("store",)
    told = _told(1, ToldStep(step, "", (), ()))
    assert any("range of store: files outside it are not read" in line for line in told)
