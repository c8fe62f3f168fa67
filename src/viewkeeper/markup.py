"""HTML for notebooks and reports: everything that comes from elsewhere is escaped here.

Colours are those of the drawings, readable on light and dark; the rest takes the colours of its page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

GOOD, STALE, BAD = "var(--vk-fresh, #2da44e)", "var(--vk-stale, #c77d0a)", "var(--vk-failed, #d1434b)"
_STATES = {
    "fresh": GOOD,
    "incremental": GOOD,
    "exact": GOOD,
    "stale": STALE,
    "empty": STALE,
    "full": STALE,
    "failed": BAD,
    "differs": BAD,
}
_CELL = "padding: 0.2em 0.8em 0.2em 0; vertical-align: top; text-align: {align};"
_WIDE = "overflow-x: auto; max-width: 100%;"


class Safe(str):
    """HTML already: made here or by the drawings, and not to be escaped again."""

    __slots__ = ()

    def __html__(self) -> str:
        """For templates, which escape all else."""
        return self


def html(text: object) -> Safe:
    """A text as HTML.

    >>> html("a < b"), html(Safe("<b>"))
    ('a &lt; b', '<b>')
    """
    return text if isinstance(text, Safe) else Safe(escape(str(text)))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Safe:
    """A table; a column whose name ends in ``>`` holds numbers. Words that tell a state have its colour.

    >>> table(["view"], [["<v>"]]).partition("<td")[2].partition(">")[2].partition("<")[0]
    '&lt;v&gt;'
    """
    aligned = ["right" if name.endswith(">") else "left" for name in columns]
    head = "".join(
        f'<th scope="col" style="{_CELL.format(align=align)}">{html(name.removesuffix(">"))}</th>'
        for name, align in zip(columns, aligned, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL.format(align=align)}">{state(cell)}</td>'
            for cell, align in zip(row, aligned, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    said = f"<caption>{html(caption)}</caption>" if caption else ""
    return Safe(
        f'<div style="{_WIDE}"><table class="vk-table" style="border-collapse: collapse;">{said}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def state(word: object) -> Safe:
    """A word, in the colour of the state that it tells, if it does."""
    colour = _STATES.get(word) if isinstance(word, str) and not isinstance(word, Safe) else None
    return html(word) if colour is None else Safe(f'<span style="color: {colour};">{html(word)}</span>')


def block(*parts: str) -> str:
    """What a notebook shows for a value: parts, which are HTML already."""
    return f'<div class="viewkeeper">{"".join(parts)}</div>'


def picture(svg: str) -> Safe:
    """A drawing that is wider than its page can be scrolled."""
    return Safe(f'<div style="{_WIDE}">{svg}</div>')


def code(text: str) -> Safe:
    """SQL, as it is."""
    return Safe(f'<pre style="white-space: pre-wrap; text-align: left;">{html(text)}</pre>')


def folded(title: str, *parts: str) -> Safe:
    """What is shown to those who ask for it."""
    return Safe(f"<details><summary>{html(title)}</summary>{''.join(parts)}</details>")


def moment(when: datetime | None) -> str:
    """A time for people, in their zone."""
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S") if when else ""


def count(number: int) -> str:
    """A number of rows."""
    return f"{number:,}"


def seconds(amount: float) -> str:
    """A duration."""
    return f"{amount:.2f} s"
