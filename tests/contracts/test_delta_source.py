"""Delta tables as sources: what only they can do to us. What all sources promise is in the contract suite."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession
from source_harness import DELTA_KINDS, Bag, DeltaHarness
from test_source_contract import check, difference

from viewkeeper.errors import SourceError
from viewkeeper.sources.delta_lake import DeltaSource
from viewkeeper.sql.quoting import quote_path, show_path

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

FEED, VECTORS, REWRITING = DELTA_KINDS


def log_file(spark: SparkSession, subject: DeltaHarness, version: str) -> Path:
    location = spark.sql(f"DESCRIBE DETAIL {subject.name}").collect()[0]["location"]
    return Path(location.removeprefix("file:")) / "_delta_log" / f"{int(version.partition('@')[0]):020d}.json"


def vacuum(subject: DeltaHarness) -> None:
    subject.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    subject.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # it lists files
    subject.sql("VACUUM {t} RETAIN 0 HOURS")


def rewrite(file: Path, actions: list[dict[str, object]]) -> None:
    """Another writer's commit: what the protocol leaves to the writer may be missing."""
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    for checksum in file.parent.glob(f"*{file.stem}.crc"):
        checksum.unlink()


@pytest.mark.parametrize("kind", [FEED, REWRITING], ids=str)
def test_a_commit_that_tells_nothing_of_itself_is_not_taken_for_nothing(
    spark: SparkSession, kind: object
) -> None:
    """``commitInfo`` is optional."""
    subject = DeltaHarness(spark, kind)  # type: ignore[arg-type]
    subject.insert(0, 20)
    old = subject.version()
    subject.sql("DELETE FROM {t} WHERE id < 10")
    new = subject.version()
    assert new is not None
    file = log_file(spark, subject, new)
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    rewrite(file, [action for action in actions if "commitInfo" not in action])
    change = check(subject, old, new, "a delete")
    assert change is not None and change.deleted >= 10


@pytest.mark.parametrize("kind", DELTA_KINDS, ids=str)
@pytest.mark.parametrize(
    "then", ["INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id >= 15", "RESTORE TABLE {t} TO VERSION AS OF 0"]
)
def test_rows_that_come_and_go_again(spark: SparkSession, kind: object, then: str) -> None:
    """The feed tells of them, and of a commit that overwrites nobody tells how many rows went."""
    subject = DeltaHarness(spark, kind)  # type: ignore[arg-type]
    old = subject.version()
    subject.insert(10, 20)
    subject.sql(then)
    subject.insert(20, 30)
    check(subject, old, subject.version(), then)


@pytest.mark.parametrize(
    ("kind", "then"),
    [(REWRITING, "DELETE FROM {t} WHERE id < 10"), (VECTORS, "DELETE FROM {t} WHERE id = 3")],
    ids=["whole", "in part"],
)
def test_a_file_that_is_described_anew_and_then_goes(spark: SparkSession, kind: object, then: str) -> None:
    """Tables whose rows are to be tracked, or whose statistics are gathered, add their files once more."""
    subject = DeltaHarness(spark, kind)  # type: ignore[arg-type]
    subject.insert(0, 10, part="0")
    subject.insert(10, 20, part="0")
    old = subject.version()
    subject.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    subject.sql(then)
    check(subject, old, subject.version(), then)


def test_values_that_become_folders(spark: SparkSession) -> None:
    """The log writes the names of folders as a URL would."""
    subject = DeltaHarness(spark, REWRITING)
    subject.sql("DROP TABLE {t}")
    subject.sql("CREATE TABLE {t} (id INT, part STRING) USING delta PARTITIONED BY (part)")
    odd = ["a b", "50%", "a/b", "a=b", "ü", "x:y", "'q'", "a+b", "a%20b", "[1]", "#", "?"]
    values = ", ".join(f'({at}, "{value}")' for at, value in enumerate(odd))
    subject.sql(f"INSERT INTO {{t}} VALUES {values}")
    old = subject.version()
    subject.sql("UPDATE {t} SET id = id + 100")
    change = subject.source.change(subject.table, old, subject.version())
    assert change is not None
    numbers = range(len(odd))
    expected = {(at,): -1 for at in numbers} | {(at + 100,): 1 for at in numbers}
    assert subject.delta(change, ("id",)) == expected


SPELLED = {"München": "p=M%C3%BCnchen", "it's": "p=it%2527s", "x!$": "p=x%21%24", "a+b": "p=a%2Bb"}
"""Values, and their folders as other writers spell them: Java leaves alone more characters than they do."""


class Foreign:
    """A table of one row for each of these values, and another writer of it, which spells in its own way."""

    def __init__(self, spark: SparkSession) -> None:
        self.subject = DeltaHarness(spark, REWRITING)
        self.subject.sql("DROP TABLE {t}")
        self.subject.sql("CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)")
        values = ", ".join(f'({at}, "{value}")' for at, value in enumerate(SPELLED))
        self.subject.sql(f"INSERT INTO {{t}} VALUES {values}")

    @property
    def version(self) -> str:
        version = self.subject.version()
        assert version is not None
        return version

    def file_of(self, value: str) -> Path:
        folder = log_file(self.subject.spark, self.subject, "0").parent.parent / unquote(SPELLED[value])
        return sorted(folder.glob("*.parquet"))[-1]

    def add(self, *values: str) -> None:
        """Their files once more."""
        self._commit([self._added(value) for value in values])

    def remove(self, value: str, name: str) -> None:
        path = f"{SPELLED[value]}/{name}"
        self._commit([{"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True}}])

    def check(self, old: str) -> None:
        change = self.subject.source.change(self.subject.table, old, self.version)
        assert change is not None
        found = self.subject.delta(change, ("id", "p"))
        expected = difference(self._rows(old), self._rows(self.version))
        assert {row: weight for row, weight in found.items() if weight} == expected

    def _rows(self, version: str) -> Bag:
        relation = self.subject.source.rows(self.subject.table, version)
        return Counter(
            tuple(row) for row in self.subject.spark.sql(f"SELECT id, p FROM {relation}").collect()
        )

    def _added(self, value: str) -> dict[str, object]:
        file = self.file_of(value)
        copy = file.with_name(f"z{file.name}")
        shutil.copy(file, copy)
        told = {"path": f"{SPELLED[value]}/{copy.name}", "partitionValues": {"p": value}}
        return {"add": told | {"size": copy.stat().st_size, "modificationTime": 0, "dataChange": True}}

    def _commit(self, actions: list[dict[str, object]]) -> None:
        newest = log_file(self.subject.spark, self.subject, self.version)
        rewrite(newest.with_name(f"{int(newest.stem) + 1:020d}.json"), actions)


def test_files_that_another_writer_spells_differently(spark: SparkSession) -> None:
    """Paths are URLs, and which characters are encoded is left to the writer."""
    foreign = Foreign(spark)
    old = foreign.version
    foreign.add(*SPELLED)
    foreign.check(old)
    middle = foreign.version
    foreign.subject.sql("DELETE FROM {t} WHERE p <> 'a+b'")
    foreign.check(middle)
    foreign.check(old)


def test_a_file_that_is_removed_under_another_spelling_is_still_there(spark: SparkSession) -> None:
    """So says Delta, to which these are two files."""
    foreign = Foreign(spark)
    old = foreign.version
    foreign.remove("München", foreign.file_of("München").name)
    foreign.subject.sql("DELETE FROM {t} WHERE p = 'a+b'")
    foreign.check(old)


@pytest.mark.parametrize("then", ["DELETE FROM {t} WHERE id < 3", "UPDATE {t} SET id = id + 10"])
@pytest.mark.parametrize("tracked", [False, True], ids=["", "described anew"])
def test_a_shallow_clone(spark: SparkSession, then: str, tracked: bool) -> None:
    """Its log names whole paths."""
    foreign = Foreign(spark)
    clone = "spark_catalog.contract.cloned"
    spark.sql(f"DROP TABLE IF EXISTS {clone}")
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {foreign.subject.name}")
    subject = foreign.subject
    subject.parts = ("spark_catalog", "contract", "cloned")
    subject.name, subject.table = quote_path(subject.parts), show_path(subject.parts)
    subject.source = DeltaSource(spark, subject.parts)  # type: ignore[assignment]
    old = foreign.version
    if tracked:
        subject.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    subject.sql(then)
    foreign.check(old)


def test_values_of_folders_that_are_described_anew(spark: SparkSession) -> None:
    foreign = Foreign(spark)
    old = foreign.version
    foreign.subject.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    foreign.subject.sql("DELETE FROM {t} WHERE id < 2")
    foreign.check(old)


def test_a_log_that_removes_what_was_not_there_is_not_believed(spark: SparkSession) -> None:
    """Where the files are listed anyhow."""
    foreign = Foreign(spark)
    old = foreign.version
    foreign.subject.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    foreign.remove("it's", "never.parquet")
    with pytest.raises(SourceError, match=r"never\.parquet") as refused:
        foreign.subject.source.change(foreign.subject.table, old, foreign.version)
    assert refused.value.code == "VK-SOURCE-DIVERGED"


@pytest.mark.parametrize("kind", DELTA_KINDS, ids=str)
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_what_was_vacuumed_is_not_asked_for(spark: SparkSession, kind: object, vectors: str) -> None:
    """Neither files that went, nor the deletion vectors that others had, nor what the feed was written to."""
    subject = DeltaHarness(spark, kind)  # type: ignore[arg-type]
    subject.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')")
    empty = subject.version()
    subject.insert(0, 20, part="0")
    subject.sql("DELETE FROM {t} WHERE id = 1")
    old = subject.version()
    subject.sql("DELETE FROM {t} WHERE id = 2")
    new = subject.version()
    vacuum(subject)
    with pytest.raises(SourceError) as refused:
        subject.source.change(subject.table, old, new)
    assert refused.value.code == "VK-SOURCE-EXPIRED"
    check(subject, empty, new, "what came in between and went is not needed")
