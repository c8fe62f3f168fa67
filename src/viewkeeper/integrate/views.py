"""The views that an integrator keeps: select-project-join over relations of several sources (Section 2).

    V = π_output(σ_where(R₁ ⋈ … ⋈ Rₙ))

An output without keys counts how often a row can be derived; with the keys of all relations, once each.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import DefinitionError
from viewkeeper.integrate.bags import Bag

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of a source. Columns that a view sets equal have the same name in both tables."""

    name: str
    columns: tuple[str, ...]
    source: str
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one column; as in SQL, it does not hold for NULL."""

    column: str
    operator: str
    value: Hashable

    def holds(self, value: Hashable) -> bool:
        return value is not None and _OPERATORS[self.operator](value, self.value)

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.value}"


@dataclass(frozen=True, slots=True)
class JoinView:
    """The view, refused if there is no way from one relation to every other."""

    relations: tuple[Relation, ...]
    output: tuple[str, ...]
    where: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        names = [relation.name for relation in self.relations]
        _require(len(set(names)) == len(names) > 0, f"the relations {names} are not distinct")
        known = {column for relation in self.relations for column in relation.columns}
        for column in (*self.output, *(each.column for each in self.where)):
            _require(column in known, f"no relation has a column {column}")
        for relation in self.relations:
            _require(set(relation.key) <= set(relation.columns), f"{relation.name} lacks columns of its key")
        apart = self._apart()
        if apart:
            raise DefinitionError(
                f"{apart} shares no column with the relations before it: there is no key to send to it",
                code="VK-SWEEP-NO-KEY",
                hint="Join it on a column, or mirror it.",
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """Each once, in the order of their relations."""
        return tuple(dict.fromkeys(relation.source for relation in self.relations))

    @property
    def is_keyed(self) -> bool:
        """Whether every relation has a key, and the output has them all."""
        return all(relation.key and set(relation.key) <= set(self.output) for relation in self.relations)

    def finish(self, joined: Bag) -> Bag:
        """σ and π, when all relations are joined."""
        for condition in self.where:
            joined = joined.where(condition.column, condition.holds)
        return joined.project(self.output)

    def _apart(self) -> str | None:
        """A relation that no chain of shared columns leads to."""
        reached = set(self.relations[0].columns)
        waiting = list(self.relations[1:])
        while waiting:
            near = [relation for relation in waiting if not reached.isdisjoint(relation.columns)]
            if not near:
                return waiting[0].name
            reached.update(column for relation in near for column in relation.columns)
            waiting = [relation for relation in waiting if relation not in near]
        return None


def _require(condition: bool, message: str) -> None:  # noqa: FBT001  (reads like an assertion)
    if not condition:
        raise DefinitionError(message)
