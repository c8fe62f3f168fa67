"""The closing tables."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime, timezone

from rich.console import Console, RenderableType

from viewkeeper.cli.tables import (
    history_table,
    refresh_table,
    status_table,
    summary_line,
    verification_table,
    view_history_table,
)
from viewkeeper.results import Epoch, Verification, ViewRefresh, ViewStatus

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
MOVED = ViewRefresh("lake.default.a", "incremental", "merge groups", None, 1200, 10, 20, 30, 1.234, 0.5)
STILL = ViewRefresh("lake.default.b", "unchanged", None, "no source changed", 0, 0, 0, 0, 0.0, 0.0)
REDONE = ViewRefresh("lake.default.`[c]`", "full", "overwrite", "VK-X: [why]", 5, 5, 0, 0, 2.0, 1.0)


def lines(renderable: RenderableType, width: int = 200) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines() if line.strip()]


def test_the_refresh_table_has_all_the_columns() -> None:
    head, _rule, first, second, third = lines(refresh_table([MOVED, STILL, REDONE]))
    assert head.split() == [
        "view",
        "strategy",
        "Δ",
        "rows",
        "+",
        "−",
        "~",
        "compute",
        "install",
        "reason",
    ]
    assert first.split() == ["a", "incremental", "1,200", "10", "20", "30", "1.23", "s", "0.50", "s"]
    assert second.split() == ["b", "unchanged", "no", "source", "changed"]
    assert third.endswith("VK-X: [why]") and third.lstrip().startswith("`[c]`")


def test_on_a_narrow_terminal_no_number_loses_a_digit() -> None:
    view = ViewRefresh("lake.default.SID_sales", "incremental", None, None, 11347, 5000, 0, 6347, 15.58, 6.07)
    shown = " ".join(lines(refresh_table([view]), width=70))
    assert all(number in shown for number in ("11,347", "5,000", "6,347", "15.58", "6.07"))


def test_a_short_name_stays_in_one_piece_on_eighty_columns() -> None:
    view = ViewRefresh(
        "lake.default.SID_sales", "incremental", None, "a long reason", 11347, 5000, 0, 6347, 15.58, 6.07
    )
    shown = lines(refresh_table([view]), width=80)
    assert any(line.split()[0] == "SID_sales" for line in shown)
    assert all(number in " ".join(shown) for number in ("11,347", "5,000", "6,347", "15.58", "6.07"))


def test_names_are_shortened_only_where_that_is_clear() -> None:
    elsewhere = Verification("lake.other.b", True, 0, 0, 3)
    shown = lines(verification_table([Verification("lake.default.a", True, 0, 0, 3), elsewhere]))
    assert [line.split()[0] for line in shown[2:]] == ["lake.default.a", "lake.other.b"]


def test_without_reasons_there_is_no_column_for_them() -> None:
    assert "reason" not in lines(refresh_table([MOVED]))[0]


def test_the_summary_counts_the_views_that_moved() -> None:
    epoch = Epoch(7, {}, [MOVED, STILL, REDONE], NOON, {"compute": 2.0, "install": 1.0})
    assert summary_line(epoch) == "Epoch 7 published in 3.0 s: 2 views, 1 by deltas, 1 in full."
    assert summary_line(Epoch(7, {}, [STILL])) == "Nothing changed: epoch 7 is up to date."


def test_verification() -> None:
    found = [Verification("a", True, 0, 0, 3), Verification("b", False, 1, 2000, 3)]
    assert [line.split() for line in lines(verification_table(found))[2:]] == [
        ["a", "exact", "0", "0", "3"],
        ["b", "differs", "1", "2,000", "3"],
    ]


def test_status_tells_empty_stale_and_fresh() -> None:
    def status(epoch: int | None, *, stale: bool) -> ViewStatus:
        return ViewStatus("v", epoch, NOON, "full", False, "VK-X: why", stale, {}, ("pos", "stores"))

    shown = lines(status_table([status(None, stale=True), status(1, stale=True), status(1, stale=False)]))
    assert [line.split()[1] for line in shown[2:]] == ["empty", "stale", "fresh"]
    assert "by full recompute: VK-X: why" in shown[2] and "pos, stores" in shown[2]


def test_history_names_the_epoch_once() -> None:
    shown = lines(history_table([Epoch(2, {}, [MOVED, REDONE], NOON), Epoch(1, {}, [], NOON)]))[2:]
    assert shown[0].startswith("    2") or shown[0].lstrip().startswith("2 ")
    assert shown[1].lstrip().startswith("`[c]`")
    assert shown[2].endswith("no view changed")


def test_the_history_of_a_view_tells_how_much_longer_computing_took() -> None:
    epochs = [Epoch(2, {}, [MOVED], NOON), Epoch(1, {}, [replace(MOVED, install_seconds=0.0)], NOON)]
    head, _rule, first, second = lines(view_history_table(epochs, MOVED.view))
    assert "ratio" in head.split()
    assert first.split()[-1] == "2.5"
    assert second.split()[-2:] == ["0.00", "s"]
