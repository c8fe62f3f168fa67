"""What every source without history promises: nothing is lost, and nothing comes twice.

The oracle: what was seen of a table plus the delta is what is there, as bags; whatever becomes of the epoch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

import pytest
from extracted_harness import (
    CAPTURES,
    FILES_KINDS,
    Bag,
    ExtractedHarness,
    FilesHarness,
    FilesKind,
    JdbcHarness,
    PostgresHarness,
    Versions,
    check_bounds,
    difference,
)
from pyspark.sql import SparkSession

from postgres_server import PASSWORD

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

STEPS = 6
JDBC = ["jdbc-keyed", "jdbc-loose"]
TYPICAL = [*(kind for kind in FILES_KINDS if kind.name == "files-replace-keyed"), *CAPTURES, JDBC[0]]
LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8)]


class Fate(Enum):
    """What becomes of an epoch."""

    PUBLISHED = "published"
    GIVEN_UP = "given up before all was computed"
    CONFIRMED = "given up when all was computed"
    NOT_ACKNOWLEDGED = "published, and then the process died"
    PLANNED = "only planned"


FATES = [*Fate, Fate.PUBLISHED, Fate.PUBLISHED]


@pytest.fixture(params=TYPICAL, ids=str)
def subject(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ExtractedHarness]:
    harness: ExtractedHarness
    if isinstance(request.param, FilesKind):
        harness = FilesHarness(spark, request.param, tmp_path)
    else:
        monkeypatch.setenv("VK_TEST_PASSWORD", PASSWORD)
        server = request.getfixturevalue("server")
        if request.param in JDBC:
            harness = JdbcHarness(spark, server, request.param.removeprefix("jdbc-"))
        else:
            harness = PostgresHarness(spark, server, request.param)
    yield harness
    harness.close()


@pytest.mark.parametrize("subject", [*FILES_KINDS, *CAPTURES, *JDBC], ids=str, indirect=True)
@pytest.mark.parametrize("seed", [1, *LONG])
def test_what_was_seen_and_the_delta_are_what_is_there(subject: ExtractedHarness, seed: int) -> None:
    chance = random.Random(seed)
    subject.copy_all()
    assert {table: copy.rows for table, copy in subject.copies.items()} == subject.there()
    story: list[object] = [f"seed {seed}"]
    for fate in [*chance.choices(FATES, k=STEPS - 1), Fate.PUBLISHED]:
        story += [subject.random_operation(chance) for _ in range(chance.choice([1, 1, 2, 4]))]
        now, there = subject.look(), subject.there()
        if isinstance(subject, PostgresHarness) and chance.random() < 0.5:
            # What is committed while the epoch runs belongs to the next one.
            story.append(f"meanwhile {subject.random_operation(chance)}")
        story.append(fate.value)
        finish(subject, fate, now, check(subject, now, there, story))
    assert {table: copy.rows for table, copy in subject.copies.items()} == there, story


def check(
    subject: ExtractedHarness, now: Versions, there: Mapping[str, Bag], story: object
) -> dict[str, Bag]:
    """The tables as the deltas make them of what was seen."""
    found = {}
    for table in subject.tables:
        seen = subject.copies[table].rows
        change = subject.change(table, now)
        expected = difference(seen, there[table])
        delta = subject.delta(change, subject.columns(table))
        assert delta == expected, story
        if change is not None:
            check_bounds(change, expected, story)
        found[table] = Counter(seen)
        found[table].update(delta)
        found[table] = +found[table]
    return found


def finish(subject: ExtractedHarness, fate: Fate, now: Versions, rows: Mapping[str, Bag]) -> None:
    match fate:
        case Fate.PUBLISHED:
            subject.source.confirm(now)
            subject.publish(now, rows)
            subject.source.acknowledge(now)
        case Fate.GIVEN_UP:
            subject.reopen()
        case Fate.CONFIRMED:
            subject.source.confirm(now)
        case Fate.NOT_ACKNOWLEDGED:
            subject.source.confirm(now)
            subject.publish(now, rows)
            subject.reopen()
        case Fate.PLANNED:
            subject.source.let_go()


def test_the_same_delta_comes_until_it_is_acknowledged(subject: ExtractedHarness) -> None:
    subject.copy_all()
    chance = random.Random(5)
    story = [subject.random_operation(chance) for _ in range(8)]
    there = subject.there()
    expected = {table: difference(copy.rows, there[table]) for table, copy in subject.copies.items()}
    assert min(sum(each.values()) for each in expected.values()) < 0, "the test itself: rows must go"
    for _ in range(2):
        now = subject.look()
        check(subject, now, there, story)
        subject.source.confirm(now)
        subject.reopen()
    now = subject.look()
    for table in subject.tables:
        # Asked twice in the same breath, too.
        first, second = (subject.change(table, now) for _ in range(2))
        columns = subject.columns(table)
        assert subject.delta(second, columns) == subject.delta(first, columns) == expected[table]


def test_nothing_new_is_no_change(subject: ExtractedHarness) -> None:
    subject.copy_all()
    before = {table: copy.version for table, copy in subject.copies.items()}
    for _ in range(2):
        now = subject.look()
        assert now == before
        for table in subject.tables:
            assert subject.source.change(table, before[table], now[table]) is None
            assert subject.source.versions_after(table, before[table]) == ()
        subject.source.rest()
        subject.reopen()


def test_only_the_asked_columns_come_and_the_weight_is_last(subject: ExtractedHarness) -> None:
    subject.copy_all()
    chance = random.Random(3)
    for _ in range(4):
        subject.random_operation(chance)
    now, there = subject.look(), subject.there()
    table = subject.tables[0]
    every = subject.columns(table)
    expected = difference(subject.copies[table].rows, there[table])
    change = subject.change(table, now)
    assert expected and change is not None, "the test itself"
    for columns in (("name",), ("id", "part"), ()):
        wanted: Bag = Counter()
        for row, weight in expected.items():
            wanted[tuple(row[every.index(column)] for column in columns)] += weight
        assert subject.delta(change, columns) == {row: weight for row, weight in wanted.items() if weight}


def test_what_a_table_is_is_told_alike_everywhere(subject: ExtractedHarness) -> None:
    subject.copy_all()
    source = subject.source
    assert not source.capabilities.rows_at_version
    assert set(subject.look()) == set(subject.tables), "asked once, answered for all of them"
    for table in subject.tables:
        described = source.describe(table)
        assert tuple(source.columns(table)) == tuple(source.schema(table)) == described.columns
        assert described.identity == source.identity(table)
        assert set(described.key) <= {column.name for column in described.columns}
        version = subject.copies[table].version
        assert source.schema_version(table, version) == source.schema_version(table, version)
        statistics = source.statistics(table, version)
        assert source.row_count(table, version) == statistics.rows
        assert statistics.rows is None or statistics.rows >= subject.copies[table].rows.total()
        there = subject.spark.sql(f"SELECT * FROM {subject.copies[table].view}").schema
        assert [(field.name, field.dataType.simpleString()) for field in there] == [
            (column.name, column.type) for column in described.columns
        ]
    assert set(subject.columns(subject.tables[0])) >= {"part", "id", "name", "price"}
