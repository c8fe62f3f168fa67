"""What becomes of main once an epoch is published, and somebody else moved it meanwhile; without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from viewkeeper.install import publish
from viewkeeper.install.publish import EPOCH_PROPERTY, run_chores
from viewkeeper.ledger.records import Chore, ChoreKind
from viewkeeper.sources.iceberg_catalog import Standing
from viewkeeper.sources.iceberg_history import History, Snapshot

STORAGE = "lake._viewkeeper.s"
BASE = Snapshot("10", "9", "append")
CHORE = Chore(
    1,
    ChoreKind.FAST_FORWARD,
    5,
    {"storage": STORAGE, "branch": "vk_epoch_5", "snapshot": "20", "base": BASE.id},
)


class Session:
    """Main is no ancestor of the branch."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.catalog = SimpleNamespace(tableExists=lambda _: True)

    def sql(self, query: str) -> None:
        self.asked.append(query)
        if "fast_forward" in query:
            raise AnalysisException("Cannot fast-forward: main is not an ancestor of vk_epoch_5")


def finished(
    monkeypatch: pytest.MonkeyPatch, line: Sequence[Snapshot], chore: Chore = CHORE
) -> tuple[list[str], bool]:
    """What is asked of Spark then, and whether the chore is done; ``line``: main, oldest first."""
    history = History(STORAGE, {each.id: each for each in line})
    monkeypatch.setattr(publish, "standing", lambda *_: Standing(line[-1].id, None))
    monkeypatch.setattr(publish, "read_history", lambda *_: history)
    session, done = Session(), list[Chore]()
    spark: Any = session
    run_chores(spark, [chore], lambda _: True, done.append)
    return session.asked[1:], bool(done)


def test_main_was_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    compacted = [BASE, Snapshot("11", "10", "replace"), Snapshot("12", "11", "replace")]
    (lead, drop), done = finished(monkeypatch, compacted)
    assert "set_current_snapshot" in lead and "snapshot_id => 20" in lead
    assert "DROP BRANCH" in drop
    assert done


def test_main_was_compacted_and_its_past_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    (lead, _), done = finished(monkeypatch, [Snapshot("11", "10", "replace")])
    assert "set_current_snapshot" in lead
    assert done


@pytest.mark.parametrize(
    "line",
    [
        [BASE, Snapshot("11", "10", "append")],
        [BASE, Snapshot("11", "10", "append"), Snapshot("12", "11", "replace")],
        [BASE, Snapshot("11", "10", "replace"), Snapshot("12", "11", "overwrite")],
        [Snapshot("12", "11", "replace")],
    ],
)
def test_main_was_written_to(
    monkeypatch: pytest.MonkeyPatch, line: list[Snapshot], caplog: pytest.LogCaptureFixture
) -> None:
    """Or it may have been: not all of its past is known."""
    assert finished(monkeypatch, line) == ([], False)
    assert STORAGE in caplog.text


def test_a_chore_that_does_not_tell_what_was_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier release noted it."""
    chore = Chore(1, ChoreKind.FAST_FORWARD, 5, {"storage": STORAGE, "branch": "vk_epoch_5"})
    assert finished(monkeypatch, [Snapshot("10", None, "append")], chore) == ([], False)


@pytest.mark.parametrize(
    "line",
    [
        [BASE, Snapshot("20", "10", "overwrite"), Snapshot("21", "20", "replace")],
        [BASE, Snapshot("20", "10", "overwrite"), Snapshot("21", "20", "append")],
        [BASE, Snapshot("11", "10", "append"), Snapshot("30", "11", "overwrite", {EPOCH_PROPERTY: "6"})],
    ],
)
def test_main_shows_what_was_published_or_something_newer(
    monkeypatch: pytest.MonkeyPatch, line: list[Snapshot]
) -> None:
    (drop,), done = finished(monkeypatch, line)
    assert "DROP BRANCH" in drop
    assert done
