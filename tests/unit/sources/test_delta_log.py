"""What the commits of a Delta table did, taken together, from the actions of its log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from viewkeeper.sources.delta_log import LogChange, feeds

MANY = 1 << 39
"""More than any writer told here."""


def added(
    path: str, rows: int | None = 10, *, changes: bool = True, vector: dict[str, Any] | None = None
) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    told = {} if vector is None else {"deletionVector": vector}
    return {"add": {"path": path, "dataChange": changes, **stats, **told}}


def removed(path: str, *, changes: bool = True, vector: dict[str, Any] | None = None) -> dict[str, Any]:
    told = {} if vector is None else {"deletionVector": vector}
    return {"remove": {"path": path, "dataChange": changes, **told}}


def vector(name: str, cardinality: int, offset: int = 1) -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": name, "offset": offset, "cardinality": cardinality}


def info(operation: str, mode: str | None = None, **metrics: str) -> dict[str, Any]:
    parameters = {} if mode is None else {"mode": mode}
    told = {"operation": operation, "operationParameters": parameters, "operationMetrics": metrics}
    return {"commitInfo": told}


def after(*actions: dict[str, Any]) -> LogChange:
    change = LogChange()
    for action in actions:
        change.take(action)
    return change


def test_files_that_came_and_went() -> None:
    change = after(added("a", 10), removed("b"), added("c", 5))
    assert sorted(change.after) == ["a", "c"]
    assert sorted(change.before) == ["b"]
    assert change.changes_rows
    assert [file.rows for file in change.after.values()] == [10, 5]
    assert change.before["b"].rows > MANY, "what nobody counted may be much"


def test_a_file_that_came_in_between_and_went_again_was_in_neither_version() -> None:
    change = after(added("a"), removed("a"), added("b"))
    assert (list(change.before), list(change.after)) == ([], ["b"])
    assert change.changes_rows


def test_of_what_came_and_went_the_feed_tells_both() -> None:
    assert [file.rows for file in after(added("a", 7), removed("a"), added("b")).passed] == [7]
    shrunk = after(added("a", 10), removed("a"), added("a", 10, vector=vector("x", 4)))
    assert [file.rows for file in shrunk.passed] == [10]
    assert after(added("a", 7), removed("a", changes=False), added("b", changes=False)).passed == []
    assert after(removed("a"), added("b")).passed == []


def test_a_file_that_went_and_came_back_is_in_both() -> None:
    """As RESTORE brings it: its rows cancel out."""
    change = after(removed("a"), added("a", 7))
    assert (list(change.before), list(change.after)) == (["a"], ["a"])
    change = after(removed("a"), added("a", 7), removed("a"))
    assert (list(change.before), list(change.after)) == (["a"], [])


def test_a_deletion_vector_that_is_replaced_twice_leaves_the_first_state_and_the_last() -> None:
    one, two, three = vector("x", 1), vector("x", 3, offset=9), vector("y", 6)
    change = after(
        removed("a", vector=one), added("a", 10, vector=two),
        removed("a", vector=two), added("a", 10, vector=three),
    )  # fmt: skip
    assert (list(change.before), list(change.after)) == (["a"], ["a"])
    assert change.before["a"].vector == "ux@1"
    assert change.after["a"].vector == "uy@1"
    assert change.after["a"].rows == 4, "ten, of which six are gone"


def test_a_file_that_gets_its_first_deletion_vector_is_in_both() -> None:
    change = after(removed("a"), added("a", 10, vector=vector("x", 4)))
    assert change.before["a"].vector is None
    assert (change.after["a"].vector, change.after["a"].rows) == ("ux@1", 6)
    gone = after(removed("a"), added("a", 10, vector=vector("x", 4)), removed("a", vector=vector("x", 4)))
    assert (list(gone.before), list(gone.after)) == (["a"], [])


def test_vectors_at_other_places_of_a_file_are_others() -> None:
    first, second = (after(added("a", vector=vector("x", 1, offset=at))).after["a"] for at in (1, 40))
    assert first.vector != second.vector


def test_where_the_vector_of_a_file_lies() -> None:
    """The examples of Delta's protocol, and one that lies elsewhere."""
    at = vector("ab^-aqEH.-t@S}K{vb[*k^", 6, offset=4)
    folder = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert after(added("a", vector=at)).after["a"].paths == ("a", folder)
    at = vector("^-aqEH.-t@S}K{vb[*k^", 6)
    assert after(added("a", vector=at)).after["a"].paths == ("a", folder.removeprefix("ab/"))
    elsewhere = {**at, "storageType": "p", "pathOrInlineDv": "s3://b/d@1.bin"}
    assert after(added("a", vector=elsewhere)).after["a"].paths == ("a", "s3://b/d@1.bin")
    within = {
        **at,
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    }
    assert after(added("a", vector=within)).after["a"].paths == ("a",)


def test_which_files_of_the_feed_may_be_vacuumed() -> None:
    change = LogChange()
    change.take_commit([info("WRITE"), added("a"), added("b")])
    change.take_commit([info("OPTIMIZE"), removed("b", changes=False), added("c", changes=False)])
    assert change.perishable == {"b"}
    change.take_commit([info("UPDATE"), {"cdc": {"path": "told"}}, removed("c"), added("d")])
    assert change.perishable == {"b", "told"}


def test_a_count_that_a_writer_left_out_is_not_taken_for_nothing() -> None:
    assert after(added("a", None)).after["a"].rows > MANY
    assert after(added("a", None, vector=vector("x", 4))).after["a"].rows > MANY


def test_compacting_changes_no_rows() -> None:
    change = after(removed("a", changes=False), removed("b", changes=False), added("c", 20, changes=False))
    assert not change.changes_rows
    assert change.rewritten == {"c"}


def test_compacted_files_are_on_both_sides_once_something_else_changes() -> None:
    change = after(removed("a", changes=False), added("c", 20, changes=False), added("d", 1))
    assert change.changes_rows
    assert (sorted(change.before), sorted(change.after)) == (["a"], ["c", "d"])


def test_a_compacted_file_that_is_compacted_again_is_not_there_in_the_end() -> None:
    """Whether it was there before, and only described anew, is for who can look to find out."""
    change = after(
        removed("a", changes=False), added("b", changes=False),
        removed("b", changes=False), added("c", changes=False), added("d"),
    )  # fmt: skip
    assert "a" in change.before
    assert sorted(change.after) == ["c", "d"]


def test_a_file_that_is_known_from_before_is_no_riddle() -> None:
    """Though it is added once more without a change."""
    change = after(removed("a"), added("a", 10, vector=vector("x", 1)), added("a", 10, changes=False))
    assert change.rewritten == set()


def test_an_action_that_says_nothing_of_it_changes_rows() -> None:
    assert after({"add": {"path": "a"}}).changes_rows
    assert after({"remove": {"path": "a"}}).changes_rows


def test_the_feed_is_followed_only_where_it_was_kept_all_the_way() -> None:
    assert after(added("a")).feeds
    assert not after(
        {"metaData": {"configuration": {"delta.enableChangeDataFeed": "true"}}}, added("a")
    ).feeds
    assert not LogChange(feeds=False).feeds
    assert feeds({"delta.enableChangeDataFeed": "True"})
    assert not feeds({"delta.enableChangeDataFeed": "false"})
    assert not feeds({})


def test_other_actions_say_nothing_of_rows() -> None:
    change = after(
        {"protocol": {"minReaderVersion": 3}},
        {"txn": {"appId": "a", "version": 1}},
        {"cdc": {"path": "_change_data/x", "dataChange": False}},
        {"domainMetadata": {"domain": "d"}},
    )
    assert change == LogChange()


@pytest.mark.parametrize(
    ("commit", "counted"),
    [
        (info("WRITE", "Append", numOutputRows="5"), (5, 0)),
        (info("WRITE", numOutputRows="5"), (5, 0)),
        (info("STREAMING UPDATE", numOutputRows="5"), (5, 0)),
        (info("DELETE", numDeletedRows="2"), (0, 2)),
        (info("UPDATE", numUpdatedRows="3"), (3, 3)),
        (
            info("MERGE", numTargetRowsInserted="1", numTargetRowsUpdated="2", numTargetRowsDeleted="4"),
            (3, 6),
        ),
        (info("OPTIMIZE"), (0, 0)),
    ],
)
def test_what_a_commit_counted_is_taken(commit: dict[str, Any], counted: tuple[int, int]) -> None:
    assert after(commit).fed == counted
    more = info("WRITE", "Append", numOutputRows="10")
    assert after(more, commit).fed == (counted[0] + 10, counted[1])


@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(info("WRITE", "Overwrite", numOutputRows="5"), id="overwrites"),
        pytest.param(info("WRITE", "Append"), id="no metrics"),
        pytest.param(info("DELETE", numDeletedRows="-1"), id="less than nothing"),
        pytest.param(info("DELETE", numDeletedRows="some"), id="no number"),
        pytest.param(info("MERGE", numTargetRowsInserted="1"), id="half of it"),
        pytest.param(info("RESTORE", numOutputRows="1"), id="an operation that counts otherwise"),
        pytest.param({"commitInfo": {}}, id="nothing"),
        pytest.param({"commitInfo": {"operation": "DELETE", "operationMetrics": None}}, id="null"),
        pytest.param(
            {
                "commitInfo": {
                    "operation": "STREAMING UPDATE",
                    "operationParameters": {"outputMode": "Complete"},
                    "operationMetrics": {"numOutputRows": "5", "numRemovedFiles": "3"},
                }
            },
            id="a stream that writes everything anew",
        ),
    ],
)
def test_what_a_commit_did_not_tell_is_not_guessed(commit: dict[str, Any]) -> None:
    more = info("WRITE", "Append", numOutputRows="10")
    assert after(commit).fed is None
    assert after(commit, more).fed is None
    assert after(more, commit).fed is None
