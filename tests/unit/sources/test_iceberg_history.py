from __future__ import annotations

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.sources.iceberg_history import History, Snapshot, segments


def history(*lines: str) -> History:
    """Each line is "id parent operation", with - for no parent."""
    found = {}
    for line in lines:
        version, parent, operation = line.split()
        summary = {"added-records": "1", "added-data-files": "1", "changed-partition-count": "1"}
        if operation == "idle":
            operation, summary = "overwrite", {"changed-partition-count": "0"}
        found[version] = Snapshot(version, None if parent == "-" else parent, operation, summary)
    return History("lake.db.t", found)


def code(past: History, old: str, new: str) -> str:
    with pytest.raises(SourceError) as raised:
        past.commits(old, new)
    return raised.value.code


LINE = history(
    "1 - append", "2 1 append", "3 2 replace", "4 3 delete", "5 4 replace", "6 5 idle", "7 6 append"
)


def test_the_commits_in_between_come_oldest_first() -> None:
    commits = LINE.commits("2", "5")
    assert commits is not None
    assert [commit.id for commit in commits] == ["3", "4", "5"]
    assert LINE.commits("5", "5") == ()


def test_replacing_cuts_a_line_and_nothing_happens_in_empty_stretches() -> None:
    commits = LINE.commits("1", "7")
    assert commits is not None
    found = segments("1", commits)
    assert [(s.start, s.end, s.appends_only) for s in found] == [
        ("1", "2", True),
        ("3", "4", False),
        ("5", "7", True),
    ]
    assert segments("2", LINE.commits("2", "3") or ()) == ()
    assert segments("5", LINE.commits("5", "6") or ()) == ()


def test_an_append_that_does_not_say_how_much_is_looked_into() -> None:
    silent = History("t", {"1": Snapshot("1", None, "append"), "2": Snapshot("2", "1", "append")})
    commits = silent.commits("1", "2")
    assert commits is not None
    assert [segment.appends_only for segment in segments("1", commits)] == [False]


def test_what_is_wrong_with_a_version_is_told_apart() -> None:
    assert code(LINE, "7", "4") == "VK-SOURCE-DIVERGED"
    assert code(LINE, "99", "7") == "VK-SOURCE-RECREATED"
    assert code(LINE, "4", "99") == "VK-SOURCE-EXPIRED"
    shortened = history("5 4 append", "6 5 append")
    assert code(shortened, "3", "6") == "VK-SOURCE-EXPIRED"
    forked = history("1 - append", "2 1 append", "3 1 append")
    assert code(forked, "2", "3") == "VK-SOURCE-DIVERGED"


def test_a_gap_between_kept_snapshots_is_told() -> None:
    gap = history("1 - append", "5 4 append", "6 5 append")
    assert gap.commits("1", "6") is None
    assert code(gap, "6", "5") == "VK-SOURCE-DIVERGED"
