"""What keeps the storage of views in shape: their files, how copies are stored, what properties ask for."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from viewkeeper.algebra.relations import Moment, Relation, Scan, TableAt
from viewkeeper.altering import Altering, still_failing
from viewkeeper.define.clock import is_clock, literal
from viewkeeper.define.timing import Timing
from viewkeeper.defining import refuse_timeless, relaid
from viewkeeper.epochs import EpochRunner
from viewkeeper.errors import RefreshError
from viewkeeper.events import Event
from viewkeeper.execute.engine import Engine
from viewkeeper.ledger import Ledger
from viewkeeper.ledger.records import EpochRecord, Lease, ViewState
from viewkeeper.library import KnownView, Library
from viewkeeper.plan.leaves import fields_asked
from viewkeeper.plan.representation import advisable, pinned
from viewkeeper.plan.steps import Strategy
from viewkeeper.plan.upkeep import WORTH_EXPIRING, Retention, keeps_up, says_how_long
from viewkeeper.reading import snapshots_of
from viewkeeper.redefining import rows_carried_over
from viewkeeper.remote_views import source_behind
from viewkeeper.results import Upkept
from viewkeeper.situations import stored_views
from viewkeeper.upkeep import Keeping

logger = logging.getLogger("viewkeeper")

_KEPT = "its rows are made of those that were stored"
_FILLED_UP = f"{_KEPT}; only what is new in them was computed"


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """Under the lease, between epochs that refresh."""

    ledger: Ledger
    engine: Engine
    runner: EpochRunner
    emit: Callable[[Event], None]
    lease: Lease

    def alter(self, name: str, properties: Mapping[str, str]) -> EpochRecord | None:
        """Set table properties of a view, and store it as they say; ``None`` if it has them all."""
        library = self._library()
        known = library.views[name]
        asked = {**dict(known.definition.properties), **properties}
        if asked == dict(known.definition.properties):
            return None
        definition = replace(known.definition, properties=tuple(asked.items()))
        after = relaid(self.engine, library, known, definition)
        return self._altered(library, after, "its table properties were set")

    def retime(self, name: str, timing: Timing | None) -> EpochRecord | None:
        """Say how fresh a view is to be; its rows and their storage stay."""
        library = self._library()
        known = library.views[name]
        if known.definition.timing == timing:
            return None
        definition = replace(known.definition, timing=timing)
        refuse_timeless(definition)
        after = replace(known, definition_id=uuid.uuid4().hex, definition=definition)
        return self._altered(library, after, "how fresh it is to be was set")

    def redefine(self, before: Library, defined: Sequence[KnownView]) -> EpochRecord | None:
        """Put a view that is defined anew in the place of the old one, with rows that are made of those that
        it holds; ``None`` if they are to be computed. Views that read it are analysed anew and recomputed, so
        there must be none."""
        after, *others = defined
        known, state = before.views.get(after.name), before.states.get(after.name)
        if others or known is None or state is None or state.snapshot is None or source_behind(after):
            return None
        stored = known.layout.stored(state.storage, state.snapshot)
        carried = rows_carried_over(known, after, stored, partial(self._recorded, before, state))
        if carried is None:
            return None
        altering = Altering(self.ledger, self.engine, self.runner, before, self.lease)
        try:
            reason = _FILLED_UP if carried.filled_up else _KEPT
            record = altering.redefine(after, carried.rows, reason)
        except RefreshError as error:
            # The storage may be gone, or not be what it was: that is why some people define a view anew.
            logger.warning("%s: its rows are computed, not kept: %s", after.name, error)
            return None
        self.engine.see(snapshots_of(self._library(), [after.name]))
        return record

    def _recorded(self, library: Library, state: ViewState, scan: Scan) -> Relation | None:
        """A table as it was when the view was computed; ``None`` if that is not known any more."""
        version = state.vector.get(scan.table)
        if version is None:
            return None
        if is_clock(scan.table):
            return Moment(scan.columns[0], literal(scan.table, version))
        parent = library.views.get(scan.table)
        if parent is None:
            return TableAt(scan.table, version, scan.fields, self.engine.observer.read_options)
        held = library.states[scan.table]
        if held.snapshot != version:
            return None
        return fields_asked(parent.layout.shown(parent.layout.stored(held.storage, version)), scan)

    def maintain(self, names: Sequence[str], epochs: int | None, days: float | None) -> list[Upkept]:
        """Rewrite what is stored where that pays, and forget what no epoch shows any more that is to be kept:
        the last so many, and those of the last days, or as the views say."""
        library = self._library()
        filled = [name for name in names if library.states[name].snapshot is not None]
        retentions = {name: Retention.of(_properties(library, name), epochs, days) for name in filled}
        done = self._keeping(library).run(stored_views(self.engine, library, filled), retentions)
        return [replace(each, stored_as=self._converted(each.view)) for each in done]

    def keep_up(self, record: EpochRecord) -> None:
        """Rewrite the files of what an epoch wrote, where the views say so and it pays. What fails here waits
        for the next time: the epoch is published."""
        library = self._library()
        written = [view.view for view in record.views if view.strategy != Strategy.UNCHANGED.value]
        asked = {name: _properties(library, name) for name in written}
        names = [name for name, properties in asked.items() if keeps_up(properties)]
        if not names:
            return
        retentions = {name: Retention.of(asked[name]) for name in names if says_how_long(asked[name])}
        try:
            views = stored_views(self.engine, library, names)
            self._keeping(library).run(views, retentions, WORTH_EXPIRING)
        except Exception as error:
            logger.warning("the upkeep of %s is left for later: %s", ", ".join(names), error)

    def _converted(self, name: str) -> str | None:
        """Store a bag in the other way, if so many copies of its rows, or so few, make that advisable."""
        library = self._library()
        view, state = library.views[name], library.states[name]
        now = view.representation
        if now is None or pinned(dict(view.definition.properties)) is not None:
            return None
        copies = self.engine.copies(state.storage, view.layout)
        if copies is None:
            return None
        wanted = advisable(now, copies)
        if wanted is now:
            return None
        after = relaid(self.engine, library, view, view.definition, wanted)
        self._altered(library, after, f"{copies:.1f} copies of a row on average")
        return wanted.value

    def _altered(self, library: Library, after: KnownView, reason: str) -> EpochRecord:
        with still_failing(self.ledger, [after]):
            record = Altering(self.ledger, self.engine, self.runner, library, self.lease).run(after, reason)
        self.engine.see(snapshots_of(self._library(), [after.name]))
        return record

    def _keeping(self, library: Library) -> Keeping:
        return Keeping(self.ledger, self.engine, library, self.lease, self.emit)

    def _library(self) -> Library:
        return Library.of(*self.ledger.defined())


def _properties(library: Library, name: str) -> dict[str, str]:
    return dict(library.views[name].definition.properties)
