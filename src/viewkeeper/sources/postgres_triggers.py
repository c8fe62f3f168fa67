"""Changes captured by triggers, for servers where logical replication is not to be had.

Every change of a row is written into a table beside it, with the id of its transaction. A poll takes the
transactions that are visible now and were not in the last snapshot: whole ones, also those that began early
and committed late, which a cursor over a sequence would lose. The position is the text of a snapshot
(``pg_current_snapshot()``).

Several sources, of several warehouses, may follow the same tables: each is noted as a reader with the
position that it has published, and a change is deleted when all readers of its table are past it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import SourceError
from viewkeeper.sources.horizons import Horizon
from viewkeeper.sources.lag import Lag
from viewkeeper.sources.pgoutput import Identity, Operation, Relation, RowChange, Transaction, Tuple
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_records import record_values
from viewkeeper.sources.postgres_server import Server, Snapshot, quoted, text_literal

if TYPE_CHECKING:
    import psycopg

SCHEMA = "viewkeeper"
_CHANGES = f"{SCHEMA}.changes"
_READERS = f"{SCHEMA}.readers"
_WAITING = (
    "c.xid >= %(xmin)s::xid8 AND pg_visible_in_snapshot(c.xid, %(new)s::pg_snapshot) "
    "AND NOT pg_visible_in_snapshot(c.xid, %(old)s::pg_snapshot)"
)
"""Whether a change was made by a transaction that is visible now and was not in the last snapshot."""
_OPERATIONS = {"I": Operation.INSERT, "U": Operation.UPDATE, "D": Operation.DELETE, "T": Operation.TRUNCATE}
_TRIGGERS = {
    "viewkeeper_rows": "AFTER INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW",
    "viewkeeper_truncate": "AFTER TRUNCATE ON {} FOR EACH STATEMENT",
}
_NAMES = ", ".join(f"'{name}'" for name in _TRIGGERS)
_WHICH_TRIGGERS = (
    "coalesce((SELECT string_agg(format('%%s:%%s', t.oid, t.xmin), ',' ORDER BY t.oid) FROM pg_trigger t "
    f"WHERE t.tgrelid = ANY({{}}) AND t.tgname IN ({_NAMES}) AND t.tgenabled = 'A'), '')"
)
"""Tells triggers from later ones of the same name, and from themselves if they were disabled for a while.
Others than those that always fire pass over what a session does as a replica."""


def _trigger(table: str, name: str, when: str) -> str:
    """What makes a trigger that always fires, or leaves it as it is."""
    known = f"SELECT FROM pg_trigger WHERE tgrelid = {text_literal(table)}::regclass AND tgname = '{name}'"
    statements = (
        f"IF NOT EXISTS ({known} AND tgenabled = 'A') THEN\n"
        f"  IF NOT EXISTS ({known}) THEN\n    CREATE TRIGGER {name} {when.format(table)} "
        f"EXECUTE FUNCTION {SCHEMA}.capture();\n  END IF;\n"
        f"  ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name};\nEND IF;"
    )
    tag = "$$"
    while tag in statements:
        tag = f"{tag[:-1]}v$"
    return f"DO {tag} BEGIN {statements} END {tag};"


def install_sql(tables: Sequence[str], user: str) -> str:
    """What the owner of the tables has to run, once."""
    table_triggers = "\n".join(
        _trigger(table, name, when) for table in tables for name, when in _TRIGGERS.items()
    )
    return f"""CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {_CHANGES} (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
  made_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  table_id OID NOT NULL,
  operation CHAR NOT NULL,
  old TEXT,
  new TEXT
);
CREATE INDEX IF NOT EXISTS changes_xid ON {_CHANGES} (xid);
CREATE TABLE IF NOT EXISTS {_READERS} (
  name TEXT PRIMARY KEY,
  tables OID[] NOT NULL,
  triggers TEXT NOT NULL,
  position PG_SNAPSHOT NOT NULL
);
CREATE OR REPLACE FUNCTION {SCHEMA}.capture() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog SET TimeZone = 'UTC' SET DateStyle = 'ISO, MDY'
  SET extra_float_digits = 1 SET bytea_output = 'hex' AS $$
BEGIN
  INSERT INTO {_CHANGES} (table_id, operation, old, new) VALUES (
    TG_RELID, left(TG_OP, 1),
    CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN OLD::text END,
    CASE WHEN TG_OP IN ('INSERT', 'UPDATE') THEN NEW::text END
  );
  IF TG_OP = 'TRUNCATE' AND pg_relation_size(TG_RELID) > 0 THEN
    -- Rows that other triggers wrote since it was emptied were told before that was.
    EXECUTE format(
      'INSERT INTO {_CHANGES} (table_id, operation, new) SELECT %s, ''I'', (t.*)::text FROM ONLY %s AS t',
      TG_RELID, TG_RELID::regclass
    );
  END IF;
  RETURN NULL;
END $$;
{table_triggers}
GRANT USAGE ON SCHEMA {SCHEMA} TO {quoted(user)};
GRANT SELECT, DELETE ON {_CHANGES} TO {quoted(user)};
GRANT SELECT, INSERT, UPDATE, DELETE ON {_READERS} TO {quoted(user)};"""


class TriggerCapture:
    """From the table that the triggers fill."""

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self._name = name

    def begin(self, tables: Sequence[PinnedTable]) -> Snapshot:
        """Noted as a reader first: from then on nobody deletes what is behind the snapshot. A reader that is
        there already keeps its position, for what is copied now may never be published."""
        with self._server.asking() as connection:
            connection.execute(
                f"INSERT INTO {_READERS} SELECT %s, r.ids, {_WHICH_TRIGGERS.format('r.ids')}, "
                "pg_current_snapshot() FROM (SELECT array_agg(t::regclass::oid) AS ids "
                "FROM unnest(%s::text[]) AS t) AS r ON CONFLICT DO NOTHING",
                (self._name, [table.sql for table in tables]),
            )
        return self._server.snapshot("SELECT pg_current_snapshot()::text")

    def read(
        self, position: str, tables: Sequence[PinnedTable], horizon: Horizon
    ) -> tuple[Sequence[Transaction], str]:
        with self._server.asking() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found, now = self.read_within(connection, position, tables, horizon.snapshot)
            connection.execute("COMMIT")
        return ([found] if found.changes else []), now if found.changes else position

    def read_within(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        position: str,
        tables: Sequence[PinnedTable],
        upto: str | None = None,
    ) -> tuple[Transaction, str]:
        """What was changed between a position and a snapshot (that of the transaction that is open), as one:
        there is no order among those that committed between two snapshots."""
        there = self._require_reader(connection, position)
        now = upto or there
        if _end(now) < _end(position):
            raise SourceError(
                f"source {self._server.source}: the database is behind what was seen: was it restored?",
                code="VK-LOG-BROKEN",
                hint="CREATE OR REPLACE SOURCE copies the tables anew, and goes on from there.",
            )
        changes = connection.execute(
            "SELECT c.xid::text, n.nspname, r.relname, c.operation::text, c.old, c.new "
            f"FROM {_CHANGES} c JOIN pg_class r ON r.oid = c.table_id "
            "JOIN pg_namespace n ON n.oid = r.relnamespace "
            f"WHERE {_WAITING} ORDER BY c.id",
            _span(position, now),
        ).fetchall()
        # Asked after the changes were read: until then, at least, the columns were where we know them.
        self._require_columns(tables)
        by_name = {(table.namespace, table.name): table for table in tables}
        found = Transaction(0, datetime.now(timezone.utc))
        for xid, namespace, name, operation, old, new in changes:
            table = by_name.get((namespace, name))
            if table is not None:
                found.changes.append(_change(table, operation, old, new))
                found.stands_for.add(int(xid))
        return found, now

    def _require_reader(self, connection: psycopg.Connection[tuple[Any, ...]], position: str) -> str:
        """The snapshot of the transaction; raises if changes may have been deleted that we have not read."""
        row = connection.execute(
            f"SELECT pg_current_snapshot()::text, r.triggers = {_WHICH_TRIGGERS.format('r.tables')}, "
            f"r.position::text FROM {_READERS} r WHERE name = %s",
            (self._name,),
        ).fetchone()
        if row is None:
            raise self._lost(f"the reader {self._name} is gone from {_READERS}")
        if not row[1]:
            raise self._lost("triggers were dropped, disabled or made anew, or do not always fire")
        if _end(row[2]) > _end(position):
            raise self._lost(f"the reader {self._name} is ahead of where we are")
        return str(row[0])

    def _lost(self, what: str) -> SourceError:
        return SourceError(
            f"source {self._server.source}: {what}: changes may be missing",
            code="VK-SLOT-LOST",
            hint=f"`viewkeeper sources install {self._server.source}` brings triggers back; CREATE OR "
            "REPLACE SOURCE copies the tables anew, and goes on from there.",
        )

    def lag(self, position: str) -> Lag:
        with self._server.asking() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            now = self._require_reader(connection, position)
            row = connection.execute(
                "SELECT count(DISTINCT c.xid), extract(epoch FROM now() - min(c.made_at)) "
                f"FROM {_CHANGES} c JOIN {_READERS} r ON r.name = %(name)s AND c.table_id = ANY(r.tables) "
                f"WHERE {_WAITING}",
                {"name": self._name, **_span(position, now)},
            ).fetchone()
        assert row is not None
        return Lag(row[0], float(row[1] or 0))

    def _require_columns(self, tables: Sequence[PinnedTable]) -> None:
        """Rows are written by the place of their columns: those that we know must be where they were."""
        for pinned, now in zip(tables, self._server.tables(), strict=True):
            there = tuple((column.name, column.type_id) for column in now.columns)
            if there[: len(pinned.layout)] != pinned.layout:
                raise SourceError(
                    f"the columns of {pinned.namespace}.{pinned.name} are not what they were",
                    code="VK-SOURCE-CHANGED",
                    hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
                )

    def acknowledge(self, position: str) -> None:
        with self._server.asking() as connection:
            connection.execute(
                f"UPDATE {_READERS} SET position = %s::pg_snapshot WHERE name = %s", (position, self._name)
            )
            self._delete_read(connection)

    def _delete_read(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        connection.execute(
            f"DELETE FROM {_CHANGES} AS c WHERE NOT EXISTS (SELECT FROM {_READERS} AS r "
            "WHERE c.table_id = ANY(r.tables) AND NOT pg_visible_in_snapshot(c.xid, r.position))"
        )

    def rest(self) -> None:
        """Nothing waits."""

    def release(self) -> None:
        """The triggers belong to who installed them; what they wrote for us alone goes."""
        with self._server.asking() as connection:
            connection.execute(f"DELETE FROM {_READERS} WHERE name = %s", (self._name,))
            self._delete_read(connection)

    def warnings(self) -> Sequence[str]:
        return ()

    def problems(self) -> Sequence[str]:
        names = [quoted(*path) for path in self._server.options.paths]
        with self._server.asking() as connection:
            lacking = connection.execute(
                "SELECT n FROM unnest(%s::text[]) AS n WHERE (SELECT count(*) FROM pg_trigger t WHERE "
                f"t.tgrelid = to_regclass(n) AND t.tgname IN ({_NAMES}) AND t.tgenabled = 'A') < %s",
                (names, len(_TRIGGERS)),
            ).fetchall()
        if not lacking:
            return []
        told = ", ".join(name for (name,) in lacking)
        return [
            f"there are no triggers that always fire on {told}. Let their owner run what "
            f"`viewkeeper sources install {self._server.source}` prints"
        ]


def _span(old: str, new: str) -> dict[str, str]:
    return {"new": new, "old": old, "xmin": old.split(":", 1)[0]}


def _end(snapshot: str) -> int:
    """The first transaction that was not yet given out when the snapshot was taken."""
    return int(snapshot.split(":")[1])


def _change(table: PinnedTable, operation: str, old: str | None, new: str | None) -> RowChange:
    relation = Relation(
        0,
        table.namespace,
        table.name,
        Identity.FULL,
        tuple((name, type_id, name in table.key) for name, type_id in table.layout),
    )
    return RowChange(
        _OPERATIONS[operation], relation, _row(table, old), _row(table, new), whole_old=old is not None
    )


def _row(table: PinnedTable, text: str | None) -> Tuple | None:
    """The texts of a row's values; of columns that were added since, nothing."""
    if text is None:
        return None
    values = record_values(text)
    if len(values) < len(table.layout):
        raise SourceError(
            f"{table.namespace}.{table.name} lost a column",
            code="VK-SOURCE-CHANGED",
            hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
        )
    return tuple(values[: len(table.layout)])
