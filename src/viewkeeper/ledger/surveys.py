"""What pages and reports ask of the ledger: of many views and epochs at once, never one by one, and without
the plans, which are large. Each function takes a connection, reads only, and asks once or twice however many
views and epochs there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, case, func, select, tuple_

from viewkeeper.ledger import lease, queries, schema
from viewkeeper.ledger.records import JsonObject, PastRefresh


@dataclass(frozen=True, slots=True)
class Pulse:
    """What has changed since the last look, if one of these has: the newest epoch and attempt, whether that
    one failed, and when a source was last seen."""

    epoch: int | None
    attempt: int | None
    failed: bool
    seen_at: datetime | None
    holder: str | None


@dataclass(frozen=True, slots=True)
class EpochSummary:
    """An epoch in one line: how many views it brought up to date in which way, and what that took."""

    id: int
    begun_at: datetime
    published_at: datetime
    holder: str
    seconds: dict[str, float]
    incremental: int
    full: int
    unchanged: int
    delta_rows: int
    compute_seconds: float
    install_seconds: float


def pulse(connection: Connection) -> Pulse:
    """One look at what moves."""
    attempts, newest = schema.attempts, schema.attempts.alias()
    last = select(func.max(newest.c.id)).scalar_subquery()
    row = connection.execute(
        select(
            select(func.max(schema.epochs.c.id)).scalar_subquery().label("epoch"),
            last.label("attempt"),
            select(attempts.c.failed_at).where(attempts.c.id == last).scalar_subquery().label("failed_at"),
            select(func.max(schema.observations.c.observed_at)).scalar_subquery().label("seen_at"),
            select(schema.lease.c.holder).scalar_subquery().label("holder"),
        )
    ).one()
    return Pulse(row.epoch, row.attempt, row.failed_at is not None, row.seen_at, row.holder)


def running_since(connection: Connection) -> tuple[int, datetime] | None:
    """The epoch that is under way, and when it was begun; as far as the ledger knows, for a process that died
    says nothing."""
    token = lease.open_token(connection)
    table = schema.attempts
    query = (
        select(table.c.id, table.c.begun_at)
        .outerjoin(schema.epochs)
        .where(schema.epochs.c.id.is_(None), table.c.token == token, table.c.failed_at.is_(None))
        .order_by(table.c.id.desc())
        .limit(1)
    )
    row = None if token is None else connection.execute(query).one_or_none()
    return None if row is None else (row.id, row.begun_at)


def definition_keys(connection: Connection) -> tuple[tuple[str, int], ...]:
    """What tells the present definitions from all others, in the order in which the views were created."""
    table = schema.definitions
    query = select(table.c.definition_id, table.c.defined_in).where(table.c.ended_in.is_(None))
    return tuple(
        (row.definition_id, row.defined_in) for row in connection.execute(query.order_by(table.c.place))
    )


def history_of(connection: Connection, view: str, limit: int) -> tuple[PastRefresh, ...]:
    """What the last epochs did to a view, newest first."""
    table = schema.refreshes
    rows = connection.execute(
        select(table, schema.epochs.c.published_at)
        .join(schema.epochs, schema.epochs.c.id == table.c.epoch_id)
        .where(table.c.view == view)
        .order_by(table.c.epoch_id.desc())
        .limit(limit)
    )
    return tuple(map(queries.past_refresh, rows))


def epoch_page(connection: Connection, before: int | None, limit: int) -> tuple[EpochSummary, ...]:
    """So many epochs, newest first, beginning below an id."""
    table, done = schema.epochs, schema.refreshes
    query = select(
        *(table.c[name] for name in ("id", "published_at", "seconds")),
        *(schema.attempts.c[name] for name in ("holder", "begun_at")),
    ).select_from(table.join(schema.attempts))
    if before is not None:
        query = query.where(table.c.id < before)
    rows = connection.execute(query.order_by(table.c.id.desc()).limit(limit)).all()
    counts = {
        row.epoch_id: row
        for row in connection.execute(
            select(
                done.c.epoch_id,
                *(
                    func.sum(case((done.c.strategy == strategy, 1), else_=0)).label(strategy)
                    for strategy in ("incremental", "full", "unchanged")
                ),
                *(func.sum(done.c[name]).label(name) for name in _SUMMED),
            )
            .where(done.c.epoch_id.in_([row.id for row in rows]))
            .group_by(done.c.epoch_id)
        )
    }
    return tuple(_summary(row, counts.get(row.id)) for row in rows)


_SUMMED = ("delta_rows", "compute_seconds", "install_seconds")


def _summary(row: Row[Any], counts: Row[Any] | None) -> EpochSummary:
    counted = {} if counts is None else counts._mapping
    return EpochSummary(
        row.id,
        row.begun_at,
        row.published_at,
        row.holder,
        row.seconds,
        int(counted.get("incremental", 0)),
        int(counted.get("full", 0)),
        int(counted.get("unchanged", 0)),
        int(counted.get("delta_rows", 0)),
        float(counted.get("compute_seconds", 0.0)),
        float(counted.get("install_seconds", 0.0)),
    )


def epoch_count(connection: Connection) -> int:
    """How many epochs were published."""
    return connection.scalar(select(func.count()).select_from(schema.epochs)) or 0


def neighbours(connection: Connection, epoch: int) -> tuple[int | None, int | None]:
    """The published epochs before and after one."""
    ids = schema.epochs.c.id
    row = connection.execute(
        select(
            select(func.max(ids)).where(ids < epoch).scalar_subquery(),
            select(func.min(ids)).where(ids > epoch).scalar_subquery(),
        )
    ).one()
    return row[0], row[1]


def source_contents(
    connection: Connection, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], JsonObject]:
    """What sources remember of versions."""
    table = schema.source_versions
    query = select(table).where(tuple_(table.c.source, table.c.version).in_(list(wanted)))
    return {(row.source, row.version): row.content for row in connection.execute(query)}
