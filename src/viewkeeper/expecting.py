"""Expectations in a definition: read, and part of the query where rows that break them are dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from viewkeeper.analyse.analysis import Analysis
from viewkeeper.analyse.parsing import tokenize
from viewkeeper.analyse.tidy import prune
from viewkeeper.define.definitions import Expectation, OnViolation, ViewDefinition
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.quoting import quote, show_path


def with_expectations(
    definition: ViewDefinition, analysis: Analysis, read: Callable[[str], Analysis]
) -> Analysis:
    """The analysis of the query without the rows that break an expectation, where those are dropped."""
    read = cache(read)  # the query under one expectation alone may be the one without its rows
    for each in definition.expectations:
        _refuse_subquery(definition, each)
        _read(definition, each, read, _where(definition, each.holds))
    dropping = [each for each in definition.expectations if each.on_violation is OnViolation.DROP_ROW]
    if not dropping:
        return analysis
    kept = read(_where(definition, " AND ".join(each.holds for each in dropping)))
    dropped = []
    for each in dropping:
        broken = read(_where(definition, f"NOT {each.holds}"))
        if broken.relation is not None:
            dropped.append((each.name, prune(broken.relation, ())))
    return replace(kept, dropped=tuple(dropped))


def _refuse_subquery(definition: ViewDefinition, expectation: Expectation) -> None:
    """Other tables would be read as they are when it is looked at, not as they were."""
    text = tokenize(expectation.predicate)
    if any(text.word(index) in ("SELECT", "TABLE") for index in range(len(text.tokens))):
        raise _refusal(definition, expectation, "it reads other rows than the one it is about")


def _refusal(definition: ViewDefinition, expectation: Expectation, why: str) -> DefinitionError:
    return DefinitionError(
        f"view {show_path(definition.name)}, expectation {expectation.name}: {why}",
        code="VK-EXPECTATION",
        hint="It is a condition on the columns of the view, and a matter of the row alone.",
    )


def _where(definition: ViewDefinition, condition: str) -> str:
    """The query under a condition on the view's own columns."""
    names = ", ".join(quote(column.name) for column in definition.columns)
    alias = f" AS _vk_rows({names})" if names else ""
    return f"SELECT * FROM (\n{definition.query}\n){alias} WHERE {condition}"


def _read(
    definition: ViewDefinition, expectation: Expectation, read: Callable[[str], Analysis], query: str
) -> None:
    try:
        read(query)
    except DefinitionError as error:
        raise _refusal(definition, expectation, error.message) from error
