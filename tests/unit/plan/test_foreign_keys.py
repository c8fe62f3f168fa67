"""When a foreign key is known to hold, and what a plan makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from viewkeeper.algebra.empty_terms import Extent, Extents, KeyReference
from viewkeeper.algebra.relations import Field, Join, Project, Scan
from viewkeeper.algebra.scalars import Column, Named, Scalar, column
from viewkeeper.define.settings import ForeignKey
from viewkeeper.execute.key_references import Violations
from viewkeeper.foreign_keys import Holding, Move, Versions, checked, references
from viewkeeper.plan.planner import plan_epoch
from viewkeeper.plan.situation import Situation, Span

from .world import FakeChange, view

ORDERS, LINES = "lake.default.orders", "lake.default.lines"
COLUMNS = {ORDERS: ("key", "shop"), LINES: ("of", "at")}
orders = Scan(ORDERS, (Field("key", "key"), Field("shop", "shop")))
lines = Scan(LINES, (Field("of", "of"), Field("at", "at")))
by_key = Scalar((Column("key"), " = ", Column("of")))
by_shop = Scalar((Column("shop"), " = ", Column("at")))
joined = Project(Join((orders, lines), (by_key, by_shop)), (Named("key", column("key")),))
DECLARED = (
    ForeignKey(table="lines", columns=("OF",), references="Orders", referenced_columns=("Key",)),
    ForeignKey(table="lines", columns=("at", "of"), references="orders", referenced_columns=("shop", "key")),
)
ONE = KeyReference(LINES, ("of",), ORDERS, ("key",))
TYPES = {table: dict.fromkeys(columns, "string") for table, columns in COLUMNS.items()}
AT_ONE = {ORDERS: "1", LINES: "1"}
CAME = FakeChange(inserted=5, deleted=0)

Rows = Counter[tuple[str | None, ...]]


@pytest.fixture(autouse=True)
def _every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viewkeeper.foreign_keys._LARGE_ROWS", 0)


def moved(lines: FakeChange | None = CAME, orders: FakeChange | None = CAME) -> Situation:
    """Both tables from version 1 to version 2."""
    return Situation(
        (view("v", joined, (ORDERS, LINES), vector=AT_ONE),),
        {ORDERS: "2", LINES: "2"},
        {(ORDERS, "1", "2"): orders, (LINES, "1", "2"): lines},
        rows={ORDERS: 100, LINES: 1000},
        types=TYPES,
        policy="incremental",
    )


class Answers:
    """Finds so many violations, and remembers what it was asked."""

    def __init__(self, old_keys: int = 0, orphans: int = 0, *, holds: bool = True) -> None:
        self.told, self.holding = Violations(old_keys, orphans), holds
        self.asked: list[Move] = []
        self.looked: list[Versions] = []

    def violations(self, moves: Sequence[Move]) -> Sequence[Violations | None]:
        self.asked += moves
        return [self.told for _ in moves]

    def holds(self, reference: KeyReference, versions: Versions) -> bool:
        self.looked.append(versions)
        return self.holding


def ask(
    checker: Answers, situation: Situation, known: Mapping[KeyReference, Holding] | None = None
) -> tuple[Situation, Holding]:
    given = {ONE: Holding((("1", "1"),))} if known is None else known
    told, found = checked(checker, situation, DECLARED[:1], given, may_look=True)
    return told, found[ONE]


def test_it_is_known_by_its_parts_names_and_types() -> None:
    (join,) = (joined.child,)
    assert isinstance(join, Join)
    both = KeyReference(LINES, ("at", "of"), ORDERS, ("shop", "key"))
    assert set(references(join, DECLARED, TYPES)) == {ONE, both}
    cast = {**TYPES, ORDERS: {"key": "int", "shop": "string"}}
    assert not set(references(join, DECLARED, cast)), "Spark would cast one of them"
    assert not set(references(Join((orders, lines), (by_shop,)), DECLARED, TYPES))
    uneven = ForeignKey(
        table="lines", columns=("of",), references="orders", referenced_columns=("key", "shop")
    )
    assert not set(references(join, [uneven], TYPES))
    elsewhere = replace(lines, table="lake.other.items")
    assert not set(references(Join((orders, elsewhere), (by_key,)), DECLARED, TYPES))


def test_what_held_and_still_does_lets_a_term_be_left_out() -> None:
    told, holding = ask(Answers(), moved())
    assert told.unreferred == {(ONE, (ORDERS, "1", "2"), "1")}
    assert holding.at == (("1", "1"), ("2", "2"))
    (plan,) = plan_epoch(told).views
    (propagation,) = plan.propagations
    assert [line for line in propagation.lines() if line.startswith("left out")] == [
        "left out: Δ(orders) ⋈ lines, new keys have no old children (foreign key of, checked)"
    ]
    (blind,) = plan_epoch(moved()).views
    assert not blind.propagations[0].left_out


def test_a_view_that_stands_elsewhere_learns_nothing_of_it() -> None:
    told, _ = ask(Answers(), moved())
    late = replace(told.views[0], vector={ORDERS: "1", LINES: "0"})
    spans = {**told.changes, (LINES, "0", "2"): CAME}
    (plan,) = plan_epoch(replace(told, views=(late,), changes=spans)).views
    assert not plan.propagations[0].left_out


def test_a_key_that_was_there_before_leaves_the_term() -> None:
    told, holding = ask(Answers(old_keys=1), moved())
    assert not told.unreferred
    assert ("2", "2") in holding.at, "the children still have parents"


def test_a_child_without_a_parent_ends_it_from_then_on() -> None:
    told, holding = ask(checker := Answers(orphans=1, holds=False), moved())
    assert told.unreferred, "of the children that were there before it was known"
    assert holding.at == (("1", "1"),)
    assert checker.looked == [("2", "2")], "perhaps it holds all the same"
    assert (holding.looks, holding.missed) == (1, 0)


def test_a_deleted_parent_ends_it_until_it_is_looked_at_again() -> None:
    told, holding = ask(checker := Answers(), moved(orders=FakeChange(5, 1)))
    assert not told.unreferred
    assert holding.at == (("1", "1"),)
    assert not checker.asked
    assert not checker.looked


def test_rewritten_files_change_nothing() -> None:
    told, holding = ask(Answers(), moved(lines=None, orders=None))
    assert ("2", "2") in holding.at
    (plan,) = plan_epoch(told).views
    assert plan.strategy.value == "unchanged"


def test_whole_tables_are_looked_at_ever_more_rarely() -> None:
    checker, holding, looks = Answers(holds=False), Holding(), []
    for _ in range(12):
        before = len(checker.looked)
        told, holding = ask(checker, moved(), {ONE: holding})
        assert not told.unreferred
        looks.append(len(checker.looked) > before)
    assert [at for at, looked in enumerate(looks) if looked] == [0, 2, 6]
    assert not checker.asked


def test_a_look_is_of_use_from_the_next_time_on() -> None:
    told, holding = ask(Answers(), moved(), {})
    assert not told.unreferred
    assert holding.at == (("2", "2"),)
    assert Holding.from_json(holding.to_json()) == holding


def test_it_is_not_asked_where_it_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(situation: Situation, *, knowing: bool = True) -> bool:
        checker = Answers()
        checked(checker, situation, DECLARED, {ONE: Holding((("1", "1"),))} if knowing else {}, may_look=True)
        return bool(checker.asked or checker.looked)

    assert asked(moved())
    assert not asked(replace(moved(), rows={ORDERS: 900, LINES: 1000})), "the parent is nearly as large"
    assert not asked(replace(moved(), rows={ORDERS: 100})), "nobody knows how large"
    assert not asked(replace(moved(), policy="full"))
    assert not asked(replace(moved(), changes={(ORDERS, "1", "2"): CAME})), "the lines' history is lost"
    assert not asked(moved(lines=None), knowing=False), "there is only one term"
    extents = {
        ((ORDERS, "1", "2"), "key"): Extents(inserted=Extent("string", b"5", b"9")),
        ((LINES, "1", "2"), "of"): Extents(before=Extent("string", b"1", b"4")),
    }
    told_anyway = replace(moved(), extents=extents)
    only = (DECLARED[0],)
    checker = Answers()
    checked(checker, told_anyway, only, {}, may_look=True)
    assert not checker.looked, "the metadata says the same"
    monkeypatch.setattr("viewkeeper.foreign_keys._LARGE_ROWS", 1001)
    assert not asked(moved())


# What is known is true, whatever happens to the tables.


class History:
    """Two tables in all their versions; answers as the rows are."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.tables: dict[str, list[Rows]] = {ORDERS: [Counter()], LINES: [Counter()]}
        self.keys = [f"k{at}" for at in range(12)]

    def at(self, table: str, version: str | None) -> Rows:
        assert version is not None
        return self.tables[table][int(version)]

    def latest(self) -> dict[str, str | None]:
        return {table: str(len(versions) - 1) for table, versions in self.tables.items()}

    def change(self, span: Span) -> FakeChange | None:
        table, old, new = span
        before, after = self.at(table, old), self.at(table, new)
        came, gone = (after - before).total(), (before - after).total()
        return FakeChange(came, gone) if came or gone else None

    def move(self) -> None:
        """Mostly as it should be: new orders with keys of their own, lines that refer to them."""
        random = self.random
        rows, of = Counter(self.tables[ORDERS][-1]), Counter(self.tables[LINES][-1])
        used = {row[0] for row in rows}
        fresh = [key for key in self.keys if key not in used]
        if random.random() < 0.7 and fresh:
            rows[random.choice(fresh), random.choice("st")] += 1
        if random.random() < 0.05 and rows:
            del rows[random.choice(list(rows))]
        if random.random() < 0.1:
            rows[random.choice([*self.keys, None]), "s"] += 1  # perhaps a copy
        for _ in range(random.randint(0, 3)):
            if rows:
                of[random.choice(list(rows))] += 1
        if random.random() < 0.2:
            of[None, "s"] += 1
        if random.random() < 0.05:
            of[random.choice(self.keys), "s"] += 1  # perhaps of no order
        if random.random() < 0.2 and of:
            del of[random.choice(list(of))]
        if len(rows) > 9:
            rows, of = Counter(), Counter()
        self.tables[ORDERS].append(rows)
        self.tables[LINES].append(of)

    def values(self, rows: Rows, table: str, columns: Sequence[str]) -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for row, count in rows.items():
            value = tuple(row[COLUMNS[table].index(name)] for name in columns)
            if None not in value:
                found[value] += count  # type: ignore[index]  # there is no None in it
        return found

    # As a checker.

    def holds(self, reference: KeyReference, versions: Versions) -> bool:
        child = self.values(self.at(LINES, versions[0]), LINES, reference.columns)
        return child.keys() <= self.values(self.at(ORDERS, versions[1]), ORDERS, reference.key).keys()

    def violations(self, moves: Sequence[Move]) -> Sequence[Violations | None]:
        found = []
        for move in moves:
            before, now = (self.at(ORDERS, version) for version in move.parent[1:])
            key, columns = move.reference.key, move.reference.columns
            came = self.values(now - before, ORDERS, key)
            parents = self.values(now, ORDERS, key)
            old, new = (self.at(LINES, version) for version in move.child[1:])
            refer = self.values(new - old, LINES, columns)
            told = Violations(len(came.keys() & (parents - came).keys()), len(refer.keys() - parents.keys()))
            found.append(None if self.random.random() < 0.02 else told)
        return found

    def unreferred(self, reference: KeyReference, came: Span, version: str) -> bool:
        """Whether Δorders ⋈ lines is empty."""
        before, now = (self.at(ORDERS, each) for each in came[1:])
        new = self.values(now - before, ORDERS, reference.key)
        return not new.keys() & self.values(self.at(LINES, version), LINES, reference.columns).keys()


def test_what_is_known_is_true_of_random_histories() -> None:
    used = left_alone = late = 0
    for seed in range(60):
        random = Random(seed)
        history = History(random)
        vectors = [history.latest(), history.latest()]
        known: dict[KeyReference, Holding] = {}
        for _ in range(25):
            history.move()
            now = history.latest()
            spans = [(table, vector[table], now[table]) for vector in vectors for table in COLUMNS]
            situation = Situation(
                tuple(
                    view(f"v{at}", joined, (ORDERS, LINES), vector=vector)
                    for at, vector in enumerate(vectors)
                ),
                now,
                {span: history.change(span) for span in spans},
                rows={ORDERS: 100, LINES: 1000},
                types=TYPES,
            )
            told, known = checked(history, situation, DECLARED, known, may_look=random.random() < 0.9)
            for reference, came, version in told.unreferred:
                assert history.unreferred(reference, came, version), f"seed {seed}: {reference}, {came}"
                late += vectors[1] != vectors[0] and came[1] == vectors[1][ORDERS]
            for reference, holding in known.items():
                assert all(history.holds(reference, versions) for versions in holding.at), f"seed {seed}"
            used += bool(told.unreferred)
            left_alone += not told.unreferred
            vectors[0] = vectors[0] if random.random() < 0.1 else now  # an epoch that failed
            vectors[1] = vectors[1] if random.random() < 0.6 else now
    assert used > 100
    assert left_alone > 100
    assert late > 10
