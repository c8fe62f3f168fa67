"""What goes wrong with machines, told from what Spark says about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Words of Spark, Hadoop or Java that mark it; and what to say instead."""

    marks: frozenset[str]
    what: str
    code: str
    hint: str


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
)


def marks_in(said: str) -> frozenset[str]:
    """The marks of faults that occur in what was said.

    >>> sorted(marks_in("java.io.IOException: No space left on device"))
    ['No space left on device']
    """
    return frozenset(mark for fault in FAULTS for mark in fault.marks if mark in said)
