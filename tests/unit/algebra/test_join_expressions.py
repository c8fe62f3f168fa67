"""Every delta expression of a join gives the same delta, and that is what recomputing finds."""

from __future__ import annotations

from collections import Counter
from random import Random

from bag_algebra import Bag, evaluate, net
from random_relations import MemoryLeaves, random_leaves
from test_search import random_tree

from viewkeeper.algebra.common_parts import common_join, part_of
from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.empty_terms import left_out
from viewkeeper.algebra.expressions import Node, all_terms, n_term
from viewkeeper.algebra.relations import Field, Join, Project, Scan
from viewkeeper.algebra.rules.delta import delta
from viewkeeper.algebra.rules.leaves import new, old
from viewkeeper.algebra.scalars import WEIGHT, Named, Scalar, column, compose, keep
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
        compose("1 = 0"),
    )
    return random.choice(shapes)


def difference(relation: Join, leaves: MemoryLeaves) -> Bag:
    before, after = (evaluate(state(relation, leaves), leaves.stored) for state in (old, new))
    return Counter({row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]})


def test_all_expressions_give_the_same_delta() -> None:
    nested = empty = 0
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
        changed = [each.table in leaves.changed for each in relation.inputs if isinstance(each, Scan)]
        empty += any(left_out(relation, tree, changed, leaves.extents))
    assert nested > CASES / 3
    assert empty > CASES / 30, "some terms are left out, because the values of their tables lie apart"


def test_a_part_that_is_computed_for_several_views() -> None:
    """Over more columns than this view needs, and under other names."""
    tried = 0
    for seed in range(CASES):
        random = Random(seed)
        tables = random.sample(list(TABLES), 3)
        inputs = [
            Scan(table, tuple(Field(name, f"{name}{at}") for name in TABLES[table][: random.choice((1, 2))]))
            for at, table in enumerate(tables)
        ]
        columns = [name for each in inputs for name in each.columns]
        conjuncts = [random_condition(random, columns) for _ in range(random.randint(0, 3))]
        relation = Join(tuple(inputs), tuple(conjuncts))
        leaves = random_leaves(random, TABLES, rows=4)
        mask = random.choice((0b011, 0b110, 0b101, 0b111))
        local = part_of(relation, mask)
        assert local is not None
        needed = {(table, name) for table, name in every_column() if table in local.part.tables}
        join = common_join(local.part, needed if random.random() < 0.5 else local.columns)
        change = delta(join.relation, leaves)
        if change is None:
            continue
        tried += 1
        mine = [Named(name, column(join.names[shared])) for name, shared in local.names.items()]
        leaves.common = {mask: Delta(Project(change.relation, (*mine, *keep([WEIGHT]))))}
        (other,) = (at for at in range(3) if not mask >> at & 1) if mask != 0b111 else (0,)
        parts = tuple(at for at in range(3) if mask >> at & 1)
        tree = Node(parts) if mask == 0b111 else Node((other, Node(parts)))
        leaves.choose = lambda sizes, tree=tree: tree
        found = delta(relation, leaves)
        assert found is not None
        assert net(found, leaves.stored) == difference(relation, leaves), f"seed {seed}: {relation}, {mask:b}"
    assert tried > CASES / 2


def every_column() -> list[tuple[str, str]]:
    return [(table, name) for table, names in TABLES.items() for name in names]


def test_parts_of_other_tables_or_conditions_are_others() -> None:
    def scan(table: str, *columns: str, prefix: str = "") -> Scan:
        return Scan(table, tuple(Field(name, prefix + name) for name in columns))

    one = Join((scan("a", "x", "y"), scan("b", "z")), (compose(column("x"), " = ", column("z")),))
    same = Join(
        (scan("b", "z", prefix="p"), scan("a", "x", prefix="p")),
        (compose(column("pz"), " = ", column("px")),),
    )
    less = Join(one.inputs, ())
    twice = Join((scan("a", "x"), scan("a", "x", prefix="p")), ())
    found = [part_of(each, 0b11) for each in (one, same, less)]
    assert found[0] is not None and found[1] is not None and found[2] is not None
    assert found[0].part == found[1].part
    assert found[0].part != found[2].part
    assert part_of(twice, 0b11) is None
