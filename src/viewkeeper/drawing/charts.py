"""Charts for pages that cannot be touched: what epochs took, and how one epoch spent its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.drawing.svg import (
    COMPUTE,
    INK,
    INSTALL,
    LINE,
    MUTED,
    drawing,
    element,
    linked,
    shortened,
    text_width,
)

_MARGIN = 12.0
_COLOURS = {
    "compute": COMPUTE,
    "install": INSTALL,
    "observe": "var(--vk-observe, #8a8f98)",
    "extract": "var(--vk-extract, #8a6fd1)",
    "publish": "var(--vk-publish, #2da44e)",
    "finish": "var(--vk-finish, #6e8f7a)",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """What one epoch took, or one view in it: seconds of computing, and of installing."""

    label: str
    compute: float
    install: float
    href: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: in which row, of what kind (a phase), from when, and how long, in seconds."""

    row: str
    phase: str
    start: float
    seconds: float
    href: str | None = None
    detail: str = ""


def draw_bars(bars: Sequence[Bar], title: str, description: str = "", *, width: float = 720.0) -> str:
    """Bars of compute and install, one on the other, first to last from left to right."""
    height, left, bottom = 190.0, 46.0, 24.0
    top = _MARGIN + 18
    most = _ceiling(max((bar.compute + bar.install for bar in bars), default=0.0))
    step = (width - left - _MARGIN) / max(1, len(bars))
    thick = min(36.0, max(1.0, step * 0.72))
    room = height - top - bottom
    every = max(
        1, math.ceil(text_width(max((bar.label for bar in bars), key=len, default=""), 11) * 1.3 / step)
    )
    body = [_legend(("compute", "install"), left), *_grid(most, left, width, top, room)]
    for at, bar in enumerate(bars):
        middle = left + step * (at + 0.5)
        low, high = room * bar.compute / most, room * bar.install / most
        floor = top + room
        said = f"{bar.label}: compute {_seconds(bar.compute)}, install {_seconds(bar.install)}"
        said += f"; {bar.detail}" if bar.detail else ""
        parts = [
            element("title", text=said),
            element("rect", x=middle - thick / 2, y=floor - low, width=thick, height=low, fill=COMPUTE),
            element(
                "rect", x=middle - thick / 2, y=floor - low - high, width=thick, height=high, fill=INSTALL
            ),
        ]
        if at % every == 0:
            parts.append(
                element(
                    "text",
                    text=bar.label,
                    x=middle,
                    y=height - 7,
                    text_anchor="middle",
                    font_size=11,
                    fill=MUTED,
                )
            )
        body.append(linked(bar.href, said, *parts))
    return drawing("bars", title, description or f"{len(bars)} bars of seconds.", (width, height), body)


def draw_waterfall(spans: Sequence[Span], title: str, description: str = "", *, width: float = 720.0) -> str:
    """Rows of stretches, all on one axis of time."""
    rows = list(dict.fromkeys(span.row for span in spans))
    left = min(220.0, 20 + max((text_width(shortened(row, 30), 12) for row in rows), default=0.0))
    end = _ceiling(max((span.start + span.seconds for span in spans), default=0.0))
    top, each = _MARGIN + 36, 26.0
    height = top + each * len(rows) + _MARGIN
    room = width - left - 64

    def at(seconds: float) -> float:
        return left + room * seconds / end

    phases = list(dict.fromkeys(span.phase for span in spans))
    body = [_legend(phases, left)]
    for tick in _ticks(end):
        body += [
            element(
                "path",
                d=f"M{at(tick):.1f} {top - 6:.1f} V{height - _MARGIN:.1f}",
                stroke=LINE,
                stroke_opacity=0.3,
            ),
            element(
                "text",
                text=_tick(tick),
                x=at(tick),
                y=top - 10,
                text_anchor="middle",
                font_size=11,
                fill=MUTED,
            ),
        ]
    for place, row in enumerate(rows):
        y = top + each * place
        body.append(
            element(
                "text",
                text=shortened(row, 30),
                x=left - 10,
                y=y + 17,
                text_anchor="end",
                font_size=12,
                fill=INK,
            )
        )
        own = [span for span in spans if span.row == row]
        for span in own:
            said = f"{row}, {span.phase}: {_seconds(span.seconds)}" + (
                f"; {span.detail}" if span.detail else ""
            )
            body.append(
                linked(
                    span.href,
                    said,
                    element("title", text=said),
                    element(
                        "rect", x=at(span.start), y=y + 5, width=max(1.5, room * span.seconds / end),
                        height=each - 10, rx=2, fill=_COLOURS.get(span.phase, LINE),
                    ),
                )
            )  # fmt: skip
        last = max(span.start + span.seconds for span in own)
        total = _seconds(sum(span.seconds for span in own))
        body.append(element("text", text=total, x=at(last) + 6, y=y + 17, font_size=11, fill=MUTED))
    return drawing(
        "waterfall", title, description or f"{len(spans)} stretches of time.", (width, height), body
    )


def _legend(phases: Sequence[str], left: float) -> str:
    parts, x = [], left
    for phase in phases:
        parts += [
            element("rect", x=x, y=_MARGIN - 4, width=10, height=10, rx=2, fill=_COLOURS.get(phase, LINE)),
            element("text", text=phase, x=x + 15, y=_MARGIN + 5, font_size=11, fill=MUTED),
        ]
        x += 34 + text_width(phase, 11)
    return element("g", *parts, aria_hidden="true")


def _grid(most: float, left: float, width: float, top: float, room: float) -> list[str]:
    lines = []
    for tick in _ticks(most):
        y = top + room * (1 - tick / most)
        lines += [
            element("path", d=f"M{left:.1f} {y:.1f} H{width - _MARGIN:.1f}", stroke=LINE, stroke_opacity=0.3),
            element(
                "text", text=_tick(tick), x=left - 6, y=y + 4, text_anchor="end", font_size=11, fill=MUTED
            ),
        ]
    return lines


def _ceiling(most: float) -> float:
    """The end of an axis: the next round number.

    >>> _ceiling(0.0), _ceiling(7.3), _ceiling(0.021)
    (1.0, 8.0, 0.025)
    """
    if most <= 0:
        return 1.0
    ten: float = 10.0 ** math.floor(math.log10(most))
    return next(
        round(ten * factor, 9) for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if ten * factor >= most
    )


def _ticks(end: float) -> list[float]:
    return [end * part / 4 for part in range(5)]


def _tick(seconds: float) -> str:
    return f"{seconds:g} s" if 0.01 <= seconds < 100 else _seconds(seconds)


def _seconds(seconds: float) -> str:
    """
    >>> _seconds(0), _seconds(0.0042), _seconds(0.26), _seconds(12.34), _seconds(615)
    ('0', '4 ms', '0.26 s', '12.3 s', '10 min 15 s')
    """
    if seconds == 0:
        return "0"
    if seconds < 0.01:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.{2 if seconds < 10 else 1}f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
