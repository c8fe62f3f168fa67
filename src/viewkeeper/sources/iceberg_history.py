"""The snapshots of an Iceberg table: which lead from one version to another, and what they did.

A `replace` snapshot (compaction, relocation, rewritten manifests) changes files but, by the Iceberg
specification, no row. It therefore cuts the way from ``old`` to ``new`` into *segments*::

    old ─append─► p ─replace─► s ─delete─► new        Δ(old→new) = Δ(old→p) + Δ(s→new)

Nothing is read for the replace itself, and each segment compares the files at its own two ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from viewkeeper.errors import SourceError

_FILE_COUNTS: Final = (
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
    "added-dvs",
    "removed-dvs",
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One row of the `snapshots` metadata table."""

    id: str
    parent: str | None
    operation: str | None
    summary: Mapping[str, str] = field(default_factory=dict, hash=False)

    def count(self, key: str) -> int | None:
        """A number from the summary; writers may leave any of them out."""
        text = self.summary.get(key)
        return int(text) if text is not None and text.isdigit() else None

    @property
    def appends(self) -> bool:
        return self.operation == "append"

    @property
    def replaces(self) -> bool:
        return self.operation == "replace"

    @property
    def idle(self) -> bool:
        """It says itself that it touched no file, e.g. a MERGE that matched nothing."""
        return self.summary.get("changed-partition-count") == "0" and not any(
            self.count(key) for key in _FILE_COUNTS
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of commits between two snapshots, with no `replace` among them."""

    start: str
    end: str
    commits: tuple[Snapshot, ...]

    @property
    def appends_only(self) -> bool:
        """Nothing but appends, which all say how many rows they added."""
        return all(commit.appends and commit.count("added-records") is not None for commit in self.commits)

    @property
    def appended(self) -> frozenset[str]:
        """The ids of its append snapshots."""
        return frozenset(commit.id for commit in self.commits if commit.appends)


@dataclass(frozen=True, slots=True)
class History:
    """All snapshots that a table still has, and the id of its schema, where that is the one that the newest
    snapshot was written with."""

    table: str
    snapshots: Mapping[str, Snapshot]
    schema_id: str | None = None
    schemas: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The ids of the schemas that snapshots were written with, of as many as the table's log tells."""

    def __getitem__(self, version: str) -> Snapshot:
        if version not in self.snapshots:
            raise expired(self.table, version)
        return self.snapshots[version]

    def lineage(self, version: str) -> tuple[Snapshot, ...]:
        """The snapshot and its ancestors, newest first, as far back as they are kept."""
        line: list[Snapshot] = []
        at: str | None = version
        while at is not None and at in self.snapshots:
            line.append(self.snapshots[at])
            at = self.snapshots[at].parent
        return tuple(line)

    def commits(self, old: str, new: str) -> tuple[Snapshot, ...] | None:
        """The snapshots after ``old`` up to ``new``, oldest first.

        ``None``: both are kept but some between them are not, so how they are related cannot be told.
        """
        line = self.lineage(self[new].id)
        ids = [snapshot.id for snapshot in line]
        if old in ids:
            return tuple(reversed(line[: ids.index(old)]))
        reaches_the_beginning = line[-1].parent is None
        if old not in self.snapshots:
            raise (recreated if reaches_the_beginning else expired)(self.table, old)
        if not reaches_the_beginning and self[old].id not in {s.id for s in self.descendants(new)}:
            return None
        raise diverged(self.table, old, new)

    def descendants(self, version: str) -> tuple[Snapshot, ...]:
        """The snapshots that have this one among their kept ancestors."""
        return tuple(
            snapshot
            for snapshot in self.snapshots.values()
            if any(ancestor.id == version for ancestor in self.lineage(snapshot.id)[1:])
        )


def segments(old: str, commits: Sequence[Snapshot]) -> tuple[Segment, ...]:
    """The commits after ``old``, cut at each `replace`; segments in which nothing happened are left out."""
    found: list[Segment] = []
    start, end = old, old
    run: list[Snapshot] = []
    for commit in commits:
        if commit.replaces and not commit.idle:
            if run:
                found.append(Segment(start, end, tuple(run)))
            start, run = commit.id, []
        elif not commit.idle and not commit.replaces:
            run.append(commit)
        end = commit.id
    if run:
        found.append(Segment(start, end, tuple(run)))
    return tuple(found)


def expired(table: str, version: str) -> SourceError:
    """The snapshot a view was made from is no longer kept."""
    return SourceError(
        f"table {table}: snapshot {version} is expired; what changed since then can no longer be told",
        code="VK-SOURCE-EXPIRED",
        hint="refresh the views that read it with policy full; keep snapshots longer than the time "
        "between refreshes (history.expire.max-snapshot-age-ms)",
    )


def diverged(table: str, old: str, new: str) -> SourceError:
    """The table was rolled back, or replaced, past the snapshot a view was made from."""
    return SourceError(
        f"table {table}: snapshot {old} is not an ancestor of {new}; the table was rolled back or replaced",
        code="VK-SOURCE-DIVERGED",
        hint="refresh the views that read it with policy full",
    )


def recreated(table: str, version: str | None = None) -> SourceError:
    """Another table stands under the name."""
    why = f"snapshot {version} was never part of it" if version else "its identity is another one"
    return SourceError(
        f"table {table} was dropped and created again: {why}",
        code="VK-SOURCE-RECREATED",
        hint="check that this is the table you mean, then refresh the views that read it with policy full",
    )
