"""Install the touched groups as they will be: each inserted, updated or deleted.

Variants by what was counted (Mumick et al. 1997, Section 4.3, and our own) and by the method (Labio et al.
2000, Section 3.2). Only new groups are a plain INSERT. SDCURSOR is one MERGE: by group key, or, if no group
is new, by the identity of the stored rows, which reads no column of the view. SDBATCH deletes the rows that
change or go by their identity, which can broadcast the change (a MERGE that updates cannot: Spark drops the
hint); then what is new or changed is inserted. SDOVERWRITE writes all groups anew. SDAPPEND inserts parts of
groups, which readers combine.
"""

from __future__ import annotations

from enum import Enum

from viewkeeper.algebra.relations import Field, Project, Staged
from viewkeeper.algebra.scalars import keep
from viewkeeper.algebra.summary_delta import OPERATION, ROW, groups_after
from viewkeeper.install.counts import Counts, delete_matching, hint
from viewkeeper.plan.methods import Method
from viewkeeper.plan.steps import Install
from viewkeeper.sql.printer import print_relation
from viewkeeper.sql.quoting import quote


class Variant(Enum):
    """How touched groups get into the storage."""

    INSERT = "insert new groups"
    MERGE = "merge groups by key"
    MATCHED = "merge groups by identity"
    """No group is new."""
    REPLACE = "delete and insert groups"
    REBUILD = "write all groups anew"
    APPEND = "append parts of groups"


def variant(counts: Counts, method: Method) -> Variant:
    """The variant of a method for a change of these counts.

    >>> [variant(counts, Method.SDCURSOR).value for counts in (Counts(inserted=3), Counts(updated=3))]
    ['insert new groups', 'merge groups by identity']
    """
    if method is Method.SDAPPEND:
        return Variant.APPEND
    if not counts.updated + counts.deleted:
        return Variant.INSERT
    match method:
        case Method.SDBATCH:
            return Variant.REPLACE
        case Method.SDOVERWRITE:
            return Variant.REBUILD
        case _:
            return Variant.MERGE if counts.inserted else Variant.MATCHED


def statements(install: Install, counts: Counts, method: Method) -> tuple[str, ...]:
    """What to run for this change by this method."""
    if not counts.total:
        return ()
    match variant(counts, method):
        case Variant.INSERT | Variant.APPEND:
            return (_insert(install),)
        case Variant.MERGE | Variant.MATCHED:
            return (_merge(install, counts),)
        case Variant.REPLACE:
            delete = _delete(install, counts)
            return (delete, _insert(install)) if counts.inserted + counts.updated else (delete,)
        case Variant.REBUILD:
            return (_overwrite(install, counts),)


def _delete(install: Install, counts: Counts) -> str:
    """The rows of all groups that change or go."""
    broadcast = hint(counts.updated + counts.deleted, "_vk_c")
    rows = f"SELECT {broadcast}{ROW} FROM {install.source.name} AS _vk_c WHERE {OPERATION} <> 'I'"
    return delete_matching(install.storage, rows, f"_vk_t._row_id = _vk_s.{ROW}")


def _merge(install: Install, counts: Counts) -> str:
    groups = install.layout.groups
    assert groups is not None
    keys = [field for field in install.layout.fields if field.name in groups.keys]
    by_key = [f"_vk_t.{quote(field.stored)} <=> _vk_s.{quote(field.name)}" for field in keys]
    on = " AND ".join(by_key or ["true"]) if counts.inserted else f"_vk_t._row_id = _vk_s.{ROW}"
    clauses = _when_matched(install, counts)
    if counts.inserted:
        values = ", ".join(f"_vk_s.{quote(field.name)}" for field in install.layout.fields)
        clauses.append(f"WHEN NOT MATCHED THEN INSERT ({_columns(install)}) VALUES ({values})")
    merge = f"MERGE INTO {install.storage} AS _vk_t USING {install.source.name} AS _vk_s"
    return "\n".join((merge, f"ON {on}", *clauses))


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


def _overwrite(install: Install, counts: Counts) -> str:
    """(V ▷ T) ⊎ T; the touched groups are few beside the stored ones, and are broadcast if they can be."""
    layout = install.layout
    assert layout.groups is not None
    stored = layout.identified(install.storage, install.snapshot)
    columns = (*(field.name for field in layout.fields), ROW, OPERATION)
    touched = Staged(install.source.name, tuple(Field(name, name) for name in columns), counts.total)
    rows = Project(groups_after(layout.groups, stored, touched), keep(field.name for field in layout.fields))
    return f"INSERT OVERWRITE {install.storage} ({_columns(install)})\n{print_relation(rows)}"


def _insert(install: Install) -> str:
    values = ", ".join(quote(field.name) for field in install.layout.fields)
    return (
        f"INSERT INTO {install.storage} ({_columns(install)})\n"
        f"SELECT {values} FROM {install.source.name} WHERE {OPERATION} <> 'D'"
    )


def _columns(install: Install) -> str:
    return ", ".join(quote(field.stored) for field in install.layout.fields)
