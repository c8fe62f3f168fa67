"""The search where some terms are known to be empty: it finds what trying everything finds."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from itertools import permutations
from random import Random

import pytest
from test_search import CHAIN, CLIQUE, STAR, RandomSizes, joined, partitions, random_sizes

from viewkeeper.algebra.expressions import Apart, Node, Tree, changes, cost, members, n_term, places
from viewkeeper.algebra.search import find_optimal


def random_apart(random: Random, sizes: RandomSizes, share: float) -> Apart:
    """What did not change is the same before and after; otherwise any."""
    everything = range(len(sizes.changed))
    old, new = ([0] * len(sizes.changed) for _ in range(2))
    for one in everything:
        for other in everything:
            if one == other or not sizes.changed[one]:
                continue
            before, after = random.random() < share, random.random() < share
            old[one] |= before << other
            new[one] |= (after if sizes.changed[other] else before) << other
    return Apart(tuple(old), tuple(new))


def empty_parts(tree: Tree, sizes: RandomSizes, apart: Apart) -> Iterator[int]:
    """The parts of a tree whose terms are left out, as :mod:`viewkeeper.algebra.empty_terms` tells them."""
    if isinstance(tree, int):
        return
    terms = [at for at, part in enumerate(tree.parts) if changes(part, sizes.changed)]
    empty = [at for at in terms if is_empty(tree.parts, at, sizes.changed, apart)]
    left_out = {members(tree.parts[at]) for at in (empty if len(empty) < len(terms) else empty[:-1])}
    yield from left_out
    for part in tree.parts:
        if members(part) not in left_out:
            yield from empty_parts(part, sizes, apart)


def is_empty(parts: Sequence[Tree], at: int, changed: Sequence[bool], apart: Apart) -> bool:
    moved = [place for place in places(members(parts[at])) if changed[place]]
    before = sum(members(part) for part in parts[:at])
    behind = sum(members(part) for part in parts[at + 1 :])
    return len(moved) == 1 and bool(apart.new[moved[0]] & before | apart.old[moved[0]] & behind)


def least(sizes: RandomSizes, apart: Apart, given: Collection[int]) -> float:
    """The least cost of all trees: of every set every partition in every order."""
    known: dict[int, float] = {}

    def best(relations: tuple[int, ...]) -> float:
        mask = sum(1 << at for at in relations)
        if len(relations) == 1 or mask in given:
            return 0.0
        if mask not in known:
            found = [
                in_order(parts)
                for partition in partitions(relations)
                if len(partition) > 1
                for parts in permutations(partition)
            ]
            known[mask] = min(found)
        return known[mask]

    def in_order(parts: Sequence[Sequence[int]]) -> float:
        trees: list[Tree] = [Node(tuple(part)) if len(part) > 1 else part[0] for part in parts]
        terms = [at for at, tree in enumerate(trees) if changes(tree, sizes.changed)]
        computed = [at for at in terms if not is_empty(trees, at, sizes.changed, apart)] or terms[-1:]
        return sum(
            best(tuple(parts[at]))
            + sizes.delta(members(trees[at]))
            + sum(sizes.new[place] for before in parts[:at] for place in before)
            + sum(sizes.old[place] for behind in parts[at + 1 :] for place in behind)
            for at in computed
        )

    return best(tuple(range(len(sizes.changed))))


@pytest.mark.parametrize(("relations", "cases"), [(2, 1_000), (3, 2_000), (4, 1_000), (5, 150), (6, 10)])
def test_it_finds_what_trying_everything_finds(relations: int, cases: int) -> None:
    fewer = 0
    for seed in range(cases):
        random = Random(f"{relations}/{seed}")
        sizes = random_sizes(random, relations)
        apart = random_apart(random, sizes, random.choice((0.05, 0.2, 0.6)))
        sets = range(3, 1 << relations)
        given = [mask for mask in sets if mask.bit_count() > 1 and random.random() < random.choice((0, 0.3))]
        found = find_optimal(sizes, given=given, apart=apart)
        left_out = list(empty_parts(found.tree, sizes, apart))
        assert found.exact
        assert members(found.tree) == (1 << relations) - 1
        assert found.cost == pytest.approx(cost(found.tree, sizes, given, left_out)), f"seed {seed}"
        expected = least(sizes, apart, given)
        assert found.cost == pytest.approx(expected), f"seed {seed}: {found.tree}"
        unaware = find_optimal(sizes, given=given).tree
        without = list(empty_parts(unaware, sizes, apart))
        fewer += cost(unaware, sizes, given, without) > expected * (1 + 1e-9)
    assert relations == 2 or fewer > cases / 10, "it makes a difference that the search knows"


@pytest.mark.parametrize(
    ("relations", "edges"), [(12, CHAIN), (12, STAR), (9, CLIQUE)], ids=["chain", "star", "clique"]
)
def test_many_relations_are_searched_whole(relations: int, edges: list[tuple[int, int]]) -> None:
    sizes = joined(relations, edges)
    old = [0] * relations
    for parent, child in edges:
        old[parent] |= 1 << child
    started = time.process_time()
    found = find_optimal(sizes, apart=Apart(tuple(old), (0,) * relations))
    assert time.process_time() - started < 6
    assert found.exact
    assert found.cost <= find_optimal(sizes).cost


def test_new_parents_have_no_old_children_whose_place_is_behind() -> None:
    """Δparent ⋈ old children is empty, if the parent is brought up to date first, although that makes the
    children's term read more of it."""
    sizes = RandomSizes([True, True], [100, 1000], [150, 1010], [0, 50, 10, 20])
    apart = Apart((0b10, 0), (0, 0))
    found = find_optimal(sizes, apart=apart)
    assert (found.tree, found.cost) == (Node((0, 1)), 10 + 150)
    assert find_optimal(sizes).tree == Node((1, 0))
    assert cost(n_term(2), sizes, without=list(empty_parts(n_term(2), sizes, apart))) == found.cost
