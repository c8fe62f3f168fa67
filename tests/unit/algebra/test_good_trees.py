"""Joins of more relations than are searched whole: how near the heuristic comes to the best expression."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from statistics import median

import pytest

from viewkeeper.algebra.expressions import Node, Sizes, cost, members, n_term
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes
from viewkeeper.algebra.reading_costs import ReadingCosts
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.algebra.search import find_optimal

SHAPES = ["chain", "star", "clique", "snowflake"]


def edges_of(shape: str, relations: int) -> list[tuple[int, int]]:
    everything = range(1, relations)
    match shape:
        case "chain":
            return [(at - 1, at) for at in everything]
        case "star":
            return [(0, at) for at in everything]
        case "clique":
            return [(one, two) for two in everything for one in range(two)]
        case _:
            arms = (relations - 1) // 3
            return [(0, at) if at <= arms else (at - arms, at) for at in everything]


def random_join(random: Random, shape: str, relations: int, share: float) -> JoinSizes:
    """Ten rows to ten million, of which so many tables changed, each by a tenth or much less."""
    columns: list[set[str]] = [set() for _ in range(relations)]
    conjuncts = []
    for number, (one, two) in enumerate(edges_of(shape, relations)):
        left, right = (f"k{one}", f"k{two}") if shape == "clique" else (f"l{number}", f"r{number}")
        columns[one].add(left)
        columns[two].add(right)
        conjuncts.append(Scalar((Column(left), " = ", Column(right))))
    certain = random.randrange(relations)
    return JoinSizes(
        tuple(
            random_input(random, at, each, random.random() < share or at == certain)
            for at, each in enumerate(columns)
        ),
        tuple(conjuncts),
    )


def random_input(random: Random, at: int, columns: set[str], changed: bool) -> JoinInput:
    rows, part = 10 ** random.uniform(1, 7), 10 ** random.uniform(-4, -1)
    distinct = {name: random.uniform(1, rows) for name in sorted(columns) if random.random() < 0.5}
    new = rows * (1 + random.uniform(-part, part)) if changed else rows
    delta = rows * part if changed else None
    return JoinInput(f"t{at}", frozenset(columns), rows, new, delta, distinct, random.uniform(4, 100))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_heuristic_is_near_the_best(shape: str) -> None:
    ratios = []
    for relations, share, seed in [(13, 0.25, 1), (13, 0.25, 2), (13, 0.8, 1), (13, 0.8, 2), (14, 0.5, 1)]:
        sizes = random_join(Random(f"{shape}/{relations}/{share}/{seed}"), shape, relations, share)
        each: Sizes
        for each in (sizes, ReadingCosts(sizes)):
            found, best = find_optimal(each), find_optimal(each, exact=relations)
            assert best.exact and not found.exact
            assert members(found.tree) == (1 << relations) - 1
            ratios.append(found.cost / best.cost)
    assert min(ratios) >= 1 - 1e-9
    assert median(ratios) <= 1.05, ratios
    assert max(ratios) <= 1.5, ratios


@pytest.mark.parametrize("shape", SHAPES)
def test_many_more_relations_are_planned_quickly(shape: str) -> None:
    sizes = ReadingCosts(random_join(Random(shape), shape, 25, 1.0))
    started = time.process_time()
    found = find_optimal(sizes)
    assert time.process_time() - started < 5, "two seconds at most on an idle machine"
    assert found.cost < cost(n_term(25), sizes)


def test_what_did_not_change_is_not_put_together_for_its_own_sake() -> None:
    """Two neighbours without changes have an empty delta, the smallest of all. To make one part of them would
    keep a small delta from passing through one of them alone."""
    sizes = random_join(Random(3), "chain", 14, 0.2)
    assert find_optimal(sizes).cost <= find_optimal(sizes, exact=14).cost * 1.05


def test_a_delta_that_is_there_already_is_used() -> None:
    """Of few relations or of more than a window holds."""
    sizes = ReadingCosts(random_join(Random("given"), "star", 14, 0.8))
    without = find_optimal(sizes)
    inner = sorted(masks(without.tree)[1:], key=int.bit_count)
    assert inner[-1].bit_count() > 8
    for mask in (inner[0], inner[-1]):
        given = find_optimal(sizes, given=[mask])
        assert given.cost < without.cost
        assert mask in masks(given.tree)


def masks(tree: Node) -> Sequence[int]:
    below = [mask for part in tree.parts if isinstance(part, Node) for mask in masks(part)]
    return [members(tree), *below]
