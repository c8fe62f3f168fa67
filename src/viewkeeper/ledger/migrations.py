"""How a ledger gets its tables: numbered migrations, applied at open, each one once and never changed.

A migration is SQL text and not a call to ``metadata.create_all``: what version 1 was must not move when
``schema`` does. A test holds the two together: all migrations applied give exactly ``schema``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, inspect, select, text

from viewkeeper.errors import LedgerError
from viewkeeper.ledger.schema import versions


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema. The statements may use the words of ``_types`` in braces."""

    version: int
    summary: str
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        "the first schema",
        (
            "CREATE TABLE vk_schema (version BIGINT PRIMARY KEY, applied_at {time} NOT NULL)",
            """CREATE TABLE vk_lease (
                id BIGINT PRIMARY KEY CHECK (id = 1), token BIGINT NOT NULL, holder TEXT,
                acquired_at {time}, expires_at {time}, ttl_seconds DOUBLE PRECISION NOT NULL)""",
            # The row is there from the start: whoever wants the lease locks it and never races to insert it.
            "INSERT INTO vk_lease (id, token, ttl_seconds) VALUES (1, 0, 0)",
            """CREATE TABLE vk_attempt (
                id BIGINT PRIMARY KEY, token BIGINT NOT NULL, holder TEXT NOT NULL,
                begun_at {time} NOT NULL, failed_at {time}, error TEXT)""",
            """CREATE TABLE vk_epoch (
                id BIGINT PRIMARY KEY REFERENCES vk_attempt (id), published_at {time} NOT NULL,
                source_versions TEXT NOT NULL, plan TEXT, seconds TEXT NOT NULL)""",
            """CREATE TABLE vk_definition (
                id {serial}, name TEXT NOT NULL, definition_id TEXT NOT NULL, definition TEXT NOT NULL,
                analysis TEXT NOT NULL, place BIGINT NOT NULL,
                defined_in BIGINT NOT NULL REFERENCES vk_epoch (id),
                ended_in BIGINT REFERENCES vk_epoch (id))""",
            # A name has one definition at a time.
            "CREATE UNIQUE INDEX vk_definition_current ON vk_definition (name) WHERE ended_in IS NULL",
            """CREATE TABLE vk_state (
                view TEXT NOT NULL, epoch_id BIGINT NOT NULL REFERENCES vk_epoch (id),
                definition_id TEXT NOT NULL, storage TEXT NOT NULL, snapshot TEXT, vector TEXT NOT NULL,
                PRIMARY KEY (view, epoch_id))""",
            """CREATE TABLE vk_refresh (
                epoch_id BIGINT NOT NULL REFERENCES vk_epoch (id), place BIGINT NOT NULL,
                view TEXT NOT NULL, strategy TEXT NOT NULL, install TEXT, reason TEXT,
                delta_rows BIGINT NOT NULL, inserted BIGINT, deleted BIGINT, updated BIGINT,
                compute_seconds DOUBLE PRECISION NOT NULL, install_seconds DOUBLE PRECISION NOT NULL,
                estimates TEXT NOT NULL, PRIMARY KEY (epoch_id, place))""",
            "CREATE INDEX vk_refresh_view ON vk_refresh (view, epoch_id)",
            """CREATE TABLE vk_chore (
                id {serial}, epoch_id BIGINT NOT NULL REFERENCES vk_attempt (id), intent BOOLEAN NOT NULL,
                kind TEXT NOT NULL, payload TEXT NOT NULL)""",
            """CREATE TABLE vk_observation (
                source TEXT PRIMARY KEY, version TEXT, observed_at {time} NOT NULL, details TEXT NOT NULL)""",
        ),
    ),
    Migration(
        2,
        "groups that were recomputed, whose summary-delta a view's was made from, what was propagated",
        (
            "ALTER TABLE vk_attempt ADD COLUMN propagated BOOLEAN NOT NULL DEFAULT FALSE",
            """CREATE TABLE vk_propagation (
                id BIGINT PRIMARY KEY REFERENCES vk_attempt (id), kept_at {time} NOT NULL,
                plan TEXT NOT NULL, tables TEXT NOT NULL)""",
            "ALTER TABLE vk_refresh ADD COLUMN recomputed BIGINT",
            "ALTER TABLE vk_refresh ADD COLUMN derived_from TEXT",
        ),
    ),
    Migration(
        3,
        "what operations take, as calibrated",
        ("CREATE TABLE vk_calibration (measured_at {time} PRIMARY KEY, rates TEXT NOT NULL)",),
    ),
    Migration(
        4,
        "declared sources, and what those without history remember of a version",
        (
            """CREATE TABLE vk_source (
                name TEXT PRIMARY KEY, definition TEXT NOT NULL,
                declared_in BIGINT NOT NULL REFERENCES vk_epoch (id))""",
            """CREATE TABLE vk_source_version (
                source TEXT NOT NULL, version TEXT NOT NULL, content TEXT NOT NULL,
                PRIMARY KEY (source, version))""",
        ),
    ),
    Migration(
        5,
        "views that fail, how often in a row, and which of them are suspended",
        (
            """CREATE TABLE vk_failing (
                view TEXT PRIMARY KEY, definition_id TEXT NOT NULL, failures BIGINT NOT NULL,
                failed_at {time} NOT NULL, reason TEXT NOT NULL, suspended BOOLEAN NOT NULL)""",
        ),
    ),
    Migration(
        6,
        "what somebody was told of, and was not mended yet",
        (
            """CREATE TABLE vk_trouble (
                kind TEXT NOT NULL, view TEXT NOT NULL, what TEXT NOT NULL, said TEXT NOT NULL,
                PRIMARY KEY (kind, view, what))""",
        ),
    ),
    Migration(
        7,
        "the last epoch of which it was told what it did, and troubles that are still to be told",
        (
            "CREATE TABLE vk_told (epoch_id BIGINT PRIMARY KEY)",
            "ALTER TABLE vk_trouble ADD COLUMN told BOOLEAN NOT NULL DEFAULT TRUE",
        ),
    ),
)

LATEST = MIGRATIONS[-1].version

# Any number will do, as long as nobody else in the database takes the same: "viewkeep" in ASCII.
_POSTGRES_LOCK = int.from_bytes(b"viewkeep", "big") >> 1


def schema_version(connection: Connection) -> int:
    """The version of the ledger behind this connection; 0 before there is one."""
    if not inspect(connection).has_table(versions.name):
        return 0
    return int(connection.scalar(select(func.coalesce(func.max(versions.c.version), 0))) or 0)


def refuse_newer(version: int, where: str) -> None:
    """Raise if a later viewkeeper has written this ledger; we would not know what its tables mean."""
    if version > LATEST:
        raise LedgerError(
            f"The ledger {where} has schema version {version}; this viewkeeper knows up to {LATEST}",
            code="VK-LEDGER-NEWER",
            hint="Upgrade viewkeeper on this machine: pip install --upgrade viewkeeper",
        )


def migrate(connection: Connection, now: datetime, where: str) -> None:
    """Bring the ledger to ``LATEST`` inside the caller's writing transaction: wholly, or not at all."""
    if connection.dialect.name == "postgresql":
        # There is no row to lock before the first migration. SQLite is locked by BEGIN IMMEDIATE.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_LOCK})
    present = schema_version(connection)
    refuse_newer(present, where)
    for migration in MIGRATIONS:
        if migration.version > present:
            _apply(connection, migration, now)


def _apply(connection: Connection, migration: Migration, now: datetime) -> None:
    types = _types(connection.dialect.name)
    for statement in migration.statements:
        connection.exec_driver_sql(statement.format(**types))
    connection.execute(insert(versions), {"version": migration.version, "applied_at": now})


def _types(dialect: str) -> dict[str, str]:
    if dialect == "postgresql":
        return {"time": "TIMESTAMPTZ", "serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"}
    return {"time": "TEXT", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"}
