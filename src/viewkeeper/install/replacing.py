"""KEYREPLACE: delete every stored row that shows a touched key, then insert what was made anew.

One statement deletes, whatever the keys are keys of. The new rows show the same keys, so that they must not
be there before it has ended.
"""

from __future__ import annotations

from viewkeeper.algebra.rules.touched_rows import TouchedKeys
from viewkeeper.install.counts import Counts, hint
from viewkeeper.install.row_hash import HASH, row_hash
from viewkeeper.plan.steps import ComputeReplacement, Install
from viewkeeper.sql.quoting import quote


def statements(install: Install, counts: Counts) -> tuple[str, ...]:
    """The deletion, and the insertion if there is something to insert."""
    source = install.source
    assert isinstance(source, ComputeReplacement)
    stored = {field.name: field.stored for field in install.layout.fields}
    shown = "\nOR ".join(_shows(each, stored) for each in source.keys)
    delete = f"DELETE FROM {install.storage} AS _vk_t\nWHERE {shown}"
    if not counts.inserted:
        return (delete,)
    columns = ", ".join([*(quote(field.stored) for field in install.layout.fields), HASH])
    names = [quote(field.name) for field in install.layout.fields]
    hashed = row_hash(zip(names, source.types, strict=True))
    insert = (
        f"INSERT INTO {install.storage} ({columns})\n"
        f"SELECT {', '.join(names)}, {hashed} AS {HASH} FROM {source.name}"
    )
    return delete, insert


def _shows(touched: TouchedKeys, stored: dict[str, str]) -> str:
    equal = " AND ".join(
        f"_vk_t.{quote(stored[each.shown])} {'<=>' if each.nullable else '='} _vk_k.{quote(each.name)}"
        for each in touched.columns
    )
    broadcast = hint(touched.keys.rows or 0, "_vk_k", len(touched.columns))
    return f"EXISTS (SELECT {broadcast}* FROM {touched.keys.name} AS _vk_k WHERE {equal})"
