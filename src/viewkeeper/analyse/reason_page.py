"""docs/reasons.md, made from the codes themselves: ``python -m viewkeeper.analyse.reason_page``."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.analyse.reasons import ReasonCode

REFUSALS: Mapping[str, tuple[str, str]] = {
    "VK-AMBIGUOUS-COLUMN": ("a name may mean columns of several tables", "write the table before the column"),
    "VK-COLUMN-COUNT": (
        "the view names more or fewer columns than its query has",
        "name every column of the query, in order, or none",
    ),
    "VK-CUBE": (
        "a data cube is over something else than one grouped SELECT",
        "write the query as SELECT … FROM … GROUP BY with aggregates that add up",
    ),
    "VK-DUPLICATE-COLUMN": ("two columns of the view have one name", "give one of them another name with AS"),
    "VK-FORBIDDEN-FUNCTION": ("a function of the query runs any code", "use one of Spark's SQL functions"),
    "VK-INVALID-QUERY": ("Spark refuses the query", "the message is Spark's"),
    "VK-NONDETERMINISTIC": (
        "the answer is not a matter of the rows alone: chance, the user, the order in which rows are read",
        "store the value when the rows are written; use min_by for first, a hash of the key for a sample",
    ),
    "VK-NOT-A-QUERY": ("the text is no SELECT, or writes", "a view is defined by exactly one SELECT"),
    "VK-NOT-UNDERSTOOD": (
        "it is not clear which tables the query reads",
        "name every table plainly after FROM or JOIN, with an alias of its own",
    ),
    "VK-PATH-READ": ("the query reads files by their path", "make the files a table, or declare a source"),
    "VK-PINNED-TABLE": ("a table is read at a version of its own choice", "a view always follows its tables"),
    "VK-RESERVED-NAME": (
        "a column begins with _vk_",
        "that is kept for hidden columns: give it another name",
    ),
    "VK-SYNTAX": ("the text cannot be read", "the message says where"),
    "VK-TIME-ZONE": (
        "the clock is read in a time zone that is not known here",
        "set spark.sql.session.timeZone to a region, or to UTC",
    ),
    "VK-TIMING": (
        "a target lag, a schedule or a time zone cannot be understood",
        "TARGET LAG '5 minutes', SCHEDULE CRON '0 6 * * 1-5', AT TIME ZONE 'Europe/Berlin'",
    ),
    "VK-UNKNOWN-COLUMN": ("there is no such column", "the message names the nearest ones"),
    "VK-UNKNOWN-FUNCTION": ("there is no such function", "a view may use Spark's and persistent functions"),
    "VK-UNKNOWN-TABLE": ("there is no such table or view", "temporary views last no longer than a session"),
}
"""The codes of definitions that are refused: the cause, and what helps."""

_HEAD = """\
# Reasons

Made from the code by `python -m viewkeeper.analyse.reason_page`; one test keeps it up to date, others provoke
each code.

## Kept by full recompute

A query that Spark can run, and that viewkeeper has no rule for, is a view all the same: it is recomputed,
and `explain`, `status` and the result of a refresh tell why, with one of these codes. Under `REFRESH POLICY
incremental strict` that is an error.

| code | what it says | what would help |
|---|---|---|
"""
_REFUSED = """
## Refused

These definitions are an error, and nothing is changed.

| code | cause | what helps |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    kept = [(code.value, *code.told) for code in ReasonCode]
    rows = [f"| `{code}` | {sentence} | {remedy or ''} |" for code, sentence, remedy in sorted(kept)]
    refused = [f"| `{code}` | {cause} | {remedy} |" for code, (cause, remedy) in sorted(REFUSALS.items())]
    return _HEAD + "\n".join(rows) + "\n" + _REFUSED + "\n".join(refused) + "\n"


if __name__ == "__main__":
    print(page(), end="")
