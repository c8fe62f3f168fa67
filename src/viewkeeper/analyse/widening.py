"""Adds to a grouped query, in its text: keys to the select list and to GROUP BY, aggregates to the former."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.analyse.clauses import clauses_of, top_level
from viewkeeper.analyse.parsing import tokenize


def widened(query: str, columns: Sequence[str], aggregates: Sequence[str] = ()) -> str | None:
    """The query grouped by these columns as well, which it shows last, and after them these aggregates;
    ``None`` where its text is not that of one plain SELECT … FROM … GROUP BY.

    >>> widened("SELECT city, count(*) AS n FROM pos JOIN stores USING (storeID) GROUP BY city", ["region"])
    'SELECT city, count(*) AS n, region FROM pos JOIN stores USING (storeID) GROUP BY city, region'
    """
    text = tokenize(query)
    clauses = clauses_of(text)
    if clauses is None or "WITH" in top_level(text).values():
        return None
    by_all = "ALL" in (text.word(clauses.group + 1), text.word(clauses.group + 2))
    keys, calls = ("".join(f", {each}" for each in more) for more in (columns, aggregates))
    shown, grouped = text.tokens[clauses.source - 1].end + 1, text.tokens[clauses.end - 1].end + 1
    return query[:shown] + keys + calls + query[shown:grouped] + ("" if by_all else keys) + query[grouped:]
