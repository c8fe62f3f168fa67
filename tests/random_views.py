"""How random views were kept: told by each test of them, and added up at the end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

RANDOM_VIEWS = "random views"
"""The property of a test's report that tells it."""


def shares(kept: Iterable[Mapping[str, int]]) -> str:
    """In a line.

    >>> shares([{"incremental": 29, "full": 1}, {"incremental": 28, "refused": 2}])
    '60 views: 95.0 % incremental, 1.7 % full, 3.3 % refused'
    """
    total: Counter[str] = Counter()
    for each in kept:
        total.update(each)
    views = max(1, total.total())
    told = ", ".join(f"{100 * total[way] / views:.1f} % {way}" for way in ("incremental", "full", "refused"))
    return f"{total.total():,} views: {told}"
