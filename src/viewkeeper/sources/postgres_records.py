"""The text that PostgreSQL has for a row, taken apart."""

from __future__ import annotations


def record_values(text: str) -> list[str | None]:
    """The values of a row, out of the text that PostgreSQL has for it.

    >>> record_values('(1,,"a ""b"" c",x,)')
    ['1', None, 'a "b" c', 'x', None]
    """
    values: list[str | None] = []
    at, end = 1, len(text) - 1
    while True:
        found: list[str] = []
        is_null = True
        while at < end and text[at] != ",":
            is_null = False
            if text[at] != '"':
                found.append(text[at])
                at += 1
                continue
            piece, at = _quoted(text, at + 1)
            found.append(piece)
        values.append(None if is_null else "".join(found))
        if at >= end:
            return values
        at += 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What stands between quotes, and where it ends; a quote or a backslash within is written twice."""
    found: list[str] = []
    while True:
        if text[at] == '"':
            if text[at + 1] != '"':
                return "".join(found), at + 1
            at += 1
        elif text[at] == "\\":
            at += 1
        found.append(text[at])
        at += 1
