"""The one place where a name becomes part of a SQL text.

Values are bound as parameters; only identifiers are written into statements, and always through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from viewkeeper.sql.keywords import KEYWORDS

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote(identifier: str) -> str:
    """One identifier, quoted for Spark.

    >>> quote("a`;drop")
    '`a``;drop`'
    """
    return "`" + identifier.replace("`", "``") + "`"


def ident(identifier: str) -> str:
    """One identifier for SQL that people read: quoted unless it is plain and no keyword.

    >>> ident("store_id"), ident("order"), ident("a b")
    ('store_id', '`order`', '`a b`')
    """
    plain = _PLAIN.match(identifier) and identifier.lower() not in KEYWORDS
    return identifier if plain else quote(identifier)


def ident_path(parts: tuple[str, ...]) -> str:
    """A dotted name, each part as :func:`ident` writes it.

    >>> ident_path(("lake", "order", "pos"))
    'lake.`order`.pos'
    """
    return ".".join(ident(part) for part in parts)


def quote_path(parts: tuple[str, ...]) -> str:
    """A dotted name, each part quoted.

    >>> quote_path(("lake", "sales", "p.os"))
    '`lake`.`sales`.`p.os`'
    """
    return ".".join(quote(part) for part in parts)


def show_path(parts: tuple[str, ...]) -> str:
    """A dotted name for people: quoted only where it must be.

    >>> show_path(("lake", "sales", "p.os"))
    'lake.sales.`p.os`'
    """
    return ".".join(part if _PLAIN.match(part) else quote(part) for part in parts)


def read_options(options: Iterable[tuple[str, str]]) -> str:
    """Options of a table's format, to follow its name in FROM.

    >>> read_options([("start-snapshot-id", "7")]), read_options(())
    (" WITH (`start-snapshot-id` = '7')", '')
    """
    told = ", ".join(f"{quote(name)} = {literal(value)}" for name, value in options)
    return f" WITH ({told})" if told else ""


def parse_path(text: str) -> tuple[str, ...]:
    """The parts of a dotted name; the inverse of both :func:`quote_path` and :func:`show_path`.

    >>> parse_path("lake.sales.`p.o``s`")
    ('lake', 'sales', 'p.o`s')
    """
    parts: list[str] = []
    index = 0
    while True:
        if text[index : index + 1] == "`":
            end = index + 1
            while True:
                end = text.index("`", end)
                if text[end + 1 : end + 2] != "`":
                    break
                end += 2
            parts.append(text[index + 1 : end].replace("``", "`"))
            index = end + 1
        else:
            end = text.find(".", index)
            end = len(text) if end < 0 else end
            parts.append(text[index:end])
            index = end
        if index >= len(text):
            break
        if text[index] != ".":
            raise ValueError(f"not a dotted name: {text!r}")
        index += 1
    if not all(parts):
        raise ValueError(f"not a dotted name: {text!r}")
    return tuple(parts)


def literal(text: str) -> str:
    """A string literal, for the few places where Spark takes no parameter (procedure arguments, options).

    >>> literal("it's")
    "'it\\\\'s'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def nulls(columns: Iterable[tuple[str, str]]) -> str:
    """A SELECT of one row of NULLs under these names, of these types: what a table looks like.

    >>> nulls([("a", "INT"), ("b", "STRING")])
    'SELECT CAST(NULL AS INT) AS `a`, CAST(NULL AS STRING) AS `b`'
    """
    return "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in columns)
