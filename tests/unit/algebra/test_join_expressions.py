"""Every delta expression of a join gives the same delta, and that is what recomputing finds."""

from __future__ import annotations

from collections import Counter
from random import Random

from bag_algebra import Bag, evaluate, net
from random_relations import MemoryLeaves, random_leaves
from test_search import random_tree

from viewkeeper.algebra.expressions import Node, all_terms, n_term
from viewkeeper.algebra.relations import Field, Join, Scan
from viewkeeper.algebra.rules.delta import delta
from viewkeeper.algebra.rules.leaves import new, old
from viewkeeper.algebra.scalars import Scalar, column, compose
from viewkeeper.algebra.search import find_optimal

TABLES = {"a": ("x", "y"), "b": ("x", "z"), "c": ("y", "z")}
CASES = 300


def random_join(random: Random, relations: int) -> Join:
    """Any graph: tables several times, equalities, other conditions, cross products."""
    inputs = []
    for at in range(relations):
        table = random.choice(list(TABLES))
        inputs.append(Scan(table, tuple(Field(name, f"{name}{at}") for name in TABLES[table])))
    conjuncts = []
    for at in range(1, relations):
        if random.random() < 0.85:
            one = random.choice(inputs[random.randrange(at)].columns)
            conjuncts.append(compose(column(one), " = ", column(random.choice(inputs[at].columns))))
    for _ in range(random.randint(0, 2)):
        conjuncts.append(random_condition(random, [name for each in inputs for name in each.columns]))
    return Join(tuple(inputs), tuple(conjuncts))


def random_condition(random: Random, columns: list[str]) -> Scalar:
    one, two, three = (column(random.choice(columns)) for _ in range(3))
    shapes = (
        compose(one, " <= ", two),
        compose(one, " IS NOT DISTINCT FROM ", two),
        compose(one, " + ", two, " > ", three),
        compose(one, " IS NOT NULL"),
        compose("1 = 1"),
    )
    return random.choice(shapes)


def difference(relation: Join, leaves: MemoryLeaves) -> Bag:
    before, after = (evaluate(state(relation, leaves), leaves.stored) for state in (old, new))
    return Counter({row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]})


def test_all_expressions_give_the_same_delta() -> None:
    nested = 0
    for seed in range(CASES):
        random = Random(seed)
        relations = random.choice((2, 3, 3, 4, 4, 5, 6))
        relation = random_join(random, relations)
        leaves = random_leaves(random, TABLES, rows=5 if relations < 5 else 2)
        expected = difference(relation, leaves)
        tree = random_tree(random, range(relations))
        assert isinstance(tree, Node)
        nested += any(isinstance(part, Node) for part in tree.parts)
        ways = {
            "n-term": lambda sizes: n_term(len(sizes.changed)),
            "(2ⁿ−1)-term": lambda sizes: all_terms(sizes.changed),
            "any tree": lambda sizes, tree=tree: tree,
            "best tree": lambda sizes: find_optimal(sizes).tree,
        }
        for name, choose in ways.items():
            leaves.choose = choose
            change = delta(relation, leaves)
            found = Counter() if change is None else net(change, leaves.stored)
            assert found == expected, f"seed {seed}, {name}: {relation}, {tree}"
    assert nested > CASES / 3
