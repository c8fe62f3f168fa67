"""What goes wrong with machines, told from what Spark says about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from viewkeeper.sources.differential import KEY_TWICE
from viewkeeper.sources.file_reader import BAD_ROW


@dataclass(frozen=True, slots=True)
class Fault:
    """Words of Spark, Hadoop or Java that mark it; and what to say instead."""

    marks: frozenset[str]
    what: str
    code: str
    hint: str
    telling: str | None = None
    """Finds, in all that Spark says, the words that tell what it is about."""

    def told(self, said: str) -> str | None:
        found = re.search(self.telling, said) if self.telling else None
        return found.group(1).strip() if found else None


FAULTS = (
    Fault(
        frozenset({"No space left on device", "Disk quota exceeded", "File too large"}),
        "no space is left to write",
        "VK-DISK-FULL",
        "Make room; what was written in vain is removed by the next refresh.",
    ),
    Fault(
        frozenset({"OutOfMemoryError", "OutOfMemory", "UNABLE_TO_ACQUIRE_MEMORY"}),
        "Spark ran out of memory",
        "VK-OUT-OF-MEMORY",
        "Give its driver or its executors more, or refresh fewer views at once.",
    ),
    Fault(
        frozenset({"ExecutorLostFailure", "Checkpoint block", "executor was lost", "Executor heartbeat"}),
        "an executor was lost, and rows that it held with it",
        "VK-EXECUTOR-LOST",
        "Refresh again; if it happens again, look why executors die.",
    ),
    Fault(
        frozenset({BAD_ROW}),
        "a row does not fit the columns",
        BAD_ROW,
        "Mend the file; or let such rows be set aside: on_bad_rows 'quarantine'.",
        rf"{BAD_ROW} in (.*?)(?: SQLSTATE|\n|$)",
    ),
    Fault(
        frozenset({KEY_TWICE}),
        "a key comes more than once",
        KEY_TWICE,
        "Mend the delivery, or declare the source without a key.",
        rf"{KEY_TWICE} (\(.*?\))(?: SQLSTATE|\n|$)",
    ),
    Fault(
        frozenset({"CSV header does not conform to the schema", "Number of column in CSV header"}),
        "a file has other columns",
        "VK-FILE-SCHEMA",
        "Deliver it with the source's columns, or declare the source anew.",
        r"(?s)CSV file: ([^\n]*)",
    ),
    Fault(
        frozenset({"FAILED_READ_FILE"}),
        "a file cannot be read",
        "VK-FILES-UNREADABLE",
        "Was it removed, cut off, or is it of another format? Refresh again when it is whole.",
        r"(?:reading file|File) ([^\n]*?)\.? (?:does not exist|SQLSTATE| )",
    ),
)


_BROADCAST = (
    "Cannot broadcast the table",
    "Could not execute broadcast in",
    "to build and broadcast the table",
    "spark.driver.maxResultSize",
    "OutOfMemory",
    "UNABLE_TO_ACQUIRE_MEMORY",
)


def may_be_broadcast(said: str) -> bool:
    """Whether what Spark says may come of broadcasting too many rows: its limits of rows, bytes and time, or
    memory that is full.

    >>> may_be_broadcast("Cannot broadcast the table that is larger than 8.0 GiB: 9.1 GiB.")
    True
    >>> may_be_broadcast("[DIVIDE_BY_ZERO] Division by zero.")
    False
    """
    return any(words in said for words in _BROADCAST)


def marks_in(said: str) -> frozenset[str]:
    """The marks of faults that occur in what was said.

    >>> sorted(marks_in("java.io.IOException: No space left on device"))
    ['No space left on device']
    """
    return frozenset(mark for fault in FAULTS for mark in fault.marks if mark in said)
