"""The lease: one refresher at a time, with a fencing token.

Safety comes from the token, not from clocks. Every lease has a larger token than the one before, and every
step of an epoch checks in its own transaction that its token is still the one in the ledger. A holder that
slept through its expiry and wakes up after somebody took over has the older token, and can publish nothing.
The time, from the clock of whoever asks, decides only when a silent holder is presumed dead: clocks that
disagree make a takeover early or late, never an epoch wrong. For the same reason an expired lease that
nobody took over is still good.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, select, update

from viewkeeper.errors import LeaseError
from viewkeeper.ledger import schema
from viewkeeper.ledger.records import Lease


def acquire(connection: Connection, holder: str, ttl_seconds: float, now: datetime) -> Lease:
    """Take the lease if it is free, released or expired; the token grows by one."""
    row = _row(connection)
    present = _lease(row)
    if present is not None and present.expires_at > now:
        raise LeaseError(
            f"{present.holder} is refreshing since {_shown(present.acquired_at)}; "
            f"its lease runs until {_shown(present.expires_at)}",
            hint="Wait until it is done. If its process is gone, the lease is free after that time.",
        )
    lease = Lease(holder, row.token + 1, now, now + timedelta(seconds=ttl_seconds))
    _write(
        connection,
        token=lease.token,
        holder=holder,
        acquired_at=now,
        expires_at=lease.expires_at,
        ttl_seconds=ttl_seconds,
    )
    return lease


def renew(connection: Connection, lease: Lease, now: datetime) -> Lease:
    """The same lease for another term, counted from now."""
    row = require(connection, lease)
    expires_at = now + timedelta(seconds=row.ttl_seconds)
    _write(connection, expires_at=expires_at)
    return Lease(lease.holder, lease.token, lease.acquired_at, expires_at)


def release(connection: Connection, lease: Lease) -> None:
    """Give the lease back; nothing happens if it is not ours any more. The token stays, so it can grow."""
    if _holds(_row(connection), lease):
        _write(connection, holder=None, acquired_at=None, expires_at=None)


def current(connection: Connection, now: datetime) -> Lease | None:
    """The lease that is held and has not expired."""
    lease = _lease(_row(connection))
    return lease if lease is not None and lease.expires_at > now else None


def open_token(connection: Connection) -> int | None:
    """The token with which somebody could still publish, whatever the time; None after a release."""
    row = _row(connection)
    return None if row.holder is None else int(row.token)


def require(connection: Connection, lease: Lease) -> Row[Any]:
    """The fence: raise unless this lease is the one in the ledger."""
    row = _row(connection)
    if _holds(row, lease):
        return row
    taker = _lease(row)
    how = "was released" if taker is None else f"was taken over by {taker.holder}"
    raise LeaseError(
        f"The lease of {lease.holder} (token {lease.token}) {how}",
        code="VK-LEASE-LOST",
        hint="Nothing was published. Refresh again; it starts from the latest epoch.",
    )


def _row(connection: Connection) -> Row[Any]:
    return connection.execute(select(schema.lease)).one()


def _holds(row: Row[Any], lease: Lease) -> bool:
    return row.holder is not None and bool(row.token == lease.token)


def _lease(row: Row[Any]) -> Lease | None:
    if row.holder is None:
        return None
    return Lease(row.holder, row.token, row.acquired_at, row.expires_at)


def _write(connection: Connection, **values: Any) -> None:
    connection.execute(update(schema.lease).values(**values))


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
