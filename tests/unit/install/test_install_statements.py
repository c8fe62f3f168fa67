"""Which statement installs which change; without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewkeeper.install import bags, groups
from viewkeeper.install.counts import Counts
from viewkeeper.plan.methods import Method
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.steps import Install

from ..plan.world import SALES, STORES, FakeChange, by_store, large, situation, view


def install_of(relation, tables) -> Install:
    vector = dict.fromkeys(tables, "1")
    plan = plan_epoch(situation(view("v", relation, tables, vector=vector), sales=FakeChange()))
    return next(step for step in plan.steps if isinstance(step, Install))


SDCURSOR, SDBATCH, SDOVERWRITE = Method.SDCURSOR, Method.SDBATCH, Method.SDOVERWRITE


@pytest.mark.parametrize(
    ("counts", "method", "expected"),
    [
        (Counts(), SDCURSOR, []),
        (Counts(inserted=5), SDCURSOR, ["INSERT INTO"]),
        (Counts(inserted=5), SDOVERWRITE, ["INSERT INTO"]),
        (Counts(updated=5), SDCURSOR, ["MERGE INTO"]),
        (Counts(updated=5), SDBATCH, ["MERGE INTO", "INSERT INTO"]),
        (Counts(deleted=5), SDBATCH, ["MERGE INTO"]),
        (Counts(deleted=5), SDCURSOR, ["MERGE INTO"]),
        (Counts(5, 5, 5), SDCURSOR, ["MERGE INTO"]),
        (Counts(5, 5, 5), SDBATCH, ["MERGE INTO", "INSERT INTO"]),
        (Counts(5, 5, 5), SDOVERWRITE, ["INSERT OVERWRITE"]),
    ],
)
def test_groups(counts, method, expected):
    statements = groups.statements(install_of(by_store, (SALES,)), counts, method)
    assert [" ".join(statement.split()[:2]) for statement in statements] == expected


def test_an_overwrite_reads_the_snapshot_that_the_change_was_computed_against():
    install = install_of(by_store, (SALES,))
    (overwrite,) = groups.statements(install, Counts(1, 1, 1), SDOVERWRITE)
    assert f"{install.storage} VERSION AS OF {install.snapshot}" in overwrite
    assert "LEFT ANTI JOIN" in overwrite


def test_groups_match_null_keys():
    (merge,) = groups.statements(install_of(by_store, (SALES,)), Counts(1, 1, 1), SDCURSOR)
    assert "_vk_t.`store` <=> _vk_s.`store`" in merge


def test_without_new_groups_rows_are_matched_by_identity():
    (merge,) = groups.statements(install_of(by_store, (SALES,)), Counts(updated=1), SDCURSOR)
    assert "ON _vk_t._row_id = _vk_s._vk_row" in merge
    assert "NOT MATCHED" not in merge


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (Counts(), []),
        (Counts(inserted=5), ["INSERT"]),
        (Counts(deleted=5), ["MERGE"]),
        (Counts(inserted=5, deleted=5), ["MERGE", "INSERT"]),
    ],
)
def test_bags(counts, expected):
    statements = bags.statements(install_of(large, (SALES, STORES)), counts)
    assert [statement.split()[0] for statement in statements] == expected


def test_bags_are_deleted_by_row_identity_alone():
    merge, insert = bags.statements(install_of(large, (SALES, STORES)), Counts(5, 5))
    assert "_vk_t._row_id = _vk_s._vk_row" in merge
    assert "city" not in merge
    assert "explode(array_repeat(0, CAST(least(_vk_w" in insert
    assert "xxhash64(" in insert


def test_a_key_is_deleted_by_before_new_rows_come():
    install = install_of(large, (SALES, STORES))
    keyed = replace(install, source=replace(install.source, key=("amount",)))
    delete, insert = bags.statements_by_key(keyed, Counts(inserted=1, deleted=1))
    assert delete.startswith("MERGE INTO") and "_vk_t.`amount` <=> _vk_s.`amount`" in delete
    assert insert.startswith("INSERT INTO")
    (alone,) = bags.statements_by_key(keyed, Counts(deleted=1, null_keys=0))
    assert "_vk_t.`amount` = _vk_s.`amount`" in alone
