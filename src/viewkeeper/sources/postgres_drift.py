"""Whether PostgreSQL's tables are still those that a source was declared with."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.errors import SourceError
from viewkeeper.sources.postgres_delta import PinnedTable
from viewkeeper.sources.postgres_server import Server, ServerTable


def require_same_tables(server: Server, tables: Sequence[PinnedTable]) -> None:
    """Raise if a table is not what it was when its source was declared."""
    for pinned, now in zip(tables, server.tables(), strict=True):
        require_same(server, pinned, now)


def require_same(server: Server, pinned: PinnedTable, now: ServerTable) -> None:
    """Raise if one of them is another."""
    types = {column.name: column.type_id for column in now.columns}
    retyped = [name for name, _, _, type_id in pinned.columns if types.get(name, type_id) != type_id]
    what = None
    if now.oid != pinned.oid:
        what = "is another table of the same name"
    elif now.key != pinned.key:
        what = f"has the key ({', '.join(now.key)}) and had ({', '.join(pinned.key)})"
    elif now.identity != pinned.identity and server.options.capture == "log":
        what = "has another replica identity: the log tells rows by other columns"
    elif not now.is_whole:
        what = "has become a table that consists of others"
    elif retyped:
        what = f"has another type in column {retyped[0]} now"
    if what is not None:
        raise SourceError(
            f"source {server.source}: {pinned.namespace}.{pinned.name} {what}",
            code="VK-SOURCE-CHANGED",
            hint="CREATE OR REPLACE SOURCE copies the table as it is now. A view that is swept over it is "
            "dropped before, and created again.",
        )
