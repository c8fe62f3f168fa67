"""What was propagated and waits to be installed: at most one plan, whose computed deltas are kept in tables.

Each function takes the connection of the caller's transaction; none commits.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from viewkeeper.ledger import schema
from viewkeeper.ledger.records import NewPropagation, Propagation


def keep(connection: Connection, new: NewPropagation, now: datetime) -> None:
    """Remember it in the place of any other. From here on its tables are no longer to be cleaned up."""
    forget(connection)
    connection.execute(
        insert(schema.propagations),
        {"id": new.id, "kept_at": now, "plan": new.plan, "tables": new.tables},
    )
    connection.execute(
        delete(schema.chores).where(schema.chores.c.epoch_id == new.id, schema.chores.c.intent)
    )
    connection.execute(
        update(schema.attempts).where(schema.attempts.c.id == new.id).values(failed_at=now, propagated=True)
    )


def current(connection: Connection) -> Propagation | None:
    """What waits to be installed."""
    row = connection.execute(select(schema.propagations)).one_or_none()
    return None if row is None else Propagation(row.id, row.kept_at, row.plan, row.tables)


def forget(connection: Connection) -> None:
    """It was installed, or is no longer wanted."""
    connection.execute(delete(schema.propagations))
