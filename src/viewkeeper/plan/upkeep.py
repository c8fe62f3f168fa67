"""When the files of a storage table are worth rewriting, and which of its snapshots are still needed.

In the place of the paper's index maintenance (Labio et al. 2000, Section 3.3.1): what a lakehouse has to keep
up is the layout of files. Every install adds small ones and marks rows of others as deleted, which every
reader pays for, until they are rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from viewkeeper.errors import DefinitionError

SMALL_BYTES = 16 * 1024 * 1024
_MANY_SMALL = 8
"""Opening so many files takes as long as reading one that holds all their rows."""
_MANY_DELETED = 0.1
_MANY_MANIFESTS = 50


PROPERTY = "viewkeeper.maintain"
"""The table property that says when the files of a view are looked after."""
KEEP_EPOCHS = "viewkeeper.keep-epochs"
KEEP_DAYS = "viewkeeper.keep-days"
"""Those that say how long its epochs can be read."""
WORTH_EXPIRING = 10
"""To forget takes as long for one snapshot as for so many: after an epoch it waits until there are."""
_POLICIES = ("manual", "auto")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def keeps_up(properties: Mapping[str, str]) -> bool:
    """Whether files are rewritten after the epoch that makes it worth while, and not only when asked for."""
    return properties.get(PROPERTY, "manual").lower() == "auto"


def says_how_long(properties: Mapping[str, str]) -> bool:
    """Whether old epochs are forgotten after an epoch, too: not unless the view says which."""
    return KEEP_EPOCHS in properties or KEEP_DAYS in properties


def refuse_unknown(view: str, properties: Mapping[str, str]) -> None:
    """Raise if the policy that a definition asks for is none."""
    asked = properties.get(PROPERTY, "manual").lower()
    if asked not in _POLICIES:
        raise _unknown(view, PROPERTY, asked, f"One of: {', '.join(_POLICIES)}.")
    epochs, days = properties.get(KEEP_EPOCHS), properties.get(KEEP_DAYS)
    if epochs is not None and not (epochs.isdecimal() and int(epochs) >= 1):
        raise _unknown(view, KEEP_EPOCHS, epochs, "A number of epochs, 1 at least.")
    if days is not None and not _NUMBER.fullmatch(days):
        raise _unknown(view, KEEP_DAYS, days, "A number of days, such as 30 or 0.5.")


def _unknown(view: str, name: str, asked: str, hint: str) -> DefinitionError:
    return DefinitionError(f"view {view}: {name} is {asked!r}", code="VK-UPKEEP-POLICY", hint=hint)


@dataclass(frozen=True, slots=True)
class Files:
    """What a storage table is made of: its data files, how many of them are small, the rows in them, how many
    of those are marked as deleted, and the manifests that list it all."""

    files: int
    small: int
    rows: int
    deleted: int
    manifests: int

    @property
    def compaction(self) -> str | None:
        """Why they should be rewritten, if so."""
        if self.small >= _MANY_SMALL:
            return f"{self.small} small files"
        if self.rows and self.deleted / self.rows > _MANY_DELETED:
            return f"{self.deleted / self.rows:.0%} of the rows are marked as deleted"
        return None

    @property
    def rewrite_manifests(self) -> bool:
        return self.manifests > _MANY_MANIFESTS


@dataclass(frozen=True, slots=True)
class Retention:
    """How long epochs can be read (``wh.at``): the last so many, and those of the last days."""

    epochs: int = 100
    days: float = 7.0

    @classmethod
    def of(
        cls, properties: Mapping[str, str], epochs: int | None = None, days: float | None = None
    ) -> Retention:
        """As it was asked for, or else as a view's table properties say, or else as is usual.

        >>> Retention.of({"viewkeeper.keep-epochs": "5"}, days=2)
        Retention(epochs=5, days=2)
        """
        usual = cls()
        return cls(
            int(properties.get(KEEP_EPOCHS, usual.epochs)) if epochs is None else epochs,
            float(properties.get(KEEP_DAYS, usual.days)) if days is None else days,
        )

    def first(self, published: Mapping[int, datetime], now: datetime) -> int | None:
        """The oldest epoch to keep; ``None`` before there is any.

        >>> from datetime import timezone
        >>> noon = datetime(2026, 1, 9, 12, tzinfo=timezone.utc)
        >>> published = {at: noon - timedelta(days=9 - at) for at in range(1, 9)}
        >>> Retention(2, 0).first(published, noon), Retention(2, 5).first(published, noon)
        (7, 4)
        """
        if not published:
            return None
        newest = sorted(published)[-self.epochs :] if self.epochs > 0 else [max(published)]
        young = [epoch for epoch, at in published.items() if now - at <= timedelta(days=self.days)]
        return min(newest[0], *young, max(published))


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the rows of a view were from an epoch on."""

    view: str
    epoch: int
    storage: str
    snapshot: str | None


def needed(states: Iterable[Stored], first: int) -> list[Stored]:
    """Those that some epoch from ``first`` on shows: of every view all later ones, and the last before.

    >>> states = [Stored("v", epoch, "s", str(epoch)) for epoch in (1, 3, 5)]
    >>> [state.epoch for state in needed(states, 4)]
    [3, 5]
    """
    kept: list[Stored] = []
    by_view: dict[str, list[Stored]] = {}
    for state in states:
        by_view.setdefault(state.view, []).append(state)
    for rows in by_view.values():
        ordered = sorted(rows, key=lambda state: state.epoch)
        before = [state for state in ordered if state.epoch <= first]
        kept += [*before[-1:], *(state for state in ordered if state.epoch > first)]
    return kept


def expired(snapshots: Sequence[str], shown: Collection[str], seen: Collection[str]) -> list[str]:
    """Of a table's snapshots, oldest first, those that nobody needs: no epoch shows them, and no view that
    reads the table will ask for what came after one of them.

    >>> expired(["1", "2", "3", "4", "5"], {"2", "5"}, {"4"})
    ['1', '3']
    """
    follow = next((at for at, each in enumerate(snapshots) if each in seen), len(snapshots))
    return [each for each in snapshots[:follow] if each not in shown]
