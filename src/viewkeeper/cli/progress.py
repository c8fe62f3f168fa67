"""Progress of a refresh: a live table per view on a terminal, plain lines where there is none.

:class:`Board` is the state, folded from events; the two displays only draw it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from typing_extensions import assert_never

from viewkeeper.events import (
    EpochAbandoned,
    EpochPublished,
    EpochStarted,
    Event,
    Phase,
    PointPassed,
    RowsRead,
    StepFinished,
    StepStarted,
)

_SPEED_EVERY_SECONDS = 10.0
"""A log need not hold what was read every other second."""
_VIEW_PHASES = (Phase.COMPUTE, Phase.INSTALL)


@dataclass
class Cell:
    """One phase of one view (or of the epoch): how many steps run and what the finished ones took."""

    running: int = 0
    done: int = 0
    seconds: float = 0.0
    rows: int | None = None
    detail: str = ""
    since: float = 0.0

    def start(self, detail: str) -> None:
        self.running += 1
        self.detail = detail
        self.since = time.monotonic()

    def finish(self, seconds: float, rows: int | None) -> None:
        self.running = max(0, self.running - 1)
        self.done += 1
        self.seconds += seconds
        if rows is not None:
            self.rows = (self.rows or 0) + rows


@dataclass
class Board:
    """What is known of the epoch under way."""

    epoch: int | None = None
    views: list[str] = field(default_factory=list)
    cells: dict[tuple[str | None, Phase], Cell] = field(default_factory=dict)
    read: RowsRead | None = None
    published: bool = False
    abandoned: str | None = None

    def cell(self, view: str | None, phase: Phase) -> Cell:
        """The cell of a view and phase, made when first asked for."""
        if view is not None and view not in self.views:
            self.views.append(view)
        return self.cells.setdefault((view, phase), Cell())

    def see(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case EpochStarted():
                self.epoch, self.published, self.abandoned = event.epoch, False, None
                self.views, self.read = list(event.views), None
                # What was observed before the epoch began belongs to it; an earlier epoch's views do not.
                self.cells = {key: cell for key, cell in self.cells.items() if key[1] is Phase.OBSERVE}
            case StepStarted():
                self.cell(event.view, event.phase).start(event.detail)
            case StepFinished():
                self.cell(event.view, event.phase).finish(event.seconds, event.rows)
            case PointPassed():
                pass
            case RowsRead():
                self.read = event
            case EpochPublished():
                self.published = True
            case EpochAbandoned():
                self.abandoned = event.error
            case _:
                assert_never(event)


def plain_line(event: Event) -> str | None:
    """The event as a line of a log; ``None`` for what is not worth one."""
    match event:
        case EpochStarted():
            return f"epoch {event.epoch}: {', '.join(event.views)}"
        case StepStarted() | PointPassed():
            return None
        case StepFinished():
            rows = "" if event.rows is None else f", {event.rows:,} rows"
            return f"{event.view or 'epoch'}: {event.phase} {event.seconds:.2f} s{rows}"
        case RowsRead():
            return f"epoch: {_speed(event)}"
        case EpochPublished():
            return f"epoch {event.epoch}: published"
        case EpochAbandoned():
            return f"epoch {event.epoch}: given up, every view is as it was: {event.error}"
        case _:
            assert_never(event)


def draw(board: Board) -> RenderableType:
    """The board as a table: a row per view, and one for the epoch as a whole."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(f"epoch {board.epoch}" if board.epoch is not None else "refresh", no_wrap=True)
    table.add_column("")
    for view in board.views:
        drawn = [_draw_cell(phase, board.cells.get((view, phase))) for phase in _VIEW_PHASES]
        drawn += [
            _draw_cell(phase, cell)
            for (owner, phase), cell in board.cells.items()
            if owner == view and phase not in _VIEW_PHASES
        ]
        table.add_row(escape(view), "  ".join(drawn))
    common = [_draw_cell(phase, board.cells[None, phase]) for phase in Phase if (None, phase) in board.cells]
    if board.read is not None:
        common.append(f"[dim]{_speed(board.read)}[/]")
    if common:
        table.add_row("[dim]all", "  ".join(common))
    return table


def _speed(read: RowsRead) -> str:
    size = f", {read.bytes_per_second / 1e6:,.1f} MB/s" if read.bytes else ""
    return f"read {read.rows:,} rows, {read.rows_per_second:,.0f} rows/s{size}"


def _draw_cell(phase: Phase, cell: Cell | None) -> str:
    if cell is None:
        return f"[dim]{phase} ·[/]"
    if cell.running:
        detail = f" {escape(cell.detail)}" if cell.detail else ""
        return f"[cyan]{phase} {time.monotonic() - cell.since:.0f} s…{detail}[/]"
    rows = "" if cell.rows is None else f" ({cell.rows:,})"
    return f"[green]{phase} {cell.seconds:.1f} s{rows}[/]"


@contextmanager
def showing(console: Console) -> Iterator[Callable[[Event], None]]:
    """A receiver of events that shows them on ``console`` until the block ends. Any thread may call it."""
    lock = threading.Lock()
    if not console.is_terminal:
        spoken = -_SPEED_EVERY_SECONDS

        def write(event: Event) -> None:
            nonlocal spoken
            if isinstance(event, RowsRead):
                if event.seconds < spoken + _SPEED_EVERY_SECONDS:
                    return
                spoken = event.seconds
            line = plain_line(event)
            if line:
                with lock:
                    console.print(line, markup=False, highlight=False, soft_wrap=True)

        yield write
        return

    board = Board()

    def snapshot() -> RenderableType:
        with lock:
            return draw(board)

    # Transient: the closing table says the same, once it is over.
    with Live(get_renderable=snapshot, console=console, transient=True, refresh_per_second=8):

        def note(event: Event) -> None:
            with lock:
                board.see(event)

        yield note
