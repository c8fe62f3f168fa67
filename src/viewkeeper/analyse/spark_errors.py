"""What Spark says about a query that it refuses, in our words and with our codes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from viewkeeper.errors import DefinitionError, Position, position_at

_NEAR_NAME = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")


class QueryContext(Protocol):
    """The piece of the query that an error is about."""

    def startIndex(self) -> int: ...  # noqa: N802
    def stopIndex(self) -> int: ...  # noqa: N802


@runtime_checkable
class SparkError(Protocol):
    """What we use of Spark's exceptions; classic and Connect both have it."""

    def getCondition(self) -> str | None: ...  # noqa: N802
    def getMessageParameters(self) -> Mapping[str, str] | None: ...  # noqa: N802
    def getQueryContext(self) -> Sequence[QueryContext]: ...  # noqa: N802


def translate_spark_error(error: SparkError, query: str) -> DefinitionError:
    """The refusal that belongs to Spark's error about this query."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    where = _position(error, query)
    name = _shown(parameters.get("objectName") or parameters.get("relationName") or parameters.get("name"))
    near = _near_names(parameters.get("proposal", ""))
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_USING_COLUMN")):
        near = near or _near_names(parameters.get("suggestion", ""))
        message = f"There is no column {name or _shown(parameters.get('colName'))}"
        return _error("VK-UNKNOWN-COLUMN", message, where, _did_you_mean(near, "column"))
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        hint = "Check the spelling; a name without catalog or namespace is looked up in the current one."
        return _error("VK-UNKNOWN-TABLE", f"There is no table or view {name}", where, hint)
    if condition.startswith(("AMBIGUOUS_REFERENCE", "AMBIGUOUS_COLUMN")):
        choices = ", ".join(_near_names(parameters.get("referenceNames", "")))
        hint = f"Say which one: {choices}." if choices else "Put the table's name or alias before it."
        return _error("VK-AMBIGUOUS-COLUMN", f"Column {name} could mean more than one", where, hint)
    if condition.startswith("PARSE") or "SYNTAX" in condition:
        return _error("VK-SYNTAX", _first_sentence(error), where or _position_in_message(error, query), None)
    if condition.startswith("UNRESOLVED_ROUTINE"):
        routine = _shown(parameters.get("routineName"))
        return _error("VK-UNKNOWN-FUNCTION", f"There is no function {routine}", where, None)
    return _error("VK-INVALID-QUERY", _first_sentence(error), where, None)


def _error(code: str, message: str, where: Position | None, hint: str | None) -> DefinitionError:
    return DefinitionError(message, code=code, position=where, hint=hint)


def _position(error: SparkError, query: str) -> Position | None:
    contexts = list(error.getQueryContext() or ())
    if not contexts:
        return None
    try:
        start, stop = contexts[0].startIndex(), contexts[0].stopIndex()
    except Exception:  # a DataFrame context has no offsets, and says so by raising
        return None
    return position_at(query, start, stop + 1) if 0 <= start <= len(query) else None


def _position_in_message(error: SparkError, query: str) -> Position | None:
    found = re.search(r"\(line (\d+), pos (\d+)\)", str(error))
    if not found:
        return None
    line, column = int(found[1]), int(found[2])
    lines = query.split("\n")
    start = sum(len(text) + 1 for text in lines[: line - 1]) + column
    return position_at(query, min(start, len(query)))


def _first_sentence(error: SparkError) -> str:
    text = str(error).strip()
    text = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text)
    line = text.splitlines()[0] if text else "Spark refused the query"
    return re.sub(r"\s*SQLSTATE: \w+", "", line).strip()


def _shown(name: str | None) -> str:
    if not name:
        return ""
    return re.sub(r"`(\w+)`", r"\1", name)


def _near_names(proposal: str) -> list[str]:
    return [_shown(found) for found in _NEAR_NAME.findall(proposal)]


def _did_you_mean(near: Sequence[str], what: str) -> str | None:
    if not near:
        return None
    return f"Did you mean one of these {what}s: {', '.join(near)}?"
