"""The words of SVG that the drawings are written in. All text is escaped here and nowhere else.

A colour is a presentation attribute such as ``fill="var(--vk-fresh, #2da44e)"``: a page's style sheet can set
the variable, a page without one gets the other value, and a content security policy that forbids inline
styles has nothing to forbid.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from enum import Enum
from html import escape

FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"

INK = "var(--vk-ink, currentColor)"
MUTED = "var(--vk-muted, #7a828c)"
LINE = "var(--vk-line, #8c959f)"
SURFACE = "var(--vk-surface, transparent)"
HALO = "var(--vk-ground, transparent)"
"""Behind text that stands on lines: the colour of the page."""
ACCENT = "var(--vk-accent, #3b82c4)"
COMPUTE = "var(--vk-compute, #3b82c4)"
INSTALL = "var(--vk-install, #d9822b)"


class State(Enum):
    """How a thing stands, as its colour and a sign that needs no colour."""

    PLAIN = "plain"
    SOURCE = "source"
    FRESH = "fresh"
    STALE = "stale"
    FAILED = "failed"

    @property
    def colour(self) -> str:
        match self:
            case State.PLAIN:
                return LINE
            case State.SOURCE:
                return "var(--vk-source, #7f6ad6)"
            case State.FRESH:
                return "var(--vk-fresh, #2da44e)"
            case State.STALE:
                return "var(--vk-stale, #c77d0a)"
            case State.FAILED:
                return "var(--vk-failed, #d1434b)"


def element(name: str, *children: str, text: str = "", **attributes: object) -> str:
    """An element. Attributes are escaped, ``None`` is left out, ``_`` stands for ``-``; ``text`` is escaped,
    ``children`` are elements already.

    >>> element("text", text="a < b", text_anchor="end", x=1.25, id=None)
    '<text text-anchor="end" x="1.2">a &lt; b</text>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shown(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = escape(_clean(text), quote=False) + "".join(children)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def drawing(name: str, title: str, description: str, size: tuple[float, float], body: Iterable[str]) -> str:
    """The whole picture. It is as wide as it needs to be; a page may make it smaller."""
    width, height = (round(each) for each in size)
    return element(
        "svg",
        element("title", text=title),
        element("desc", text=description),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"vk-drawing vk-{name}",
        role="group",
        aria_label=title,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family=FONT,
        font_size=13,
        fill=INK,
    )


def linked(href: str | None, label: str, *children: str) -> str:
    """A group that a person can follow, if there is somewhere to go."""
    if href is None:
        return element("g", *children, role="img", aria_label=_clean(label))
    return element("a", *children, href=href, class_="vk-link", aria_label=_clean(label))


BOLD = 1.1
"""How much wider a text is in bold."""


def text_width(text: str, size: float = 13) -> float:
    """About how wide a text is, rather too much than too little: there is no font to ask.

    >>> text_width("il") < text_width("mm") < text_width("漢字")
    True
    """
    return sum(_width(character) for character in text) * size


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, its middle left out.

    >>> shortened("revenue_by_nation_and_year", 16)
    'revenue_…nd_year'
    """
    if len(text) <= most:
        return text
    behind = (most - 1) // 2
    return f"{text[: most - 1 - behind]}…{text[len(text) - behind :]}"


def _width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in "iljtfrI.,:;|'!()[] ":
        return 0.38
    return 0.95 if character in "mwMW@%⋈" else 0.7 if character.isupper() else 0.62


def _shown(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else _clean(str(value))


def _clean(text: str) -> str:
    """Without the characters that XML has no way to write."""
    return "".join(each if each >= " " and each not in "\ufffe\uffff" else " " for each in text)
