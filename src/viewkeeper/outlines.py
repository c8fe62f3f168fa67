"""Views in outline: what the ledger says of them, without reading their algebra back.

Status, history and reports want names, tables and verdicts. The rest of an analysis is large, and the classes
that it is made of take longer to load than the answer may take.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.analyse.analysis import QueryText, Reason, TableHole
from viewkeeper.codec import Codec
from viewkeeper.define.definitions import NAMESPACE, Expectation, OnViolation
from viewkeeper.define.timing import Schedule, TargetLag, Timing
from viewkeeper.errors import NotFoundError, Position
from viewkeeper.ledger.records import ViewRecord
from viewkeeper.sql.quoting import parse_path, show_path

_CODEC = Codec((Position, Reason, TableHole, QueryText, OnViolation, Expectation, TargetLag, Schedule))
_STRONG = "strong"


@dataclass(frozen=True, slots=True)
class Outline:
    """A view as it was defined, what it reads, and whether it is kept by deltas."""

    name: str
    query: str
    policy: str | None
    expectations: tuple[Expectation, ...]
    tables: tuple[str, ...]
    """The tables and views that its rows are computed from."""
    incremental: bool
    reason: Reason | None
    joined: tuple[str, ...] | None = None
    """Of a view that is swept: the remote tables that its query names."""
    consistency: str | None = None
    """Of a view that is swept: which states of its tables it shows."""
    timing: Timing | None = None
    """How fresh the service keeps it."""

    @classmethod
    def of(cls, record: ViewRecord) -> Outline:
        """From the ledger's record."""
        definition, analysis = record.definition, record.analysis["analysis"]
        text: QueryText = _CODEC.decode(analysis["text"])
        joined = _joined(record.analysis.get("sources", {}))
        return cls(
            record.name,
            definition["query"],
            definition.get("policy"),
            _CODEC.decode(definition.get("expectations", [])),
            text.tables,
            analysis["relation"] is not None,
            _CODEC.decode(analysis["reason"]),
            joined,
            None if joined is None else definition.get("consistency") or _STRONG,
            _CODEC.decode(definition.get("timing")),
        )

    @property
    def hidden(self) -> bool:
        """Whether it was made by us, to keep an inner result of others."""
        return is_hidden(self.name)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables and views that it reads, as its query names them."""
        return self.tables if self.joined is None else self.joined


def is_hidden(view: str) -> bool:
    """Whether a view was made by us, to keep an inner result of others.

    >>> is_hidden("lake._viewkeeper.h_1"), is_hidden("lake.default.sales")
    (True, False)
    """
    return parse_path(view)[-2:-1] == (NAMESPACE,)


def _joined(sources: Mapping[str, Any]) -> tuple[str, ...] | None:
    for facts in sources.values():
        if "join" in facts:
            relations, _ = json.loads(facts["join"])
            return tuple(dict.fromkeys(".".join(parse_path(table)[1:]) for _, table, *_ in relations))
    return None


def find_view(name: str, views: Iterable[str], default: tuple[str, ...]) -> str:
    """The full name of a view, given by its full name or by its last parts; ``default`` is the catalog and
    namespace that go before."""
    known = list(views)
    full = lookup_view(name, known, default)
    if full is None:
        near = difflib.get_close_matches(name, [view.rsplit(".", 1)[-1] for view in known])
        hint = f"Did you mean {' or '.join(near)}?" if near else "SHOW MATERIALIZED VIEWS lists them."
        raise NotFoundError(f"there is no materialized view {name}", code="VK-UNKNOWN-VIEW", hint=hint)
    return full


def lookup_view(name: str, views: Iterable[str], default: tuple[str, ...]) -> str | None:
    """Like :func:`find_view`, but ``None`` when there is no such view."""
    try:
        parts = parse_path(name)
    except ValueError:
        parts = (name,)
    folded = {view.casefold(): view for view in views}
    candidates = [show_path((*default[: len(default) - keep], *parts)) for keep in range(len(default) + 1)]
    return next((folded[each.casefold()] for each in candidates if each.casefold() in folded), None)
