"""What no view may be: refused on the tokens alone, before Spark sees the text; but for words that are dates
only where Spark takes them for some.

``spark.sql`` runs commands at once, so whatever is not a query must be stopped here, and so must whatever
reads files by their path or calls into the JVM. Working on tokens, these rules also hold for queries whose
structure cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from sqlglot.tokenizer_core import TokenType

from viewkeeper.analyse.functions import (
    CLOCK_WITHOUT_ARGUMENTS,
    FORBIDDEN,
    NONDETERMINISTIC,
    ORDER_DEPENDENT,
    RANDOM_UNLESS_SEEDED,
    WITHOUT_PARENTHESES,
)
from viewkeeper.analyse.parsing import SqlText
from viewkeeper.define.clock import FUNCTIONS
from viewkeeper.errors import DefinitionError

_QUERY_STARTS = {"SELECT", "WITH", "FROM", "TABLE", "VALUES", "("}
_STATEMENT_STARTS = {
    *("ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CALL", "CLEAR", "COMMENT", "COMMIT", "CREATE", "DECLARE"),
    *("DELETE", "DESC", "DESCRIBE", "DFS", "DROP", "EXECUTE", "EXPLAIN", "EXPORT", "GRANT", "IMPORT"),
    *("INSERT", "LIST", "LOAD", "LOCK", "MAP", "MERGE", "MSCK", "OPTIMIZE", "REDUCE", "REFRESH", "REPAIR"),
    *("REPLACE", "RESET", "REVOKE", "ROLLBACK", "SET", "SHOW", "START", "TRUNCATE", "UNCACHE", "UNLOCK"),
    *("UNSET", "UPDATE", "USE", "VACUUM"),
}
_DML = {"INSERT": {"INTO", "OVERWRITE"}, "DELETE": {"FROM"}, "MERGE": {"INTO", "WITH"}}
PATH_FORMATS = {
    *("avro", "binaryfile", "csv", "delta", "iceberg", "image", "jdbc", "json", "kafka", "libsvm", "orc"),
    *("parquet", "socket", "text", "xml"),
}
_FILE_FUNCTIONS = {"read_files", "cloud_files", "read_kafka", "read_state", "files", "csv", "parquet", "json"}
_SPECIAL_DATES = {"now", "today", "yesterday", "tomorrow"}
_SPECIAL_DATE = re.compile(rf"\s*({'|'.join(sorted(_SPECIAL_DATES))})(?![^\W\d])", re.I)
"""A time zone may follow: 'today Europe/Berlin'."""
_CAST_TO_DATE = re.compile(
    rf"\bcast\(\s*({'|'.join(sorted(_SPECIAL_DATES))})(?![^\W\d])[^()#]*? as (?:date|timestamp)", re.I
)
_TIME_OF_DAY = re.compile(r"\s*T?\d{1,2}:\d{1,2}(?![-\d])", re.I)
"""Without a date, it is a time of today."""
_CAST_TIME = re.compile(r"\bcast\(\s*(T?\d{1,2}:\d{1,2}[^()#]*?) as timestamp", re.I)
_FILE_COLUMNS = {"_file", "_pos", "_partition", "_spec_id", "_deleted", "_metadata"}
_BARE = re.compile(r"\b(current_user|current_date|current_timestamp|current_time|localtimestamp)\(")
_DATE_TYPES = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
_DATE_FUNCTIONS = {
    *("CAST", "TRY_CAST", "TO_DATE", "TRY_TO_DATE", "TO_TIMESTAMP", "TRY_TO_TIMESTAMP"),
    *("TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_NTZ"),
}
_ONE_SELECT = "A view is defined by exactly one SELECT (or WITH … SELECT)."


def refuse(text: SqlText) -> None:
    """Raise a ``DefinitionError`` if the text may not define a view."""
    for rule in _RULES:
        rule(text)


def refuse_writes(text: SqlText) -> None:
    """Raise a ``DefinitionError`` if the text is more than a query."""
    _is_one_query(text)
    _has_no_side_effect(text)


def _is_one_query(text: SqlText) -> None:
    if not text.tokens:
        raise DefinitionError("The query is empty", code="VK-NOT-A-QUERY", hint=_ONE_SELECT)
    for index, token in enumerate(text.tokens):
        if token.token_type == TokenType.SEMICOLON:
            raise _not_a_query(text, index, "There is more than one statement")
    first = next(iter(text.word(0).split()), "")
    if first in _STATEMENT_STARTS:
        raise _not_a_query(text, 0, f"{first} is a statement, not a query")
    if first not in _QUERY_STARTS:
        found = text.raw(0, 1)
        raise DefinitionError(
            f"Expected SELECT or WITH, found {found}",
            code="VK-SYNTAX",
            hint=_ONE_SELECT,
            position=text.position(0),
        )


def _has_no_side_effect(text: SqlText) -> None:
    for index in range(len(text.tokens)):
        word, following = text.word(index), text.word(index + 1)
        if following in _DML.get(word, ()) and text.word(index - 1) != ".":
            raise _not_a_query(text, index, f"{word} {following} writes to a table")
        if word == "UPDATE" and text.word(index - 1) == ")":
            raise _not_a_query(text, index, "UPDATE writes to a table")
        if word == "USING" and _is_string(text, index + 1):
            raise _not_a_query(text, index, "TRANSFORM … USING runs a script")
        if word == "INTO" and text.word(index - 1) not in ("", "."):
            raise _not_a_query(text, index, "SELECT … INTO writes to a table")


def _functions_are_allowed(text: SqlText) -> None:
    for index, name in calls(text):
        where = text.position(index)
        if name in FORBIDDEN:
            raise DefinitionError(
                f"The function {name} may not be used in a view: it runs any code",
                code="VK-FORBIDDEN-FUNCTION",
                hint="Use one of Spark's SQL functions instead.",
                position=where,
            )
        hidden_clock = name in FUNCTIONS and text.word(index - 1) == "."
        if hidden_clock or name in NONDETERMINISTIC or _is_called_without(text, index, name):
            raise nondeterministic(text, index, name)
        if name in ORDER_DEPENDENT and not _is_windowed(text, index + 1):
            raise DefinitionError(
                f"The aggregate {name} takes the value of whichever row comes first",
                code="VK-NONDETERMINISTIC",
                hint="Use min, max, min_by or max_by, which do not depend on the order of the rows.",
                position=where,
            )


def _has_no_special_dates(text: SqlText) -> None:
    """``DATE 'today'`` is the clock in a disguise."""
    for index in _special_dates(text):
        before = index - 1
        while text.word(before) == "(":
            before -= 1
        called = before < index - 1 and text.word(before) in (*_DATE_TYPES, *_DATE_FUNCTIONS)
        if _TIME_OF_DAY.match(text.tokens[index].text):  # with a format there is no day in it
            called = called and text.word(before) != "CAST" and text.word(index + 1) == ")"
        if called or text.word(index - 1) in _DATE_TYPES:
            raise _special_date(text, index)


def refuse_special_dates(text: SqlText, explained: Callable[[], str]) -> None:
    """So is ``'today'`` beside a date (``day >= 'today'``, ``coalesce(day, 'today')``), and a time without a
    day beside a timestamp (``at > '12:00'``); beside a text they are just words. Where one is cast, Spark's
    plan says so: there a column would have a number (``today#7``)."""
    found = list(_special_dates(text))
    plan = explained() if found else ""
    cast = _CAST_TO_DATE.search(plan) or _CAST_TIME.search(plan)
    if cast is not None:
        named = (at for at in found if text.tokens[at].text.strip().lower().startswith(cast[1].lower()))
        raise _special_date(text, next(named, found[0]))


def _special_dates(text: SqlText) -> Iterator[int]:
    for index, token in enumerate(text.tokens):
        if _is_string(text, index) and (_SPECIAL_DATE.match(token.text) or _TIME_OF_DAY.match(token.text)):
            yield index


def _special_date(text: SqlText, index: int) -> DefinitionError:
    return DefinitionError(
        f"'{text.tokens[index].text}' means another day each time",
        code="VK-NONDETERMINISTIC",
        hint="Write current_date or current_timestamp(), which the epoch pins.",
        position=text.position(index),
    )


def refuse_bare_functions(text: SqlText, explained: Callable[[], str]) -> None:
    """``current_user`` and the like need no parentheses, and may be columns: in a query that cannot be read
    Spark's plan tells, which calls them ``current_user()``."""
    bare = [
        index
        for index, token in enumerate(text.tokens)
        if token.text.lower() in WITHOUT_PARENTHESES and text.is_name(index) and text.word(index + 1) != "("
    ]
    called = _BARE.search(explained()) if bare else None
    if called is not None:
        raise nondeterministic(text, bare[0], called[1])


def refuse_file_columns(text: SqlText, columns: Iterable[str]) -> None:
    """Where a row is stored is no matter of the row: its file is another one after a compaction. Iceberg and
    Delta show it in columns that the table itself does not have."""
    own = {column.lower() for column in columns}
    own |= {token.text.lower() for at, token in enumerate(text.tokens) if text.word(at - 1) == "AS"}
    for index, token in enumerate(text.tokens):
        name = token.text.lower()
        if name in _FILE_COLUMNS - own and text.is_name(index):
            raise DefinitionError(
                f"The column {name} tells where a row is stored, which changes when files are compacted",
                code="VK-NONDETERMINISTIC",
                hint="Store what you need of it in a column when the rows are written.",
                position=text.position(index),
            )


def _comments_end_with_their_line(text: SqlText) -> None:
    """Behind a backslash Spark goes on with the comment in the next line; nobody who reads it would."""
    for index, token in enumerate(text.tokens):
        if any(comment.endswith("\\") for comment in token.comments):
            raise DefinitionError(
                "A comment ends with a backslash, behind which the next line belongs to it",
                code="VK-SYNTAX",
                hint="End the comment with something else.",
                position=text.position(index),
            )


def _names_are_written_out(text: SqlText) -> None:
    for index, name in calls(text):
        if name == "identifier":
            raise DefinitionError(
                "IDENTIFIER(…) hides which table, column or function is meant",
                code="VK-NOT-UNDERSTOOD",
                hint="Write the name itself.",
                position=text.position(index),
            )


def _is_not_sampled(text: SqlText) -> None:
    for index in range(len(text.tokens)):
        if text.word(index) == "TABLESAMPLE":
            raise DefinitionError(
                "TABLESAMPLE picks other rows each time",
                code="VK-NONDETERMINISTIC",
                hint="Pick rows by their values, e.g. WHERE pmod(hash(key), 100) = 0.",
                position=text.position(index),
            )


def _is_not_pinned(text: SqlText) -> None:
    for index in range(len(text.tokens)):
        travels = text.word(index) in ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
        if travels and text.word(index + 1) == "AS" and text.word(index + 2) == "OF":
            raise DefinitionError(
                "The query reads a table at a version of its own choice",
                code="VK-PINNED-TABLE",
                hint="Leave the version out: a view always follows its tables.",
                position=text.position(index, index + 2),
            )


def _reads_no_path(text: SqlText) -> None:
    tokens = text.tokens
    for index in range(1, len(tokens) - 1):
        quoted = tokens[index + 1].token_type == TokenType.IDENTIFIER
        is_format = tokens[index - 1].text.lower() in PATH_FORMATS
        is_path = any(sign in tokens[index + 1].text for sign in "/\\:")
        if tokens[index].token_type == TokenType.DOT and quoted and is_format and is_path:
            raise path_read(text, index - 1, index + 1)
    for index, name in calls(text):
        if name in _FILE_FUNCTIONS and text.word(index - 1) in ("FROM", "JOIN", ",", "LATERAL", "TABLE"):
            raise path_read(text, index, index)


def calls(text: SqlText) -> Iterator[tuple[int, str]]:
    """Every name that an opening parenthesis follows: the index of its token and the name in lower case."""
    for index, token in enumerate(text.tokens):
        if text.is_name(index) and text.word(index + 1) == "(" and text.word(index - 1) not in ("AS", "WITH"):
            yield index, token.text.lower()


def nondeterministic(text: SqlText, index: int, name: str) -> DefinitionError:
    """The refusal of a function whose answer is not a matter of the rows alone."""
    return DefinitionError(
        f"The function {name} gives another answer each time, so the view would never be right",
        code="VK-NONDETERMINISTIC",
        hint="Store the value in a table when the rows are written, and read it from there.",
        position=text.position(index),
    )


def closing(text: SqlText, opening: int) -> int:
    """The index of the parenthesis that closes the one at ``opening``, or that of the last token."""
    depth = 0
    for index in range(opening, len(text.tokens)):
        depth += {"(": 1, ")": -1}.get(text.word(index), 0)
        if depth == 0:
            return index
    return len(text.tokens) - 1


def _is_called_without(text: SqlText, index: int, name: str) -> bool:
    """Whether an argument is missing that would make the function deterministic."""
    if name in CLOCK_WITHOUT_ARGUMENTS:
        return text.word(index + 2) == ")"
    if name in RANDOM_UNLESS_SEEDED:
        inside = range(index + 2, closing(text, index + 1))
        depths = accumulate({"(": 1, ")": -1}.get(text.word(at), 0) for at in inside)
        commas = sum(text.word(at) == "," and depth == 0 for at, depth in zip(inside, depths, strict=True))
        return commas < 4 and not any(text.tokens[at].text.upper() == "ECB" for at in inside)
    return False


def _is_windowed(text: SqlText, opening: int) -> bool:
    index = closing(text, opening) + 1
    if text.word(index) == "FILTER":
        index = closing(text, index + 1) + 1
    if text.word(index) in ("IGNORE", "RESPECT"):
        index += 2
    return text.word(index) == "OVER"


def _is_string(text: SqlText, index: int) -> bool:
    return index < len(text.tokens) and text.tokens[index].token_type in (
        TokenType.STRING,
        TokenType.RAW_STRING,
    )


def _not_a_query(text: SqlText, index: int, message: str) -> DefinitionError:
    return DefinitionError(message, code="VK-NOT-A-QUERY", hint=_ONE_SELECT, position=text.position(index))


def path_read(text: SqlText, first: int, last: int) -> DefinitionError:
    """The refusal of a table that is no table but files."""
    return DefinitionError(
        f"{text.raw(first, last + 1)} reads files by their path",
        code="VK-PATH-READ",
        hint="Make the files a table of a catalog, and read that.",
        position=text.position(first, last),
    )


_RULES: tuple[Callable[[SqlText], None], ...] = (
    _is_one_query,
    _has_no_side_effect,
    _comments_end_with_their_line,
    _functions_are_allowed,
    _has_no_special_dates,
    _names_are_written_out,
    _reads_no_path,
    _is_not_sampled,
    _is_not_pinned,
)
