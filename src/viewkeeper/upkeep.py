"""Upkeep: rewrites the files of storage tables where that pays, and forgets what no epoch shows any more.

Rewriting changes no row. The new snapshots are published in an epoch of their own; should we die before that,
the next refresh finds them and adopts them, as it adopts a compaction by somebody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.events import Event, PointPassed
from viewkeeper.execute.engine import Engine
from viewkeeper.install import upkeep
from viewkeeper.kept_deltas import drop_tables
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.ledger import utc_now
from viewkeeper.ledger.records import Lease, NewEpoch, ViewRefreshRecord, ViewState
from viewkeeper.library import Library
from viewkeeper.plan.situation import ViewInput
from viewkeeper.plan.upkeep import Files, Retention, Stored, expired, needed
from viewkeeper.results import Upkept
from viewkeeper.situations import foreign_write


@dataclass(frozen=True, slots=True)
class Keeping:
    """The upkeep of some views, under the lease."""

    ledger: Ledger
    engine: Engine
    library: Library
    lease: Lease
    emit: Callable[[Event], None]

    def run(
        self, views: Sequence[ViewInput], retentions: Mapping[str, Retention], worth: int = 1
    ) -> list[Upkept]:
        """``views`` as they stand; nobody else has written to their storage. Of a view without a retention
        nothing is forgotten, nor where there are fewer snapshots to forget than it is ``worth``."""
        before = {view.name: self._files(view.storage) for view in views}
        reasons = {view.name: before[view.name].compaction for view in views}
        started = time.monotonic()
        for view in views:
            self._rewrite(view, before[view.name])
        moved = {view.name: self._moved(view) for view in views}
        self._publish({name: to for name, to in moved.items() if to is not None}, reasons, started)
        removed = self._forget(retentions, worth) if retentions else {}
        return [
            Upkept(
                view.name,
                reasons[view.name],
                before[view.name].files,
                self._files(view.storage).files if moved[view.name] else before[view.name].files,
                *removed.get(view.name, (0, 0)),
            )
            for view in views
        ]

    def _files(self, storage: str) -> Files:
        return upkeep.files_of(self.engine.catalog.session, storage)

    def _rewrite(self, view: ViewInput, files: Files) -> None:
        session = self.engine.rewriting_session()
        if files.compaction is not None:
            upkeep.compact(session, view.storage, ordered=bool(view.definition.cluster_by))
            self.emit(PointPassed(f"storage of {view.name} compacted"))
        if files.rewrite_manifests:
            upkeep.rewrite_manifests(session, view.storage)
            self.emit(PointPassed(f"manifests of {view.name} rewritten"))

    def _moved(self, view: ViewInput) -> str | None:
        """The snapshot at which the storage is now, if that is not where the ledger has it."""
        facts = self.engine.catalog.facts_of(view.storage)
        recorded = self.library.states[view.name].snapshot
        if facts is None or facts.snapshot == recorded:
            return None
        if recorded is not None and not self.engine.observer.only_rewritten(
            view.storage, recorded, facts.snapshot
        ):
            raise foreign_write(view.name, view.storage)  # somebody wrote while we rewrote
        return facts.snapshot

    def _publish(self, moved: Mapping[str, str], reasons: Mapping[str, str | None], started: float) -> None:
        """The same rows at other snapshots; views that read them have seen these already."""
        if not moved:
            return
        epoch = self.ledger.begin(self.lease)
        latest = self.ledger.latest()
        self.ledger.publish(
            self.lease,
            NewEpoch(
                id=epoch,
                source_versions={} if latest is None else latest.source_versions,
                states=tuple(self._states(epoch, moved)),
                refreshes=tuple(
                    ViewRefreshRecord(name, "unchanged", "compact", reasons[name]) for name in moved
                ),
                seconds={"maintain": time.monotonic() - started},
            ),
        )
        self.emit(PointPassed("upkeep published"))

    def _states(self, epoch: int, moved: Mapping[str, str]) -> Iterable[ViewState]:
        before = {name: state.snapshot for name, state in self.library.states.items()}
        for name, state in self.library.states.items():
            vector = {
                table: moved[table] if table in moved and version == before[table] else version
                for table, version in state.vector.items()
            }
            if name in moved or vector != state.vector:
                yield replace(state, snapshot=moved.get(name, state.snapshot), vector=vector, epoch=epoch)

    def _forget(self, retentions: Mapping[str, Retention], worth: int) -> dict[str, tuple[int, int]]:
        """Of each view how many snapshots and storage tables went."""
        published, now = self.ledger.publications(), utc_now()
        seen = {v for state in self.ledger.states().values() for v in state.vector.values() if v is not None}
        states = self._still_stored(state for state in self.ledger.every_state() if state.view in retentions)
        found = {}
        for name, retention in retentions.items():
            first = retention.first(published, now)
            if first is None:
                continue
            mine = [Stored(s.view, s.epoch, s.storage, s.snapshot) for s in states if s.view == name]
            kept = needed(mine, first)
            shown = {state.snapshot for state in kept if state.snapshot is not None}
            storages = {state.storage for state in kept}
            gone = sorted({state.storage for state in mine} - storages)
            self.engine.clean_up(drop_tables(0, gone))
            expiring = sum(self._expire(each, shown, seen, worth) for each in sorted(storages))
            found[name] = (expiring, len(gone))
        return found

    def _still_stored(self, states: Iterable[ViewState]) -> list[ViewState]:
        """Those of which there is a storage: it went with a view of the same name that was dropped, or with
        what an earlier retention did not keep."""
        found = list(states)
        storages = {state.storage for state in found}
        there = {each for each in storages if self.engine.catalog.facts_of(each) is not None}
        return [state for state in found if state.storage in there]

    def _expire(self, storage: str, shown: set[str], seen: set[str], worth: int) -> int:
        """``shown`` by some epoch, or ``seen`` last by a view that reads this one: from there on it will ask
        for what came since."""
        session = self.engine.catalog.session
        there = upkeep.snapshots_of(session, storage)
        gone = expired(there.all, shown.union(there.current), seen)
        if len(gone) < worth:
            return 0
        upkeep.expire(session, storage, gone)
        self.emit(PointPassed(f"snapshots of {storage} expired"))
        return len(gone)
