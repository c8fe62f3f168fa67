"""What is known of a change once it is computed, and before it is installed."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.reading_costs import is_broadcast


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows (or groups) that the change inserts, deletes and updates in the storage."""

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    recomputed: int = 0
    """Of the updated groups, those that had to be computed from the rows: their extremum was deleted."""
    null_keys: int | None = None
    """Of the rows deleted from a bag, those with a NULL in their key; ``None``: not counted."""

    @property
    def total(self) -> int:
        return self.inserted + self.deleted + self.updated


def delete_matching(storage: str, rows: str, on: str) -> str:
    """Delete the stored rows (``_vk_t``) that match some of these (``_vk_s``); a MERGE can broadcast them."""
    return f"MERGE INTO {storage} AS _vk_t USING ({rows}) AS _vk_s\nON {on}\nWHEN MATCHED THEN DELETE"


def hint(rows: int, alias: str, columns: int = 1) -> str:
    """The hint to broadcast that many rows of a change, or nothing; Spark does not know how few they are."""
    return f"/*+ BROADCAST({alias}) */ " if is_broadcast(rows, columns) else ""
