"""Apply counted rows to a bag without a key: deleting n of m equal rows leaves m − n.

Which stored copies go is found while the delta is computed, by comparing all columns (``<=>``) and
numbering the copies; they are named by Iceberg's row identity, so installing reads no column of the view.
"""

from __future__ import annotations

from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.install.counts import SMALL_STORAGE_ROWS, Counts
from viewkeeper.plan.steps import ComputeBag, Install
from viewkeeper.sql.quoting import quote

_ROW = "_row_id"
VICTIM = "_vk_row"


def victims_query(step: ComputeBag) -> str:
    """The identities of the stored rows that the delta's deletions take."""
    names = [field.name for field in step.stored.fields]
    on = " AND ".join(f"t.{quote(field.stored)} <=> d.{quote(field.name)}" for field in step.stored.fields)
    partition = ", ".join(f"d.{quote(name)}" for name in names)
    version = f" VERSION AS OF {step.stored.version}" if step.stored.version else ""
    return (
        f"SELECT {VICTIM}\n"
        f"FROM (\n"
        f"  SELECT t.{_ROW} AS {VICTIM}, d.{WEIGHT},\n"
        f"    row_number() OVER (PARTITION BY {partition} ORDER BY t.{_ROW}) AS _vk_copy\n"
        f"  FROM {step.stored.table}{version} AS t\n"
        f"  JOIN (SELECT * FROM {step.name} WHERE {WEIGHT} < 0) AS d\n"
        f"  ON {on}\n"
        f")\n"
        f"WHERE _vk_copy <= -{WEIGHT}"
    )


def statements(install: Install, counts: Counts, storage_rows: int | None) -> tuple[str, ...]:
    """What to run for this change."""
    assert isinstance(install.source, ComputeBag)
    if not counts.deleted:
        return (_insert(install),) if counts.inserted else ()
    if counts.inserted and (storage_rows is None or storage_rows <= SMALL_STORAGE_ROWS):
        return (_merge(install),)
    delete = (
        f"MERGE INTO {install.storage} AS t USING {install.source.victims} AS s\n"
        f"ON t.{_ROW} = s.{VICTIM}\n"
        f"WHEN MATCHED THEN DELETE"
    )
    return (delete, _insert(install)) if counts.inserted else (delete,)


def _merge(install: Install) -> str:
    """Deletions and insertions in one commit."""
    assert isinstance(install.source, ComputeBag)
    fields = install.layout.fields
    nothing = ", ".join(
        f"CAST(NULL AS {kind}) AS {quote(f.name)}"
        for f, kind in zip(fields, install.layout.types, strict=True)
    )
    columns = ", ".join(quote(field.stored) for field in fields)
    values = ", ".join(f"s.{quote(field.name)}" for field in fields)
    names = ", ".join(quote(field.name) for field in fields)
    return (
        f"MERGE INTO {install.storage} AS t USING (\n"
        f"  SELECT {VICTIM}, {nothing} FROM {install.source.victims}\n"
        f"  UNION ALL\n"
        f"  SELECT CAST(NULL AS BIGINT) AS {VICTIM}, {names} FROM ({_copies(install)})\n"
        f") AS s\n"
        f"ON t.{_ROW} = s.{VICTIM}\n"
        f"WHEN MATCHED THEN DELETE\n"
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


def _insert(install: Install) -> str:
    columns = ", ".join(quote(field.stored) for field in install.layout.fields)
    return f"INSERT INTO {install.storage} ({columns})\n{_copies(install)}"


def _copies(install: Install) -> str:
    """The inserted rows, each as often as its weight says."""
    names = ", ".join(quote(field.name) for field in install.layout.fields)
    return (
        f"SELECT {names} FROM {install.source.name}\n"
        f"LATERAL VIEW explode(sequence(1, {WEIGHT})) AS _vk_n\n"
        f"WHERE {WEIGHT} > 0"
    )
