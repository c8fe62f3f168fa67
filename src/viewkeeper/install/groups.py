"""MERGE by group key: the touched groups as they will be, each inserted, updated or deleted.

Variants by what was counted: only new groups are a plain INSERT; no new groups are a MERGE of matches
only, which can broadcast the change; of both, a small storage takes one MERGE, a large one two statements.
"""

from __future__ import annotations

from viewkeeper.algebra.summary_delta import OPERATION
from viewkeeper.install.counts import SMALL_STORAGE_ROWS, Counts
from viewkeeper.plan.steps import Install
from viewkeeper.sql.quoting import quote


def statements(install: Install, counts: Counts, storage_rows: int | None) -> tuple[str, ...]:
    """What to run for this change."""
    touched = counts.updated + counts.deleted
    if not touched:
        return (_insert(install),) if counts.inserted else ()
    if not counts.inserted:
        return (_merge(install, counts, inserting=False),)
    if not install.layout.groups or not install.layout.groups.keys:
        return (_merge(install, counts, inserting=True),)
    if storage_rows is not None and storage_rows > SMALL_STORAGE_ROWS:
        return (_merge(install, counts, inserting=False), _insert(install))
    return (_merge(install, counts, inserting=True),)


def _merge(install: Install, counts: Counts, *, inserting: bool) -> str:
    fields = install.layout.fields
    groups = install.layout.groups
    assert groups is not None
    keys = [field for field in fields if field.name in groups.keys]
    on = " AND ".join(f"t.{quote(field.stored)} <=> s.{quote(field.name)}" for field in keys) or "true"
    others = [field for field in fields if field.name not in groups.keys]
    clauses = []
    if counts.deleted:
        clauses.append(f"WHEN MATCHED AND s.{OPERATION} = 'D' THEN DELETE")
    if counts.updated:
        setting = ", ".join(f"{quote(field.stored)} = s.{quote(field.name)}" for field in others)
        clauses.append(f"WHEN MATCHED THEN UPDATE SET {setting}")
    if inserting:
        columns = ", ".join(quote(field.stored) for field in fields)
        values = ", ".join(f"s.{quote(field.name)}" for field in fields)
        clauses.append(f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})")
    source = install.source.name if inserting else _only(install, f"{OPERATION} <> 'I'")
    return f"MERGE INTO {install.storage} AS t USING {source} AS s\nON {on}\n" + "\n".join(clauses)


def _only(install: Install, condition: str) -> str:
    return f"(SELECT * FROM {install.source.name} WHERE {condition})"


def _insert(install: Install) -> str:
    fields = install.layout.fields
    columns = ", ".join(quote(field.stored) for field in fields)
    values = ", ".join(quote(field.name) for field in fields)
    return (
        f"INSERT INTO {install.storage} ({columns})\n"
        f"SELECT {values} FROM {install.source.name} WHERE {OPERATION} = 'I'"
    )
