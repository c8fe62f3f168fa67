"""Changes captured by triggers, for servers where logical replication is not to be had.

Every change of a row is written into a table beside it, with the id of its transaction. A poll takes the
transactions that are visible now and were not in the last snapshot: whole ones, also those that began early
and committed late, which a cursor over a sequence would lose. The position is the text of a snapshot
(``pg_current_snapshot()``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from viewkeeper.errors import SourceError
from viewkeeper.sources.pgoutput import Identity, Operation, Relation, RowChange, Transaction, Tuple
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server, Snapshot, quoted

SCHEMA = "viewkeeper"
_CHANGES = f"{SCHEMA}.changes"
_OPERATIONS = {"I": Operation.INSERT, "U": Operation.UPDATE, "D": Operation.DELETE, "T": Operation.TRUNCATE}


def install_sql(tables: Sequence[str], user: str) -> str:
    """What the owner of the tables has to run, once."""
    table_triggers = "\n".join(
        f"DROP TRIGGER IF EXISTS viewkeeper_rows ON {table};\n"
        f"DROP TRIGGER IF EXISTS viewkeeper_truncate ON {table};\n"
        f"CREATE TRIGGER viewkeeper_rows AFTER INSERT OR UPDATE OR DELETE ON {table}\n"
        f"  FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.capture();\n"
        f"CREATE TRIGGER viewkeeper_truncate AFTER TRUNCATE ON {table}\n"
        f"  FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.capture();"
        for table in tables
    )
    return f"""CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {_CHANGES} (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
  table_id OID NOT NULL,
  operation CHAR NOT NULL,
  old TEXT,
  new TEXT
);
CREATE INDEX IF NOT EXISTS changes_xid ON {_CHANGES} (xid);
CREATE OR REPLACE FUNCTION {SCHEMA}.capture() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog SET TimeZone = 'UTC' SET DateStyle = 'ISO, MDY'
  SET extra_float_digits = 1 SET bytea_output = 'hex' AS $$
BEGIN
  INSERT INTO {_CHANGES} (table_id, operation, old, new) VALUES (
    TG_RELID, left(TG_OP, 1),
    CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN OLD::text END,
    CASE WHEN TG_OP IN ('INSERT', 'UPDATE') THEN NEW::text END
  );
  RETURN NULL;
END $$;
{table_triggers}
GRANT USAGE ON SCHEMA {SCHEMA} TO {quoted(user)};
GRANT SELECT, DELETE ON {_CHANGES} TO {quoted(user)};"""


class TriggerCapture:
    """From the table that the triggers fill."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def begin(self, tables: Sequence[PinnedTable]) -> Snapshot:
        return self._server.snapshot("SELECT pg_current_snapshot()::text")

    def read(self, position: str, tables: Sequence[PinnedTable]) -> tuple[Sequence[Transaction], str]:
        self._require_columns(tables)
        by_name = {(table.namespace, table.name): table for table in tables}
        with self._server.asking() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
            assert row is not None
            now = str(row[0])
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
                "WHERE c.xid >= %(xmin)s::xid8 AND pg_visible_in_snapshot(c.xid, %(new)s::pg_snapshot) "
                "AND NOT pg_visible_in_snapshot(c.xid, %(old)s::pg_snapshot) ORDER BY c.id",
                {"new": now, "old": position, "xmin": position.split(":", 1)[0]},
            ).fetchall()
            connection.execute("COMMIT")
        # One transaction of the poll: between two snapshots there is no order among those that committed.
        found = Transaction(0, datetime.now(timezone.utc))
        for _, namespace, name, operation, old, new in changes:
            table = by_name.get((namespace, name))
            if table is not None:
                found.changes.append(_change(table, operation, old, new))
        return ([found] if found.changes else []), now if found.changes else position

    def _require_columns(self, tables: Sequence[PinnedTable]) -> None:
        """Rows are written by the place of their columns: those that we know must be where they were."""
        for pinned, now in zip(tables, self._server.tables(), strict=True):
            there = [(column.name, column.type_id) for column in now.columns]
            known = [(name, type_id) for name, _, _, type_id in pinned.columns]
            if there[: len(known)] != known:
                raise SourceError(
                    f"the columns of {pinned.namespace}.{pinned.name} are not what they were",
                    code="VK-SOURCE-CHANGED",
                    hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
                )

    def acknowledge(self, position: str) -> None:
        with self._server.asking() as connection:
            connection.execute(
                f"DELETE FROM {_CHANGES} WHERE pg_visible_in_snapshot(xid, %s::pg_snapshot)", (position,)
            )

    def rest(self) -> None:
        """Nothing waits."""

    def release(self) -> None:
        """The triggers belong to who installed them; what they wrote is taken away by who drops them."""

    def warnings(self) -> Sequence[str]:
        return ()

    def problems(self) -> Sequence[str]:
        names = [name if "." in name else f"public.{name}" for name in self._server.options.tables]
        with self._server.asking() as connection:
            lacking = [
                name
                for name in names
                if connection.execute(
                    "SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass(%s) AND tgname = 'viewkeeper_rows'",
                    (name,),
                ).fetchone()
                is None
            ]
        if not lacking:
            return []
        return [
            f"there are no triggers on {', '.join(lacking)}. Let their owner run what "
            f"`viewkeeper sources install {self._server.source}` prints"
        ]


def _end(snapshot: str) -> int:
    """The first transaction that was not yet given out when the snapshot was taken."""
    return int(snapshot.split(":")[1])


def _change(table: PinnedTable, operation: str, old: str | None, new: str | None) -> RowChange:
    relation = Relation(
        0,
        table.namespace,
        table.name,
        Identity.FULL,
        tuple((name, type_id, name in table.key) for name, _, _, type_id in table.columns),
    )
    return RowChange(
        _OPERATIONS[operation], relation, _row(table, old), _row(table, new), whole_old=old is not None
    )


def _row(table: PinnedTable, text: str | None) -> Tuple | None:
    """The texts of a row's values; of columns that were added since, nothing."""
    if text is None:
        return None
    values = record_values(text)
    if len(values) < len(table.columns):
        raise SourceError(
            f"{table.namespace}.{table.name} lost a column",
            code="VK-SOURCE-CHANGED",
            hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
        )
    return tuple(values[: len(table.columns)])


def record_values(text: str) -> list[str | None]:
    """The values of a row, out of the text that PostgreSQL has for it.

    >>> record_values('(1,,"a ""b"" c",x,)')
    ['1', None, 'a "b" c', 'x', None]
    """
    values: list[str | None] = []
    at, end = 1, len(text) - 1
    while True:
        found: list[str] = []
        is_null = True
        while at < end and text[at] != ",":
            is_null = False
            if text[at] != '"':
                found.append(text[at])
                at += 1
                continue
            piece, at = _quoted(text, at + 1)
            found.append(piece)
        values.append(None if is_null else "".join(found))
        if at >= end:
            return values
        at += 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What stands between quotes, and where it ends; a quote or a backslash within is written twice."""
    found: list[str] = []
    while True:
        if text[at] == '"':
            if text[at + 1] != '"':
                return "".join(found), at + 1
            at += 1
        elif text[at] == "\\":
            at += 1
        found.append(text[at])
        at += 1
