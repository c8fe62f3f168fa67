"""What every source promises, on every kind of source.

The oracle: rows at the old version plus the delta are the rows at the new version, as bags.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession
from source_harness import (
    COLUMNS,
    DELTA_KINDS,
    ICEBERG_KINDS,
    Bag,
    DeltaHarness,
    DeltaKind,
    IcebergHarness,
    SourceHarness,
)

from viewkeeper.errors import SourceError
from viewkeeper.sources.contract import Change

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

STEPS = 8
TYPICAL = [
    *(kind for kind in ICEBERG_KINDS if kind.name in ("v2-cow-partitioned", "v3-mor")),
    *(kind for kind in DELTA_KINDS if kind.name == "delta-vectors"),
]


@pytest.fixture(params=TYPICAL, ids=str)
def subject(request: pytest.FixtureRequest, spark: SparkSession) -> SourceHarness:
    kind = request.param
    return DeltaHarness(spark, kind) if isinstance(kind, DeltaKind) else IcebergHarness(spark, kind)


def difference(before: Bag, after: Bag) -> Bag:
    found = Counter(after)
    found.subtract(before)
    return Counter({row: weight for row, weight in found.items() if weight})


def check(subject: SourceHarness, old: str | None, new: str | None, story: object) -> Change | None:
    change = subject.source.change(subject.table, old, new)
    expected = difference(subject.rows(old), subject.rows(new))
    delta = Counter() if change is None else subject.delta(change)
    assert {row: weight for row, weight in delta.items() if weight} == expected, story
    if change is not None:
        assert sum(weight for weight in expected.values() if weight > 0) <= change.inserted, story
        assert -sum(weight for weight in expected.values() if weight < 0) <= change.deleted, story
        assert change.deleted or min(delta.values(), default=1) > 0, f"{story}: not insert-only"
        assert change.method
    return change


def check_extents(subject: SourceHarness, old: str | None, new: str | None, story: object) -> None:
    """No value lies outside; and if something is said of what came, then nothing went."""
    before, after = subject.rows(old), subject.rows(new)
    change = difference(before, after)
    for column, found in subject.source.extents(subject.table, old, new, ["id", "part"]).items():
        for extent, rows in ((found.before, before), (found.after, after), (found.inserted, change)):
            values = [row[COLUMNS.index(column)] for row in rows if row[COLUMNS.index(column)] is not None]
            if extent is not None and values:
                assert extent.low <= min(values) <= max(values) <= extent.high, story  # type: ignore
        assert found.inserted is None or min(change.values(), default=1) > 0, story


@pytest.mark.parametrize("subject", [*ICEBERG_KINDS, *DELTA_KINDS], ids=str, indirect=True)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_the_delta_of_random_changes_is_exact(subject: SourceHarness, seed: int) -> None:
    rng = random.Random(seed)
    versions: list[str | None] = [subject.version()]
    story: list[object] = [f"seed {seed}"]
    for _ in range(STEPS):
        story += [subject.random_operation(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
        versions.append(subject.version())
        check(subject, versions[-2], versions[-1], story)
    for _ in range(3):
        first, last = sorted(rng.sample(range(len(versions)), 2))
        check(subject, versions[first], versions[last], story)
        check_extents(subject, versions[first], versions[last], story)


def test_a_table_that_was_never_written_has_no_version_and_no_rows(subject: SourceHarness) -> None:
    source, table = subject.source, subject.table
    if isinstance(subject, DeltaHarness):
        version = source.current()[table]
        assert version is not None and version.startswith("0@")
        assert subject.rows("0") == Counter()
        return
    assert source.current() == {table: None}
    assert source.change(table, None, None) is None
    assert subject.rows(None) == Counter()
    assert source.versions_after(table, None) == ()
    assert source.statistics(table, None).rows == 0


def test_versions_are_listed_in_order_and_each_step_is_exact(subject: SourceHarness) -> None:
    rng = random.Random(7)
    for _ in range(4):
        subject.random_operation(rng)
    source, table = subject.source, subject.table
    versions = source.versions_after(table, None)
    assert versions[-1] == subject.version()
    assert source.versions_after(table, versions[0]) == versions[1:]
    assert source.versions_after(table, versions[-1]) == ()
    for old, new in zip((None, *versions), versions, strict=False):
        check(subject, old, new, versions)
    with pytest.raises(SourceError):
        source.versions_after(table, "12345")


def test_only_the_asked_columns_come_and_the_weight_is_last(subject: SourceHarness) -> None:
    rng = random.Random(3)
    for _ in range(3):
        subject.random_operation(rng)
    old = subject.version()
    for _ in range(3):
        subject.random_operation(rng)
    new = subject.version()
    change = subject.source.change(subject.table, old, new)
    assert change is not None
    rows = difference(subject.rows(old), subject.rows(new))
    for columns in (("name",), ("at", "id"), ()):
        wanted: Bag = Counter()
        for row, weight in rows.items():
            wanted[tuple(row[COLUMNS.index(column)] for column in columns)] += weight
        delta = subject.delta(change, columns)
        assert {r: w for r, w in delta.items() if w} == {r: w for r, w in wanted.items() if w}


def test_statistics_need_no_rows(subject: SourceHarness) -> None:
    rng = random.Random(5)
    for _ in range(3):
        subject.random_operation(rng)
    version = subject.version()
    rows = subject.source.statistics(subject.table, version).rows
    assert rows is not None
    # deleted rows may still be counted until they are compacted away
    assert rows >= subject.rows(version).total()


def test_the_schema_names_columns_and_types(subject: SourceHarness) -> None:
    schema = subject.source.schema(subject.table)
    assert [(column.name, column.type) for column in schema] == [
        ("id", "int"), ("part", "int"), ("name", "string"), ("price", "decimal(8,2)"), ("at", "timestamp"),
    ]  # fmt: skip
    assert len({column.id for column in schema}) == len(schema) or isinstance(subject, DeltaHarness)
    assert [(c.name, c.type) for c in subject.source.columns(subject.table)] == [
        (c.name, c.type) for c in schema
    ]


def test_another_table_is_not_part_of_the_source(subject: SourceHarness) -> None:
    with pytest.raises(SourceError):
        subject.source.change("lake.contract.other", None, "1")
