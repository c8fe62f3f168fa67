"""QUALIFY, which Spark does not have: rewritten, on the tokens alone, before Spark is asked.

    SELECT a, b FROM t QUALIFY row_number() OVER (…) = 1

becomes a SELECT over the same one with its condition as a column::

    SELECT * EXCEPT (_vk_qualify) FROM (SELECT a, b, (row_number() OVER (…) = 1) AS _vk_qualify FROM t)
    WHERE _vk_qualify
"""

from __future__ import annotations

from viewkeeper.analyse.parsing import SqlText, tokenize

_MARK = "_vk_qualify"
_AFTER = frozenset(
    {"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT"}
    | {"MINUS", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
)


def without_qualify(text: SqlText) -> SqlText:
    """The same query without QUALIFY; the same object where there is none.

    >>> without_qualify(tokenize("SELECT a FROM t QUALIFY rank() OVER (ORDER BY a) < 3 LIMIT 5")).sql[:49]
    'SELECT * EXCEPT (_vk_qualify) FROM (SELECT a, (ra'
    """
    at = _place(text)
    while at is not None:
        text = tokenize(_rewritten(text, at))
        at = _place(text)
    return text


def _place(text: SqlText) -> int | None:
    """The first QUALIFY that is one: after a SELECT and its FROM, and no name or alias."""
    for index in range(len(text.tokens)):
        before, after = text.word(index - 1), text.word(index + 1)
        is_name = before in (".", "AS", "") or after in (".", ",", ")", "", "=", "AS")
        if text.word(index) == "QUALIFY" and not is_name and _select(text, index) is not None:
            return index
    return None


def _select(text: SqlText, qualify: int) -> tuple[int, int] | None:
    """The SELECT and the FROM that a QUALIFY belongs to."""
    depth, source = 0, None
    for index in range(qualify - 1, -1, -1):
        word = text.word(index)
        depth += {")": 1, "(": -1}.get(word, 0)
        if depth < 0:
            return None
        if depth == 0 and word == "FROM" and not text.is_distinct_from(index):
            source = index
        if depth == 0 and word == "SELECT":
            return None if source is None else (index, source)
    return None


def _rewritten(text: SqlText, qualify: int) -> str:
    found = _select(text, qualify)
    assert found is not None
    select, source = found
    end = _end(text, qualify)
    listed = select + 1
    distinct = ""
    if text.word(listed) in ("DISTINCT", "ALL"):
        distinct, listed = f"{text.word(listed)} ", listed + 1
    condition, rest = text.raw(qualify + 1, end), text.raw(source, qualify)
    inner = f"SELECT {text.raw(listed, source)}, ({condition}) AS {_MARK} {rest}"
    before = text.sql[: text.tokens[select].start]
    after = text.sql[text.tokens[end - 1].end + 1 :]
    return f"{before}SELECT {distinct}* EXCEPT ({_MARK}) FROM ({inner} ) WHERE {_MARK}{after}"


def _end(text: SqlText, qualify: int) -> int:
    depth = 0
    for index in range(qualify + 1, len(text.tokens)):
        word = text.word(index)
        if (depth == 0 and word in _AFTER) or (depth == 0 and word == ")"):
            return index
        depth += {"(": 1, ")": -1}.get(word, 0)
    return len(text.tokens)
