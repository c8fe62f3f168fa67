"""The tables, as SQLAlchemy sees them now. How a ledger came to have them stands in ``migrations``.

Nothing that is published is ever changed, with one exception: a definition learns the epoch that ended it.
An epoch's id is allocated by its attempt, so a failed attempt leaves a gap and no id is used twice.

The prefix lets a ledger share a PostgreSQL database, for instance with an Iceberg catalog.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)

from viewkeeper.errors import LedgerError


class Verbatim(TypeDecorator[str]):
    """Text exactly as given, on either database.

    PostgreSQL has no place for NUL and neither database for half a surrogate pair; both are refused
    everywhere, so that a ledger can move from SQLite to PostgreSQL.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None and not is_storable(value):
            raise LedgerError(
                f"The ledger cannot hold the text {value!a}",
                code="VK-LEDGER-TEXT",
                hint="Remove NUL characters and unpaired surrogates.",
            )
        return value


def storable(text: str) -> str:
    """The text, with what neither database can hold replaced: what comes from anywhere, a JVM included, must
    not fail for a character in it."""
    return "".join(character if is_storable(character) else "\ufffd" for character in text)


def is_storable(text: str) -> bool:
    """Whether both databases can hold this text.

    >>> is_storable("a`;DROP"), is_storable("a\\0"), is_storable("\\ud800")
    (True, False, False)
    """
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


class JsonText(TypeDecorator[Any]):
    """A JSON value as text: we never query inside it, and text keeps the order of keys."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        try:
            return None if value is None else json.loads(value)
        except ValueError as error:
            raise LedgerError(
                f"The ledger holds JSON that cannot be read: {error}",
                code="VK-LEDGER-CORRUPT",
                hint="Restore the ledger from a backup.",
            ) from error


class UtcTime(TypeDecorator[datetime]):
    """An aware point in time. SQLite keeps no zone, so everything is UTC on the way in and out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise LedgerError(f"The time {value.isoformat()} has no zone", hint="Give an aware datetime.")
        return value.astimezone(timezone.utc)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)


# SQLite numbers the rows of an INTEGER key by itself, of a BIGINT key it does not.
Id = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

versions = Table(
    "vk_schema",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("applied_at", UtcTime, nullable=False),
)

lease = Table(
    "vk_lease",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("token", BigInteger, nullable=False),
    Column("holder", Verbatim),
    Column("acquired_at", UtcTime),
    Column("expires_at", UtcTime),
    Column("ttl_seconds", Double, nullable=False),
)

attempts = Table(
    "vk_attempt",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("token", BigInteger, nullable=False),
    Column("holder", Verbatim, nullable=False),
    Column("begun_at", UtcTime, nullable=False),
    Column("failed_at", UtcTime),
    Column("error", Verbatim),
    Column("propagated", Boolean, nullable=False, default=False),
)

epochs = Table(
    "vk_epoch",
    metadata,
    Column("id", BigInteger, ForeignKey(attempts.c.id), primary_key=True, autoincrement=False),
    Column("published_at", UtcTime, nullable=False),
    Column("source_versions", JsonText, nullable=False),
    Column("plan", JsonText),
    Column("seconds", JsonText, nullable=False),
)

definitions = Table(
    "vk_definition",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Verbatim, nullable=False),
    Column("definition_id", Verbatim, nullable=False),
    Column("definition", JsonText, nullable=False),
    Column("analysis", JsonText, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("defined_in", BigInteger, ForeignKey(epochs.c.id), nullable=False),
    Column("ended_in", BigInteger, ForeignKey(epochs.c.id)),
)

states = Table(
    "vk_state",
    metadata,
    Column("view", Verbatim, primary_key=True),
    Column("epoch_id", BigInteger, ForeignKey(epochs.c.id), primary_key=True, autoincrement=False),
    Column("definition_id", Verbatim, nullable=False),
    Column("storage", Verbatim, nullable=False),
    Column("snapshot", Verbatim),
    Column("vector", JsonText, nullable=False),
)

refreshes = Table(
    "vk_refresh",
    metadata,
    Column("epoch_id", BigInteger, ForeignKey(epochs.c.id), primary_key=True, autoincrement=False),
    Column("place", BigInteger, primary_key=True, autoincrement=False),
    Column("view", Verbatim, nullable=False),
    Column("strategy", Verbatim, nullable=False),
    Column("install", Verbatim),
    Column("reason", Verbatim),
    Column("delta_rows", BigInteger, nullable=False),
    Column("inserted", BigInteger),
    Column("deleted", BigInteger),
    Column("updated", BigInteger),
    Column("compute_seconds", Double, nullable=False),
    Column("install_seconds", Double, nullable=False),
    Column("estimates", JsonText, nullable=False),
    Column("recomputed", BigInteger),
    Column("derived_from", Verbatim),
)

chores = Table(
    "vk_chore",
    metadata,
    Column("id", Id, primary_key=True),
    Column("epoch_id", BigInteger, ForeignKey(attempts.c.id), nullable=False),
    Column("intent", Boolean, nullable=False),
    Column("kind", Verbatim, nullable=False),
    Column("payload", JsonText, nullable=False),
)

propagations = Table(
    "vk_propagation",
    metadata,
    Column("id", BigInteger, ForeignKey(attempts.c.id), primary_key=True, autoincrement=False),
    Column("kept_at", UtcTime, nullable=False),
    Column("plan", JsonText, nullable=False),
    Column("tables", JsonText, nullable=False),
)

observations = Table(
    "vk_observation",
    metadata,
    Column("source", Verbatim, primary_key=True),
    Column("version", Verbatim),
    Column("observed_at", UtcTime, nullable=False),
    Column("details", JsonText, nullable=False),
)

sources = Table(
    "vk_source",
    metadata,
    Column("name", Verbatim, primary_key=True),
    Column("definition", JsonText, nullable=False),
    Column("declared_in", BigInteger, ForeignKey(epochs.c.id), nullable=False),
)

source_versions = Table(
    "vk_source_version",
    metadata,
    Column("source", Verbatim, primary_key=True),
    Column("version", Verbatim, primary_key=True),
    Column("content", JsonText, nullable=False),
)

failing = Table(
    "vk_failing",
    metadata,
    Column("view", Verbatim, primary_key=True),
    Column("definition_id", Verbatim, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("failed_at", UtcTime, nullable=False),
    Column("reason", Verbatim, nullable=False),
    Column("suspended", Boolean, nullable=False),
)

troubles = Table(
    "vk_trouble",
    metadata,
    Column("kind", Verbatim, primary_key=True),
    Column("view", Verbatim, primary_key=True),
    Column("what", Verbatim, primary_key=True),
    Column("said", Verbatim, nullable=False),
    Column("told", Boolean, nullable=False, default=True),
)

told = Table(
    "vk_told",
    metadata,
    Column("epoch_id", BigInteger, primary_key=True, autoincrement=False),
)

calibrations = Table(
    "vk_calibration",
    metadata,
    Column("measured_at", UtcTime, primary_key=True),
    Column("rates", JsonText, nullable=False),
)
