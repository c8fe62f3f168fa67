"""What the commands print: text for people, or one JSON document for machines.

The JSON documents are stable; ``format`` is raised if one ever changes its meaning. Fields may be added.

==========  =====================================================================================
command     document (besides ``format``)
==========  =====================================================================================
init        ``project``, ``files``
plan        ``views`` [{view, strategy, reason, changed}], ``pending`` [str], ``plan`` (the steps);
            with ``--stored`` the last two are null, and ``seen`` {source: time}
refresh     ``applied`` [str], ``epoch`` {id, published_at, seconds, source_versions, views, skipped}
propagate   ``id``, ``source_versions``, ``views`` [{view, strategy, inserted, deleted, updated, …}]
repair      ``epoch``, as for refresh
explain     ``view``, ``incremental``, ``reason``, ``strategy``, ``sql``
status      ``views`` [{view, epoch, refreshed_at, strategy, incremental, reason, stale, versions, reads, …}]
resume      ``view``, ``resumed``
verify      ``ok``, ``views`` [{view, ok, missing, extra, epoch}]; with ``--constraints``:
            ``ok``, ``constraints`` [{constraint, ok, violations, example}]
history     ``epochs`` [epoch, as for refresh], newest first; with ``--estimates``:
            ``estimates`` [{epoch, view, part, estimated, actual, factor}]
sources     ``sources`` [{name, kind, options, views, version, seen, lag_transactions, lag_seconds, …}]
sweep       ``algorithm``, ``level``, ``updates``, ``queries``, ``rows_in_queries``, ``events`` [event]
doctor      ``ok``, ``checks`` [{name, state (ok, warn or fail), found, remedy}]
report      ``file``
demo        ``rows``, ``seconds`` {way: seconds}, ``verified``
an error    ``error`` {code, message, hint, position {line, column}}
==========  =====================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from viewkeeper.errors import ViewkeeperError

FORMAT = 1


class Output:
    """Where a command's answer goes: results to standard output, the rest to standard error."""

    def __init__(self, *, json: bool = False, results: Console | None = None, notes: Console | None = None):
        self.json = json
        self.results = results or Console()
        self.notes = notes or Console(stderr=True)

    def answer(self, document: Mapping[str, Any], *texts: RenderableType) -> None:
        """The command's result: the document with ``--json``, else the texts."""
        if self.json:
            print(to_json({"format": FORMAT, **document}), file=self.results.file)
        else:
            self.say(*texts)
        self.results.file.flush()  # a reader that has gone is noticed here, and not at the end of Python

    def say(self, *texts: RenderableType) -> None:
        """Texts for people, on standard output; nothing with ``--json``."""
        if not self.json:
            for text in texts:
                # SQL and names are printed as they are: neither taken for markup nor broken into lines.
                plain = isinstance(text, str)
                self.results.print(text, markup=not plain, highlight=False, soft_wrap=plain)

    def note(self, text: str) -> None:
        """Something worth saying that is not the result."""
        if not self.json:
            self.notes.print(text, markup=False, highlight=False)

    def error(self, error: ViewkeeperError) -> None:
        """An error, without a traceback."""
        if self.json:
            print(to_json({"format": FORMAT, "error": error_document(error)}), file=self.results.file)
        else:
            self.notes.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)


def error_document(error: ViewkeeperError) -> dict[str, Any]:
    """An error as data."""
    position = error.position
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "position": {"line": position.line, "column": position.column} if position else None,
    }


def to_json(document: Mapping[str, Any]) -> str:
    """As JSON text, readable and in a fixed order."""
    return json.dumps(document, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
