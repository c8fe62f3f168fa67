"""Names: what a column reference means at some place of a query, as Spark resolves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Ambiguous(Exception):
    """A name that could mean more than one column here."""


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a part of the query offers: the name by which the query knows it (``None``: nobody
    gave it one) and the name, unique within the view, by which the algebra does."""

    name: str | None
    column: str


@dataclass(frozen=True, slots=True)
class Origin:
    """An item of FROM: the name before its columns, ``(catalog, namespace, table)`` or ``(alias,)``."""

    qualifier: tuple[str, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression can see: the items of FROM, and the columns that need no qualifier.

    The two differ under USING, where the right side's key can still be named with its table. ``outer`` is
    what stands around a subquery: a name that means nothing inside may mean something there."""

    origins: tuple[Origin, ...]
    visible: tuple[Output, ...]
    case_sensitive: bool = False
    outer: Scope | None = None

    def fold(self, name: str) -> str:
        """The name, so that equal ones are equal."""
        return name if self.case_sensitive else name.lower()

    def resolve(self, parts: Sequence[str]) -> tuple[Output, int] | None:
        """The column that a dotted name means, and how many of its parts say so; what is left over are
        fields of a struct. A qualifier is tried before a column, and a longer one before a shorter."""
        for length in range(len(parts) - 1, 0, -1):
            found = self._one(
                output
                for origin in self.qualified(parts[:length])
                for output in origin.outputs
                if self._same(output.name, parts[length])
            )
            if found:
                return found, length + 1
        found = self._one(output for output in self.visible if self._same(output.name, parts[0]))
        if found:
            return found, 1
        return None if self.outer is None else self.outer.resolve(parts)

    def qualified(self, qualifier: Sequence[str]) -> list[Origin]:
        """The items of FROM that this qualifier can mean."""
        wanted = tuple(self.fold(part) for part in qualifier)
        return [
            origin
            for origin in self.origins
            if tuple(self.fold(part) for part in origin.qualifier[-len(wanted) :]) == wanted
        ]

    def names(self) -> frozenset[str]:
        """Every name, folded, that may stand first in a reference."""
        outputs = (output for origin in self.origins for output in origin.outputs)
        columns = {self.fold(output.name) for output in (*outputs, *self.visible) if output.name}
        around = frozenset[str]() if self.outer is None else self.outer.names()
        return around | columns | {self.fold(part) for origin in self.origins for part in origin.qualifier}

    def _same(self, name: str | None, wanted: str) -> bool:
        return name is not None and self.fold(name) == self.fold(wanted)

    @staticmethod
    def _one(candidates: Iterable[Output]) -> Output | None:
        found = list(dict.fromkeys(candidates))
        if len({output.column for output in found}) > 1:
            raise Ambiguous
        return found[0] if found else None


class Names:
    """Hands out column names that are unique within one view."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def taken(self) -> frozenset[str]:
        """The names that are gone, to be given back with :meth:`forget`."""
        return frozenset(self._taken)

    def forget(self, but: frozenset[str]) -> None:
        """Take all names back but these: what they were for came to nothing."""
        self._taken = set(but)

    def fresh(self, wish: str) -> str:
        """The wish itself if it is free, else ``wish_2``, ``wish_3`` …; never one of our hidden names."""
        wish = f"c{wish}" if wish.lower().startswith("_vk_") else wish
        name, number = wish, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name.lower())
        return name
