"""A PostgreSQL database of which nothing but SELECT is to be had: states are compared, one net change a poll.

Rows are parted by a digest of their key, and the database adds up a digest of the rows of each part. Only
parts whose sums differ from the last time are transferred, and compared with what was seen of them. All
tables are read in one snapshot.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from viewkeeper.define.sources import SourceDefinition
from viewkeeper.errors import DefinitionError, SourceError
from viewkeeper.sources.conditions import pushed
from viewkeeper.sources.contract import Shelf
from viewkeeper.sources.differential import Differential
from viewkeeper.sources.extracted import QueriedChange, as_problem
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_drift import altered, require_untouched
from viewkeeper.sources.postgres_server import quoted
from viewkeeper.sources.postgres_tables import PostgresTables
from viewkeeper.sql.quoting import literal, quote

_SUMS = "sums"
"""Under this name the sums of each table are remembered, by version."""
_SAME_TEXT = ("int", "bigint", "smallint", "string")
"""Types of which Spark and PostgreSQL write the same texts; of dates, not those behind the year 9999."""
_ROWS_PER_PART = 2_000
_MOST_DIGITS = 3
_BYTES_PER_ROW = 50

Sums = dict[str, list[str]]
"""Of each part the rows and two sums of their digests."""


class PostgresDiffSource(PostgresTables):
    """Followed by comparing."""

    def __init__(self, spark: SparkSession, definition: SourceDefinition, shelf: Shelf, catalog: str) -> None:
        super().__init__(spark, definition, shelf, catalog)
        self._sums: dict[str, Sums] = {}

    def pinned(self, definition: SourceDefinition) -> SourceDefinition:
        tables = self._pinned_tables()
        facts = (("tables", json.dumps([table.to_json() for table in tables])),)
        return replace(definition, tables=tuple(table.name for table in tables), facts=facts)

    def problems(self) -> Sequence[str]:
        try:
            for table in self._server.tables():
                self._refuse_unsuited(table)
                self._server.one(f"SELECT count(*) FROM (SELECT 1 FROM {table.sql} LIMIT 1) AS t")
        except (SourceError, DefinitionError) as error:
            return (as_problem(error),)
        return ()

    def current(self) -> Mapping[str, str | None]:
        """Each table stands where its sums say, all in one snapshot."""
        self.let_go()
        self._require_columns()
        self._snapshot = self._server.snapshot("SELECT 0")
        self._sums = {name: self._added_up(table) for name, table in self._tables.items()}
        return {name: _version(sums) for name, sums in self._sums.items()}

    def _require_columns(self) -> None:
        for pinned, now in zip(self._tables.values(), self._server.tables(), strict=True):
            what = altered(pinned, now)
            if what is not None:
                raise SourceError(
                    f"source {self._server.source}: {pinned.namespace}.{pinned.name} {what}",
                    code="VK-SOURCE-CHANGED",
                    hint="CREATE OR REPLACE SOURCE copies the table as it is now.",
                )

    def _added_up(self, table: PinnedTable) -> Sums:
        assert self._snapshot is not None
        (rows,) = self._server.one(
            "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", table.sql
        )
        part = _part_in_database(table, _digits(table, int(rows)))
        columns = ", ".join(quoted(name) for name in table.names)
        wanted = pushed(table.where, table.types)
        halves = [
            f"sum(('x' || substr(h, {start}, 16))::bit(64)::bigint::numeric)::text" for start in (1, 17)
        ]
        try:
            found = self._snapshot.connection.execute(
                f"SELECT p, count(*)::text, {', '.join(halves)} FROM "
                f"(SELECT {part} AS p, md5(ROW({columns})::text) AS h FROM {table.sql}"
                f"{f' WHERE {wanted}' if wanted else ''}) AS t GROUP BY p"
            ).fetchall()
        except Exception as error:
            raise self._server.refused(error) from None
        return {part: [count, first, second] for part, count, first, second in found}

    def change(
        self, table: str, old: str | None, new: str | None, *, identity: str | None = None
    ) -> QueriedChange | None:
        assert new is not None
        seen = self._seen[table]
        if old == new:
            return None
        assert seen is not None and self._snapshot is not None, "asked after current(), of what was shown"
        pinned, sums = self._tables[table], self._sums[table]
        known: Sums = self._remembered().get(table, {}).get(old, {})
        parts = sorted(part for part in {*known, *sums} if known.get(part) != sums.get(part))
        digits = max((len(part) for part in parts), default=0)
        comparable = bool(known) and digits > 0 and {len(part) for part in (*known, *sums)} == {digits}
        rows, condition, told = seen[0], "", "all rows compared"
        if comparable:
            listed = ", ".join(f"'{part}'" for part in parts)
            condition = f"{_part_in_database(pinned, digits)} IN ({listed})"
            rows = f"SELECT * FROM ({rows}) WHERE {_part_in_spark(pinned, digits)} IN ({listed})"
            told = f"{len(parts):,} of {len({*known, *sums}):,} parts compared"
        there = self._copied(table, new, self._snapshot, condition)
        columns = tuple((name, spark) for name, _, spark, _ in pinned.columns)
        compared = Differential(f"({rows})", there, columns, pinned.key)
        count = sum(int(sums[part][0]) for part in parts if part in sums) if comparable else _rows(sums)
        gone = (
            sum(int(known[part][0]) for part in parts if part in known)
            if comparable
            else _rows(known or sums)
        )
        query = compared.sql(compared.form(count * _BYTES_PER_ROW))
        return QueriedChange(table, old, new, count, max(1, gone), told, (query,))

    def confirm(self, version: Mapping[str, str | None]) -> None:
        """Remember the sums beside those of the version that was seen: should the epoch not be published,
        those are the ones that count."""
        if self._snapshot is not None:
            require_untouched(self._server, list(self._tables.values()), self._snapshot)
        remembered = dict(self._remembered())
        for table in version:
            if table in self._sums:
                seen = self._seen.get(table)
                kept = remembered.get(table, {})
                before = {} if seen is None else {each: kept[each] for each in (seen[1],) if each in kept}
                remembered[table] = {**before, _version(self._sums[table]): self._sums[table]}
        self._shelf.save(_SUMS, remembered)

    def _remembered(self) -> Mapping[str, Any]:
        return self._shelf.load(_SUMS) or {}


def _rows(sums: Sums) -> int:
    return sum(int(count) for count, _, _ in sums.values())


def _version(sums: Sums) -> str:
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()[:16]


def _digits(table: PinnedTable, rows: int) -> int:
    """Into 16 to the power of so many parts the table is parted; 0 where Spark cannot part it alike."""
    types = table.types
    if not table.key or any(types[name].spark not in _SAME_TEXT for name in table.key):
        return 0
    if any(types[name].name.startswith("character(") for name in table.key):
        return 0
    digits = 1
    while digits < _MOST_DIGITS and rows > _ROWS_PER_PART * 16**digits:
        digits += 1
    return digits


def _part_in_database(table: PinnedTable, digits: int) -> str:
    texts = ", ".join(f"{quoted(name)}::text" for name in table.key)
    return f"substr(md5(concat_ws(',', {texts})), 1, {digits})" if digits else literal("")


def _part_in_spark(table: PinnedTable, digits: int) -> str:
    texts = ", ".join(f"CAST({quote(name)} AS STRING)" for name in table.key)
    return f"substr(md5(concat_ws(',', {texts})), 1, {digits})"
