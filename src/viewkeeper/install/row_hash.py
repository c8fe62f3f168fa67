"""A hidden hash of each stored row of a bag, by which the rows to delete are found without reading them.

A hash can only point at too many rows, never at too few. So if the stored rows with a hash are exactly as
many as are to be deleted with it, they are the right ones; otherwise (copies that stay, or a collision) all
columns are compared.
"""

from __future__ import annotations

from collections.abc import Iterable

HASH = "_vk_hash"


def row_hash(columns: Iterable[tuple[str, str]]) -> str:
    """The hash of a row, given each column's expression and stored type.

    The cast makes it depend on the value alone: a decimal hashes differently under another precision.

    >>> row_hash([("a", "int"), ("b", "string")])
    'xxhash64(CAST(a AS int), CAST(b AS string))'
    """
    return "xxhash64(" + ", ".join(f"CAST({text} AS {kind})" for text, kind in columns) + ")"
