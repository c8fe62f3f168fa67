"""A replication slot: the server keeps its log for us, and shows its transactions in commit order.

The log is *peeked* at, never taken: only when an epoch is published is its position acknowledged, so whatever
happens before leaves everything there to be read again. Transactions that end at or before the position that
the ledger has are skipped: after a crash of the server the slot may be behind us.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import SourceError
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.pgoutput import Decoder, Transaction, lsn_of, lsn_text
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_drift import speaks_of
from viewkeeper.sources.postgres_server import Server, Snapshot, quoted

if TYPE_CHECKING:
    import psycopg

_NAPS_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6)
MOST_CHANGES = 1_000_000
"""So many changes are read at a time; what is behind waits for the next epoch."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Transactions of our tables from the log, and the position up to which there are no others."""

    transactions: list[Transaction]
    reached: str
    is_idle: bool
    """Nothing of ours lies behind the position, neither before what is reached nor across it. A log is often
    written up to the middle of a record: were a slot let go to there, the server would take a transaction
    that this record commits for one that we know."""


class Slot:
    """One slot, and the publication that says of which tables it tells."""

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self.name = name
        self._publication = server.options.publication or name

    def begin(self, tables: Sequence[str]) -> Snapshot:
        """The state of the database where the slot begins. Is it there already, then it stays, for what is
        copied now may never be published: the state is that at a position further on."""
        there, is_published = self._server.one(
            "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s), "
            "EXISTS (SELECT FROM pg_publication WHERE pubname = %s)",
            self.name,
            self._publication,
        )
        if there:
            return self._create(f"{quoted(f'{self.name}_{uuid.uuid4().hex[:8]}')} TEMPORARY")
        if self._server.options.publication is None and not is_published:
            self._publish(tables)
        return self._create(quoted(self.name))

    def _create(self, slot: str) -> Snapshot:
        import psycopg

        connection = self._server.connect(replication=True)
        try:
            row = connection.execute(
                f"CREATE_REPLICATION_SLOT {slot} LOGICAL pgoutput EXPORT_SNAPSHOT"
            ).fetchone()
        except psycopg.errors.LockNotAvailable:
            connection.close()
            raise SourceError(
                f"source {self._server.source}: a transaction has been at work for longer than "
                f"{self._server.options.statement_seconds} s, and a slot begins behind all of them",
                code="VK-SOURCE-LIMIT",
                hint="Nothing was changed. Try again when it is over, or raise statement_seconds.",
            ) from None
        except Exception as error:
            connection.close()
            raise self._server.refused(error) from None
        assert row is not None
        _, position, snapshot, _ = row
        return Snapshot(snapshot, position, connection)

    def _publish(self, tables: Sequence[str]) -> None:
        # All columns, also where some are kept: a list of columns that lacks those of a replica identity that
        # somebody gives the table later would make the server refuse to change its rows.
        statement = f"CREATE PUBLICATION {quoted(self.name)} FOR TABLE {', '.join(tables)}"
        try:
            with self._server.asking() as connection:
                connection.execute(statement)
        except SourceError as error:
            if error.code != "VK-SOURCE-REFUSED":
                raise
            owners = statement.replace(quoted(self.name), "viewkeeper")
            raise SourceError(
                f"{error.message}; only who owns tables can publish their changes",
                code="VK-SOURCE-SETUP",
                hint=f"Let their owner run: {owners}; then declare the source with publication 'viewkeeper'.",
            ) from None

    def read(
        self,
        position: str,
        acknowledged: str | None,
        tables: Sequence[PinnedTable],
        *,
        upto: str | None = None,
        most: int | None = MOST_CHANGES,
    ) -> Reading:
        """The transactions behind a position that changed these tables: a publication may tell of others,
        too. ``acknowledged``: where we let the slot go to without an epoch, if we did. ``upto``: no further
        than there; ``most``: about so many changes."""
        with self._server.asking() as connection:
            found = self._state(connection)
            if found is None:
                raise self._lost("is gone")
            confirmed, status, active, now = found
            if status == "lost":
                raise self._lost("was given up by the server, which needed the room that its log takes")
            ours = max(lsn_of(position), lsn_of(acknowledged or "0/0"))
            if lsn_of(confirmed) > ours:
                raise self._lost(f"is at {confirmed}, ahead of {lsn_text(ours)}, which is where we are")
            if lsn_of(now) < lsn_of(position):
                raise self._lost(f"is behind: the server is at {now} and was at {position} before")
            if active:
                raise SourceError(
                    f"source {self._server.source}: somebody else reads the slot {self.name}",
                    code="VK-SLOT-BUSY",
                    hint="Two warehouses must not share a slot. Stop the other one, and refresh again.",
                )
            last = now if upto is None or lsn_of(now) < lsn_of(upto) else upto
            if most is not None and lsn_of(confirmed) < lsn_of(position):
                # What is counted begins where the slot stands. It may not have been told of our last epoch,
                # whose changes would be all that are read, again and again.
                self._advance(connection, position)
            messages = list(self._peek(connection, last, most=most))
            every = in_order(Decoder().transactions(iter(messages)))
            is_cut = most is not None and len(messages) >= most
            reached = (
                lsn_text(max((each.end for each in every), default=lsn_of(position))) if is_cut else last
            )
            # It peeks as far as the commit that reaches the point, and that may lie behind it.
            behind = [each for each in every if each.end > lsn_of(position) and _concerns(each, tables)]
            transactions = [each for each in behind if each.end <= lsn_of(last)]
            untold = self._unpublished(connection)
        if untold is not None:
            what, _, remedy = untold.partition(". ")
            raise SourceError(
                f"source {self._server.source}: {what}: changes may be missing",
                code="VK-SLOT-LOST",
                hint=f"{remedy}; then CREATE OR REPLACE SOURCE copies the tables anew.",
            )
        return Reading(transactions, reached, not behind)

    def _state(self, connection: psycopg.Connection[tuple[Any, ...]]) -> tuple[Any, ...] | None:
        """Where the slot stands; one that somebody looks into, to tell what waits, is free again soon."""
        for nap in (*_NAPS_SECONDS, None):
            found = connection.execute(
                "SELECT confirmed_flush_lsn::text, wal_status, active, pg_current_wal_flush_lsn()::text "
                "FROM pg_replication_slots WHERE slot_name = %s",
                (self.name,),
            ).fetchone()
            if nap is None or found is None or not found[2]:
                break
            time.sleep(nap)
        return found

    def _peek(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        now: str | None,
        of: str = "",
        most: int | None = MOST_CHANGES,
    ) -> Iterator[bytes]:
        """The messages up to a position; ``of``: only those of these kinds."""
        settings = ["proto_version", "1", "publication_names", self._publication]
        messages = connection.execute(
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s, %s, VARIADIC %s) "
            "WHERE %s = '' OR strpos(%s, chr(get_byte(data, 0))) > 0",
            (self.name, now, most, settings, of, of),
        )
        return (bytes(data) for (data,) in messages)

    def lag(self, position: str) -> Lag:
        """What waits behind a position: where transactions begin and end is all that is fetched."""
        with self._server.asking() as connection:
            ends = Decoder().transactions(self._peek(connection, None, "BC"))
            waiting = [each.committed_at for each in ends if each.end > lsn_of(position)]
        oldest = (datetime.now(timezone.utc) - waiting[0]).total_seconds() if waiting else 0.0
        return Lag(len(waiting), max(0.0, oldest))

    def acknowledge(self, position: str) -> None:
        """The log before this position is no longer needed."""
        with self._server.asking() as connection:
            self._advance(connection, position)

    def _advance(self, connection: psycopg.Connection[tuple[Any, ...]], position: str) -> None:
        connection.execute(
            "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
            "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn AND NOT active",
            (position, self.name, position),
        )

    def drop(self) -> None:
        """Give the slot and the publication back."""
        with self._server.asking() as connection:
            found = self._state(connection)
            if found is not None and found[2]:
                raise SourceError(
                    f"source {self._server.source}: somebody reads the slot {self.name}",
                    code="VK-SLOT-BUSY",
                    hint=f"Drop it there: SELECT pg_drop_replication_slot('{self.name}')",
                )
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                (self.name,),
            )
            if self._server.options.publication is None:
                connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(self.name)}")

    def unpublished(self) -> str | None:
        """What the publication does not tell of our tables, with the remedy; ``None`` if it tells all."""
        with self._server.asking() as connection:
            return self._unpublished(connection)

    def _unpublished(self, connection: psycopg.Connection[tuple[Any, ...]]) -> str | None:
        tables = self._server.options.paths
        wanted = {(each.schema, each.name): each.columns for each in self._server.options.wanted}
        found = connection.execute(
            "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication "
            "WHERE pubname = %s",
            (self._publication,),
        ).fetchone()
        if found is None:
            return f"there is no publication {self._publication}. {self._remedy('CREATE', tables)}"
        if not found[0]:
            return (
                f"the publication {self._publication} does not tell every kind of change. "
                f"ALTER PUBLICATION {quoted(self._publication)} "
                "SET (publish = 'insert, update, delete, truncate')"
            )
        narrowed = "false, NULL"
        if connection.info.server_version >= 150000:
            narrowed = (
                "p.rowfilter IS NOT NULL, (SELECT array_agg(a.attname::text) FROM pg_attribute a "
                "WHERE a.attrelid = format('%%I.%%I', schemaname, tablename)::regclass "
                "AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' "
                "AND a.attname <> ALL(p.attnames))"
            )
        told = connection.execute(
            f"SELECT schemaname, tablename, {narrowed} FROM pg_publication_tables p WHERE pubname = %s",
            (self._publication,),
        ).fetchall()
        whole = {
            (schema, table)
            for schema, table, is_filtered, untold in told
            if not is_filtered and not set(untold or ()) & set(wanted.get((schema, table)) or untold or ())
        }
        lacking = [".".join(path) for path in tables if path not in whole]
        if not lacking:
            return None
        return (
            f"the publication {self._publication} does not tell all of {', '.join(lacking)}. "
            + self._remedy("ALTER", tables)
        )

    def _remedy(self, verb: str, tables: Sequence[tuple[str, str]]) -> str:
        named = ", ".join(quoted(*path) for path in tables)
        how = "SET TABLE" if verb == "ALTER" else "FOR TABLE"
        return f"{verb} PUBLICATION {quoted(self._publication)} {how} {named}"

    def _lost(self, what: str) -> SourceError:
        return SourceError(
            f"source {self._server.source}: the replication slot {self.name} {what}: changes may be missing",
            code="VK-SLOT-LOST",
            hint="CREATE OR REPLACE SOURCE copies the tables anew, and goes on from there.",
        )


def _concerns(transaction: Transaction, tables: Sequence[PinnedTable]) -> bool:
    return any(speaks_of(table, each.relation) for each in transaction.changes for table in tables)


def in_order(transactions: Iterable[Transaction]) -> list[Transaction]:
    """All of them, if each ends behind the one before it: a log in any other order is not patched over."""
    found: list[Transaction] = []
    for each in transactions:
        last = found[-1].end if found else 0
        if each.end <= last:
            raise SourceError(
                f"the log is out of order: what ends at {lsn_text(each.end)} comes behind {lsn_text(last)}",
                code="VK-LOG-BROKEN",
                hint="Create the source, or the view that is swept, anew; it is filled from the database.",
            )
        found.append(each)
    return found
