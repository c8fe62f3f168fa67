"""Whether a query tells columns by their place: then its text needs all columns of its tables, read or not.

SELECT p FROM t AS x(p, q)                      x has two columns, whoever reads them
SELECT a FROM (TABLE t UNION ALL SELECT * …)    the branches of a union are as long as each other
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from viewkeeper.analyse.parsing import NotParsed, SqlText, parse, tokenize

_SET_WORDS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_BEFORE_A_STAR = frozenset({"SELECT", "DISTINCT", "ALL", ",", ".", "("})
_NAMED = (exp.Table, exp.Subquery, exp.CTE)


@lru_cache(maxsize=16)  # it is asked of each table that the query reads
def reads_by_position(query: str) -> bool:
    """Whether columns are renamed by a list behind a table or a query, or stars are united.

    >>> reads_by_position("SELECT a * b FROM t UNION SELECT count(*) FROM u LATERAL VIEW explode(x) y AS z")
    False
    >>> reads_by_position("SELECT p FROM t AS x(p, q)"), reads_by_position("SELECT * FROM t MINUS TABLE u")
    (True, True)
    """
    text = tokenize(query)
    words = [text.word(index) for index in range(len(text.tokens))]
    if not _SET_WORDS.isdisjoint(words) and ("TABLE" in words or _has_star(words)):
        return True
    return _has_list(text)


def _has_star(words: list[str]) -> bool:
    return any(
        word == "*" and words[at - 1] in _BEFORE_A_STAR and words[max(0, at - 2) : at] != ["COUNT", "("]
        for at, word in enumerate(words)
    )


def _has_list(text: SqlText) -> bool:
    try:
        tree = parse(text)
    except NotParsed:
        return True
    lists = (alias for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns"))
    return any(isinstance(alias.parent, _NAMED) for alias in lists)
