"""Adds to a grouped query, in its text: keys to the select list and to GROUP BY, aggregates to the former."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.analyse.parsing import SqlText, tokenize

_AFTER_GROUP_BY = {"HAVING", "ORDER", "ORDER BY", "LIMIT", "WINDOW", "UNION"}


def widened(query: str, columns: Sequence[str], aggregates: Sequence[str] = ()) -> str | None:
    """The query grouped by these columns as well, which it shows last, and after them these aggregates;
    ``None`` where its text is not that of one plain SELECT … FROM … GROUP BY.

    >>> widened("SELECT city, count(*) AS n FROM pos JOIN stores USING (storeID) GROUP BY city", ["region"])
    'SELECT city, count(*) AS n, region FROM pos JOIN stores USING (storeID) GROUP BY city, region'
    """
    text = tokenize(query)
    words = _top_level(text)
    if "WITH" in words.values() or list(words.values()).count("SELECT") != 1:
        return None
    source = next((index for index, word in words.items() if word == "FROM"), None)
    group = next((index for index, word in words.items() if word in ("GROUP BY", "GROUP")), None)
    if source is None or group is None:
        return None
    end = next(
        (index for index, word in words.items() if index > group and word in _AFTER_GROUP_BY),
        len(text.tokens),
    )
    by_all = text.word(group + 1) == "ALL" or text.word(group + 2) == "ALL"
    keys, calls = ("".join(f", {each}" for each in more) for more in (columns, aggregates))
    shown, grouped = text.tokens[source - 1].end + 1, text.tokens[end - 1].end + 1
    return query[:shown] + keys + calls + query[shown:grouped] + ("" if by_all else keys) + query[grouped:]


def _top_level(text: SqlText) -> dict[int, str]:
    """The words outside all parentheses, by the index of their token."""
    depth, found = 0, dict[int, str]()
    for index in range(len(text.tokens)):
        word = text.word(index)
        depth -= word == ")"
        if depth == 0 and word:
            found[index] = word
        depth += word == "("
    return found
