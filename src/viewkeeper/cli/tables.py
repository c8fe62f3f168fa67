"""What the command line prints at the end, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table

from viewkeeper.results import (
    ConstraintCheck,
    Epoch,
    PropagatedView,
    SourceStatus,
    Upkept,
    Verification,
    ViewRefresh,
    ViewStatus,
)
from viewkeeper.sql.quoting import parse_path, show_path

if TYPE_CHECKING:
    from viewkeeper.learning import Estimate
    from viewkeeper.plan.prices import Rates

# Colour only where the eye should stop.
_STRATEGY_STYLE = {"incremental": "green", "full": "yellow", "unchanged": "dim"}


_LONG_NAME = 24
"""Names of views that are shorter stay in one piece."""


def refresh_table(views: Sequence[ViewRefresh]) -> Table:
    """What a refresh did to each view."""
    short = _short_names([view.view for view in views])
    notes = {view.view: _note(view, short) for view in views}
    reasons = ["reason"] if any(notes.values()) else []
    columns = ("view", "strategy", "Δ rows>", "+>", "−>", "~>", "compute>", "install>", *reasons)
    table = _table(*columns, names=short.values())
    for view in views:
        touched = view.strategy != "unchanged"
        table.add_row(
            short[view.view],
            _strategy(view.strategy),
            *(_count(n, shown=touched) for n in (view.delta_rows, view.inserted, view.deleted, view.updated)),
            _seconds(view.compute_seconds, shown=touched),
            _seconds(view.install_seconds, shown=touched),
            *(escape(notes[view.view]) for _ in reasons),
        )
    return table


def upkeep_table(views: Sequence[Upkept]) -> Table:
    """What was done to the files of each view."""
    table = _table("view", "files>", "now>", "expired>", "dropped>", "why")
    short = _short_names([view.view for view in views])
    for view in views:
        counts = (view.files_before, view.files_after, view.expired, view.dropped)
        stored_as = f"stored as {view.stored_as}" if view.stored_as else None
        why = "; ".join(each for each in (view.reason, stored_as) if each)
        table.add_row(short[view.view], *(_count(n, shown=True) for n in counts), escape(why))
    return table


def rates_table(rates: Rates) -> Table:
    """What operations take."""
    table = _table("operation", "fixed>", "M rows read>", "GB read>", "M rows changed>", "GB changed>")
    for operation, rate in rates.items():
        million, gigabyte = 1e6, 1e9
        shares = (
            rate.read_row * million,
            rate.read_byte * gigabyte,
            rate.changed_row * million,
            rate.changed_byte * gigabyte,
        )
        table.add_row(
            operation.value, *(f"{seconds:.2f} s" if seconds else "" for seconds in (rate.fixed, *shares))
        )
    return table


def propagated_table(views: Sequence[PropagatedView]) -> Table:
    """What waits to be installed."""
    short = _short_names([view.view for view in views])
    table = _table("view", "strategy", "+>", "−>", "~>", "compute>", names=short.values())
    for view in views:
        counts = (_count(n, shown=True) for n in (view.inserted, view.deleted, view.updated))
        table.add_row(
            short[view.view], _strategy(view.strategy), *counts, _seconds(view.compute_seconds, shown=True)
        )
    return table


def _note(view: ViewRefresh, short: Mapping[str, str]) -> str:
    """Why it was done so, and what was special about it."""
    upper = view.derived_from
    notes = [view.reason or ""]
    sign = "Δ " if view.strategy == "incremental" else ""
    notes += [f"{sign}from {short.get(upper, upper)}"] if upper else []
    notes += [f"{view.recomputed:,} groups lost their extremum"] if view.recomputed else []
    notes += [f"{count:,} rows break {name}" for name, count in view.violations.items()]
    return "; ".join(filter(None, notes))


def status_table(views: Sequence[ViewStatus]) -> Table:
    """How fresh each view is."""
    short = _short_names([view.view for view in views])
    table = _table("view", "state", "epoch>", "refreshed", "last", "kept", "reads", names=short.values())
    for view in views:
        table.add_row(
            short[view.view],
            _state(view),
            "" if view.epoch is None else str(view.epoch),
            _moment(view.refreshed_at),
            _strategy(view.strategy or ""),
            _kept(view),
            escape(", ".join(view.reads)),
        )
    return table


def problems(views: Sequence[ViewStatus]) -> list[str]:
    """Why the service could not refresh views, and what to do about those that it suspended."""
    told = []
    for view in views:
        if view.problem is not None:
            remedy = f"\nTo let it be tried again: viewkeeper resume {view.view}" if view.suspended else ""
            told.append(f"\n{view.view}: {view.problem}{remedy}")
    return told


def _state(view: ViewStatus) -> str:
    told = f"[yellow]{view.state}" if view.state != "fresh" else view.state
    if view.suspended:
        return f"{told}\n[red]suspended"
    return f"{told}\n[yellow]failed {view.failures} times" if view.failures else told


def _kept(view: ViewStatus) -> str:
    if not view.incremental:
        return f"by full recompute: {escape(view.reason or '')}"
    return f"swept, {view.consistency}" if view.consistency else "incrementally"


def sources_table(sources: Sequence[SourceStatus]) -> Table:
    """The declared sources."""
    table = _table("source", "kind", "state", "waiting>", "seen", "held as", "bad rows>")
    short = _short_names([view for source in sources for view in source.views])
    for source in sources:
        state = "[yellow]behind" if source.behind else "taken in"
        table.add_row(
            escape(source.name),
            source.kind,
            state if source.problem is None else f"[red]{escape(source.problem)}",
            _waiting(source),
            _moment(source.seen_at),
            ", ".join(short[view] for view in source.views),
            "" if source.bad_rows is None else f"{source.bad_rows:,}",
        )
    return table


def _waiting(source: SourceStatus) -> str:
    if source.lag_transactions is None:
        return ""
    since = f", {source.lag_seconds:,.0f} s" if source.lag_transactions and source.lag_seconds else ""
    return f"{source.lag_transactions:,} transaction{'s' if source.lag_transactions != 1 else ''}{since}"


def verification_table(found: Sequence[Verification]) -> Table:
    """Each view against its query."""
    short = _short_names([each.view for each in found])
    table = _table("view", "verdict", "missing>", "extra>", "epoch>", names=short.values())
    for each in found:
        verdict = "[green]exact" if each.ok else "[bold red]differs"
        missing, extra = _count(each.missing, shown=True), _count(each.extra, shown=True)
        table.add_row(short[each.view], verdict, missing, extra, str(each.epoch))
    return table


def constraints_table(found: Sequence[ConstraintCheck]) -> Table:
    """What a project declares of its tables."""
    table = _table("declared", "verdict", "violations>", "such as")
    for each in found:
        verdict = "[green]holds" if each.ok else "[bold red]broken"
        table.add_row(
            escape(each.constraint), verdict, _count(each.violations, shown=True), escape(each.example or "")
        )
    return table


def history_table(epochs: Sequence[Epoch]) -> Table:
    """The epochs, one row per view that moved; newest first."""
    table = _table("epoch>", "published", "view", "strategy", "Δ rows>", "took>", "reason")
    short = _short_names([view.view for epoch in epochs for view in epoch.views])
    for epoch in epochs:
        number, moment = str(epoch.id), _moment(epoch.published_at)
        for view in epoch.views or (None,):
            if view is None:
                table.add_row(number, moment, "[dim]no view changed")
            else:
                table.add_row(
                    number,
                    moment,
                    short[view.view],
                    _strategy(view.strategy),
                    _count(view.delta_rows, shown=True),
                    _seconds(view.compute_seconds + view.install_seconds, shown=True),
                    escape(view.reason or ""),
                )
            number = moment = ""
    return table


def view_history_table(epochs: Sequence[Epoch], view: str) -> Table:
    """What the epochs did to one view: how, what that was expected to take, and what it took; ``ratio``: how
    many times longer it took to compute the change than to install it."""
    table = _table("epoch>", "Δ rows>", "method", "expected>", "compute>", "install>", "ratio>", "reason")
    for epoch in epochs:
        for each in epoch.views:
            if each.view == view:
                expected, ratio = each.expected_seconds, each.compute_install_ratio
                table.add_row(
                    str(epoch.id),
                    _count(each.delta_rows, shown=True),
                    each.method or each.strategy,
                    _seconds(expected or 0.0, shown=expected is not None),
                    _seconds(each.compute_seconds, shown=True),
                    _seconds(each.install_seconds, shown=True),
                    "" if ratio is None else f"{ratio:.1f}",
                    escape(each.reason or ""),
                )
    return table


def estimates_table(estimates: Sequence[Estimate]) -> Table:
    """What was estimated and what it was; newest first."""
    table = _table("epoch>", "view", "delta of", "estimated>", "actual>", "times>")
    short = _short_names([each.view for each in estimates])
    for each in estimates:
        table.add_row(
            str(each.epoch),
            short[each.view],
            escape(each.part),
            _count(each.estimated, shown=True),
            _count(each.actual, shown=True),
            f"{each.factor:.2f}",
        )
    return table


def summary_line(epoch: Epoch) -> str:
    """One sentence under the closing table."""
    moved = [view for view in epoch.views if view.strategy != "unchanged"]
    if not moved:
        return f"Nothing changed: epoch {epoch.id} is up to date."
    by_deltas = sum(view.strategy == "incremental" for view in moved)
    total = sum(epoch.seconds.values())
    took = f" in {total:.1f} s" if total else ""
    ways = f"{by_deltas} by deltas, {len(moved) - by_deltas} in full"
    return f"Epoch {epoch.id} published{took}: {len(moved)} views, {ways}."


def _table(*columns: str, names: Iterable[str] = ()) -> Table:
    """A plain table; a name that ends in ``>`` heads a column of numbers. ``names``: of the views in it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    unbroken = {"strategy", "method", "operation", "verdict", "state", "last"}
    if max(map(len, names), default=_LONG_NAME) < _LONG_NAME:
        unbroken.add("view")
    for name in columns:
        numeric = name.endswith(">")
        # On a narrow terminal words may be broken; a number that lost its last digit would be a lie.
        whole = numeric or name in unbroken
        table.add_column(
            name.removesuffix(">"), justify="right" if numeric else "left", no_wrap=whole, overflow="fold"
        )
    return table


def _short_names(views: Sequence[str]) -> dict[str, str]:
    """The names without the catalog and namespace, where all of them have the same."""
    paths = {view: parse_path(view) for view in views}
    alike = len({path[:-1] for path in paths.values()}) == 1
    return {view: escape(show_path(path[-1:]) if alike else view) for view, path in paths.items()}


def _strategy(name: str) -> str:
    style = _STRATEGY_STYLE.get(name)
    return f"[{style}]{name}" if style else name


def _count(number: int, *, shown: bool) -> str:
    return f"{number:,}" if shown else ""


def _seconds(seconds: float, *, shown: bool) -> str:
    return f"{seconds:.2f} s" if shown else ""


def _moment(when: datetime | None) -> str:
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S") if when else ""
