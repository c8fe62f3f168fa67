"""Replace all rows: the new version is written beside the old one and swapped in at publish."""

from __future__ import annotations

from viewkeeper.plan.steps import Install
from viewkeeper.sql.quoting import quote


def statements(install: Install, rows: str) -> tuple[str, ...]:
    """``rows`` is a SELECT of the stored columns, in their order."""
    columns = ", ".join(quote(field.stored) for field in install.layout.fields)
    return (f"INSERT OVERWRITE {install.storage} ({columns})\n{rows}",)
