"""The commands that only read the ledger: they start no Spark, and load little, to answer at once."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType

from viewkeeper.cli.opening import opened_overview
from viewkeeper.cli.output import Output
from viewkeeper.cli.tables import (
    estimates_table,
    history_table,
    problems,
    sources_table,
    status_table,
    view_history_table,
)
from viewkeeper.overview import Overview
from viewkeeper.results import SourceStatus, Status

SHOWN_EPOCHS = 20
"""So many epochs people are shown who did not say how many they want."""


def status(output: Output, folder: Path | None) -> int:
    """Show how fresh the views are, and how far the declared sources are ahead of them."""
    with opened_overview(folder) as (_, overview):
        views, declared = overview.status(), overview.sources()
    told = {"views": views, "sources": [each.to_dict() for each in declared]}
    output.answer(told, *status_texts(views, declared))
    return 0


def status_texts(views: Status, declared: list[SourceStatus]) -> list[RenderableType]:
    """The status for people."""
    none = "No views yet. `viewkeeper refresh` creates those of the project."
    shown: list[RenderableType] = [status_table(views) if views else none, *problems(views)]
    return [*shown, "", sources_table(declared)] if declared else shown


def sources(output: Output, folder: Path | None) -> int:
    """List the declared sources."""
    with opened_overview(folder) as (_, overview):
        found = overview.sources()
    none = "No sources are declared. Tables of the catalog need no declaration."
    output.answer({"sources": [each.to_dict() for each in found]}, sources_table(found) if found else none)
    return 0


def history(
    output: Output, folder: Path | None, view: str | None, limit: int | None, *, estimates: bool = False
) -> int:
    """Show the epochs, or what was estimated in them."""
    with opened_overview(folder) as (_, overview):
        if estimates:
            found = overview.estimates(view, limit=limit)
            document = {"estimates": [each.to_dict() for each in found]}
            output.answer(document, estimates_table(found) if found else "Nothing was counted yet.")
            return 0
        return _epochs(output, overview, view, limit)


def _epochs(output: Output, overview: Overview, view: str | None, limit: int | None) -> int:
    cut = limit is None and not output.json
    epochs = overview.history(view, limit=SHOWN_EPOCHS + 1 if cut else limit)
    shown = epochs[:SHOWN_EPOCHS] if cut else epochs
    texts: list[RenderableType] = ["No epochs yet."]
    if shown:
        texts = [view_history_table(shown, overview.full_name(view)) if view else history_table(shown)]
    if len(epochs) > len(shown):
        texts.append("Older epochs: viewkeeper history --limit 1000")
    output.answer({"epochs": [epoch.to_dict() for epoch in shown]}, *texts)
    return 0


def plan(output: Output, folder: Path | None, views: list[str]) -> int:
    """Show what awaits the views, as far as the ledger knows."""
    with opened_overview(folder) as (_, overview):
        found = overview.outlook(*views)
    output.answer(found.to_dict(), str(found))
    return 0


def explain(output: Output, folder: Path | None, view: str) -> int:
    """Show how a view was kept in the last epoch that changed it."""
    from viewkeeper.cli.explaining import explained  # knows every step there is

    with opened_overview(folder) as (_, overview):
        found = overview.explain_last(view)
    output.answer(found.to_dict(), explained(output, found))
    return 0


def lattice(output: Output, folder: Path | None) -> int:
    """Draw the lattice of the views."""
    with opened_overview(folder) as (place, overview):
        found = overview.lattice(place)
    output.answer(found.to_dict(), str(found))
    return 0
