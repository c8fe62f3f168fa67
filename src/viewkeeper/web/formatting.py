"""How values are written on pages. The templates escape everything; only drawings are markup already."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from viewkeeper import __version__
from viewkeeper.ledger.records import PastRefresh
from viewkeeper.plan.propagation import in_bytes
from viewkeeper.redacting import redacted
from viewkeeper.sql.keywords import KEYWORDS
from viewkeeper.sql.quoting import parse_path
from viewkeeper.survey.pictures import age


def environment() -> Environment:
    """The templates, with the words that they use."""
    made = Environment(
        loader=PackageLoader("viewkeeper.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": count,
        "seconds": seconds,
        "ago": ago,
        "moment": moment,
        "label": label,
        "brief": brief,
        "redacted": redacted,
        "bytes": in_bytes,
        "times": times,
    }
    made.globals |= {"view_url": view_url, "epoch_url": epoch_url, "version": __version__}
    return made


def view_url(name: str) -> str:
    """The page of a view; a name may hold anything, so all of it is encoded.

    >>> view_url("lake.default.`a/../b%`")
    '/views/lake.default.%60a%2F..%2Fb%25%60'
    """
    return f"/views/{quote(name, safe='')}"


def epoch_url(number: int) -> str:
    """The page of an epoch."""
    return f"/epochs/{number}"


def count(number: int | None) -> str:
    """
    >>> count(12345), count(None)
    ('12,345', '')
    """
    return "" if number is None else f"{number:,}"


def seconds(value: float | None) -> str:
    """
    >>> seconds(0.004), seconds(0.234), seconds(75.3), seconds(None)
    ('4 ms', '0.23 s', '1 min 15 s', '')
    """
    if value is None:
        return ""
    if 0 < value < 0.01:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.{2 if value < 10 else 1}f} s"
    return f"{value // 60:.0f} min {value % 60:.0f} s"


def times(value: float) -> str:
    """
    >>> times(2.0), times(0.5)
    ('2.0×', '0.50×')
    """
    return f"{value:.1f}×" if value >= 1 else f"{value:.2f}×"


def moment(when: datetime | None) -> str:
    """A time in full."""
    return "" if when is None else when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(when: datetime | None) -> Markup:
    """A time as its age, which the page keeps up."""
    if when is None:
        return Markup("")
    shown = age(when, datetime.now(timezone.utc))
    return Markup('<time datetime="{}" title="{}" data-age>{} ago</time>').format(
        when.astimezone(timezone.utc).isoformat(), moment(when), shown
    )


def label(name: str) -> str:
    """The last part of a name, or what is given if it is none.

    >>> label("lake.default.`a b`"), label("`")
    ('a b', '`')
    """
    try:
        return parse_path(name)[-1]
    except ValueError:
        return name


def brief(text: str | None, most: int = 24) -> str:
    """Versions can be long; their beginning and end tell them apart."""
    if text is None:
        return "none"
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2 - 1) :]}"


def drawn(svg: str) -> Markup:
    """A drawing, which is escaped within."""
    return Markup(svg)


def chart_data(history: Sequence[PastRefresh]) -> str:
    """What the chart of a view's history shows, oldest first, as JSON."""
    moved = [past for past in reversed(history) if past.refresh.strategy != "unchanged"]
    series: Mapping[str, Any] = {
        "epochs": [past.epoch for past in moved],
        "compute": [round(past.refresh.compute_seconds, 3) for past in moved],
        "install": [round(past.refresh.install_seconds, 3) for past in moved],
        "rows": [past.refresh.delta_rows for past in moved],
        "strategy": [past.refresh.strategy for past in moved],
    }
    return json.dumps(series)


def told_sql(text: str) -> Markup:
    """SQL with its keywords marked, for the eye."""
    shown: list[Markup] = []
    word = ""
    for character in f"{text} ":
        if character.isalpha() or character == "_":
            word += character
            continue
        if word:
            is_keyword = word.upper() in _KEYWORDS
            shown.append(Markup("<b>{}</b>").format(word) if is_keyword else escape(word))
        word = ""
        shown.append(escape(character))
    return Markup("").join(shown[:-1])


_KEYWORDS = frozenset(word.upper() for word in KEYWORDS)
