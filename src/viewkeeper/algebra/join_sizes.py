"""How large the deltas of a join's parts are, roughly: what its delta expressions are priced by.

Lee et al. (2001, Section 4) multiply the sizes of the inputs and the selectivity of each condition:

    |⋈P|    = s(P) · Π_{R∈P} |R|
    |Δ(⋈P)| = s(P) · Σᵢ |R₁′| … |Rᵢ₋₁′| |ΔRᵢ| |Rᵢ₊₁| … |Rₙ|

(As printed, the formula counts the selectivities within a part twice.) Columns that are set equal form a
class. Of the d₁ ≤ … ≤ dₖ distinct values that its columns have in the inputs of P, the join keeps
1 / (d₂ · … · dₖ). Where nobody knows how many there are, the smallest table of the class is taken to have the
column as a key. Of a column with d values, 1 / d are equal to a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from viewkeeper.algebra.expressions import places
from viewkeeper.algebra.scalars import Column, Scalar

UNKNOWN_ROWS = 1_000_000
"""Of a table without statistics. A wrong guess leads to a worse expression, never to a wrong result."""

_MOST, _LEAST = 1e300, 1e-300
"""No product over many relations is larger or smaller, so that none overflows."""
_MOST_ROWS = 1e100
"""Of a result: enough to be compared with others, and to calculate with."""

_ANY_CONDITION = 1 / 3
"""What passes a condition of which nothing is known."""

_EQUALS = re.compile(r"\s*(=|==|<=>)\s*\Z")
_CONSTANT = r"(?:-?\d[\w.]*|(?:DATE|TIMESTAMP)?\s*'(?:[^'\\]|\\.|'')*')"
_EQUALS_CONSTANT = re.compile(rf"\s*(=|==|<=>)\s*{_CONSTANT}\s*\Z", re.IGNORECASE)
_CONSTANT_EQUALS = re.compile(rf"\s*{_CONSTANT}\s*(=|==|<=>)\s*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class JoinInput:
    """One relation of a join: its name and columns, its rows before and after, those of its delta (``None``
    when it did not change), what is known of the distinct values of its columns, and the bytes of a row; and
    how many rows are in the files that its conditions leave to be read, if that is known."""

    name: str
    columns: frozenset[str]
    old: float
    new: float
    delta: float | None
    distinct: Mapping[str, float] = field(default_factory=dict)
    width: float = 1.0
    read: float | None = None


@dataclass(frozen=True)
class _Condition:
    """A condition that is no equality: the inputs that it needs, as a bit mask."""

    inputs: int
    selectivity: float


@dataclass(frozen=True)
class JoinSizes:
    """The sizes of a join's inputs and of the deltas of any of its parts."""

    inputs: tuple[JoinInput, ...]
    conjuncts: tuple[Scalar, ...]
    corrections: Mapping[str, float] = field(default_factory=dict)
    """By which factor the estimate for some inputs, by their names, was wrong before."""
    _known: dict[int, float] = field(default_factory=dict)

    @cached_property
    def changed(self) -> tuple[bool, ...]:
        return tuple(each.delta is not None for each in self.inputs)

    @cached_property
    def old(self) -> tuple[float, ...]:
        return tuple(each.old for each in self.inputs)

    @cached_property
    def new(self) -> tuple[float, ...]:
        return tuple(each.new for each in self.inputs)

    def name(self, relations: int) -> str:
        """What some of the inputs are called together."""
        return " ⋈ ".join(self.inputs[place].name for place in places(relations))

    def delta(self, relations: int) -> float:
        """|Δ(⋈P)|, corrected by what is known of it."""
        factor = self.corrections.get(self.name(relations), 1.0) if self.corrections else 1.0
        return self.uncorrected(relations) * factor

    def uncorrected(self, relations: int) -> float:
        """|Δ(⋈P)| by the formula; one input after the other, for Δ(A ⋈ B) = ΔA ⋈ B ⊎ A′ ⋈ ΔB."""
        found = self._known.get(relations)
        if found is None:
            changed, whole = 0.0, 1.0
            for place in places(relations):
                here = self.inputs[place]
                changed = min(_MOST, changed * here.old + whole * (here.delta or 0.0))
                whole = min(_MOST, whole * here.new)
            found = min(_MOST_ROWS, changed * self.selectivity(relations))
            self._known[relations] = found
        return found

    def part(self, relations: int) -> JoinSizes:
        """The sizes of some of the inputs alone."""
        inputs = tuple(self.inputs[place] for place in places(relations))
        names = frozenset[str]().union(*(each.columns for each in inputs))
        inside = tuple(each for each in self.conjuncts if each.columns <= names)
        return JoinSizes(inputs, inside, self.corrections)

    def rows(self, relations: int) -> float:
        """|⋈P|, in the new state."""
        whole = 1.0
        for place in places(relations):
            whole = min(_MOST, whole * self.inputs[place].new)
        return min(_MOST_ROWS, whole * self.selectivity(relations))

    def growth(self, relations: int, reached: int) -> float:
        """By how much the rows of some inputs become more when they are joined with others, too: at least not
        fewer."""
        whole = 1.0
        for place in places(reached & ~relations):
            whole = min(_MOST, whole * self.inputs[place].new)
        return max(1.0, whole * self.selectivity(reached) / self.selectivity(relations))

    def selectivity(self, relations: int) -> float:
        """s(P): the share of the product that passes the conditions within P."""
        share = 1.0
        for values in self._classes:
            here = sorted(values[place] for place in places(relations) if place in values)
            for distinct in here[1:]:
                share /= distinct
        for condition in self._conditions:
            if condition.inputs & relations == condition.inputs:
                share *= condition.selectivity
        return max(share, _LEAST)

    @cached_property
    def _owner(self) -> dict[str, int]:
        return {name: at for at, each in enumerate(self.inputs) for name in each.columns}

    @cached_property
    def _classes(self) -> list[dict[int, float]]:
        """The classes of equal columns, each with the distinct values that its columns have in each input."""
        classes: list[set[str]] = []
        for pair in equalities(self.conjuncts):
            touched = [each for each in classes if not each.isdisjoint(pair)]
            classes = [each for each in classes if each.isdisjoint(pair)]
            classes.append(set(pair).union(*touched))
        return [self._distinct(each) for each in classes]

    def _distinct(self, columns: set[str]) -> dict[int, float]:
        guess = min(max(1.0, self.inputs[self._owner[name]].new) for name in columns)
        values: dict[int, float] = {}
        for name in columns:
            place = self._owner[name]
            known = self.inputs[place].distinct.get(name, guess)
            values[place] = max(values.get(place, 1.0), known)
        return values

    @cached_property
    def _conditions(self) -> list[_Condition]:
        found = []
        for conjunct in self.conjuncts:
            if equal_columns(conjunct) is None:
                needed = {self._owner[name] for name in conjunct.columns}
                found.append(_Condition(sum(1 << place for place in needed), self._share(conjunct)))
        return found

    def _share(self, conjunct: Scalar) -> float:
        """What passes such a condition."""
        name = constant_column(conjunct)
        values = None if name is None else self.inputs[self._owner[name]].distinct.get(name)
        return _ANY_CONDITION if values is None else 1 / max(1.0, values)


def equalities(conjuncts: Iterable[Scalar]) -> Iterator[tuple[str, str]]:
    """The pairs of columns that these conditions set equal."""
    return filter(None, map(equal_columns, conjuncts))


def equal_columns(conjunct: Scalar) -> tuple[str, str] | None:
    """The two columns that a condition sets equal, if that is all it does."""
    match conjunct.parts:
        case (Column(one), str(word), Column(two)) if _EQUALS.match(word):
            return one, two
        case _:
            return None


def constant_column(conjunct: Scalar) -> str | None:
    """The column that a condition sets equal to a constant, if that is all it does.

    >>> [constant_column(Scalar((Column("day"), text))) for text in (" = DATE'2026-01-01'", " = 1 + 1")]
    ['day', None]
    """
    match conjunct.parts:
        case (Column(name), str(word)) if _EQUALS_CONSTANT.match(word):
            return name
        case (str(word), Column(name)) if _CONSTANT_EQUALS.match(word):
            return name
        case _:
            return None


def is_strict(conjunct: Scalar) -> bool:
    """Whether it sets two columns equal, and is not true where one of them is NULL."""
    match conjunct.parts:
        case (Column(), str(word), Column()):
            return word.strip() in ("=", "==")
        case _:
            return False
