"""Which statement installs which change; without Spark."""

from __future__ import annotations

import pytest

from viewkeeper.install import bags, groups
from viewkeeper.install.counts import SMALL_STORAGE_ROWS, Counts
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.steps import Install

from ..plan.world import SALES, STORES, FakeChange, by_store, large, situation, view

LARGE = SMALL_STORAGE_ROWS + 1


def install_of(relation, tables) -> Install:
    vector = dict.fromkeys(tables, "1")
    plan = plan_epoch(situation(view("v", relation, tables, vector=vector), sales=FakeChange()))
    return next(step for step in plan.steps if isinstance(step, Install))


@pytest.mark.parametrize(
    ("counts", "stored", "expected"),
    [
        (Counts(), 10, []),
        (Counts(inserted=5), 10, ["INSERT"]),
        (Counts(updated=5), 10, ["MERGE"]),
        (Counts(updated=5), LARGE, ["MERGE", "INSERT"]),
        (Counts(deleted=5), LARGE, ["MERGE"]),
        (Counts(deleted=5), 10, ["MERGE"]),
        (Counts(5, 5, 5), 10, ["MERGE"]),
        (Counts(5, 5, 5), LARGE, ["MERGE", "INSERT"]),
    ],
)
def test_groups(counts, stored, expected):
    statements = groups.statements(install_of(by_store, (SALES,)), counts, stored)
    assert [statement.split()[0] for statement in statements] == expected


def test_groups_match_null_keys():
    (merge,) = groups.statements(install_of(by_store, (SALES,)), Counts(1, 1, 1), 10)
    assert "_vk_t.`store` <=> _vk_s.`store`" in merge


def test_without_new_groups_rows_are_matched_by_identity():
    (merge,) = groups.statements(install_of(by_store, (SALES,)), Counts(updated=1), 10)
    assert "ON _vk_t._row_id = _vk_s._vk_row" in merge
    assert "NOT MATCHED" not in merge


@pytest.mark.parametrize(
    ("counts", "stored", "expected"),
    [
        (Counts(), 10, []),
        (Counts(inserted=5), LARGE, ["INSERT"]),
        (Counts(deleted=5), LARGE, ["MERGE"]),
        (Counts(inserted=5, deleted=5), 10, ["MERGE"]),
        (Counts(inserted=5, deleted=5), LARGE, ["MERGE", "INSERT"]),
    ],
)
def test_bags(counts, stored, expected):
    statements = bags.statements(install_of(large, (SALES, STORES)), counts, stored)
    assert [statement.split()[0] for statement in statements] == expected


def test_bags_are_deleted_by_row_identity_alone():
    merge, insert = bags.statements(install_of(large, (SALES, STORES)), Counts(5, 5), LARGE)
    assert "_vk_t._row_id = _vk_s._vk_row" in merge
    assert "city" not in merge
    assert "explode(array_repeat(0, CAST(_vk_w AS INT)))" in insert
    assert "xxhash64(" in insert
