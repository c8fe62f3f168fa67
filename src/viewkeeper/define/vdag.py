"""The graph of views (VDAG): who reads whom, and in which order to compute them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Vdag:
    """For each view the tables it reads; those that are views themselves are its parents.

    >>> graph = Vdag({"b": ("a", "t"), "a": ("s",), "c": ("b",)})
    >>> graph.order()
    ('a', 'b', 'c')
    >>> sorted(graph.closure(["b"]))
    ['a', 'b']
    """

    reads: Mapping[str, tuple[str, ...]]

    def parents(self, view: str) -> tuple[str, ...]:
        return tuple(table for table in self.reads[view] if table in self.reads)

    def children(self, view: str) -> tuple[str, ...]:
        return tuple(name for name, tables in self.reads.items() if view in tables)

    def sources(self, views: Iterable[str]) -> tuple[str, ...]:
        """The tables that these views read and that are no views, each once."""
        tables = (table for view in views for table in self.reads[view])
        return tuple(dict.fromkeys(table for table in tables if table not in self.reads))

    def closure(self, views: Iterable[str]) -> frozenset[str]:
        """These views and all their ancestors."""
        return self._reach(views, self.parents)

    def descendants(self, view: str) -> frozenset[str]:
        """All views that read this one, directly or through others."""
        return self._reach(self.children(view), self.children)

    @staticmethod
    def _reach(views: Iterable[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
        found: set[str] = set()
        waiting = list(views)
        while waiting:
            view = waiting.pop()
            if view not in found:
                found.add(view)
                waiting.extend(following(view))
        return frozenset(found)

    def order(self) -> tuple[str, ...]:
        """All views, parents first; a cycle is an error that shows it."""
        done: dict[str, None] = {}
        path: list[str] = []

        def visit(view: str) -> None:
            if view in done:
                return
            if view in path:
                cycle = " → ".join([*path[path.index(view) :], view])
                raise DefinitionError(
                    f"the views read each other in a circle: {cycle}",
                    code="VK-CYCLE",
                    hint="Let one of them read the sources instead.",
                )
            path.append(view)
            for parent in self.parents(view):
                visit(parent)
            path.pop()
            done[view] = None

        for view in self.reads:
            visit(view)
        return tuple(done)
