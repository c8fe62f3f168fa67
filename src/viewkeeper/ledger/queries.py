"""What is asked of the ledger: rows in, records out. Each function takes a connection and reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, exists, func, null, or_, select

from viewkeeper.errors import LedgerError
from viewkeeper.ledger import lease, schema
from viewkeeper.ledger.records import (
    Chore,
    ChoreKind,
    EpochRecord,
    FailingView,
    FailureRecord,
    JsonObject,
    PastRefresh,
    SourceObservation,
    SourceRecord,
    Trouble,
    ViewRecord,
    ViewRefreshRecord,
    ViewState,
)


def require_epoch(connection: Connection, epoch_id: int) -> None:
    """Raise unless this epoch is published; the message says which ones are."""
    ids = schema.epochs.c.id
    if connection.scalar(select(ids).where(ids == epoch_id)) is not None:
        return
    first, last = connection.execute(select(func.min(ids), func.max(ids))).one()
    there = "no epoch is published yet" if first is None else f"the ledger has {first} to {last}"
    raise LedgerError(
        f"Epoch {epoch_id} was not published; {there}",
        code="VK-UNKNOWN-EPOCH",
        hint="List the epochs there are with `viewkeeper history`.",
    )


def latest_epoch_id(connection: Connection) -> int | None:
    """The newest published epoch."""
    epoch_id: int | None = connection.scalar(select(func.max(schema.epochs.c.id)))
    return epoch_id


def views(connection: Connection, epoch_id: int | None, name: str | None = None) -> tuple[ViewRecord, ...]:
    """The definitions as of an epoch (None: now), in the order in which the views were created."""
    table = schema.definitions
    query = select(table).where(_defined(epoch_id)).order_by(table.c.place)
    if name is not None:
        query = query.where(table.c.name == name)
    return tuple(
        ViewRecord(row.name, row.definition, row.analysis, row.definition_id, row.defined_in)
        for row in connection.execute(query)
    )


def states(connection: Connection, epoch_id: int) -> dict[str, ViewState]:
    """Of each view that was defined as of the epoch, the last state at or before it.

    That one belongs to the definition of the time, and not to an earlier view of the same name, because
    every definition is published together with a state.
    """
    table = schema.states
    newer = table.alias()
    last = (
        select(func.max(newer.c.epoch_id))
        .where(newer.c.view == schema.definitions.c.name, newer.c.epoch_id <= epoch_id)
        .correlate(schema.definitions)
        .scalar_subquery()
    )
    query = (
        select(table)
        .select_from(table.join(schema.definitions, table.c.view == schema.definitions.c.name))
        .where(_defined(epoch_id), table.c.epoch_id == last)
        .order_by(schema.definitions.c.place)
    )
    return {
        row.view: ViewState(row.view, row.definition_id, row.storage, row.snapshot, row.vector, row.epoch_id)
        for row in connection.execute(query)
    }


def every_state(connection: Connection) -> tuple[ViewState, ...]:
    """All states that the views there are ever had, oldest first."""
    table = schema.states
    known = select(schema.definitions.c.name).where(schema.definitions.c.ended_in.is_(None))
    query = select(table).where(table.c.view.in_(known)).order_by(table.c.epoch_id)
    return tuple(
        ViewState(row.view, row.definition_id, row.storage, row.snapshot, row.vector, row.epoch_id)
        for row in connection.execute(query)
    )


def publications(connection: Connection, only: Collection[int] | None = None) -> dict[int, datetime]:
    """When each epoch was published, or each of some."""
    query = select(schema.epochs.c.id, schema.epochs.c.published_at)
    if only is not None:
        query = query.where(schema.epochs.c.id.in_(only))
    return {row.id: row.published_at for row in connection.execute(query)}


def epochs(
    connection: Connection,
    *,
    only: int | None = None,
    view: str | None = None,
    after: int | None = None,
    limit: int | None = None,
    plans: bool = True,
) -> tuple[EpochRecord, ...]:
    """Published epochs, newest first: one of them, those that refreshed a view, those after another, or the
    last few. Plans are large: ``plans=False`` leaves them where they are."""
    table = schema.epochs
    plan = table.c.plan if plans else null().label("plan")
    wanted = select(table.c.id).order_by(table.c.id.desc()).limit(limit)
    if only is not None:
        wanted = wanted.where(table.c.id == only)
    if view is not None:
        refreshed = select(schema.refreshes.c.epoch_id).where(schema.refreshes.c.view == view)
        wanted = wanted.where(table.c.id.in_(refreshed))
    if after is not None:
        wanted = wanted.where(table.c.id > after)
    refreshes = _refreshes(connection, wanted)
    rows = connection.execute(
        select(
            *(table.c[name] for name in ("id", "published_at", "source_versions", "seconds")),
            plan,
            schema.attempts.c.holder,
        )
        .select_from(table.join(schema.attempts))
        .where(table.c.id.in_(wanted))
        .order_by(table.c.id.desc())
    )
    return tuple(
        EpochRecord(
            row.id,
            row.published_at,
            row.holder,
            row.source_versions,
            tuple(refreshes[row.id]),
            row.plan,
            row.seconds,
        )
        for row in rows
    )


def view_names(connection: Connection) -> tuple[str, ...]:
    """The names of the views there are, in the order of their creation."""
    table = schema.definitions
    return tuple(connection.scalars(select(table.c.name).where(_defined(None)).order_by(table.c.place)))


def last_planned(connection: Connection, view: str) -> int | None:
    """The last epoch whose plan changed a view."""
    table = schema.refreshes
    changed = (table.c.view == view) & (table.c.strategy != "unchanged")
    query = select(func.max(table.c.epoch_id)).join(schema.epochs, schema.epochs.c.id == table.c.epoch_id)
    found: int | None = connection.scalar(query.where(changed, schema.epochs.c.plan.is_not(None)))
    return found


_ALL = 2**31


def last_refreshes(connection: Connection, *, moved: bool = False) -> dict[str, PastRefresh]:
    """Of each view that there is, the last epoch that looked after it; ``moved``: and changed it. One
    question for all of them."""
    table, known, newer = schema.refreshes, schema.definitions, schema.refreshes.alias()
    newest = select(func.max(newer.c.epoch_id)).where(newer.c.view == known.c.name)
    if moved:
        newest = newest.where(newer.c.strategy != "unchanged")
    epoch = newest.correlate(known).scalar_subquery().label("epoch_id")
    # With a limit it is computed first: SQLite would rather look at every refresh there ever was, and ask of
    # each whether it is the last. (MATERIALIZED would say so, but not to versions before 3.35.)
    last = select(known.c.name, epoch).where(_defined(None)).limit(_ALL).subquery("last")
    found = connection.execute(
        select(table, schema.epochs.c.published_at)
        .select_from(last)
        .join(table, (table.c.view == last.c.name) & (table.c.epoch_id == last.c.epoch_id))
        .join(schema.epochs, schema.epochs.c.id == table.c.epoch_id)
    )
    return {row.view: past_refresh(row) for row in found}


def chores(connection: Connection) -> tuple[Chore, ...]:
    """What published epochs left to do, and what epochs that can no longer be published left behind."""
    token = lease.open_token(connection)
    running = and_(
        schema.chores.c.intent, schema.attempts.c.token == token, schema.attempts.c.failed_at.is_(None)
    )
    query = select(schema.chores).join(schema.attempts).order_by(schema.chores.c.id)
    if token is not None:
        query = query.where(~running)
    return tuple(
        Chore(row.id, _kind(row.kind), row.epoch_id, row.payload) for row in connection.execute(query)
    )


def same_chore(chore: Chore) -> ColumnElement[bool]:
    """The row of a chore. SQLite gives the ids of what was deleted to others; an epoch's are its own."""
    return and_(schema.chores.c.id == chore.id, schema.chores.c.epoch_id == chore.epoch)


def is_left(connection: Connection, chore: Chore) -> bool:
    """Whether a chore is not struck off."""
    return connection.scalar(select(schema.chores.c.id).where(same_chore(chore))) is not None


def failures(
    connection: Connection, limit: int | None, *, first: int | None = None, before: int | None = None
) -> tuple[FailureRecord, ...]:
    """Attempts that will never be published, newest first; those with ids in a range."""
    table = schema.attempts
    token = lease.open_token(connection)
    query = (
        select(table)
        .outerjoin(schema.epochs)
        .where(schema.epochs.c.id.is_(None), table.c.propagated.is_(False))
        .order_by(table.c.id.desc())
        .limit(limit)
    )
    if token is not None:  # what its holder has not given up yet may still be published
        query = query.where(or_(table.c.failed_at.is_not(None), table.c.token != token))
    if first is not None:
        query = query.where(table.c.id >= first)
    if before is not None:
        query = query.where(table.c.id < before)
    return tuple(
        FailureRecord(row.id, row.holder, row.begun_at, row.failed_at, row.error)
        for row in connection.execute(query)
    )


def observations(connection: Connection) -> dict[str, SourceObservation]:
    """When each source was last looked at, and the version it had."""
    rows = connection.execute(select(schema.observations).order_by(schema.observations.c.source))
    return {row.source: SourceObservation(row.version, row.observed_at, row.details) for row in rows}


def estimates(
    connection: Connection, view: str | None, limit: int | None
) -> tuple[tuple[int, str, JsonObject], ...]:
    """Epoch, view, and what was estimated for its refresh, newest first. A view is another one than that of
    the same name which was dropped before."""
    table = schema.refreshes
    wanted = select(table.c.epoch_id, table.c.view, table.c.estimates).order_by(
        table.c.epoch_id.desc(), table.c.place
    )
    if view is not None:
        wanted = wanted.where(table.c.view == view, table.c.epoch_id > _last_dropped(view))
    rows = connection.execute(wanted.limit(limit))
    return tuple((row.epoch_id, row.view, row.estimates) for row in rows)


def _last_dropped(view: str) -> ColumnElement[int]:
    """The epoch in which a view of this name was last dropped, and not only replaced; 0 if none was."""
    ended, replacing = schema.definitions.alias(), schema.definitions.alias()
    replaced = exists().where(replacing.c.name == view, replacing.c.defined_in == ended.c.ended_in)
    last = select(func.max(ended.c.ended_in)).where(ended.c.name == view, ~replaced)
    return func.coalesce(last.scalar_subquery(), 0)


def _defined(epoch_id: int | None) -> Any:
    table = schema.definitions
    if epoch_id is None:
        return table.c.ended_in.is_(None)
    return and_(table.c.defined_in <= epoch_id, or_(table.c.ended_in.is_(None), table.c.ended_in > epoch_id))


def _refreshes(
    connection: Connection, epoch_ids: Select[tuple[int]]
) -> defaultdict[int, list[ViewRefreshRecord]]:
    table = schema.refreshes
    rows: Iterable[Row[Any]] = connection.execute(
        select(table).where(table.c.epoch_id.in_(epoch_ids)).order_by(table.c.epoch_id, table.c.place)
    )
    found: defaultdict[int, list[ViewRefreshRecord]] = defaultdict(list)
    for row in rows:
        found[row.epoch_id].append(_refresh(row))
    return found


def past_refresh(row: Row[Any]) -> PastRefresh:
    """A refresh, with when its epoch was published."""
    return PastRefresh(row.epoch_id, row.published_at, _refresh(row))


_FIELDS = tuple(field.name for field in fields(ViewRefreshRecord))


def _refresh(row: Row[Any]) -> ViewRefreshRecord:
    return ViewRefreshRecord(**{name: getattr(row, name) for name in _FIELDS})


def _kind(value: str) -> ChoreKind:
    try:
        return ChoreKind(value)
    except ValueError as error:
        raise LedgerError(
            f"The ledger holds a chore of an unknown kind, {value!r}",
            code="VK-LEDGER-CORRUPT",
            hint="Restore the ledger from a backup.",
        ) from error


def sources(connection: Connection) -> dict[str, SourceRecord]:
    """Every declared source, in the order of their declaration."""
    table = schema.sources
    rows = connection.execute(select(table).order_by(table.c.declared_in, table.c.name))
    return {row.name: SourceRecord(row.name, row.definition, row.declared_in) for row in rows}


def source_version(connection: Connection, source: str, version: str) -> JsonObject | None:
    """What a source remembers of a version."""
    table = schema.source_versions
    wanted = (table.c.source == source) & (table.c.version == version)
    found: JsonObject | None = connection.scalar(select(table.c.content).where(wanted))
    return found


def failing(connection: Connection) -> dict[str, FailingView]:
    """Views whose last refreshes failed; what failed under an earlier definition does not count."""
    table, known = schema.failing, schema.definitions
    same = (known.c.name == table.c.view) & (known.c.definition_id == table.c.definition_id)
    query = select(table).join(known, same).where(known.c.ended_in.is_(None)).order_by(table.c.view)
    return {row.view: FailingView(*row) for row in connection.execute(query)}


def troubles(connection: Connection) -> dict[Trouble, tuple[str, bool]]:
    """What is not as it should be, each with the words, and whether somebody was told."""
    table = schema.troubles
    rows = connection.execute(select(table).order_by(table.c.kind, table.c.view, table.c.what))
    return {Trouble(row.kind, row.view, row.what): (row.said, row.told) for row in rows}


def told(connection: Connection) -> int | None:
    """The last epoch of which it was told what it did."""
    found: int | None = connection.scalar(select(func.max(schema.told.c.epoch_id)))
    return found


def rates(connection: Connection) -> JsonObject | None:
    """What operations take, as measured last."""
    newest = select(schema.calibrations.c.rates).order_by(schema.calibrations.c.measured_at.desc()).limit(1)
    found: JsonObject | None = connection.scalar(newest)
    return found
