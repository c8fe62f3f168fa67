"""Worlds made up from a seed, to find what nobody thought of.

Join graphs are trees, some with a cycle or a column that three relations share; sources may have two
relations. Rows are few and alike, so that most of them find partners, and NULLs are among them. Commits
insert, delete and modify rows, one or several of them, in one relation or two; some belong to a global
transaction; some come to nothing. With keys, those that became free are used again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from random import Random

from viewkeeper.integrate.bags import Bag, Row, add_to
from viewkeeper.integrate.messages import Transaction
from viewkeeper.integrate.simulate.worlds import Commit, World
from viewkeeper.integrate.views import Comparison, JoinView, Relation


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a world is, and what it may have. ``pace``: the mean time between two commits; a message
    takes between 0.1 and 2."""

    sources: int
    updates: int
    keyed: bool = False
    one_source: bool = False
    global_transactions: bool = True
    pace: float = 0.7


def random_world(seed: int, shape: Shape) -> World:
    """The world of this seed."""
    random = Random(seed)
    view = _view(random, shape)
    # So many different values that a row finds about one partner in another relation, or two.
    values = 2 if len(view.relations) <= 4 else 3
    tables = {relation.name: _Table(relation, random, values) for relation in view.relations}
    for table in tables.values():
        for _ in range(random.randint(2, 6)):
            table.insert()
    contents = {name: Bag(table.relation.columns, dict(table.rows)) for name, table in tables.items()}
    commits = tuple(
        Commit(
            at,
            source,
            _changes(random, [each for each in tables.values() if each.relation.source == source]),
            to,
        )
        for at, source, to in _moments(random, shape, view.sources)
    )
    return World(view, contents, commits, fastest=0.1, slowest=2.0)


def _view(random: Random, shape: Shape) -> JoinView:
    count = shape.sources + (random.random() < 0.2)
    columns: list[list[str]] = [[f"k{i}"] if shape.keyed else [] for i in range(count)]
    # A tree whose branches have nothing to do with the numbering.
    order = random.sample(range(count), count)
    for at in range(1, count):
        one, other = order[at], order[random.randrange(at)]
        joined = [column for column in columns[other] if column.startswith("j")]
        column = random.choice(joined) if joined and random.random() < 0.3 else f"j{at}"
        columns[one].append(column)
        if column not in columns[other]:
            columns[other].append(column)
    if count > 2 and random.random() < 0.2:
        for at in random.sample(range(count), 2):
            columns[at].append("jc")
    for at in range(count):
        if random.random() < 0.5 or not columns[at]:
            columns[at].append(f"p{at}")
        random.shuffle(columns[at])
    relations = tuple(
        Relation(
            f"r{at}",
            tuple(columns[at]),
            "s0" if shape.one_source else f"s{at % shape.sources}",
            (f"k{at}",) if shape.keyed else (),
        )
        for at in range(count)
    )
    every = sorted({column for each in columns for column in each})
    keys = {f"k{at}" for at in range(count)} if shape.keyed else set()
    output = tuple(column for column in every if column in keys or random.random() < 0.5) or (every[0],)
    where = (Comparison(random.choice(every), random.choice(("<", "<>", ">=")), 1),)
    return JoinView(relations, output, where if random.random() < 0.2 else ())


def _moments(
    random: Random, shape: Shape, sources: tuple[str, ...]
) -> list[tuple[float, str, Transaction | None]]:
    """When which source commits, and for which global transaction. Its parts commit at different moments, so
    two sources may see two of them in opposite orders."""
    moments: list[tuple[float, str, Transaction | None]] = []
    at = 0.0
    while len(moments) < shape.updates:
        at += random.expovariate(1 / shape.pace)
        if shape.global_transactions and len(sources) > 1 and random.random() < 0.1:
            parts = random.sample(sources, random.randint(2, min(3, len(sources))))
            transaction = Transaction(f"t{len(moments)}", frozenset(parts))
            moments += [(at + random.random() * 2, source, transaction) for source in parts]
        else:
            moments.append((at, random.choice(sources), None))
    return sorted(moments, key=lambda moment: moment[0])


def _changes(random: Random, tables: list[_Table]) -> dict[str, Bag]:
    chosen = tables if len(tables) > 1 and random.random() < 0.2 else [random.choice(tables)]
    changes = {}
    for table in chosen[:2]:
        made: dict[Row, int] = {}
        for _ in range(1 if random.random() < 0.7 else random.randint(2, 3)):
            for row, count in table.change():
                add_to(made, {row: count})
        if made:
            changes[table.relation.name] = Bag(table.relation.columns, made)
    return changes


class _Table:
    """The rows of a relation, as its source will change them."""

    def __init__(self, relation: Relation, random: Random, values: int) -> None:
        self.relation = relation
        self.rows: dict[Row, int] = {}
        self._random = random
        self._values = values
        self._key = relation.columns.index(relation.key[0]) if relation.key else None

    def insert(self, key: Hashable = None) -> tuple[Row, int]:
        values: list[Hashable] = [
            None if self._random.random() < 0.03 else self._random.randrange(self._values)
            for _ in self.relation.columns
        ]
        if self._key is not None:
            values[self._key] = self._free_key() if key is None else key
        add_to(self.rows, {tuple(values): 1})
        return tuple(values), 1

    def change(self) -> Iterator[tuple[Row, int]]:
        chance = self._random.random()
        if not self.rows or (chance < 0.5 and len(self.rows) < 7):
            yield self.insert()
            return
        row = self._random.choice(list(self.rows))
        add_to(self.rows, {row: -1})
        yield row, -1
        if chance > 0.85:
            yield self.insert(None if self._key is None else row[self._key])

    def _free_key(self) -> int:
        used = {row[self._key] for row in self.rows} if self._key is not None else set()
        return self._random.choice([key for key in range(10) if key not in used])
