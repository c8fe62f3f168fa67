"""The ledger of a warehouse. Its life of an epoch, each line a transaction::

    lease = ledger.acquire(me)
    for chore in ledger.chores(): …; ledger.done(chore)      what earlier epochs left
    epoch_id = ledger.begin(lease)
    ledger.intend(lease, epoch_id, …)                        before anything is written elsewhere
    …                                                        stage branches; ledger.renew(lease)
    ledger.publish(lease, NewEpoch(epoch_id, …))             THE COMMIT POINT; or ledger.abandon(…)
    for chore in ledger.chores(): …; ledger.done(chore)      fast-forward, create views
    ledger.release(lease)

A process may die between any two lines. Before the commit point its intents say what to clean up, after it
the redo chores say what to finish; both can be done twice without harm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import datetime, timezone
from types import TracebackType

from sqlalchemy import Connection, delete, insert, update

from viewkeeper.errors import LedgerError
from viewkeeper.ledger import lease as leases
from viewkeeper.ledger import propagations, publishing, queries, schema
from viewkeeper.ledger.database import Database
from viewkeeper.ledger.records import (
    Chore,
    EpochRecord,
    FailingView,
    FailureRecord,
    JsonObject,
    Lease,
    NewEpoch,
    NewPropagation,
    PastRefresh,
    Propagation,
    SourceObservation,
    SourceRecord,
    Trouble,
    ViewRecord,
    ViewState,
)

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time by this machine's clock. ``lease`` says why that is good enough."""
    return datetime.now(timezone.utc)


class Ledger:
    """An open ledger; threads may share it, and processes may open it at the same time."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._now = clock

    @classmethod
    def open(cls, url: str, *, clock: Clock = utc_now) -> Ledger:
        """Open the ledger at ``sqlite:////path/ledger.db`` or ``postgresql://…``, creating its tables."""
        database = Database(url)
        try:
            database.bring_up_to_date(clock)
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the ledger, for those who ask several things
        (:mod:`~viewkeeper.ledger.queries`, :mod:`~viewkeeper.ledger.surveys`)."""
        return self._database.reading()

    # Definitions, epochs and states: as published.

    def views(self, epoch_id: int | None = None) -> tuple[ViewRecord, ...]:
        """The views there are, or were as of an epoch, in the order of their creation."""
        with self._database.reading() as connection:
            if epoch_id is not None:
                queries.require_epoch(connection, epoch_id)
            return queries.views(connection, epoch_id)

    def view_names(self) -> tuple[str, ...]:
        """The names of the views there are, without their definitions."""
        with self._database.reading() as connection:
            return queries.view_names(connection)

    def view(self, name: str) -> ViewRecord | None:
        """The view of exactly this name."""
        with self._database.reading() as connection:
            return next(iter(queries.views(connection, None, name)), None)

    def latest(self) -> EpochRecord | None:
        """The newest published epoch; None before the first."""
        return next(iter(self.epochs(limit=1)), None)

    def epoch(self, epoch_id: int) -> EpochRecord:
        """A published epoch. An id that was begun but not published is unknown here."""
        with self._database.reading() as connection:
            queries.require_epoch(connection, epoch_id)
            (record,) = queries.epochs(connection, only=epoch_id)
            return record

    def last_planned(self, view: str) -> EpochRecord | None:
        """The last epoch whose plan changed a view, with that plan; None before there is one."""
        with self._database.reading() as connection:
            found = queries.last_planned(connection, view)
            return None if found is None else queries.epochs(connection, only=found)[0]

    def epochs(
        self,
        *,
        view: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        plans: bool = True,
    ) -> tuple[EpochRecord, ...]:
        """Published epochs, newest first; with ``view`` those that have a refresh of it, with ``after`` those
        that came after that one. Plans are large: ``plans=False`` leaves them where they are."""
        with self._database.reading() as connection:
            return queries.epochs(connection, view=view, after=after, limit=limit, plans=plans)

    def estimates(
        self, views: Iterable[str] | None = None, limit: int | None = None
    ) -> list[tuple[int, str, JsonObject]]:
        """Epoch, view, and what was estimated for its refresh, newest first, at most so many: of all
        views, or of each of these."""
        with self._database.reading() as connection:
            each = [None] if views is None else list(views)
            return [found for view in each for found in queries.estimates(connection, view, limit)]

    def states(self, epoch_id: int | None = None) -> dict[str, ViewState]:
        """The state of each view as of an epoch (None: the latest), in the order of their creation.

        A view that the epoch did not refresh carries over; a view that was dropped by then is absent.
        """
        with self._database.reading() as connection:
            if epoch_id is not None:
                queries.require_epoch(connection, epoch_id)
                return queries.states(connection, epoch_id)
            latest = queries.latest_epoch_id(connection)
            return {} if latest is None else queries.states(connection, latest)

    def defined(self, epoch_id: int | None = None) -> tuple[tuple[ViewRecord, ...], dict[str, ViewState]]:
        """:meth:`views` and :meth:`states` of one moment: a definition says how its own rows are read, not
        those of the next one."""
        with self._database.reading() as connection:
            if epoch_id is not None:
                queries.require_epoch(connection, epoch_id)
            at = queries.latest_epoch_id(connection) if epoch_id is None else epoch_id
            return queries.views(connection, epoch_id), {} if at is None else queries.states(connection, at)

    def last_refreshes(self) -> dict[str, PastRefresh]:
        """Of each view that there is, the last epoch that looked after it; those of which none did are
        absent."""
        with self._database.reading() as connection:
            return queries.last_refreshes(connection)

    def every_state(self) -> tuple[ViewState, ...]:
        """All states that the views there are ever had, oldest first."""
        with self._database.reading() as connection:
            return queries.every_state(connection)

    def publications(self, only: Collection[int] | None = None) -> dict[int, datetime]:
        """When each epoch was published, or each of some."""
        with self._database.reading() as connection:
            return queries.publications(connection, only)

    # The lease.

    def acquire(self, holder: str, ttl_seconds: float = 60.0) -> Lease:
        """Take the lease, or be told who has it. It is not re-entrant: asking twice is refused, too."""
        with self._database.writing() as connection:
            return leases.acquire(connection, holder, ttl_seconds, self._now())

    def renew(self, lease: Lease) -> Lease:
        """Extend the lease by the term it was acquired for, counted from now."""
        with self._database.writing() as connection:
            return leases.renew(connection, lease, self._now())

    def release(self, lease: Lease) -> None:
        """Give the lease back; no error if it was lost."""
        with self._database.writing() as connection:
            leases.release(connection, lease)

    def holder(self) -> Lease | None:
        """The lease that is held now; None when it is free or has expired."""
        with self._database.reading() as connection:
            return leases.current(connection, self._now())

    # The epoch protocol: every step is behind the fence.

    def begin(self, lease: Lease) -> int:
        """Allocate an epoch id that was never used before, so that no branch name is used twice."""
        with self._database.writing() as connection:
            leases.require(connection, lease)
            return publishing.begin(connection, lease, self._now())

    def intend(self, lease: Lease, epoch_id: int, chores: Sequence[Chore]) -> None:
        """Note what is to be cleaned up should this epoch never be published."""
        if any(chore.epoch != epoch_id for chore in chores):
            raise ValueError(f"an intent of epoch {epoch_id} names another epoch")
        with self._database.writing() as connection:
            leases.require(connection, lease)
            publishing.require_open(connection, lease, epoch_id)
            publishing.add_chores(connection, chores, intent=True)

    def publish(self, lease: Lease, epoch: NewEpoch) -> EpochRecord:
        """THE COMMIT POINT. When this returns, the epoch is what readers see; if it raises, nothing is.

        Whoever cannot know whether a publish went through (a connection that broke during the commit) may
        repeat it: an epoch that this lease has already published is returned as it is there.
        """
        with self._database.writing() as connection:
            if publishing.published_by(connection, epoch.id) != lease.token:
                leases.require(connection, lease)
                publishing.require_open(connection, lease, epoch.id)
                publishing.publish(connection, epoch, self._now())
            (record,) = queries.epochs(connection, only=epoch.id)
            return record

    def abandon(self, lease: Lease, epoch_id: int, error: str) -> None:
        """Give the epoch up and say why. Its intents become chores; its id stays used."""
        kept = schema.storable(error)
        with self._database.writing() as connection:
            leases.require(connection, lease)
            publishing.require_open(connection, lease, epoch_id)
            connection.execute(
                update(schema.attempts)
                .where(schema.attempts.c.id == epoch_id)
                .values(failed_at=self._now(), error=kept)
            )

    # Propagated, not installed yet.

    def keep(self, lease: Lease, new: NewPropagation, chores: Sequence[Chore]) -> None:
        """Remember computed deltas for a later epoch, in the place of those that were kept before, whose
        tables the chores remove."""
        with self._database.writing() as connection:
            leases.require(connection, lease)
            publishing.require_open(connection, lease, new.id)
            propagations.keep(connection, new, self._now())
            publishing.add_chores(connection, chores, intent=False)

    def propagation(self) -> Propagation | None:
        """What waits to be installed; None when nothing does."""
        with self._database.reading() as connection:
            return propagations.current(connection)

    def forget(self, lease: Lease, chores: Sequence[Chore]) -> None:
        """What was propagated is of no use any more; the chores remove its tables."""
        with self._database.writing() as connection:
            leases.require(connection, lease)
            propagations.forget(connection)
            publishing.add_chores(connection, chores, intent=False)

    def failures(self, *, limit: int | None = None) -> tuple[FailureRecord, ...]:
        """Epochs that were begun and given up, or whose process died; newest first."""
        with self._database.reading() as connection:
            return queries.failures(connection, limit)

    # Views that fail again and again.

    def failing(self) -> dict[str, FailingView]:
        """The views whose last refreshes failed, as they are defined now."""
        with self._database.reading() as connection:
            return queries.failing(connection)

    def note_failure(
        self, view: str, definition_id: str, reason: str, *, suspend_after: int | None
    ) -> FailingView:
        """One more failure of a view in a row; the so many-th suspends it. ``None``: none does."""
        with self._database.writing() as connection:
            before = queries.failing(connection).get(view)
            failures = 1 if before is None else before.failures + 1
            suspended = suspend_after is not None and failures >= suspend_after
            suspended |= before is not None and before.suspended
            why = schema.storable(reason)
            found = FailingView(view, definition_id, failures, self._now(), why, suspended)
            connection.execute(delete(schema.failing).where(schema.failing.c.view == view))
            connection.execute(insert(schema.failing), asdict(found))
            return found

    def keep_failing(self, found: FailingView, definition_id: str) -> None:
        """The view is defined anew, but for nothing that could mend it: it fails as it did."""
        table = schema.failing
        same = (table.c.view == found.view) & (table.c.definition_id == found.definition_id)
        with self._database.writing() as connection:
            connection.execute(update(table).where(same).values(definition_id=definition_id))

    def forgive(self, views: Iterable[str]) -> None:
        """Forget that views failed: they were refreshed, or are to be tried again."""
        wanted = list(views)
        if wanted:
            with self._database.writing() as connection:
                connection.execute(delete(schema.failing).where(schema.failing.c.view.in_(wanted)))

    def troubles(self) -> dict[Trouble, str]:
        """What somebody was told of, or is to be told, and is not mended, as far as is known."""
        with self._database.reading() as connection:
            return {trouble: said for trouble, (said, _) in queries.troubles(connection).items()}

    def untold(self) -> set[Trouble]:
        """Those of them that somebody is still to be told of."""
        with self._database.reading() as connection:
            return {trouble for trouble, (_, told) in queries.troubles(connection).items() if not told}

    def note_troubles(self, known: Mapping[Trouble, str], untold: Collection[Trouble] = ()) -> None:
        """Remember what somebody was told of, and what not yet, in the place of what was remembered."""
        rows = [
            {**asdict(trouble), "said": schema.storable(said), "told": trouble not in untold}
            for trouble, said in known.items()
        ]
        with self._database.writing() as connection:
            connection.execute(delete(schema.troubles))
            if rows:
                connection.execute(insert(schema.troubles), rows)

    def told(self) -> int | None:
        """The last epoch of which it was told what it did; None before anybody was."""
        with self._database.reading() as connection:
            return queries.told(connection)

    def note_told(self, epoch_id: int) -> None:
        """Remember that it was told what the epochs did, as far as this one."""
        with self._database.writing() as connection:
            connection.execute(delete(schema.told))
            connection.execute(insert(schema.told), {"epoch_id": epoch_id})

    def chores(self) -> tuple[Chore, ...]:
        """What is left to do, oldest first: redo chores of published epochs, and intents of epochs that
        can no longer be published. An epoch that still can, because its lease was neither taken over nor
        released, keeps its intents to itself: so take the lease before asking."""
        with self._database.reading() as connection:
            return queries.chores(connection)

    def is_left(self, chore: Chore) -> bool:
        """Whether nobody has struck it off since it was asked for. Done again after what came later, it would
        bring back what was there before: so ask at once before doing it."""
        with self._database.reading() as connection:
            return queries.is_left(connection, chore)

    def done(self, chore: Chore) -> None:
        """Strike a chore off; no error if somebody else already has."""
        if chore.id is None:
            raise ValueError("only a chore that came from the ledger can be done")
        with self._database.writing() as connection:
            connection.execute(delete(schema.chores).where(queries.same_chore(chore)))

    # What operations take.

    def calibrate(self, rates: JsonObject) -> None:
        """Remember what was measured; what was measured before stays for the record."""
        with self._database.writing() as connection:
            connection.execute(insert(schema.calibrations), {"measured_at": self._now(), "rates": rates})

    def rates(self) -> JsonObject | None:
        """What was measured last; None before that."""
        with self._database.reading() as connection:
            return queries.rates(connection)

    # Sources, as last seen.

    def observe(self, versions: Mapping[str, SourceObservation]) -> None:
        """Remember what the sources looked like. An observation older than the one there is ignored, unless
        that one lies ahead: it was made by a clock that was wrong."""
        now = self._now()
        with self._database.writing() as connection:
            known = queries.observations(connection)
            for source, seen in versions.items():
                if seen.observed_at.tzinfo is None:
                    raise LedgerError(f"The observation of {source} has a time without a zone")
                if source in known and seen.observed_at < known[source].observed_at <= now:
                    continue
                connection.execute(delete(schema.observations).where(schema.observations.c.source == source))
                connection.execute(
                    insert(schema.observations),
                    {
                        "source": source,
                        "version": seen.version,
                        "observed_at": seen.observed_at,
                        "details": seen.details,
                    },
                )

    def observations(self) -> dict[str, SourceObservation]:
        """Each source as it was last seen."""
        with self._database.reading() as connection:
            return queries.observations(connection)

    def sources(self) -> dict[str, SourceRecord]:
        """The declared sources, by name."""
        with self._database.reading() as connection:
            return queries.sources(connection)

    def source_version(self, source: str, version: str) -> JsonObject | None:
        """What a source without history remembers of a version."""
        with self._database.reading() as connection:
            return queries.source_version(connection, source, version)

    def keep_source_version(self, source: str, version: str, content: JsonObject) -> None:
        """Remember something of a version."""
        table = schema.source_versions
        with self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.source == source, table.c.version == version))
            connection.execute(insert(table), {"source": source, "version": version, "content": content})

    def forget_source_versions(self, source: str, but: str) -> None:
        """Forget all that a source remembers, but of one version."""
        table = schema.source_versions
        with self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.source == source, table.c.version != but))
