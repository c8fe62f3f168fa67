"""The smallest case that still fails: fewer views, cycles, statements and rows, as long as it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from viewkeeper.testing.cases import Case, Cycle

Fails = Callable[[Case], bool]

_INSERTED = re.compile(r"INSERT INTO \S+ VALUES\n")


def shrink(case: Case, fails: Fails, *, attempts: int = 60) -> Case:
    """Try smaller cases, the much smaller ones first, until none of them fails or the attempts are used up.

    >>> case = Case(("INSERT INTO t VALUES\\n(1),\\n(2),\\n(3)",), (), (Cycle(("A",)), Cycle(("B", "C"))))
    >>> print(shrink(case, lambda smaller: "(2)" in str(smaller) and "C" in str(smaller)))
    INSERT INTO t VALUES
    (2);
    C;
    --! refresh
    <BLANKLINE>
    """
    smallest, left = case, attempts
    progress = True
    while progress and left > 0:
        progress = False
        for smaller in _smaller(smallest):
            left -= 1
            if fails(smaller):
                smallest, progress = smaller, True
                break
            if left <= 0:
                break
    return smallest


def _smaller(case: Case) -> Iterator[Case]:
    yield from _fewer_views(case)
    yield from _fewer_cycles(case)
    yield from _fewer_statements(case)
    yield from _fewer_rows(case)


def _fewer_views(case: Case) -> Iterator[Case]:
    for view in case.views:
        fewer = case.only([view.name])
        if len(fewer.views) < len(case.views):
            yield fewer
    for view in case.views:
        if not any(other is not view and other.reads(view.name) for other in case.views):
            yield case.only(other.name for other in case.views if other is not view)


def _fewer_cycles(case: Case) -> Iterator[Case]:
    cycles = case.cycles
    for at, cycle in enumerate(cycles):
        yield replace(case, cycles=(*cycles[:at], *cycles[at + 1 :]))
        if at + 1 < len(cycles):
            following = cycles[at + 1]
            together = replace(following, statements=(*cycle.statements, *following.statements))
            yield replace(case, cycles=(*cycles[:at], together, *cycles[at + 2 :]))


def _fewer_statements(case: Case) -> Iterator[Case]:
    for at, cycle in enumerate(case.cycles):
        for which in range(len(cycle.statements)):
            fewer = replace(cycle, statements=_without(cycle.statements, which))
            yield replace(case, cycles=(*case.cycles[:at], fewer, *case.cycles[at + 1 :]))
        if cycle != Cycle(cycle.statements):
            yield replace(case, cycles=(*case.cycles[:at], Cycle(cycle.statements), *case.cycles[at + 1 :]))
    for at in range(len(case.tables)):
        yield replace(case, tables=_without(case.tables, at))


def _fewer_rows(case: Case) -> Iterator[Case]:
    for at, statement in enumerate(case.tables):
        for fewer in _fewer_values(statement):
            yield replace(case, tables=(*case.tables[:at], fewer, *case.tables[at + 1 :]))
    for at, cycle in enumerate(case.cycles):
        for which, statement in enumerate(cycle.statements):
            for fewer in _fewer_values(statement):
                statements = (*cycle.statements[:which], fewer, *cycle.statements[which + 1 :])
                changed = replace(cycle, statements=statements)
                yield replace(case, cycles=(*case.cycles[:at], changed, *case.cycles[at + 1 :]))


def _fewer_values(statement: str) -> Iterator[str]:
    """The statement with half of its rows, then with one row less."""
    found = _INSERTED.match(statement)
    if found is None:
        return
    head, rows = found[0], statement[found.end() :].split(",\n")
    if len(rows) < 2:
        return
    half = len(rows) // 2
    yield head + ",\n".join(rows[:half])
    yield head + ",\n".join(rows[half:])
    if len(rows) > 2:
        for at in range(len(rows)):
            yield head + ",\n".join(_without(tuple(rows), at))


def _without(items: tuple[str, ...], at: int) -> tuple[str, ...]:
    return (*items[:at], *items[at + 1 :])
