"""KEYREPLACE: delete every stored row that shows a touched key, then insert what was made anew.

One statement deletes, whatever the keys are keys of. The new rows show the same keys, so that they must not
be there before it has ended.
"""

from __future__ import annotations

from viewkeeper.algebra.rules.touched_rows import TouchedKeys
from viewkeeper.install.bags import hashed_insertion
from viewkeeper.install.counts import Counts, hint
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
    return delete, hashed_insertion(install, source.types)


def _shows(touched: TouchedKeys, stored: dict[str, str]) -> str:
    equal = " AND ".join(
        f"_vk_t.{quote(stored[each.shown])} {'<=>' if each.nullable else '='} _vk_k.{quote(each.name)}"
        for each in touched.columns
    )
    broadcast = hint(touched.keys.rows or 0, "_vk_k", len(touched.columns))
    return f"EXISTS (SELECT {broadcast}* FROM {touched.keys.name} AS _vk_k WHERE {equal})"
