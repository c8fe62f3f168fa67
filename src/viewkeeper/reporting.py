"""``viewkeeper report``: the state of a warehouse and its history, as one HTML file that needs nothing else.

Everything comes from the ledger. What people and databases wrote is escaped, and passwords are left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from viewkeeper import __version__
from viewkeeper.learning import Estimate
from viewkeeper.ledger import FailureRecord
from viewkeeper.markup import Safe, code, count, folded, moment, picture, seconds, table
from viewkeeper.outlines import Outline
from viewkeeper.overview import Overview
from viewkeeper.pictures import MOST_BARS, bars_of, graph_of, last_part
from viewkeeper.redacting import redacted, shown_options
from viewkeeper.results import Epoch, History, SourceStatus, Status

EPOCHS, REFRESHES, FAILURES = 20, 500, 20
"""How many epochs are listed, in how many refreshes estimates are looked for, how many failures are told."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: a title, a sentence under it, and HTML."""

    title: str
    parts: tuple[Safe, ...]
    note: str = ""


def report(overview: Overview, name: str, now: datetime) -> str:
    """The whole page; ``name``: of the project."""
    status, history = overview.status(), overview.history(limit=MOST_BARS)
    failures, last = overview.failures(limit=FAILURES), next(iter(history), None)
    template = (files("viewkeeper.resources") / "report.html.j2").read_text(encoding="utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(template)
    return page.render(
        name=name,
        made=moment(now),
        version=__version__,
        last=None if last is None else {"id": last.id, "published": moment(last.published_at)},
        figures=_figures(status, history),
        sections=list(_sections(overview, status, history, failures)),
    )


def _figures(status: Status, history: History) -> list[tuple[str, str]]:
    fresh = sum(view.state == "fresh" for view in status)
    took = [sum(epoch.seconds.values()) for epoch in history]
    by_deltas = [view.strategy == "incremental" for epoch in history for view in epoch.views]
    return [
        ("views", count(len(status))),
        ("fresh", count(fresh)),
        ("stale or empty", count(len(status) - fresh)),
        *([("an epoch takes", seconds(statistics.median(took)))] if took else []),
        *([("refreshes by deltas", f"{sum(by_deltas) / len(by_deltas):.0%}")] if by_deltas else []),
    ]


def _sections(
    overview: Overview, status: Status, history: History, failures: Sequence[FailureRecord]
) -> Iterator[Section]:
    none = Safe("<p>No views yet.</p>")
    yield Section("The graph", (picture(graph_of(status)),) if status else (none,))
    outlines = overview.outlines()
    yield Section("Views", (_views(status, history), *_queries(outlines)) if status else (none,))
    yield _epochs(history)
    yield _estimates(overview.estimates(limit=REFRESHES))
    yield _expectations(outlines, history)
    yield _failures(failures)
    yield _sources(overview.sources())


def _views(status: Status, history: History) -> Safe:
    """How fresh each view is, and what its refreshes take."""
    took: dict[str, list[float]] = {}
    for epoch in history:
        for view in epoch.views:
            if view.strategy != "unchanged":
                took.setdefault(view.view, []).append(view.compute_seconds + view.install_seconds)
    columns = ("view", "state", "epoch>", "refreshed", "last", "in the median>", "kept", "reads")
    return table(
        columns,
        [
            (
                view.view,
                view.state,
                "" if view.epoch is None else view.epoch,
                moment(view.refreshed_at),
                view.strategy or "",
                seconds(statistics.median(took[view.view])) if view.view in took else "",
                "incrementally" if view.incremental else f"by full recompute: {view.reason}",
                ", ".join(map(last_part, view.reads)),
            )
            for view in status
        ],
    )


def _queries(outlines: Mapping[str, Outline]) -> tuple[Safe, ...]:
    return tuple(
        folded(f"The query of {name}", code(outline.query))
        for name, outline in outlines.items()
        if not outline.hidden
    )


def _epochs(history: History) -> Section:
    if not history:
        return Section("Epochs", (Safe("<p>No epochs yet.</p>"),))
    note = f"Seconds of computing and installing in the last {len(history)} epochs; below, the last {EPOCHS}."
    columns = (
        "epoch>",
        "published",
        "view",
        "strategy",
        "Δ rows>",
        "compute>",
        "install>",
        "expected>",
        "reason",
    )
    rows = [row for epoch in history[:EPOCHS] for row in _refreshes(epoch)]
    return Section("Epochs", (picture(bars_of(history)), table(columns, rows)), note)


def _refreshes(epoch: Epoch) -> Iterator[tuple[object, ...]]:
    head: tuple[object, object] = (epoch.id, moment(epoch.published_at))
    if not epoch.views:
        yield (*head, "no view changed", *[""] * 6)
    for view in epoch.views:
        expected = view.expected_seconds
        yield (
            *head,
            last_part(view.view),
            view.strategy,
            count(view.delta_rows),
            seconds(view.compute_seconds),
            seconds(view.install_seconds),
            "" if expected is None else seconds(expected),
            view.reason or "",
        )
        head = ("", "")


def _estimates(found: Sequence[Estimate]) -> Section:
    """How well the sizes of deltas were foreseen: how many times more rows there were than estimated."""
    title = "Estimates of deltas"
    if not found:
        return Section(title, (Safe("<p>Nothing was counted yet.</p>"),))
    parts: dict[tuple[str, str], list[Estimate]] = {}
    for each in found:
        parts.setdefault((each.view, each.part), []).append(each)
    rows = [
        (
            view,
            part,
            len(counted),
            count(counted[0].estimated),
            count(counted[0].actual),
            f"{statistics.median(each.factor for each in counted):.2f}",
            f"{max((each.factor for each in counted), key=lambda factor: max(factor, 1 / factor)):.2f}",
        )
        for (view, part), counted in parts.items()
    ]
    columns = (
        "view",
        "delta of",
        "counted>",
        "estimated last>",
        "held last>",
        "times, median>",
        "times, worst>",
    )
    note = "How many times more rows there were than estimated: 1.00 is exact."
    return Section(title, (table(columns, rows),), note)


def _expectations(outlines: Mapping[str, Outline], history: History) -> Section:
    """What is expected of rows, and how many came that broke it."""
    broken: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for epoch in history:  # newest first
        for refreshed in epoch.views:
            for name, violations in refreshed.violations.items():
                broken.setdefault((refreshed.view, name), []).append((epoch.id, violations))
    declared = {
        (view, each.name): (each.predicate, each.on_violation.value)
        for view, outline in outlines.items()
        for each in outline.expectations
    }
    if not declared and not broken:
        return Section("Expectations", (Safe("<p>Nothing is expected of the rows of the views.</p>"),))
    rows: list[tuple[object, ...]] = []
    for view, name in dict.fromkeys((*declared, *broken)):
        predicate, action = declared.get((view, name), ("", ""))
        times = broken.get((view, name), [])
        total = sum(each for _, each in times)
        rows.append((view, name, predicate, action, count(total), times[0][0] if times else ""))
    columns = ("view", "expectation", "of every row", "on violation", "rows that broke it>", "last in epoch>")
    note = f"In the last {len(history)} epochs."
    return Section("Expectations", (table(columns, rows),), note)


def _failures(failures: Sequence[FailureRecord]) -> Section:
    title = "Epochs that failed"
    if not failures:
        return Section(title, (Safe("<p>None.</p>"),))
    died = "its process stopped without a word"
    rows = [
        (
            each.epoch,
            moment(each.begun_at),
            moment(each.failed_at),
            each.holder,
            redacted(each.error or died),
        )
        for each in failures
    ]
    note = "Nothing of these was published; every view stayed as it was."
    return Section(title, (table(("epoch>", "begun", "given up", "by", "why"), rows),), note)


def _sources(sources: Sequence[SourceStatus]) -> Section:
    if not sources:
        said = "<p>None are declared. Tables of the catalog need no declaration.</p>"
        return Section("Declared sources", (Safe(said),))
    rows = [
        (
            source.name,
            source.kind,
            "failed" if source.problem else "stale" if source.behind else "fresh",
            redacted(source.problem or ""),
            moment(source.seen_at),
            ", ".join(map(last_part, source.views)),
            "" if source.bad_rows is None else count(source.bad_rows),
            ", ".join(f"{key}={value}" for key, value in shown_options(source.options).items()),
        )
        for source in sources
    ]
    columns = ("source", "kind", "state", "problem", "seen", "held as", "bad rows>", "options")
    return Section("Declared sources", (table(columns, rows),))
