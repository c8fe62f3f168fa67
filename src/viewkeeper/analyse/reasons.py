"""Why a query is kept by full recompute: the stable codes, one sentence each, and what would help."""

from __future__ import annotations

from enum import Enum

from viewkeeper.analyse.analysis import Reason
from viewkeeper.errors import Position


class ReasonCode(Enum):
    """The stable codes; none is ever renamed or given another meaning."""

    SUBQUERY_EXPRESSION = "SUBQUERY_EXPRESSION"
    WINDOW_FUNCTION = "WINDOW_FUNCTION"
    LIMIT = "LIMIT"
    AGGREGATE_FUNCTION = "AGGREGATE_FUNCTION"
    GROUPING_EXPRESSION = "GROUPING_EXPRESSION"
    TIME_WINDOW = "TIME_WINDOW"
    LATERAL_VIEW = "LATERAL_VIEW"
    PIVOT = "PIVOT"
    TABLE_FUNCTION = "TABLE_FUNCTION"
    RECURSIVE_CTE = "RECURSIVE_CTE"
    USER_FUNCTION = "USER_FUNCTION"
    MAP_COLUMN = "MAP_COLUMN"
    COLLATION = "COLLATION"
    INEXACT_INNER_AGGREGATE = "INEXACT_INNER_AGGREGATE"
    STAR_ARGUMENT = "STAR_ARGUMENT"
    STRUCT_STAR = "STRUCT_STAR"
    NOT_PARSED = "NOT_PARSED"
    NOT_UNDERSTOOD = "NOT_UNDERSTOOD"
    REGENERATED_DIFFERS = "REGENERATED_DIFFERS"

    @property
    def told(self) -> tuple[str, str | None]:
        """The sentence, with … for what it is about, and what would help."""
        sentence, remedy = _WORDS[self]
        return sentence.format(*"…" * 3), remedy

    def reason(self, *values: str, at: Position | None = None) -> Reason:
        """The reason in words, about these things, at this place."""
        sentence, remedy = _WORDS[self]
        sentence = sentence.format(*values)
        return Reason(self.value, f"{sentence}; {remedy}" if remedy else sentence, at)


_WORDS: dict[ReasonCode, tuple[str, str | None]] = {
    ReasonCode.INEXACT_INNER_AGGREGATE: (
        "{0} of {1} values inside the query cannot be computed again bit by bit",
        "sums of decimals can, deviations of whole numbers and short decimals, and a view of its own",
    ),
    ReasonCode.SUBQUERY_EXPRESSION: (
        "this subquery inside an expression is not kept incrementally",
        "a join with the subquery in FROM is",
    ),
    ReasonCode.WINDOW_FUNCTION: (
        "the window function {0} is not kept incrementally",
        "its answer is approximate or not a matter of the rows alone",
    ),
    ReasonCode.LIMIT: ("{0} that is not a number cannot be kept incrementally", "write the number itself"),
    ReasonCode.AGGREGATE_FUNCTION: (
        "the aggregate {0} is not kept incrementally",
        "its answer is approximate or not a matter of the rows alone",
    ),
    ReasonCode.GROUPING_EXPRESSION: (
        "{0} is neither a grouping expression nor inside an aggregate, as far as could be seen",
        "write it letter for letter as it stands in GROUP BY",
    ),
    ReasonCode.TIME_WINDOW: (
        "the time window {0} is not kept incrementally",
        "GROUP BY window(…) of a column is, with durations of weeks to microseconds, at most 100 overlapping",
    ),
    ReasonCode.LATERAL_VIEW: (
        "{0} is not kept incrementally",
        "with explode, posexplode, inline, stack or json_tuple and names for their columns it is",
    ),
    ReasonCode.PIVOT: ("{0} is not kept incrementally yet", None),
    ReasonCode.TABLE_FUNCTION: ("the table function {0} is not kept incrementally yet", None),
    ReasonCode.RECURSIVE_CTE: ("a recursive WITH is not kept incrementally yet", None),
    ReasonCode.USER_FUNCTION: (
        "{0} is not one of Spark's built-in functions, so nobody knows whether it is deterministic",
        None,
    ),
    ReasonCode.MAP_COLUMN: (
        "column {0} is of type {1}, which Spark cannot compare",
        "to_json(…) or map_entries(…) of it can be compared",
    ),
    ReasonCode.COLLATION: (
        "strings under a collation are equal without being the same, and cancel each other out",
        "lower(…) or upper(…) of them are the same",
    ),
    ReasonCode.STAR_ARGUMENT: (
        "a star as an argument of {0} is not kept incrementally yet",
        "name the columns",
    ),
    ReasonCode.STRUCT_STAR: (
        "{0} takes a struct apart, which is not kept incrementally yet",
        "name the fields",
    ),
    ReasonCode.NOT_PARSED: (
        "the query is fine for Spark, but its structure could not be read here: {0}",
        None,
    ),
    ReasonCode.NOT_UNDERSTOOD: ("{0} could not be read with certainty", None),
    ReasonCode.REGENERATED_DIFFERS: (
        "the SQL made from the query's structure has another meaning: {0}",
        None,
    ),
}
"""Of each code the sentence, and what would help if anything does."""


class NotIncremental(Exception):
    """Raised while a query is read, as soon as something is met that the algebra has no word for."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
