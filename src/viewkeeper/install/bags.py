"""Apply counted rows to a bag: deleting n of m equal rows leaves m − n (Labio et al. 2000, Section 3.1).

GENINSTALL knows no key. First every row is deleted whose hidden hash is that of a deleted row. That reads
nothing but the hashes, and is right if as many rows went as were to go (see
:mod:`viewkeeper.install.row_hash`). Otherwise (copies that stay, a collision) the copies that go are looked
up, by comparing all columns (``<=>``) and numbering them, and are named by Iceberg's row identity.

KEYINSTALL deletes every row that has the key of a deleted row. The key follows from what the tables declare,
so this, too, is right only if as many rows went as were to go.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra.scalars import WEIGHT
from viewkeeper.install.counts import Counts, delete_matching, hint
from viewkeeper.install.row_hash import HASH, row_hash
from viewkeeper.plan.steps import ComputeBag, Install
from viewkeeper.sql.printer import at_version, copies_of
from viewkeeper.sql.quoting import quote

BY_VALUE = "apply bag by value"
"""What is said of a bag whose rows had to be looked up."""
_ROW = "_row_id"
VICTIM = "_vk_row"


def victims_by_value(step: ComputeBag, deleted: int) -> str:
    """The identities of the stored rows that the delta's deletions take, by comparing all columns."""
    on = " AND ".join(
        f"_vk_t.{quote(field.stored)} <=> _vk_d.{quote(field.name)}" for field in step.stored.fields
    )
    partition = ", ".join(f"_vk_d.{quote(field.name)}" for field in step.stored.fields)
    broadcast = hint(deleted, "_vk_d", len(step.stored.fields))
    return (
        f"SELECT {VICTIM}\n"
        f"FROM (\n"
        f"  SELECT {broadcast}_vk_t.{_ROW} AS {VICTIM}, _vk_d.{WEIGHT},\n"
        f"    row_number() OVER (PARTITION BY {partition} ORDER BY _vk_t.{_ROW}) AS _vk_copy\n"
        f"  FROM {_stored(step)} AS _vk_t\n"
        f"  JOIN (SELECT * FROM {step.name} WHERE {WEIGHT} < 0) AS _vk_d\n"
        f"  ON {on}\n"
        f")\n"
        f"WHERE _vk_copy <= -{WEIGHT}"
    )


def count_stored(step: ComputeBag) -> str:
    """How many rows are stored."""
    return f"SELECT count(*) FROM {_stored(step)}"


def _stored(step: ComputeBag) -> str:
    return step.stored.table + at_version(step.stored.version, step.stored.options)


def _hash(step: ComputeBag) -> str:
    names = (quote(field.name) for field in step.stored.fields)
    return row_hash(zip(names, step.types, strict=True))


def statements_by_hash(install: Install, counts: Counts) -> tuple[str, ...]:
    """Delete whatever has the hash of a deleted row; then insert."""
    source = _source(install)
    # The delta is net, so each row is there once, and so is each hash, unless two rows happen to share one;
    # then as many rows go as there are, and are perhaps counted twice, which the check of the count notices.
    hashes = (
        f"SELECT {hint(counts.deleted, '_vk_h')}* "
        f"FROM (SELECT {_hash(source)} AS {HASH} FROM {source.name} WHERE {WEIGHT} < 0) AS _vk_h"
    )
    delete = delete_matching(install.storage, hashes, f"_vk_t.{HASH} = _vk_s.{HASH}")
    return (delete, insertion(install)) if counts.inserted else (delete,)


def statements_by_key(install: Install, counts: Counts) -> tuple[str, ...]:
    """Delete whatever has the key of a deleted row; then, and not before, insert: a new row may have the key
    of an old one."""
    source = _source(install)
    stored = {field.name: field.stored for field in install.layout.fields}
    equals = "=" if counts.null_keys == 0 else "<=>"
    on = " AND ".join(f"_vk_t.{quote(stored[name])} {equals} _vk_s.{quote(name)}" for name in source.key)
    names = ", ".join(quote(name) for name in source.key)
    keys = (
        f"SELECT {hint(counts.deleted, '_vk_k', len(source.key))}{names} "
        f"FROM {source.name} AS _vk_k WHERE {WEIGHT} < 0"
    )
    delete = delete_matching(install.storage, keys, on)
    return (delete, insertion(install)) if counts.inserted else (delete,)


def insertion(install: Install) -> str:
    """Insert the new rows, each as often as its weight says."""
    return hashed_insertion(install, _source(install).types, (*copies_of(WEIGHT), f"WHERE {WEIGHT} > 0"))


def hashed_insertion(install: Install, types: Sequence[str], clauses: Sequence[str] = ()) -> str:
    """Insert what was computed, each row with its hash. ``clauses`` follow FROM."""
    columns = ", ".join([*(quote(field.stored) for field in install.layout.fields), HASH])
    names = [quote(field.name) for field in install.layout.fields]
    hashed = row_hash(zip(names, types, strict=True))
    select = f"SELECT {', '.join(names)}, {hashed} AS {HASH} FROM {install.source.name}"
    return "\n".join((f"INSERT INTO {install.storage} ({columns})", select, *clauses))


def null_keys(step: ComputeBag) -> str:
    """Counts the deleted rows that have a NULL in their key; NULL where there is no key."""
    if not step.key:
        return "CAST(NULL AS BIGINT)"
    missing = " OR ".join(f"{quote(name)} IS NULL" for name in step.key)
    return f"count_if({WEIGHT} < 0 AND ({missing}))"


def statements(install: Install, counts: Counts) -> tuple[str, ...]:
    """What to run for this change, the rows to delete having been looked up."""
    source = _source(install)
    if not counts.deleted:
        return (insertion(install),) if counts.inserted else ()
    broadcast = hint(counts.deleted, "_vk_v")
    victims = f"SELECT {broadcast}{VICTIM} FROM {source.victims} AS _vk_v"
    delete = delete_matching(install.storage, victims, f"_vk_t.{_ROW} = _vk_s.{VICTIM}")
    return (delete, insertion(install)) if counts.inserted else (delete,)


def _source(install: Install) -> ComputeBag:
    assert isinstance(install.source, ComputeBag)
    return install.source
