"""The log of a Delta table: which files its commits added and removed.

A commit is a file of JSON lines, one action each (Delta's protocol, *Actions*). ``dataChange: false`` marks
files that were only rewritten: an OPTIMIZE moves rows, and changes none.

The log names files by URLs, from the table's folder or whole (a shallow clone), and every writer encodes
other characters. Delta itself takes two spellings for two files, so entries are told apart by them as they
are written; where a file lies is what :func:`whole` makes of them.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_UNTOLD_ROWS = 1 << 40
"""Stands for a row count that the writer left out: an upper bound must not be too low."""

_COUNTED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "WRITE": (("numOutputRows",), ()),
    "STREAMING UPDATE": (("numOutputRows",), ()),
    "DELETE": ((), ("numDeletedRows",)),
    "UPDATE": (("numUpdatedRows",), ("numUpdatedRows",)),
    "MERGE": (
        ("numTargetRowsInserted", "numTargetRowsUpdated"),
        ("numTargetRowsDeleted", "numTargetRowsUpdated"),
    ),
    "OPTIMIZE": ((), ()),
}
"""By operation, the metrics of a commit that count the rows it inserted and those it deleted."""

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_UUID_LETTERS = 20


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as an action names it. ``vector`` tells its deletion vector, by which some rows are gone."""

    path: str
    rows: int
    vector: str | None

    @property
    def paths(self) -> tuple[str, ...]:
        """Its own, and that of the file with its deletion vector, if that lies in one: both are vacuumed."""
        kind, told = (self.vector or "")[:1], (self.vector or "")[1:].rpartition("@")[0]
        match kind:
            case "u":
                folder, letters = told[:-_UUID_LETTERS], told[-_UUID_LETTERS:]
                # Python knows another alphabet for the same digits.
                id_ = uuid.UUID(bytes=base64.b85decode(letters.translate(str.maketrans(_Z85, _B85))))
                return (self.path, f"{folder}/deletion_vector_{id_}.bin".lstrip("/"))
            case "p":
                return (self.path, told)
            case _:
                return (self.path,)


@dataclass(slots=True)
class LogChange:
    """What commits did to the table, taken together."""

    before: dict[str, DataFile] = field(default_factory=dict)
    """Files of the first version that are not there any more, or have lost rows."""
    after: dict[str, DataFile] = field(default_factory=dict)
    """Files of the last version that were not there, or have lost rows."""
    changes_rows: bool = False
    feeds: bool = True
    """Whether the table kept a change data feed all the way."""
    rewritten: set[str] = field(default_factory=set)
    """Files that were added without a change of rows: compacted, or there already and described anew."""
    gone: dict[str, DataFile] = field(default_factory=dict)
    """Of those, the ones that were removed later on: they were in the first version, or came in between."""
    passed: list[DataFile] = field(default_factory=list)
    """Files that came in between, and of which rows went again: the change data feed tells of both."""
    fed: tuple[int, int] | None = (0, 0)
    """Rows that the change data feed holds, inserted and deleted; ``None`` if a writer did not tell."""
    read_by_feed: list[DataFile] = field(default_factory=list)
    """Files that the change data feed is made of: a commit may have written it down; if not, it is found in
    the files that came and went."""

    @property
    def perishable(self) -> set[str]:
        """Of the files that the feed is made of, those that VACUUM removes: not what the last version has."""
        living = {path for file in self.after.values() for path in file.paths}
        return {path for file in self.read_by_feed for path in file.paths} - living

    def take_commit(self, actions: Sequence[Mapping[str, Any]]) -> None:
        """Go through one more commit."""
        written = [DataFile(action["cdc"]["path"], 0, None) for action in actions if "cdc" in action]
        changed = (action.get("add") or action.get("remove") for action in actions)
        self.read_by_feed += written or [
            _data_file(it) for it in changed if it and it.get("dataChange", True)
        ]
        if not any("commitInfo" in action for action in actions):
            self.fed = None
        for action in actions:
            self.take(action)

    def take(self, action: Mapping[str, Any]) -> None:
        """Go through one more action."""
        if "add" in action:
            added = action["add"]
            self.changes_rows |= bool(added.get("dataChange", True))
            file = _data_file(added)
            self.after[file.path] = file
            if not added.get("dataChange", True) and file.path not in self.before:
                self.rewritten.add(file.path)
        elif "remove" in action:
            removed = action["remove"]
            self.changes_rows |= bool(removed.get("dataChange", True))
            file = _data_file(removed)
            if file.path in self.rewritten:
                self.rewritten.discard(file.path)
                self.gone.setdefault(file.path, file)
            came = self.after.pop(file.path, None)
            if came is not None and removed.get("dataChange", True):
                self.passed.append(came)
            # A file that came in between and went again was in neither version.
            if came is None or file.path in self.before:
                self.before.setdefault(file.path, file)
        elif "metaData" in action:
            self.feeds = False  # before it there may have been none
        elif "commitInfo" in action:
            told = _rows_told(action["commitInfo"])
            self.fed = None if self.fed is None or told is None else _both(self.fed, told)


def feeds(configuration: Mapping[str, str]) -> bool:
    """Whether a table with these properties keeps a change data feed."""
    return configuration.get("delta.enableChangeDataFeed", "false").lower() == "true"


def read_actions(
    spark: SparkSession, location: str, versions: Iterable[int]
) -> Sequence[Sequence[Mapping[str, Any]]] | None:
    """The actions of these commits, oldest first; ``None`` if one of them is no longer on record."""
    wanted = list(versions)
    paths = [f"{location}/_delta_log/{version:020d}.json" for version in wanted]
    try:
        lines = spark.read.text(paths).selectExpr("value", "_metadata.file_name AS name").collect()
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    found: dict[int, list[Mapping[str, Any]]] = {version: [] for version in wanted}
    for line in lines:
        # Removes of a file come before its adds within a commit: a deletion vector replaces the file's entry.
        found[int(line["name"].split(".", 1)[0])].append(json.loads(line["value"]))
    return [sorted(found[version], key=lambda action: "add" in action) for version in wanted]


def whole(location: str, path: str) -> str:
    """Where a file lies, decoded, by the path that the log has of it.

    >>> whole("s3://b/t", "p=M%C3%BC/x"), whole("s3://b/t", "s3://c/a+b"), whole("s3://b/t", "/x")
    ('s3://b/t/p=Mü/x', 's3://c/a+b', 's3://b/x')
    """
    system = re.match(r"[^/]*:(//[^/]+)?", location)
    if path.startswith("/") and system is not None:
        return one_slash(system[0] + unquote(path))
    return one_slash(
        unquote(path) if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path) else f"{location}/{unquote(path)}"
    )


def one_slash(path: str) -> str:
    """``file:///a`` and ``file:/a`` are the same."""
    return path.replace(":///", ":/")


def has_spellings(path: str) -> bool:
    """Whether writers encode a path in different ways.

    >>> has_spellings("p=1/part-0.parquet"), has_spellings("p=M%C3%BC/x"), has_spellings("p=Mü/x")
    (False, True, True)
    """
    return re.fullmatch(r"[A-Za-z0-9_=.:/-]*", path) is None


def _rows_told(commit: Mapping[str, Any]) -> tuple[int, int] | None:
    """How many rows a commit inserted and deleted, as its writer counted them."""
    metrics = commit.get("operationMetrics") or {}
    names = _COUNTED.get(commit.get("operation", ""))
    how = commit.get("operationParameters") or {}
    if names is None or not {how.get("mode", "Append"), how.get("outputMode", "Append")} <= {
        "Append",
        "Update",
    }:
        return None
    try:
        inserted, deleted = (sum(int(metrics[name]) for name in side) for side in names)
    except (KeyError, ValueError):
        return None
    return (inserted, deleted) if min(inserted, deleted) >= 0 else None


def _both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


def _data_file(action: Mapping[str, Any]) -> DataFile:
    stats = action.get("stats")
    rows = json.loads(stats).get("numRecords") if stats else None
    vector = action.get("deletionVector")
    told = None
    if vector is not None:
        told = f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset', 0)}"
        rows = None if rows is None else max(0, rows - vector.get("cardinality", 0))
    return DataFile(action["path"], _UNTOLD_ROWS if rows is None else rows, told)
