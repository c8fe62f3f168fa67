"""Stored groups in memory, and what installing does to them."""

from __future__ import annotations

from collections import Counter

from bag_algebra import Bag

from viewkeeper.algebra.summary_delta import Groups


def installed(groups: Groups, stored: Bag, touched: Bag) -> Bag:
    """The stored groups after the touched ones are merged in by their keys, as the installer does it."""
    width = len(groups.keys)
    by_key = {row[:width]: row for row in stored}
    identities = {row[:width]: identity for identity, row in enumerate(stored)}
    for *row, identity, operation in touched:
        key = tuple(row[:width])
        assert (key in by_key) == (operation != "I"), f"{operation} of {key}"
        assert identities.get(key) == identity, f"{operation} of {key}"
        if operation == "D":
            del by_key[key]
        else:
            by_key[key] = tuple(row)
    return Counter(by_key.values())
