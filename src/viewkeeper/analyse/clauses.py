"""Where the clauses of a query's outermost SELECT stand, by its tokens alone."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.analyse.parsing import SqlText

_AFTER_GROUP_BY = frozenset(
    {"HAVING", "ORDER", "ORDER BY", "SORT BY", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "UNION"}
)


@dataclass(frozen=True, slots=True)
class Clauses:
    """The tokens SELECT, FROM and GROUP BY of a plain SELECT, and the first behind the groups."""

    select: int
    source: int
    group: int
    end: int


def clauses_of(text: SqlText) -> Clauses | None:
    """Where they stand; ``None`` unless the text has one SELECT outside all parentheses, which groups."""
    words = top_level(text)

    def places(*named: str) -> list[int]:
        return [at for at, word in words.items() if word in named]

    # With a comment between them, GROUP and BY are two words.
    select, source, group = places("SELECT"), places("FROM"), places("GROUP BY", "GROUP")
    if len(select) != 1 or not source or not group:
        return None
    behind = (at for at in places(*_AFTER_GROUP_BY) if at > group[0])
    return Clauses(select[0], source[0], group[0], next(behind, len(text.tokens)))


def top_level(text: SqlText) -> dict[int, str]:
    """The words outside all parentheses, by the index of their token."""
    depth, found = 0, dict[int, str]()
    for index in range(len(text.tokens)):
        word = text.word(index)
        depth -= word == ")"
        if depth == 0 and word:
            found[index] = word
        depth += word == "("
    return found
