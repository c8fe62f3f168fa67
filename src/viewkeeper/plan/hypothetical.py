"""A situation in which every source has changed: lets explain show what a refresh would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.define.clock import is_clock
from viewkeeper.plan.situation import Situation
from viewkeeper.sql.quoting import ident

NEXT = "next"
"""Stands for the version that does not exist yet."""


@dataclass(frozen=True, slots=True)
class HypotheticalChange:
    """A change of unknown size."""

    table: str
    inserted: int = 1
    deleted: int = 1
    method: str = "whatever files will have changed"
    reason: str | None = None
    passed_over: int = 0

    def statements(self, columns: Sequence[str]) -> tuple[str, ...]:
        listed = ", ".join(ident(column) for column in (*columns, WEIGHT))
        return (f"SELECT {listed} FROM {self.table} /* its changes */",)


def as_if_all_changed(situation: Situation) -> Situation:
    """The same views, with every source one version on; clocks show what they do show."""
    changes = {span: change for span, change in situation.changes.items() if is_clock(span[0])}
    for view in situation.views:
        for table in view.analysis.tables:
            if table in situation.versions and table in view.vector and not is_clock(table):
                changes[(table, view.vector[table], NEXT)] = HypotheticalChange(table)
    versions = {table: version if is_clock(table) else NEXT for table, version in situation.versions.items()}
    return replace(situation, versions=versions, changes=changes, policy="incremental")
