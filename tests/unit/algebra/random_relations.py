"""Random relations of the algebra over two small tables, and random changes to those."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from random import Random

from bag_algebra import Bag, Row, evaluate, scalar_value

from viewkeeper.algebra.conditions import is_on_table, stored_predicate
from viewkeeper.algebra.deltas import Delta
from viewkeeper.algebra.empty_terms import Extent, Extents, KeyReference
from viewkeeper.algebra.expressions import Expression, n_term
from viewkeeper.algebra.join_sizes import JoinSizes
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Distinct,
    Exists,
    Expand,
    Field,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    Staged,
    TableAt,
    UnionAll,
    Window,
    WindowCall,
)
from viewkeeper.algebra.scalars import WEIGHT, Column, Named, Scalar, column, compose, keep

TABLES = {"a": ("x", "y"), "b": ("x", "z")}
VALUES = (None, 0, 1, 2)


@dataclass(slots=True)
class MemoryLeaves:
    """Leaves over tables in memory; what is shared is evaluated at once."""

    stored: dict[str, tuple[tuple[str, ...], Bag]]
    changed: frozenset[str]
    growing: frozenset[str]
    shares: int = 0
    rows: int | None = None
    shared: list[Relation] = field(default_factory=list)
    choose: Callable[[JoinSizes], Expression] = lambda sizes: n_term(len(sizes.changed))
    common: dict[int, Delta] = field(default_factory=dict)

    def old(self, scan: Scan) -> Relation:
        return TableAt(scan.table, "old", scan.fields)

    def new(self, scan: Scan) -> Relation:
        return TableAt(scan.table, "new", scan.fields)

    def delta(self, scan: Scan) -> Delta | None:
        if scan.table not in self.changed:
            return None
        return Delta(Staged(f"{scan.table}@delta", (*scan.fields, Field(WEIGHT, WEIGHT))))

    def insert_only(self, scan: Scan) -> bool:
        return scan.table not in self.changed or scan.table in self.growing

    def size(self, scan: Scan) -> int | None:
        return self.rows

    def old_size(self, scan: Scan) -> int | None:
        return self.rows

    def pruned_size(self, relation: Filter) -> int | None:
        return None

    def delta_size(self, scan: Scan) -> int | None:
        return None

    def excludes(self, relation: Filter) -> bool:
        """As the changed rows are."""
        if not is_on_table(relation):
            return False
        scan, predicate = stored_predicate(relation)
        if scan.table not in self.changed:
            return False
        columns, rows = self.stored[f"{scan.table}@delta"]
        return not any(scalar_value(predicate, columns, row) for row in rows)

    def untouched(self, scan: Scan) -> bool:
        return scan.table not in self.changed

    def distinct(self, scan: Scan) -> Mapping[str, float]:
        return {}

    def types(self, scan: Scan) -> Mapping[str, str]:
        return {field.stored: "bigint" for field in scan.fields}

    def widths(self, scan: Scan) -> Mapping[str, float]:
        return {}

    def extents(self, scan: Scan, column: str) -> Extents | None:
        """As the rows are."""
        if scan.table not in self.changed:
            return None
        only_came = scan.table in self.growing
        return Extents(
            self._extent(scan, column, "old"),
            self._extent(scan, column, "new"),
            self._extent(scan, column, "delta") if only_came else None,
            frozenset(self._unreferred(scan, column)) if only_came else frozenset(),
        )

    def _unreferred(self, scan: Scan, column: str) -> Iterator[KeyReference]:
        """One or two columns of any table that hold nothing that came."""
        columns = self.stored[f"{scan.table}@old"][0]
        tables = {name.partition("@")[0] for name in self.stored if name.endswith("@old")}
        for width in (1, 2):
            for key in permutations(columns, width):
                came = self._values(f"{scan.table}@delta", key)
                for child in sorted(tables) if column in key else ():
                    for referring in permutations(self.stored[f"{child}@old"][0], width):
                        if not came & self._values(f"{child}@old", referring):
                            yield KeyReference(child, referring, scan.table, key)

    def _values(self, table: str, named: tuple[str, ...]) -> set[Row]:
        columns, rows = self.stored[table]
        values = {tuple(row[columns.index(name)] for name in named) for row in rows}
        return {each for each in values if None not in each}

    def _extent(self, scan: Scan, column: str, state: str) -> Extent | None:
        columns, rows = self.stored[f"{scan.table}@{state}"]
        values = [row[columns.index(column)] for row in rows if row[columns.index(column)] is not None]
        return Extent("bigint", min(values), max(values)) if values else None

    @property
    def corrections(self) -> Mapping[str, float]:
        return {}

    def part_delta(self, relation: Join, relations: int, delta: Delta) -> Delta:
        return delta

    def expression(self, relation: Join, sizes: JoinSizes) -> Expression:
        return self.choose(sizes)

    def common_delta(self, relation: Join, relations: int) -> Delta | None:
        return self.common.get(relations)

    def share(self, relation: Relation, what: str) -> Relation:
        self.shares += 1
        self.shared.append(relation)
        name = f"{what} {self.shares}"
        self.stored[name] = (relation.columns, evaluate(relation, self.stored))
        return Staged(name, tuple(Field(each, each) for each in relation.columns))


def random_leaves(
    random: Random, tables: Mapping[str, tuple[str, ...]] = TABLES, rows: int = 5
) -> MemoryLeaves:
    """Tables before and after a change; the change is unconsolidated now and then."""
    stored: dict[str, tuple[tuple[str, ...], Bag]] = {}
    changed, growing = set[str](), set[str]()
    for table, columns in tables.items():
        width = len(columns)
        before: Bag = Counter(_row(random, width) for _ in range(random.randint(0, rows)))
        delta: Bag = Counter()
        if random.random() < 0.8:
            changed.add(table)
            if random.random() < 0.4:
                growing.add(table)
            delta = _change(random, before, width, deleting=table not in growing)
        after: Bag = Counter(before)
        for (*row, weight), count in delta.items():
            after[tuple(row)] += weight * count
        stored[f"{table}@old"] = (columns, before)
        stored[f"{table}@new"] = (columns, +after)
        stored[f"{table}@delta"] = ((*columns, WEIGHT), delta)
    return MemoryLeaves(stored, frozenset(changed), frozenset(growing))


def _row(random: Random, width: int) -> Row:
    return tuple(random.choice(VALUES) for _ in range(width))


def _change(random: Random, before: Bag, width: int, *, deleting: bool) -> Bag:
    delta: Bag = Counter()
    for _ in range(random.randint(0, 3)):
        delta[(*_row(random, width), random.choice((1, 1, 2)))] += 1
    if deleting:
        empty = random.random() < 0.15
        for row, count in before.items():
            gone = count if empty else random.randint(0, count)
            if gone:
                delta[(*row, -gone)] += 1
        if before and random.random() < 0.3:
            kept = random.choice(list(before))
            delta[(*kept, -1)] += 1  # a row that was written anew, as it was
            delta[(*kept, 1)] += 1
    return delta


class RandomRelations:
    """Makes up relations; every column has a name of its own."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def relation(self, depth: int) -> Relation:
        """Any relation of at most that depth."""
        if depth == 0:
            return self._scan()
        makers: list[Callable[[int], Relation]] = [
            self._filter, self._project, self._join, self._union, self._distinct,
            self._repeat, self.aggregate, self._outer_join, self._exists, self._window,
            self._generate, self._expand,
        ]  # fmt: skip
        return self._random.choice(makers)(depth - 1)

    def aggregate(self, depth: int) -> Aggregate:
        """γ over a relation of that depth, with or without keys."""
        child = self.relation(depth)
        count = min(len(child.columns), self._random.choice((0, 1, 1, 2)))
        keys = tuple(self._random.sample(child.columns, count))
        calls = [self._call(child) for _ in range(self._random.randint(0 if keys else 1, 3))]
        return Aggregate(child, keys, tuple(calls))

    def _repeat(self, depth: int) -> Relation:
        return Repeat(self.relation(depth), self._name(), self._random.randint(1, 3))

    def _call(self, child: Relation) -> AggregateCall:
        function = self._random.choice(
            [
                *("count", "count", "count_if", "sum", "sum", "min", "min", "max", "max"),
                *("bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"),
            ]
        )
        if function == "count" and self._random.random() < 0.5:
            return AggregateCall(self._name(), "count")
        return AggregateCall(self._name(), function, (self._scalar(child),))

    def _name(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def _scan(self) -> Scan:
        table = self._random.choice(list(TABLES))
        return Scan(table, tuple(Field(stored, self._name()) for stored in TABLES[table]))

    def _scalar(self, child: Relation) -> Scalar:
        one, other = (column(self._random.choice(child.columns)) for _ in range(2))
        shapes = (
            one,
            one,
            compose(one, " + 1"),
            compose(one, " - ", other),
            compose("coalesce(", one, ", 1)"),
        )
        return self._random.choice(shapes)

    def _condition(self, child: Relation) -> Scalar:
        one, other = (column(self._random.choice(child.columns)) for _ in range(2))
        shapes = (
            compose(one, " > 0"), compose(one, " = ", other), compose(one, " IS NULL"),
            compose(one, " < 2 OR ", other, " IS NULL"), compose(one, " <= ", other),
        )  # fmt: skip
        return self._random.choice(shapes)

    def _filter(self, depth: int) -> Relation:
        child = self.relation(depth)
        return Filter(child, self._condition(child))

    def _project(self, depth: int) -> Relation:
        child = self.relation(depth)
        items = [Named(self._name(), self._scalar(child)) for _ in range(self._random.randint(1, 3))]
        return Project(child, tuple(items))

    def _join(self, depth: int) -> Relation:
        inputs = tuple(self.relation(self._random.randint(0, min(depth, 1))) for _ in range(2))
        if self._random.random() < 0.25:
            inputs = (*inputs, self._scan())
        product = Join(inputs, ())
        conjuncts = [self._condition(product) for _ in range(self._random.randint(0, 2))]
        return Join(inputs, tuple(conjuncts))

    def _sides(self, depth: int) -> tuple[Relation, Relation, tuple[Scalar, ...]]:
        """Two relations and a condition between them, an equality most of the time."""
        left, right = (self.relation(self._random.randint(0, min(depth, 2))) for _ in range(2))
        product = Join((left, right), ())
        pair = compose(
            column(self._random.choice(left.columns)), " = ", column(self._random.choice(right.columns))
        )
        conjuncts = [pair] if self._random.random() < 0.8 else []
        conjuncts += [self._condition(product) for _ in range(self._random.choice((0, 0, 1)))]
        return left, right, tuple(conjuncts)

    def _outer_join(self, depth: int) -> Relation:
        left, right, conjuncts = self._sides(depth)
        return OuterJoin(left, right, conjuncts, full=self._random.random() < 0.4)

    def _exists(self, depth: int) -> Relation:
        child, among, conjuncts = self._sides(depth)
        match self._random.randrange(3):
            case 0:
                return Exists(child, among, conjuncts, mark=self._name())
            case kind:
                return Exists(child, among, conjuncts, anti=kind == 1)

    def _window(self, depth: int) -> Relation:
        child = self.relation(depth)
        keys = tuple(self._random.sample(child.columns, self._random.choice((0, 1, 1))))
        partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
        order = f"ORDER BY {', '.join(self._random.sample(child.columns, len(child.columns)))}"
        argument = self._random.choice(child.columns)
        call = self._random.choice(
            (
                f"row_number() OVER ({partition}{order})",
                f"rank() OVER ({partition}ORDER BY {argument})",
                f"sum({argument}) OVER ({partition})",
                f"sum({argument}) OVER ({partition}{order} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                f"lag({argument}) OVER ({partition}{order})",
            )
        )
        parts = tuple(
            Column(part) if part in child.columns else part for part in re.split(r"(\bc\d+\b)", call) if part
        )
        return Window(child, keys, (WindowCall(self._name(), Scalar(parts)),))

    def _generate(self, depth: int) -> Relation:
        child = self.relation(depth)
        times = compose("abs(", column(self._random.choice(child.columns)), ") % 3")
        return Generate(child, times, (self._name(),), outer=self._random.random() < 0.5)

    def _expand(self, depth: int) -> Relation:
        child = self.relation(depth)
        copies = self._name()
        times = Named(copies, compose("coalesce(", column(self._random.choice(child.columns)), ", 1)"))
        return Expand(Project(child, (*keep(child.columns), times)), copies)

    def _union(self, depth: int) -> Relation:
        inputs = [self.relation(self._random.randint(0, depth)) for _ in range(2)]
        width = min(len(each.columns) for each in inputs)
        names = [self._name() for _ in range(width)]
        return UnionAll(
            tuple(
                Project(
                    each,
                    tuple(Named(new, column(old)) for new, old in zip(names, each.columns, strict=False)),
                )
                for each in inputs
            )
        )

    def _distinct(self, depth: int) -> Relation:
        return Distinct(self.relation(depth))
