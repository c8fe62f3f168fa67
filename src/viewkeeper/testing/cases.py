"""A test case as plain data: tables, views, and cycles of changes; as text, so that it can be kept and read.

The text is SQL, a statement ending where a line ends in ``;``. Lines that begin with ``--!`` say what SQL has
no word for::

    --! may be full: v2                 the views that need not be kept by deltas
    --! refresh                         refresh all the views, incrementally, and compare
    --! refresh policy=auto v1 v2       refresh those only
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from viewkeeper.analyse.statements import CreateView, parse_statement
from viewkeeper.sql.quoting import quote

_DIRECTIVE = "--!"
_REFRESH = re.compile(r"refresh(?:\s+policy=(?P<policy>auto|incremental|full))?(?P<views>(\s+\w+)*)\Z")
_MAY_BE_FULL = "may be full:"
INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True)
class View:
    """A view of a case. ``columns`` renames what the query calls its own; ``incremental`` tells whether
    keeping it in any other way than by deltas is a failure."""

    name: str
    query: str
    columns: tuple[str, ...] = ()
    incremental: bool = True

    @property
    def sql(self) -> str:
        """The statement that defines it; the first refresh fills it."""
        listed = f" ({', '.join(quote(name) for name in self.columns)})" if self.columns else ""
        return f"CREATE MATERIALIZED VIEW {self.name}{listed} WITH NO DATA AS\n{self.query}"

    def reads(self, name: str) -> bool:
        """Whether the query names that table or view (or anything else of the same name)."""
        return re.search(rf"\b{re.escape(name)}\b", self.query) is not None


@dataclass(frozen=True, slots=True)
class Cycle:
    """Changes to the sources, then one refresh; no views named: all of them."""

    statements: tuple[str, ...]
    views: tuple[str, ...] = ()
    policy: str = INCREMENTAL


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a failure can be replayed from, in an empty namespace."""

    tables: tuple[str, ...]
    """The statements that make the tables and fill them."""
    views: tuple[View, ...]
    cycles: tuple[Cycle, ...]

    def only(self, names: Iterable[str]) -> Case:
        """The case with these views and those that they read."""
        wanted = set(names)
        kept: list[View] = []
        for view in reversed(self.views):
            if view.name in wanted:
                wanted |= {other.name for other in self.views if other is not view and view.reads(other.name)}
                kept.append(view)
        known = {view.name for view in kept}
        cycles = tuple(
            replace(cycle, views=tuple(name for name in cycle.views if name in known))
            for cycle in self.cycles
            if not cycle.views or known.intersection(cycle.views) or cycle.statements
        )
        return replace(self, views=tuple(reversed(kept)), cycles=cycles)

    def __str__(self) -> str:
        lines = [f"{statement};" for statement in self.tables]
        lines += [f"{view.sql};" for view in self.views]
        loose = [view.name for view in self.views if not view.incremental]
        if loose:
            lines.append(f"{_DIRECTIVE} {_MAY_BE_FULL} {' '.join(loose)}")
        for cycle in self.cycles:
            lines += [f"{statement};" for statement in cycle.statements]
            policy = [] if cycle.policy == INCREMENTAL else [f"policy={cycle.policy}"]
            lines.append(" ".join([_DIRECTIVE, "refresh", *policy, *cycle.views]))
        return "\n".join(lines) + "\n"


def parse_case(text: str) -> Case:
    """The case that a text describes; the inverse of ``str(case)``, other comments being passed over.

    >>> case = Case(
    ...     ("CREATE TABLE t (a INT)",), (View("v", "SELECT a FROM t"),), (Cycle(("DELETE FROM t",)),)
    ... )
    >>> parse_case(str(case)) == case
    True
    """
    tables: list[str] = []
    views: list[View] = []
    cycles: list[Cycle] = []
    changes: list[str] = []
    loose: set[str] = set()
    for is_directive, content in _pieces(text.splitlines()):
        if is_directive and content.startswith(_MAY_BE_FULL):
            loose |= set(content[len(_MAY_BE_FULL) :].split())
        elif is_directive:
            cycles.append(_cycle(content, changes))
            changes = []
        elif isinstance(parsed := parse_statement(content), CreateView):
            columns = tuple(column.name for column in parsed.columns)
            views.append(View(parsed.name[-1], parsed.query, columns))
        else:
            (changes if views else tables).append(content)
    if changes:
        raise ValueError("changes without a refresh after them")
    known = tuple(replace(view, incremental=view.name not in loose) for view in views)
    return Case(tuple(tables), known, tuple(cycles))


def _pieces(lines: Sequence[str]) -> Iterable[tuple[bool, str]]:
    """Directives and statements, in order."""
    statement: list[str] = []
    for line in lines:
        if not statement and line.startswith(_DIRECTIVE):
            yield True, line[len(_DIRECTIVE) :].strip()
        elif statement or (line.strip() and not line.startswith("--")):
            statement.append(line)
            if line.endswith(";"):
                yield False, "\n".join(statement)[:-1]
                statement = []
    if statement:
        raise ValueError(f"a statement without an end: {statement[0]}")


def _cycle(directive: str, changes: Sequence[str]) -> Cycle:
    found = _REFRESH.match(directive)
    if found is None:
        raise ValueError(f"not a directive: {_DIRECTIVE} {directive}")
    return Cycle(tuple(changes), tuple(found["views"].split()), found["policy"] or INCREMENTAL)
