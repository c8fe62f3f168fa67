"""Which files are there: each with its size, the time of its last change and, when asked, its checksum.

Spark lists them (its reader of binary files, without their content), so that every filesystem that it reads
will do, from a cluster and over Connect as well. Like every reader of Spark's it passes over names that begin
with ``_`` or ``.``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SourceError


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells a file from what it was before."""

    size: int
    modified: str
    checksum: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a source at one time, by path."""

    files: Mapping[str, FileState]

    @property
    def version(self) -> str:
        """The same for the same files in the same state."""
        told = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files.values())

    def of(self, paths: Iterable[str]) -> Listing:
        return Listing({path: self.files[path] for path in paths})

    def added_since(self, before: Listing) -> list[str]:
        return sorted(path for path in self.files if path not in before.files)

    def removed_since(self, before: Listing) -> list[str]:
        return sorted(path for path in before.files if path not in self.files)

    def rewritten_since(self, before: Listing) -> list[str]:
        return sorted(
            path for path, state in self.files.items() if path in before.files and before.files[path] != state
        )

    def to_json(self) -> dict[str, Any]:
        return {path: [file.size, file.modified, file.checksum] for path, file in self.files.items()}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Listing:
        return cls({path: FileState(*state) for path, state in data.items()})


def urls_of(spark: SparkSession, listing: Listing) -> dict[str, str]:
    """The files of a listing, as Spark's column ``_metadata.file_path`` names them."""
    found = spark.read.format("binaryFile").load(escaped_paths(listing))
    return {row[0]: row[1] for row in found.selectExpr("path", "_metadata.file_path").collect()}


def escaped_paths(listing: Listing) -> list[str]:
    """The paths of a listing, so that Spark does not take them for patterns."""
    return [escaped(path) for path in sorted(listing.files)]


def _one_slash(url: str) -> str:
    """``file:///a`` and ``file:/a`` are the same."""
    return re.sub(r"^(\w+):/+", r"\1:/", url)


def escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return re.sub(r"([\\{}\[\]*?,])", r"\\\1", path)


def list_files(spark: SparkSession, source: str, path: str, *, checksum: bool) -> Listing:
    """What the path, or the glob, leads to now. An empty file is refused: it was cut off, or is not written
    yet."""
    try:
        found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
        hashed = "sha2(content, 256)" if checksum else "CAST(NULL AS STRING)"
        rows = found.selectExpr(
            "path",
            "length",
            "CAST(unix_micros(modificationTime) AS STRING) AS modified",  # whatever zone the session is in
            f"{hashed} AS checksum",
            "_metadata.file_path AS url",
        ).collect()
        # Spark reads no file that has no bytes, but it knows of it.
        read = {_one_slash(row["url"]) for row in rows}
        empty = sorted(url for url in map(_one_slash, found.inputFiles()) if url not in read)
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return Listing({})
        raise SourceError(
            f"source {source}: the files of {path} cannot be listed: {str(error).splitlines()[0]}",
            code="VK-FILES-UNREADABLE",
            hint="Check the path and the rights of Spark's user.",
        ) from error
    if empty:
        raise SourceError(
            f"source {source}: the file {empty[0]} is empty",
            code="VK-FILE-EMPTY",
            hint="It was cut off, or is still being written. Deliver it again, or move it away.",
        )
    return Listing({row["path"]: FileState(row["length"], row["modified"], row["checksum"]) for row in rows})
