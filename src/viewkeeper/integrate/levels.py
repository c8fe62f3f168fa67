"""What a view can promise about the states it shows (Section 2; Zhuge et al. 1996)."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """Each level includes those below it."""

    NONE = 0
    """Wrong in the end."""
    CONVERGENT = 1
    """Right in the end."""
    WEAK = 2
    """Each state of the view belongs to some state of the sources, in any order."""
    STRONG = 3
    """And the states of the sources come in their order."""
    COMPLETE = 4
    """And none is left out: each transaction has a state of the view of its own."""

    def __str__(self) -> str:
        return _WORDS[self]


_WORDS = {
    Level.NONE: "wrong",
    Level.CONVERGENT: "convergent",
    Level.WEAK: "weakly consistent",
    Level.STRONG: "strongly consistent",
    Level.COMPLETE: "complete",
}
