"""Delta expressions: their access counts and costs, and that the search finds the best one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from random import Random

import pytest

from viewkeeper.algebra.expressions import Node, Tree, accesses, all_terms, cost, members, n_term
from viewkeeper.algebra.join_sizes import JoinInput, JoinSizes
from viewkeeper.algebra.reading_costs import OPENED, SMALL_ROWS, SMALL_VALUES, ReadingCosts
from viewkeeper.algebra.scalars import Column, Scalar
from viewkeeper.algebra.search import find_optimal


@dataclass
class RandomSizes:
    """Sizes that follow no rule at all: the search must not rely on any."""

    changed: Sequence[bool]
    old: Sequence[float]
    new: Sequence[float]
    deltas: Sequence[float]

    def delta(self, relations: int) -> float:
        return self.deltas[relations]


def random_sizes(random: Random, relations: int) -> RandomSizes:
    changed = [random.random() < 0.7 for _ in range(relations)]
    changed[random.randrange(relations)] = True
    old = [float(random.randint(1, 10 ** random.randint(1, 4))) for _ in changed]
    new = [
        size + random.randint(-int(size), 20) if moved else size
        for size, moved in zip(old, changed, strict=True)
    ]
    deltas = [float(random.randint(0, 10 ** random.randint(1, 4))) for _ in range(1 << relations)]
    return RandomSizes(changed, old, new, deltas)


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every partition of the items."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        for at, part in enumerate(smaller):
            yield [*smaller[:at], [first, *part], *smaller[at + 1 :]]
        yield [[first], *smaller]


class Exhaustive:
    """The least cost of any recursive partition, each in every order of its parts."""

    def __init__(self, sizes: RandomSizes, *, every_order: bool) -> None:
        self._sizes = sizes
        self._every_order = every_order
        self._known: dict[tuple[int, ...], float] = {}

    def least(self, relations: tuple[int, ...]) -> float:
        if len(relations) == 1:
            return 0.0
        if relations not in self._known:
            self._known[relations] = min(
                self._cost([tuple(part) for part in partition])
                for partition in partitions(relations)
                if len(partition) > 1
            )
        return self._known[relations]

    def _cost(self, parts: Sequence[tuple[int, ...]]) -> float:
        changed = [part for part in parts if self._changed(part)]
        inner = sum(self.least(part) + self._sizes.delta(sum(1 << at for at in part)) for part in changed)
        if self._every_order:
            return inner + min(self._reads(order) for order in permutations(parts))
        by_growth = sorted(
            parts, key=lambda part: self._size(part, self._sizes.new) - self._size(part, self._sizes.old)
        )
        return inner + self._reads(by_growth)

    def _reads(self, parts: Sequence[tuple[int, ...]]) -> float:
        return sum(
            sum(self._size(before, self._sizes.new) for before in parts[:at])
            + sum(self._size(behind, self._sizes.old) for behind in parts[at + 1 :])
            for at, part in enumerate(parts)
            if self._changed(part)
        )

    def _changed(self, part: tuple[int, ...]) -> bool:
        return any(self._sizes.changed[at] for at in part)

    @staticmethod
    def _size(part: tuple[int, ...], reading: Sequence[float]) -> float:
        return sum(reading[at] for at in part)


@pytest.mark.parametrize(("relations", "cases"), [(2, 1_000), (3, 2_000), (4, 1_000), (5, 400), (6, 60)])
def test_the_search_finds_what_trying_all_partitions_finds(relations: int, cases: int) -> None:
    for seed in range(cases):
        sizes = random_sizes(Random(f"{relations}/{seed}"), relations)
        found = find_optimal(sizes)
        assert members(found.tree) == (1 << relations) - 1
        expected = Exhaustive(sizes, every_order=relations <= 5).least(tuple(range(relations)))
        assert found.exact
        assert found.cost == pytest.approx(expected), f"seed {seed}: {found.tree}"


def random_tree(random: Random, relations: Sequence[int]) -> Tree:
    if len(relations) == 1:
        return relations[0]
    parts: list[list[int]] = [[] for _ in range(random.randint(2, len(relations)))]
    for at, relation in enumerate(random.sample(relations, len(relations))):
        parts[at if at < 2 else random.randrange(len(parts))].append(relation)
    return Node(tuple(random_tree(random, part) for part in parts if part))


def test_no_relation_is_read_more_often_than_by_the_n_term_expression() -> None:
    """Theorem 2: 1 ≤ Aᵢ ≤ n − 1, when all change."""
    for seed in range(2_000):
        random = Random(seed)
        relations = random.randint(2, 9)
        tree = random_tree(random, range(relations))
        assert isinstance(tree, Node)
        counts = accesses(tree, [True] * relations)
        assert all(1 <= count <= relations - 1 for count in counts), f"seed {seed}: {tree}"
        changed = [random.random() < 0.5 for _ in range(relations)]
        fewer = accesses(tree, changed)
        assert all(few <= count for few, count in zip(fewer, counts, strict=True))


def test_what_did_not_change_has_no_term_but_is_read() -> None:
    tree = Node((Node((0, 1)), 2))
    assert accesses(tree, [True, False, False]) == [0, 1, 1]
    assert accesses(n_term(3), [True, True, False]) == [1, 1, 2]
    assert accesses(all_terms([True, True, False]), [True, True, False]) == [1, 1, 3]


def test_the_example_of_the_paper() -> None:
    """Expressions (7) and (8): the n-term one reads R₃ twice, the other once, and Δ(R₁ ⋈ R₂) beside it."""
    sizes = RandomSizes([True] * 3, [10, 20, 1000], [11, 22, 1005], [0, 1, 2, 5, 3, 7, 7, 9])
    assert cost(n_term(3), sizes) == 2 * 11 + 20 + 22 + 2 * 1000 + 1 + 2 + 3
    assert cost(Node((Node((0, 1)), 2)), sizes) == 2 * 11 + 20 + 22 + 1000 + 5 + 1 + 2 + 3
    assert find_optimal(sizes).tree == Node((Node((0, 1)), 2))


def test_access_counts_of_figure_1() -> None:
    tree_a = Node((Node((Node((0, 1)), 2, Node((3, 4)))), 5))
    assert accesses(tree_a, [True] * 6) == [4, 4, 3, 4, 4, 1]
    assert accesses(n_term(6), [True] * 6) == [5] * 6


def test_the_cost_of_all_terms_by_hand() -> None:
    """ΔR₁R₂R₃ ⊎ R₁ΔR₂R₃ ⊎ ΔR₁ΔR₂R₃: R₃ did not change."""
    sizes = RandomSizes([True, True, False], [10, 20, 1000], [11, 22, 1000], [0, 1, 2, 5, 0, 7, 7, 9])
    assert cost(all_terms(sizes.changed), sizes) == (1 + 20 + 1000) + (10 + 2 + 1000) + (1 + 2 + 1000)


def test_a_cross_product_of_two_small_deltas_may_be_the_best_first_step() -> None:
    """Two small dimensions of a star. Connected parts alone would read the facts twice: there is no condition
    between the dimensions."""
    rows, small = 1_000_000.0, 10.0
    first, second, facts = 0, 1, 2
    deltas = [0.0] * 8
    deltas[1 << first] = deltas[1 << second] = 1.0
    deltas[0b011] = 2 * small
    deltas[0b101] = deltas[0b110] = deltas[0b111] = rows / small
    sizes = RandomSizes([True, True, False], [small, small, rows], [small, small, rows], deltas)
    found = find_optimal(sizes)
    assert found.tree == Node((Node((first, second)), facts))
    connected = (n_term(3), Node((Node((first, facts)), second)), Node((Node((second, facts)), first)))
    assert min(cost(tree, sizes) for tree in connected) > 1.9 * found.cost


def test_gluing_an_unchanged_relation_to_a_neighbour_may_double_the_cost() -> None:
    """To join the unchanged facts with either changed table beforehand reads them for the one delta and again
    for the other; they are read once, if both changes are put together first."""
    rows = 1_000_000.0
    deltas = [0.0, 1.0, 1.0, 3.0, 0.0, 10.0, 10.0, 30.0]
    sizes = RandomSizes([True, True, False], [100, 100, rows], [100, 100, rows], deltas)
    glued = (Node((Node((0, 2)), 1)), Node((0, Node((1, 2)))))
    found = find_optimal(sizes)
    assert all(cost(tree, sizes) > 1.9 * found.cost for tree in glued)


def joined(relations: int, edges: Sequence[tuple[int, int]], *, changed: int | None = None) -> JoinSizes:
    """A join along these edges, each between a column of its own on either side."""
    columns: list[set[str]] = [{f"k{at}"} for at in range(relations)]
    conjuncts = []
    for number, (one, two) in enumerate(edges):
        columns[one].add(f"l{number}")
        columns[two].add(f"r{number}")
        conjuncts.append(Scalar((Column(f"l{number}"), " = ", Column(f"r{number}"))))
    inputs = tuple(
        JoinInput(
            f"t{at}",
            frozenset(each),
            rows,
            rows * 1.01,
            rows * 0.02 if changed is None or at < changed else None,
        )
        for at, each in enumerate(columns)
        for rows in [10.0 ** (2 + at % 4)]
    )
    return JoinSizes(inputs, tuple(conjuncts))


CHAIN = [(at, at + 1) for at in range(11)]
STAR = [(0, at) for at in range(1, 12)]
CLIQUE = [(one, two) for two in range(9) for one in range(two)]


@pytest.mark.parametrize(
    ("relations", "edges"), [(12, CHAIN), (12, STAR), (9, CLIQUE)], ids=["chain", "star", "clique"]
)
def test_many_relations_are_searched_whole(relations: int, edges: list[tuple[int, int]]) -> None:
    sizes = joined(relations, edges)
    started = time.process_time()
    found = find_optimal(sizes)
    assert time.process_time() - started < 3, "it takes well under a second on an idle machine"
    assert found.exact
    assert found.cost <= cost(n_term(relations), sizes)


def test_more_relations_than_can_be_searched_whole() -> None:
    """Not the best for certain, and it says so; never worse than the n-term expression."""
    sizes = joined(25, [(at, at + 1) for at in range(24)], changed=20)
    found = find_optimal(sizes)
    assert not found.exact
    assert members(found.tree) == (1 << 25) - 1
    assert found.cost < cost(n_term(25), sizes) / 2


@pytest.mark.parametrize("edges", [[], [(0, at) for at in range(1, 25)]], ids=["crossed", "star"])
@pytest.mark.parametrize("rows", [0.0, 1.0, 2.0**62])
@pytest.mark.parametrize("factor", [1e-18, 1e18])
def test_sizes_that_cannot_be_true(edges: list[tuple[int, int]], rows: float, factor: float) -> None:
    """Of tables whose metadata, or of parts whose history tells nonsense: there is a tree all the same."""
    sizes = joined(25, edges)
    inputs = tuple(replace(each, old=rows, new=rows, delta=rows) for each in sizes.inputs)
    sizes = JoinSizes(inputs, sizes.conjuncts, {sizes.name(1 << at): factor for at in range(25)})
    found = find_optimal(ReadingCosts(sizes))
    assert members(found.tree) == (1 << 25) - 1
    assert math.isfinite(found.cost)
    everything = (1 << 25) - 1
    assert math.isfinite(sizes.delta(everything) * factor)
    assert sizes.growth(1, everything) >= 1


def test_sizes_of_parts() -> None:
    """orders ⋈ lineitem along a key, a nation beside them."""
    equal = Scalar((Column("o"), " = ", Column("l")))
    wide = Scalar((Column("n"), " < ", Column("o")))
    sizes = JoinSizes(
        (
            JoinInput("o", frozenset({"o"}), 1_000, 1_000, 10),
            JoinInput("l", frozenset({"l"}), 4_000, 4_000, 40),
            JoinInput("n", frozenset({"n"}), 25, 25, None),
        ),
        (equal, wide),
    )
    assert sizes.rows(0b011) == pytest.approx(4_000)
    assert sizes.delta(0b001) == 10
    # Ten orders with four lines each, and forty lines with one order each.
    assert sizes.delta(0b011) == pytest.approx(80)
    assert sizes.delta(0b101) == pytest.approx(10 * 25 / 3)
    assert sizes.delta(0b100) == 0


def test_a_chain_of_equal_columns_counts_each_table_once() -> None:
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    conjuncts = tuple(Scalar((Column(one), " = ", Column(two))) for one, two in pairs)
    inputs = tuple(JoinInput(name, frozenset({name}), 100, 100, 1) for name in "abc")
    assert JoinSizes(inputs, conjuncts).rows(0b111) == pytest.approx(100)


def test_known_distinct_values_are_used() -> None:
    conjuncts = (Scalar((Column("a"), " = ", Column("b"))),)
    inputs = (
        JoinInput("a", frozenset({"a"}), 100, 100, 1, {"a": 10}),
        JoinInput("b", frozenset({"b"}), 1_000, 1_000, None, {"b": 20}),
    )
    assert JoinSizes(inputs, conjuncts).rows(0b11) == pytest.approx(100 * 1_000 / 20)


@pytest.mark.parametrize(
    ("condition", "share"),
    [
        ((Column("kind"), " = 'A''B'"), 1 / 8),
        (("date'2026-01-01' <=> ", Column("kind")), 1 / 8),
        ((Column("kind"), " = -1.5D"), 1 / 8),
        ((Column("unknown"), " = 3"), 1 / 3),
        ((Column("kind"), " > 3"), 1 / 3),
        ((Column("kind"), " = 3 OR true"), 1 / 3),
        ((Column("kind"), " = 'A' || 'B'"), 1 / 3),
        ((Column("kind"), " = ", Column("unknown"), " + 1"), 1 / 3),
    ],
)
def test_what_a_condition_on_one_input_lets_pass(condition: tuple[str | Column, ...], share: float) -> None:
    conjuncts = (Scalar((Column("a"), " = ", Column("b"))), Scalar(condition))
    inputs = (
        JoinInput("a", frozenset({"a", "kind", "unknown"}), 100, 100, 16, {"a": 100, "kind": 8}),
        JoinInput("b", frozenset({"b"}), 100, 100, None, {"b": 100}),
    )
    sizes = JoinSizes(inputs, conjuncts)
    assert sizes.delta(0b01) == pytest.approx(16 * share), "before it is joined"
    assert sizes.delta(0b11) == pytest.approx(16 * share)


def test_on_spark_rows_are_weighed_by_what_is_read_of_them() -> None:
    conjuncts = (Scalar((Column("a"), " = ", Column("b"))),)
    narrow = JoinInput("a", frozenset({"a"}), 1_000, 1_100, 100, width=4.0)
    wide = JoinInput("b", frozenset({"b", "c"}), 1_000, 1_000, None, width=28.0)
    reading = ReadingCosts(JoinSizes((narrow, wide), conjuncts))
    assert reading.changed == (True, False)
    assert (reading.old, reading.new) == (
        [OPENED + 4_000.0, OPENED + 28_000.0],
        [OPENED + 4_400.0, OPENED + 28_000.0],
    )
    assert reading.delta(0b01) == 100 * (4 + 8), "its columns, and its weight"
    assert reading.delta(0b11) == pytest.approx(100 * (4 + 28 + 8) / 2), "it only passes through"
    assert cost(n_term(2), reading) == OPENED + 28_000 + 1_200


def test_small_tables_that_did_not_change_are_opened_once() -> None:
    conjuncts = (
        Scalar((Column("a"), " = ", Column("b"))),
        Scalar((Column("c"), " = ", Column("d"))),
    )
    inputs = (
        JoinInput("a", frozenset({"a"}), 1_000_000, 1_000_000, 10_000, width=8.0),
        JoinInput("b", frozenset({"b", "c"}), 1_000_000, 1_000_000, 10_000, width=16.0),
        JoinInput("d", frozenset({"d"}), 25, 25, None, width=8.0),
    )
    tree = find_optimal(ReadingCosts(JoinSizes(inputs, conjuncts))).tree
    assert tree == Node((Node((0, 1)), 2)), "two terms, and d joined with both together"


def test_a_delta_too_large_to_be_broadcast_is_dearer() -> None:
    rows = 3_000_000
    alone = JoinInput("a", frozenset({"a", "b"}), 10 * rows, 10 * rows, rows, width=8.0)
    beside = replace(alone, name="c", columns=frozenset({"c", "d", "e"}))
    reading = ReadingCosts(JoinSizes((alone, beside), ()))
    assert reading.delta(0b01) == rows * 16
    assert reading.delta(0b10) == 3 * rows * 16


def test_a_large_table_is_shuffled_beside_deltas_too_large_to_be_broadcast() -> None:
    """The sum over operands is what the terms of the n-term expression read and shuffle."""
    for seed in range(300):
        random = Random(seed)
        inputs = tuple(
            JoinInput(
                f"t{at}",
                frozenset({f"a{at}", f"b{at}"}),
                rows,
                rows,
                random.choice([None, 100.0, 2.0 * SMALL_VALUES]) if at else 10.0,
                width=random.choice([4.0, 50.0]),
            )
            for at in range(random.randint(2, 5))
            for rows in [random.choice([10.0, 1e6, 1e8])]
        )
        reading = ReadingCosts(JoinSizes(inputs, ()))
        expected = 0.0
        for term, changed in enumerate(inputs):
            if changed.delta is None:
                continue
            expected += reading.delta(1 << term)
            for at, other in enumerate(inputs):
                shuffled = changed.delta * 2 > SMALL_VALUES and other.new > SMALL_ROWS
                expected += 0 if at == term else OPENED + other.new * other.width * (3 if shuffled else 1)
        assert cost(n_term(len(inputs)), reading) == pytest.approx(expected), f"seed {seed}"
