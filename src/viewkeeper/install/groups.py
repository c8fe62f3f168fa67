"""MERGE the touched groups as they will be: each inserted, updated or deleted.

Variants by what was counted. Only new groups are a plain INSERT. No new groups are a MERGE of matches only,
which can broadcast the change, by the identity of the stored rows: it reads no column of the view. Of both, a
large storage takes the two statements one after the other, a small one takes a single MERGE by group key.
"""

from __future__ import annotations

from viewkeeper.algebra.summary_delta import OPERATION, ROW
from viewkeeper.install.counts import SMALL_STORAGE_ROWS, Counts, hint
from viewkeeper.plan.steps import Install
from viewkeeper.sql.quoting import quote


def statements(install: Install, counts: Counts, storage_rows: int | None) -> tuple[str, ...]:
    """What to run for this change."""
    if not counts.updated + counts.deleted:
        return (_insert(install),) if counts.inserted else ()
    if not counts.inserted:
        return (_merge_matches(install, counts),)
    if storage_rows is not None and storage_rows > SMALL_STORAGE_ROWS:
        return (_merge_matches(install, counts), _insert(install))
    return (_merge_all(install, counts),)


def _merge_matches(install: Install, counts: Counts) -> str:
    broadcast = hint(counts.updated + counts.deleted, "_vk_c")
    source = f"(SELECT {broadcast}* FROM {install.source.name} AS _vk_c WHERE {OPERATION} <> 'I')"
    return "\n".join(
        [
            f"MERGE INTO {install.storage} AS _vk_t USING {source} AS _vk_s",
            f"ON _vk_t._row_id = _vk_s.{ROW}",
            *_when_matched(install, counts),
        ]
    )


def _merge_all(install: Install, counts: Counts) -> str:
    groups = install.layout.groups
    assert groups is not None
    keys = [field for field in install.layout.fields if field.name in groups.keys]
    on = (
        " AND ".join(f"_vk_t.{quote(field.stored)} <=> _vk_s.{quote(field.name)}" for field in keys) or "true"
    )
    values = ", ".join(f"_vk_s.{quote(field.name)}" for field in install.layout.fields)
    return "\n".join(
        [
            f"MERGE INTO {install.storage} AS _vk_t USING {install.source.name} AS _vk_s",
            f"ON {on}",
            *_when_matched(install, counts),
            f"WHEN NOT MATCHED THEN INSERT ({_columns(install)}) VALUES ({values})",
        ]
    )


def _when_matched(install: Install, counts: Counts) -> list[str]:
    clauses = []
    if counts.deleted:
        clauses.append(f"WHEN MATCHED AND _vk_s.{OPERATION} = 'D' THEN DELETE")
    if counts.updated:
        # The keys too, though they stay as they are: then no column of the stored row has to be read.
        values = ", ".join(
            f"{quote(each.stored)} = _vk_s.{quote(each.name)}" for each in install.layout.fields
        )
        clauses.append(f"WHEN MATCHED THEN UPDATE SET {values}")
    return clauses


def _insert(install: Install) -> str:
    values = ", ".join(quote(field.name) for field in install.layout.fields)
    return (
        f"INSERT INTO {install.storage} ({_columns(install)})\n"
        f"SELECT {values} FROM {install.source.name} WHERE {OPERATION} = 'I'"
    )


def _columns(install: Install) -> str:
    return ", ".join(quote(field.stored) for field in install.layout.fields)
