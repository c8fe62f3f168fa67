"""A ledger as it is found: looked at, and neither made nor migrated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from viewkeeper.ledger import lease as leases
from viewkeeper.ledger import migrations, queries
from viewkeeper.ledger.database import Database
from viewkeeper.ledger.records import Lease


@dataclass(frozen=True, slots=True)
class Findings:
    """Where a ledger is (without a password), its schema version and the one that we know, the latest epoch,
    and who refreshes now."""

    where: str
    version: int
    known: int
    latest: int | None = None
    holder: Lease | None = None


def inspect_ledger(url: str) -> Findings:
    """Look at a ledger. Version 0: there is none yet."""
    database = Database(url)
    try:
        with database.reading() as connection:
            version = migrations.schema_version(connection)
            migrations.refuse_newer(version, database.where)
            if version == 0:
                return Findings(database.where, 0, migrations.LATEST)
            latest = queries.latest_epoch_id(connection)
            holder = leases.current(connection, datetime.now(timezone.utc))
            return Findings(database.where, version, migrations.LATEST, latest, holder)
    finally:
        database.close()
