"""What the shell can complete: the names of views and sources, from the ledger and without Spark.

A person who presses the tab key wants names or nothing: whatever goes wrong, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def views(ctx: Any, incomplete: str) -> list[str]:
    """The views that begin so: by their last part, or by their full name if that is what is being typed."""
    return _known(ctx, incomplete, lambda overview: overview.views())


def sources(ctx: Any, incomplete: str) -> list[str]:
    """The declared sources that begin so."""
    return _known(ctx, incomplete, lambda overview: overview.source_names())


def _known(ctx: Any, incomplete: str, names: Callable[[Any], Iterable[str]]) -> list[str]:
    try:
        from viewkeeper.cli.opening import find_place, ledger_url
        from viewkeeper.ledger import Ledger
        from viewkeeper.overview import Overview

        given = ctx.params.get("project")
        place = find_place(Path(given) if given else None)
        with Ledger.open(ledger_url(place, create=False)) as ledger:
            return _beginning(names(Overview(ledger, place.default)), incomplete)
    except Exception:
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    """
    >>> _beginning(["lake.default.sales", "lake.default.stores"], "sa")
    ['sales']
    >>> _beginning(["lake.default.sales", "lake.other.sales"], "lake.o")
    ['lake.other.sales']
    """
    from viewkeeper.sql.quoting import parse_path, show_path

    full = list(names)
    last = [show_path(parse_path(name)[-1:]) for name in full]
    short = [name for name in last if last.count(name) == 1 and name.startswith(incomplete)]
    return short or [name for name in full if name.startswith(incomplete)]
