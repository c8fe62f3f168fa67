"""Replace all rows: the new version is written beside the old one and swapped in at publish."""

from __future__ import annotations

from viewkeeper.install.row_hash import HASH, row_hash
from viewkeeper.plan.steps import Install
from viewkeeper.sql.quoting import quote


def statements(install: Install, rows: str) -> tuple[str, ...]:
    """``rows`` is a SELECT of the stored columns, in their order."""
    names = [quote(field.stored) for field in install.layout.fields]
    columns = ", ".join(names)
    if not install.layout.hashed:
        return (f"INSERT OVERWRITE {install.storage} ({columns})\n{rows}",)
    hashed = row_hash(zip(names, install.layout.types, strict=True))
    return (
        f"INSERT OVERWRITE {install.storage} ({columns}, {HASH})\n"
        f"SELECT *, {hashed} FROM (\n{rows}\n) AS q({columns})",
    )
