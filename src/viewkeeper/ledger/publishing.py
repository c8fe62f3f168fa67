"""The commit point: everything that an epoch publishes, written inside one transaction of the caller.

Each function takes the connection of that transaction; none commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, update

from viewkeeper.errors import LedgerError
from viewkeeper.ledger import propagations, schema
from viewkeeper.ledger.records import Chore, Lease, NewEpoch, ViewRecord


def begin(connection: Connection, lease: Lease, now: datetime) -> int:
    """Allocate the next id, one above every attempt so far, whatever became of it."""
    last = connection.scalar(select(func.max(schema.attempts.c.id)))
    epoch_id = (last or 0) + 1
    connection.execute(
        insert(schema.attempts),
        {"id": epoch_id, "token": lease.token, "holder": lease.holder, "begun_at": now},
    )
    return epoch_id


def published_by(connection: Connection, epoch_id: int) -> int | None:
    """The token that published this epoch; None if nobody has."""
    joined = schema.epochs.join(schema.attempts)
    query = select(schema.attempts.c.token).select_from(joined).where(schema.epochs.c.id == epoch_id)
    token: int | None = connection.scalar(query)
    return token


def require_open(connection: Connection, lease: Lease, epoch_id: int) -> None:
    """Raise unless this lease began the epoch, and it is neither published nor given up."""
    attempt: Row[Any] | None = connection.execute(
        select(schema.attempts).where(schema.attempts.c.id == epoch_id)
    ).one_or_none()
    if attempt is None:
        raise _invalid(f"Epoch {epoch_id} was never begun")
    if published_by(connection, epoch_id) is not None:
        raise _invalid(f"Epoch {epoch_id} is already published, by {attempt.holder}")
    if attempt.token != lease.token:
        raise _invalid(f"Epoch {epoch_id} was begun by {attempt.holder}, under another lease")
    if attempt.failed_at is not None:
        raise _invalid(f"Epoch {epoch_id} was given up: {attempt.error}")


def publish(connection: Connection, epoch: NewEpoch, now: datetime) -> None:
    """Write the whole epoch. The order matters: definitions refer to the epoch, states to definitions."""
    _require_newest(connection, epoch.id)
    connection.execute(
        insert(schema.epochs),
        {
            "id": epoch.id,
            "published_at": now,
            "source_versions": epoch.source_versions,
            "plan": epoch.plan,
            "seconds": epoch.seconds,
        },
    )
    for name in epoch.drop:
        _drop(connection, name, epoch.id)
    for record in epoch.define:
        _define(connection, record)
    _declare(connection, epoch)
    _write_states(connection, epoch)
    _insert_all(
        connection,
        schema.refreshes,
        [
            {"epoch_id": epoch.id, "place": place, **asdict(refresh)}
            for place, refresh in enumerate(epoch.refreshes)
        ],
    )
    connection.execute(
        delete(schema.chores).where(schema.chores.c.epoch_id == epoch.id, schema.chores.c.intent)
    )
    add_chores(connection, epoch.redo, intent=False)
    if epoch.installs_propagation:
        propagations.forget(connection)


def add_chores(connection: Connection, chores: Sequence[Chore], *, intent: bool) -> None:
    """Note what to do if the epoch is published (redo), or if it never is (intent)."""
    _insert_all(
        connection,
        schema.chores,
        [
            {"epoch_id": chore.epoch, "intent": intent, "kind": chore.kind.value, "payload": chore.payload}
            for chore in chores
        ],
    )


def _require_newest(connection: Connection, epoch_id: int) -> None:
    last = connection.scalar(select(func.max(schema.epochs.c.id)))
    if last is not None and last >= epoch_id:
        raise _invalid(f"Epoch {epoch_id} cannot follow epoch {last}, which is published")


def _drop(connection: Connection, name: str, epoch_id: int) -> None:
    ended = connection.execute(
        update(schema.definitions)
        .where(schema.definitions.c.name == name, schema.definitions.c.ended_in.is_(None))
        .values(ended_in=epoch_id)
    )
    if ended.rowcount != 1:
        raise _invalid(f"Epoch {epoch_id} drops {name}, which the ledger does not have")


def _define(connection: Connection, record: ViewRecord) -> None:
    """A view that is replaced keeps its place in the order of creation."""
    is_current = (schema.definitions.c.name == record.name) & schema.definitions.c.ended_in.is_(None)
    place = connection.scalar(select(schema.definitions.c.place).where(is_current))
    if place is None:
        place = (connection.scalar(select(func.max(schema.definitions.c.place))) or 0) + 1
    else:
        connection.execute(update(schema.definitions).where(is_current).values(ended_in=record.defined_in))
    connection.execute(insert(schema.definitions), {**asdict(record), "place": place})


def _declare(connection: Connection, epoch: NewEpoch) -> None:
    """Sources have no history of their own: who asks for an old epoch reads its views."""
    replaced = [*epoch.forget, *(source.name for source in epoch.declare)]
    connection.execute(delete(schema.sources).where(schema.sources.c.name.in_(replaced)))
    connection.execute(
        delete(schema.source_versions).where(schema.source_versions.c.source.in_(epoch.forget))
    )
    _insert_all(connection, schema.sources, [asdict(source) for source in epoch.declare])


def _write_states(connection: Connection, epoch: NewEpoch) -> None:
    current = schema.definitions.c.ended_in.is_(None)
    rows = connection.execute(
        select(schema.definitions.c.name, schema.definitions.c.definition_id).where(current)
    )
    known = {row.name: row.definition_id for row in rows}
    for state in epoch.states:
        if known.get(state.view) != state.definition_id:
            raise _invalid(
                f"Epoch {epoch.id} has a state of {state.view} by definition {state.definition_id}; "
                f"the ledger has {known.get(state.view, 'no such view')}"
            )
    _insert_all(
        connection,
        schema.states,
        [
            {
                "view": state.view,
                "epoch_id": epoch.id,
                "definition_id": state.definition_id,
                "storage": state.storage,
                "snapshot": state.snapshot,
                "vector": state.vector,
            }
            for state in epoch.states
        ],
    )


def _insert_all(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:  # an insert without rows would be an insert of defaults
        connection.execute(insert(table), rows)


def _invalid(message: str) -> LedgerError:
    return LedgerError(message, code="VK-EPOCH-INVALID", hint="Nothing was published. Refresh again.")
