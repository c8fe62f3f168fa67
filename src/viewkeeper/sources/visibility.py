"""Which transactions a snapshot of PostgreSQL contains.

``pg_current_snapshot()`` is written ``xmin:xmax:xip,…``: everything before xmin is over, nothing from xmax on
has begun to be seen, and what is listed was under way. The log tells transactions by the lower 32 bits of
their number, so these are widened by those of the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

_TURN = 1 << 32


@dataclass(frozen=True, slots=True)
class Visible:
    """The transactions that a snapshot sees, if they were committed."""

    xmin: int
    xmax: int
    under_way: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Visible:
        """
        >>> seen = Visible.of("10:20:10,14")
        >>> [seen.sees(xid) for xid in (9, 10, 11, 14, 19, 20)]
        [True, False, True, False, True, False]
        """
        xmin, xmax, listed = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(map(int, filter(None, listed.split(",")))))

    def sees(self, xid: int) -> bool:
        """Whether a committed transaction, by the lower 32 bits of its number, is seen.

        >>> later = Visible.of(f"{(3 << 32) + 5}:{(3 << 32) + 9}:")
        >>> later.sees(6), later.sees(9), later.sees(0xFFFFFFF0)
        (True, False, True)
        """
        return self.sees_whole(widened(xid, self.xmax))

    def sees_whole(self, whole: int) -> bool:
        """The same, by its whole number."""
        return whole < self.xmin or (whole < self.xmax and whole not in self.under_way)

    def sees_all_of(self, other: Visible) -> bool:
        """Whether every transaction that another snapshot sees is seen.

        >>> Visible.of("10:12:10").sees_all_of(Visible.of("10:12:10"))
        True
        >>> [Visible.of(text).sees_all_of(Visible.of("11:12:")) for text in ("10:11:10", "11:11:", "11:12:")]
        [False, False, True]
        """
        unseen = (*self.under_way, *range(self.xmax, other.xmax))
        return not any(map(other.sees_whole, unseen))


def widened(xid: int, near: int) -> int:
    """The whole number of a transaction that is at most half a turn away from another.

    >>> widened(5, (2 << 32) + 3) == (2 << 32) + 5, widened(0xFFFFFFFF, 2 << 32) == (2 << 32) - 1
    (True, True)
    """
    whole = near - near % _TURN + xid
    if whole - near > _TURN // 2:
        return whole - _TURN
    return whole + _TURN if near - whole > _TURN // 2 else whole
