"""``viewkeeper status --watch``: the status, drawn anew in its place until Ctrl-C."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from viewkeeper.cli.opening import opened_overview
from viewkeeper.cli.output import Output
from viewkeeper.cli.reading import status_texts
from viewkeeper.errors import LedgerError
from viewkeeper.overview import Overview


def watch(output: Output, folder: Path | None, seconds: float) -> int:
    """Show the status every so many seconds. Ctrl-C is the way to end it, and so no error."""
    with opened_overview(folder) as (_, overview):
        try:
            if output.results.is_terminal:
                _in_place(output.results, overview, seconds)
            else:
                _one_after_the_other(output, overview, seconds)
        except KeyboardInterrupt:
            pass
    return 0


def _in_place(console: Console, overview: Overview, seconds: float) -> None:
    with Live(_drawn(overview, seconds), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(seconds)
            live.update(_drawn(overview, seconds), refresh=True)


def _one_after_the_other(output: Output, overview: Overview, seconds: float) -> None:
    while True:
        output.say(_drawn(overview, seconds))
        output.results.file.flush()
        time.sleep(seconds)


def _drawn(overview: Overview, seconds: float) -> RenderableType:
    """The status now. A ledger that went away may come back: it is asked again."""
    now = datetime.now().strftime("%H:%M:%S")
    head = Text(f"{now}, every {seconds:g} s; Ctrl-C ends it", style="dim")
    try:
        return Group(head, *status_texts(overview.status(), overview.sources()))
    except LedgerError as error:
        return Group(head, Text(str(error), style="red"))
