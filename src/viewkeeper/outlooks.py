"""What the next refresh will have to do, foreseen from the ledger: the sources as they were last seen.

A plan looks at the sources, and needs Spark for that. An outlook says which views are behind, because of
what, and in which way they are kept; what that takes is not known before somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from viewkeeper.ledger import SourceObservation, ViewState
from viewkeeper.outlines import Outline

NO_ROWS = "it has no rows yet"
UP_TO_DATE = "no source was seen to change since"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What awaits one view: ``strategy`` as in a plan, ``changed`` what moved on since its last refresh."""

    view: str
    strategy: str
    reason: str | None
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What awaits the views. ``seen``: when each source was last looked at."""

    views: tuple[Foreseen, ...]
    seen: dict[str, datetime]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: a plan's views, no plan, and when the sources were seen."""
        seen = {source: when.isoformat() for source, when in self.seen.items()}
        return {"views": [asdict(view) for view in self.views], "pending": None, "plan": None, "seen": seen}

    def __str__(self) -> str:
        lines = ["Sources, as last seen"] if self.seen else ["No source was looked at yet."]
        width = max(map(len, self.seen), default=0)
        lines += [f"  {source:<{width}}  {_moment(when)}" for source, when in self.seen.items()]
        lines.append("Views")
        width = max((len(view.view) for view in self.views), default=0)
        for view in self.views:
            lines.append(f"  {view.view:<{width}}  {view.strategy}: {view.reason}")
            if view.changed:
                lines.append(f"  {'':<{width}}  because of {', '.join(view.changed)}")
        return "\n".join([*lines, "`viewkeeper plan` looks at the sources as they are now."])


def outlook(
    outlines: Mapping[str, Outline],
    wanted: Iterable[str],
    states: Mapping[str, ViewState],
    behind: Mapping[str, tuple[str, ...]],
    seen: Mapping[str, SourceObservation],
) -> Outlook:
    """The outlook for these views; ``behind``: of each view what moved on since."""
    views = tuple(_foreseen(outlines[name], states[name], behind[name]) for name in wanted)
    sources = dict.fromkeys(table for view in views for table in states[view.view].vector)
    return Outlook(views, {table: seen[table].observed_at for table in sources if table in seen})


def _foreseen(outline: Outline, state: ViewState, behind: tuple[str, ...]) -> Foreseen:
    if state.snapshot is None:
        return Foreseen(outline.name, "full", NO_ROWS, ())
    if not behind:
        return Foreseen(outline.name, "unchanged", UP_TO_DATE, ())
    if outline.reason is not None:
        return Foreseen(outline.name, "full", str(outline.reason), behind)
    if outline.policy == "full":
        return Foreseen(outline.name, "full", "its policy is full", behind)
    return Foreseen(outline.name, "incremental", "unless recomputing is found to be cheaper", behind)


def _moment(when: datetime) -> str:
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S")
