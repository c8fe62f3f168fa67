"""Progress: the board that events fold into, and what the two displays make of it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from viewkeeper.cli.progress import Board, draw, plain_line, showing
from viewkeeper.events import (
    EpochAbandoned,
    EpochPublished,
    EpochStarted,
    Event,
    Phase,
    RowsRead,
    StepFinished,
    StepStarted,
)

EPOCH: list[Event] = [
    StepStarted(None, Phase.OBSERVE, "pos, stores"),
    StepFinished(None, Phase.OBSERVE, 0.2),
    EpochStarted(7, ("lake.default.a", "lake.default.[b]")),
    StepStarted("lake.default.a", Phase.COMPUTE, "groups"),
    StepFinished("lake.default.a", Phase.COMPUTE, 1.25, 1200),
    StepStarted("lake.default.a", Phase.INSTALL, "merge"),
    StepStarted("lake.default.[b]", Phase.COMPUTE, "SELECT [x]"),
]


def text(board: Board) -> str:
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(draw(board))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def board_after(*events: Event) -> Board:
    board = Board()
    for event in events:
        board.see(event)
    return board


def test_the_board_shows_each_view_with_its_phases() -> None:
    drawn = text(board_after(*EPOCH))
    assert "epoch 7" in drawn
    lines = {line.split()[0]: line for line in drawn.splitlines()[1:]}
    assert "compute 1.2 s (1,200)" in lines["lake.default.a"]
    assert "install 0 s… merge" in lines["lake.default.a"]
    assert "compute 0 s… SELECT [x]" in lines["lake.default.[b]"], "names and SQL are not markup"
    assert "install ·" in lines["lake.default.[b]"]
    assert "observe 0.2 s" in lines["all"]


def test_several_steps_of_a_phase_add_up() -> None:
    cell = board_after(
        EpochStarted(1, ("v",)),
        StepStarted("v", Phase.COMPUTE),
        StepStarted("v", Phase.COMPUTE),
        StepFinished("v", Phase.COMPUTE, 1.0, 10),
        StepFinished("v", Phase.COMPUTE, 0.5, 5),
    ).cell("v", Phase.COMPUTE)
    assert (cell.running, cell.done, cell.seconds, cell.rows) == (0, 2, 1.5, 15)


def test_a_new_epoch_clears_the_views_of_the_last() -> None:
    board = board_after(*EPOCH, EpochPublished(7), EpochStarted(8, ("c",)))
    assert (board.epoch, board.views, board.published) == (8, ["c"], False)
    assert "lake.default.a" not in text(board)


def test_an_abandoned_epoch_is_remembered() -> None:
    assert board_after(*EPOCH, EpochAbandoned(7, "disk full")).abandoned == "disk full"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (EPOCH[2], "epoch 7: lake.default.a, lake.default.[b]"),
        (EPOCH[3], None),
        (EPOCH[4], "lake.default.a: compute 1.25 s, 1,200 rows"),
        (EPOCH[1], "epoch: observe 0.20 s"),
        (RowsRead(9_000, 2_500_000, 2.0), "epoch: read 9,000 rows, 4,500 rows/s, 1.2 MB/s"),
        (RowsRead(9_000, 0, 2.0), "epoch: read 9,000 rows, 4,500 rows/s"),
        (EpochPublished(7), "epoch 7: published"),
        (EpochAbandoned(7, "disk full"), "epoch 7: given up, every view is as it was: disk full"),
    ],
)
def test_plain_lines(event: Event, line: str | None) -> None:
    assert plain_line(event) == line


def test_how_fast_rows_are_read_is_shown_while_they_are() -> None:
    board = board_after(*EPOCH, RowsRead(9_000, 0, 2.0), RowsRead(20_000, 0, 4.0))
    assert "read 20,000 rows, 5,000 rows/s" in text(board)
    assert board_after(*EPOCH, RowsRead(9_000, 0, 2.0), EpochStarted(8, ("c",))).read is None
    file = io.StringIO()
    with showing(Console(file=file)) as receive:
        for second in range(2, 30, 2):
            receive(RowsRead(second * 100, 0, float(second)))
    assert file.getvalue().count("rows/s") == 3, "a log is told every ten seconds"


def test_without_a_terminal_there_are_plain_lines() -> None:
    file = io.StringIO()
    with showing(Console(file=file, width=20)) as receive:
        for event in EPOCH:
            receive(event)
    lines = file.getvalue().splitlines()
    assert lines[-1] == "lake.default.a: compute 1.25 s, 1,200 rows", "never wrapped"
    assert "\x1b" not in file.getvalue()


def test_on_a_terminal_the_display_is_drawn_and_cleared() -> None:
    file = io.StringIO()
    with showing(Console(file=file, force_terminal=True, width=120)) as receive:
        for event in EPOCH:
            receive(event)
    assert "lake.default.a" in file.getvalue()
    assert "\x1b[2K" in file.getvalue(), "transient: what was drawn is erased at the end"
