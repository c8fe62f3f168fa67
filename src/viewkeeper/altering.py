"""A view altered where it stands: its table properties, and with them how its rows are stored.

A bag that becomes CNT, or DUP again, and groups that are no longer stored in parts, are written from what is
stored of them, not from their sources, into a new storage table, which takes the place of the old one in one
epoch. Until that is published, and should it never be, the old one is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from viewkeeper.algebra.relations import Relation
from viewkeeper.epochs import EpochRunner, Work
from viewkeeper.execute.engine import Engine
from viewkeeper.install.storage import new_storage_name
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.records import EpochRecord, Lease, ViewState
from viewkeeper.library import KnownView, Library
from viewkeeper.plan import steps
from viewkeeper.plan.layout import Layout
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.steps import (
    ComputeRows,
    EpochPlan,
    Install,
    Installer,
    Publish,
    Step,
    Strategy,
    ViewPlan,
)


@dataclass(frozen=True, slots=True)
class Altering:
    """Publishes views that are defined otherwise, and hold the same rows."""

    ledger: Ledger
    engine: Engine
    runner: EpochRunner
    library: Library
    lease: Lease

    def run(self, after: KnownView, reason: str) -> EpochRecord:
        """Put ``after`` in the place of the view of that name."""
        before, state = self.library.views[after.name], self.library.states[after.name]
        if before.layout == after.layout:
            return self._run(after, state, state.storage, (), reason, in_place=True)
        storage = new_storage_name(self.engine.catalog_name)
        stored = before.layout.stored(state.storage, state.snapshot)
        conversion: tuple[Step, ...] = ()
        if state.snapshot is not None:
            conversion = _conversion(after, storage, _converted(before.layout, after.layout, stored))
        return self._run(after, state, storage, conversion, reason)

    def redefine(self, after: KnownView, rows: Relation, reason: str) -> EpochRecord:
        """The same for a definition whose rows are made of the stored ones."""
        storage = new_storage_name(self.engine.catalog_name)
        state = self.library.states[after.name]
        return self._run(after, state, storage, _conversion(after, storage, rows), reason)

    def _run(
        self,
        after: KnownView,
        state: ViewState,
        storage: str,
        conversion: tuple[Step, ...],
        reason: str,
        *,
        in_place: bool = False,
    ) -> EpochRecord:
        name, has_rows = after.name, state.snapshot is not None
        latest = self.ledger.latest()
        view = ViewPlan(
            name,
            Strategy.FULL if conversion else Strategy.UNCHANGED,
            Installer.OVERWRITE if conversion else None,
            reason,
            steps.Work(),
            (),
            tuple(state.vector.items()),
        )
        versions = {} if latest is None else latest.source_versions
        work = Work(
            plan=EpochPlan((view,), conversion, tuple(versions.items())),
            inputs={name: _input(after, state, storage)},
            views={**self.library.views, name: after},
            define=(name,),
            without_data=() if has_rows else (name,),
            in_place=in_place,
            readers=tuple(self._readers(name, state)) if conversion else (),
        )
        return self.runner.run(self.lease, work)

    def _readers(self, name: str, state: ViewState) -> Iterator[ViewState]:
        """The views that have seen all of its rows, and so those that it is converted to. One that lags
        behind finds no way from the old storage to the new one, and is recomputed when its turn comes."""
        for child in self.library.graph.children(name):
            reader = self.library.states.get(child)
            if reader is not None and reader.vector.get(name) == state.snapshot:
                yield reader


@contextmanager
def still_failing(ledger: Ledger, views: Iterable[KnownView]) -> Iterator[None]:
    """Inside, these views are defined anew, but for nothing that could mend them: those that fail do so
    still, and those that are suspended or paused stay so."""
    before = ledger.failing()
    yield
    for view in views:
        if view.name in before:
            ledger.keep_failing(before[view.name], view.definition_id)


def _input(view: KnownView, state: ViewState, storage: str) -> ViewInput:
    return ViewInput(
        view.name, view.definition, view.analysis, view.layout, storage, state.snapshot, state.vector
    )


def _conversion(after: KnownView, storage: str, converted: Relation) -> tuple[Step, ...]:
    columns = tuple(field.stored for field in after.layout.fields)
    rows = ComputeRows("", after.name, converted, columns, staged=False)
    install = Install(after.name, storage, None, Installer.OVERWRITE, after.layout, rows)
    return rows, install, Publish((after.name,))


def _converted(before: Layout, after: Layout, stored: Relation) -> Relation:
    """Rows that are stored in one way, as the other stores them."""
    if after.counted:
        assert after.groups is not None
        rows: Relation = replace(after.groups, child=before.shown(stored)).rows
    elif before.counted:
        rows = before.shown(stored)
    else:
        rows = before.whole(stored)
    return after.as_stored(rows)
